# SPDX-License-Identifier: BSD-3-Clause
"""`millrace run`, between the two ports that bring packets."""
import contextlib
import os
import subprocess

from contender import Apart, Contender, Failed, Moment
from engine import MILLRACE, Connection

# A table is filled to that share, as in the other benches.
FILLED = 0.875


class Ours(Contender):
    name = "millrace"

    def __init__(self, directory, devices, flows, words=()):
        """`words`: what else stands on its command line."""
        self.directory, self.flows = directory, flows
        self.connection = None
        command = [MILLRACE, "run", "--wire", "a,b", "--poll", "always", "--workers", "1",
                   "--flows", round(flows / FILLED), "--socket", directory / "socket", *words]
        for name, device in zip("ab", devices):
            command += ["--port", f"{name}={device}"]
        with open(directory / "said", "wb") as said:
            self.process = Apart().popen(*command, stdout=said, stderr=subprocess.STDOUT, cwd=directory,
                                         env={**os.environ, "XDG_RUNTIME_DIR": str(directory)})

    def begin(self):
        """It is there, and every flow is known."""
        self.until(self.answers, "answers")
        self.find_thread("worker")
        self.until(lambda: self.worker()["flows"] == self.flows, f"{self.flows} flows")

    def answers(self):
        try:
            self.connection = Connection(self.directory / "socket")
        except OSError:
            return False
        return True

    def runs(self):
        try:
            super().runs()
        except Failed as failed:
            said = (self.directory / "said").read_text(errors="replace").strip()
            raise Failed(f"{failed}: {said}") from None

    def worker(self):
        return self.connection.ask("worker show")[0][0]

    def packets(self):
        return self.worker()["received"]

    def moment(self):
        return Moment(self.booked(), self.packets())

    def sent(self):
        return sum(port["nic"]["tx_packets"] for port in self.connection.ask("port show")[0])

    def check(self):
        worker = self.worker()
        if worker["flows"] != self.flows:
            raise Failed(f"{self.name} knows {worker['flows']} of {self.flows} flows")
        if worker["dropped"]:
            raise Failed(f"{self.name} has dropped {worker['dropped']} packets")

    def close(self):
        """By SIGTERM, which must end it well."""
        self.connection.close()
        self.process.terminate()
        self.go_on()
        code = self.process.wait(60)
        if code != 0:
            raise Failed(f"{self.name} has ended with {code}")

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
