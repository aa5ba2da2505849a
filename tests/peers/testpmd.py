# SPDX-License-Identifier: BSD-3-Clause
"""The distribution's dpdk-testpmd, unmodified, with the simulated NIC loaded; spoken to at its prompt.

While packets come, their lines and the prompt's single characters mix: what a packet is said to be is
one write() of testpmd's, the prompt is one for each character. So nothing is read from the prompt
then; whether all packets have come is asked by telemetry.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import time
import tty

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVER = pathlib.Path(os.environ.get("FLOWSIM", ROOT / "build/drivers/flowsim/librte_net_flowsim.so"))
PROMPT = "testpmd> "
# No machine that anybody uses takes so long; what waits longer hangs.
PATIENCE_S = 60


def lacks_driver():
    if not DRIVER.exists():
        return f"no {DRIVER.name} was built: no DPDK driver headers (./dev setup)"
    for parent in DRIVER.resolve().parents:
        if parent.stat().st_mode & 0o002:
            return f"EAL takes no driver from below {parent}, where anybody may write"
    return None


def eal_directory(runtime, prefix):
    """Where EAL keeps its files and sockets: root's are not where the environment says."""
    return (pathlib.Path("/var/run") if os.geteuid() == 0 else runtime) / "dpdk" / prefix


def ask_telemetry(directory, command, name="dpdk_telemetry.v2"):
    """A command of DPDK's telemetry, by the socket in an EAL directory, and what it answers to it.

    `name` is another one where several programs have the same directory.
    """
    path = directory / name
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(path))
        client.recv(1 << 16)
        client.send(command.encode())
        return json.loads(client.recv(1 << 16))[command.partition(",")[0]]


def two_processors():
    """EAL's lcores 0 and 1, on the last two processors that are ours (or both on one)."""
    ours = sorted(os.sched_getaffinity(0))[-2:]
    return f"0@{ours[0]},1@{ours[-1]}"


class Testpmd:
    """Devices as in --vdev; options are testpmd's own, behind `--`. Ends by close()."""
    __test__ = False  # no test, says pytest

    def __init__(self, runtime, *devices, options=(), mbufs=4096):
        prefix = f"millrace-{os.getpid()}-{runtime.name}"
        self.files = eal_directory(runtime, prefix)
        command = ["dpdk-testpmd", "--lcores", two_processors(), "--no-huge", "--no-pci",
                   "--file-prefix", prefix, "-m", "192", "-d", str(DRIVER)]
        for device in devices:
            command += ["--vdev", device]
        command += ["--", "-i", f"--total-num-mbufs={mbufs}", "--no-flush-rx", "--no-mlockall",
                    *options]
        self.text = self.said = ""
        self.terminal, theirs = pty.openpty()
        # no echo, no conversion: what comes is what it writes
        tty.setraw(theirs)
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(runtime), "TERM": "dumb"})
        os.close(theirs)
        self.wait_for(PROMPT)

    def read(self, seconds):
        """Takes what it says within so long; False: nothing came, None: it has ended."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self.terminal, 1 << 16).decode(errors="replace")
        except OSError:
            part = ""
        self.text += part
        self.said += part
        return True if part else None

    def wait_for(self, word):
        """Reads until `word` comes; returns what came before, and keeps what comes after."""
        self.until(lambda: word in self.text, repr(word))
        before, _, self.text = self.text.partition(word)
        return before

    def until(self, condition, what):
        """Looks again and again, and reads on meanwhile: it must not wait for who reads."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"never: {what}; it said last:\n{self.said[-2000:]}"
            if self.read(0.02) is None:
                raise AssertionError(f"testpmd has ended with {self.process.wait(PATIENCE_S)} before "
                                     f"{what}:\n{self.said[-4000:]}")

    def type(self, command):
        os.write(self.terminal, command.encode() + b"\n")

    def run(self, command):
        """What it answers to a command: the command as it was typed, the answer, the prompt."""
        self.text = ""
        self.type(command)
        self.wait_for(command.rstrip() + "\r\n")
        return self.wait_for(PROMPT).strip()

    def does(self, command, word):
        """A command whose answer has a certain word; the answer."""
        answer = self.run(command)
        assert word in answer, f"{command}\n{answer}"
        return answer

    def created(self, command):
        """A rule, as its number."""
        return int(re.search(r"Flow rule #(\d+) created", self.does(command, "created"))[1])

    def counted(self, rule, port=0):
        """Packets and bytes of a rule, by testpmd's query."""
        answer = self.does(f"flow query {port} {rule} count", "COUNT:")
        return [int(re.search(rf" {what}: (\d+)", answer)[1]) for what in ("hits", "bytes")]

    def xstats(self, port=0):
        found = re.findall(r"^(\w+): (\d+)$", self.run(f"show port xstats {port}"), re.MULTILINE)
        return {name: int(value) for name, value in found}

    def telemetry(self, command):
        return ask_telemetry(self.files, command)

    def packets(self, port=0):
        """How many it has received, by telemetry."""
        return self.telemetry(f"/ethdev/stats,{port}")["ipackets"]

    def verbose(self):
        """It prints each packet that it receives, and keeps none."""
        self.does("set fwd rxonly", "Set rxonly")
        self.does("set verbose 1", "verbose level")

    def received(self, total, port=0):
        """Forwards until so many packets have come; there are no more. What it printed of them."""
        return self.forwards(lambda: self.packets(port) >= total, f"{total} packets",
                             lambda: self.packets(port) == total)

    def forwards(self, condition, what, after=lambda: True):
        """Forwards until something is so; what it printed meanwhile."""
        self.text = ""
        begin = len(self.said)
        self.type("start")
        self.until(condition, what)
        self.type("stop")
        self.wait_for("\nDone.\n")
        self.wait_for(PROMPT)
        assert after(), what
        return self.said[begin:]

    def close(self):
        """By `quit`, which must end it well: its exit code."""
        if self.process.poll() is None:
            self.type("quit")
            end = time.monotonic() + PATIENCE_S
            while self.read(1) is not None:
                assert time.monotonic() < end, self.said[-2000:]
        return self.process.wait(PATIENCE_S)

    def kill(self):
        """However it stands; nothing of it stays."""
        os.close(self.terminal)
        shutil.rmtree(self.files, ignore_errors=True)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def marks(text):
    """How many packets testpmd printed with each mark."""
    found = {}
    for mark in re.findall(r"FDIR matched ID=0x([0-9a-f]+)", text):
        found[int(mark, 16)] = found.get(int(mark, 16), 0) + 1
    return found
