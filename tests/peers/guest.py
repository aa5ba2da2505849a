# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine with a network card of QEMU's, its processor emulated too: what devtools/guest.sh has made.

Nothing of it is installed, and nothing of the machine around it can be touched by it. Its memory holds all
that it has; its console takes commands (devtools/guest-init).
"""
import json
import os
import pathlib
import re
import select
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ROOT / "build/guest"
MILLRACE = pathlib.Path(os.environ.get("MILLRACE", ROOT / "build/millrace"))
# An emulated processor on a machine that does other things too; what waits longer hangs.
PATIENCE_S = 300
# igb's ports, each behind a bridge of its own: on one bus their virtual functions would get in each other's way.
IGB = ["0000:01:00.0", "0000:02:00.0"]
HUGEPAGES = 224


def lacks_guest():
    reason = PARTS / "lacking"
    if reason.exists():
        return reason.read_text(encoding="utf-8").strip()
    if not (PARTS / "initrd").exists():
        return "none was made (./dev smoke --peers makes it)"
    if not MILLRACE.exists():
        return f"no {MILLRACE} was built"
    if (PARTS / "initrd").stat().st_mtime < MILLRACE.stat().st_mtime:
        return f"there is an older millrace in it (devtools/guest.sh {MILLRACE})"
    return None


def igb_options():
    """Two ports of an igb, wired to each other by a hub."""
    options = []
    for i in range(len(IGB)):
        options += ["-netdev", f"hubport,id=hub{i},hubid=0",
                    "-device", f"pcie-root-port,id=bridge{i},slot={i},chassis={i + 1}",
                    "-device", f"igb,netdev=hub{i},bus=bridge{i},romfile="]
    return options


class Report:
    """What a finished probe said: exit code, report, lines for people."""

    def __init__(self, code, report, said):
        self.code, self.said = code, said
        self.report = json.loads(report) if report else {}

    def __getitem__(self, key):
        return self.report[key]

    def __str__(self):
        return f"{self.code}\n{self.report}\n{self.said}"

    @property
    def levels(self):
        """{(pattern, actions): level} of all forms that were tried."""
        return {(cell["pattern"], cell["actions"]): cell["level"] for cell in self["cells"]}

    def forms(self, *levels):
        """Those that have one of the levels."""
        return {form for form, level in self.levels.items() if level in levels}

    def cell(self, *form):
        (found,) = [cell for cell in self["cells"] if (cell["pattern"], cell["actions"]) == form]
        return found


class Guest:
    """Boots it; ends by close()."""

    def __init__(self):
        # it goes when we go, however that is
        command = ["setpriv", "--pdeathsig", "KILL", str(PARTS / "qemu"), "-M", "q35", "-accel", "tcg,thread=multi",
                   "-cpu", "max", "-smp", "2", "-m", "1024", "-nographic", "-nodefaults", "-no-reboot",
                   "-serial", "stdio", "-kernel", str(PARTS / "kernel"), "-initrd", str(PARTS / "initrd"),
                   "-append", f"console=ttyS0 quiet loglevel=1 panic=-1 hugepages={HUGEPAGES}", *igb_options()]
        self.text = self.said = ""
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.wait_for("\n@ready@\n", PATIENCE_S)

    def wait_for(self, word, patience_s):
        """Reads until `word` comes; returns what came before, and keeps what comes after."""
        end = time.monotonic() + patience_s
        while word not in self.text:
            left = end - time.monotonic()
            assert left > 0, f"never: {word!r}; the guest said last:\n{self.said[-4000:]}"
            if not select.select([self.process.stdout], [], [], left)[0]:
                continue
            part = os.read(self.process.stdout.fileno(), 1 << 16).decode(errors="replace")
            assert part, f"the guest has ended with {self.process.wait(PATIENCE_S)}:\n{self.said[-4000:]}"
            self.text += part
            self.said += part
        before, _, self.text = self.text.partition(word)
        return before

    def type(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def run(self, command, patience_s=PATIENCE_S):
        """A line of the guest's shell: its exit code, and what it printed."""
        self.type(command)
        printed = self.wait_for("\n@end ", patience_s)
        return int(self.wait_for("@\n", patience_s)), printed

    def does(self, command):
        """One that succeeds; what it printed."""
        code, printed = self.run(command)
        assert code == 0, f"{command}: {code}\n{printed}"
        return printed

    def probe(self, *words):
        """`millrace probe`, given all the time that it takes; and nothing of it is there behind it."""
        code, _ = self.run(f"millrace probe --json --timeout {2 * PATIENCE_S} --step-timeout {PATIENCE_S // 3} "
                           f"{' '.join(words)} >/run/report 2>/run/said", 3 * PATIENCE_S)
        report = Report(code, self.does("cat /run/report"), self.does("cat /run/said"))
        assert self.run("pidof millrace")[0] != 0, report
        assert self.free_hugepages() == HUGEPAGES, report
        return report

    def free_hugepages(self):
        return int(re.search(r"HugePages_Free: +(\d+)", self.does("cat /proc/meminfo"))[1])

    def close(self):
        self.type("poweroff -f")
        assert self.process.wait(PATIENCE_S) == 0, self.said[-4000:]

    def kill(self):
        """However it stands."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
