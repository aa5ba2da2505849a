# SPDX-License-Identifier: BSD-3-Clause
"""What both programs have in common here: a thread that is measured, and standing still meanwhile.

Only one of them runs at a time: the other one is stopped, by SIGSTOP, so that each has caches, memory
and processor to itself, as it would have them where it is used.
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import time
import typing

# Longest wait for anything that is not measured.
PATIENCE_S = 120
# Of one measurement. Before it so many packets, and one of each flow and direction, are not measured:
# caches fill anew after the other's turn.
INTERVAL_S = 1.0
WARM_PACKETS = 1 << 20
# Of what was received, how much must have been sent: the rest may be under way.
SENT_AT_LEAST = 0.999


class Failed(Exception):
    """Told in one line, perhaps with more lines below."""


class Moment(typing.NamedTuple):
    """Counters as of one moment; `cycles` as the program itself counts them, None where it does not."""
    cpu_ns: int
    received: int
    cycles: typing.Optional[int] = None


class Interval(typing.NamedTuple):
    """A packet's cost, by the kernel's account of the thread and by the program's own."""
    cpu_ns: float
    own_cycles: typing.Optional[float]


def cost(begin, end, sent, who):
    """The Interval between two Moments; Failed where packets did not come, or not go out.

    `sent` is what was sent from a little before the one until a little after the other.
    """
    received = end.received - begin.received
    if received <= 0:
        raise Failed(f"{who} has received no packet")
    if sent < SENT_AT_LEAST * received:
        raise Failed(f"{who} has sent {sent} packets of {received}")
    own = None if end.cycles is None else (end.cycles - begin.cycles) / received
    return Interval((end.cpu_ns - begin.cpu_ns) / received, own)


def take_priority():
    """The real-time priority that we were started with, for the measured threads; we do without it."""
    if os.sched_getscheduler(0) not in (os.SCHED_FIFO, os.SCHED_RR):
        return 0
    priority = os.sched_getparam(0).sched_priority
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return priority


def measured_cpu():
    """The last processor that is ours: there the threads are that are measured."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Failed("two processors are needed: one for what is measured, one for all else")
    return cpus[-1]


def other_cpus():
    return sorted(os.sched_getaffinity(0))[:-1]


class Apart:
    """Where programs live: a network namespace of their own each, ended when whoever started them is."""

    def __init__(self, cpus=None):
        self.prefix = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net"]
        if cpus:
            self.prefix += ["taskset", "--cpu-list", ",".join(map(str, cpus))]

    def popen(self, *command, **options):
        return subprocess.Popen([*self.prefix, *map(str, command)], stdin=subprocess.DEVNULL,
                                start_new_session=True, **options)


class Contender:
    """A program that carries packets; `process` is it, and moment() is its own business."""
    name = "?"
    process = None
    thread = None  # its number
    priority = 0  # of the thread in its turn, real-time; 0: as any other
    flows = 0

    def moment(self):
        raise NotImplementedError

    def packets(self):
        """How many it has received."""
        raise NotImplementedError

    def sent(self):
        """How many have gone out of its ports."""
        raise NotImplementedError

    def check(self):
        """Failed where it does not know all flows."""
        raise NotImplementedError

    def find_thread(self, word):
        """The number of the thread whose name begins so."""
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text(encoding="ascii").startswith(word):
                self.thread = int(task.name)
                return
        raise Failed(f"{self.name} has no thread {word}")

    def runs(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} has ended with {self.process.returncode}")

    def until(self, condition, what, every_s=0.01):
        """Looks again and again, and not any longer when it has ended."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(every_s)
            self.runs()
            if time.monotonic() > end:
                raise Failed(f"{self.name}: never {what}")

    def passes(self, packets):
        """Waits until so many more have come."""
        wanted = self.packets() + packets
        self.until(lambda: self.packets() >= wanted, f"{packets} packets")

    def cpu_ns(self):
        """Processor time of the measured thread, as the kernel has it on its books."""
        path = f"/proc/{self.process.pid}/task/{self.thread}/schedstat"
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[0])

    def booked(self):
        """The same, just booked: of a thread that runs the kernel does so at its ticks."""
        before = self.cpu_ns()
        self.until(lambda: self.cpu_ns() != before, "runs", every_s=0)
        return self.cpu_ns()

    def prefer(self, priority):
        policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
        os.sched_setscheduler(self.thread, policy, os.sched_param(priority))

    def halt(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.runs()

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def measure(self):
        """Its turn: goes on, is measured, stands still again."""
        self.go_on()
        self.prefer(self.priority)
        self.passes(max(WARM_PACKETS, 2 * self.flows))
        sent, begin = self.sent(), self.moment()
        time.sleep(INTERVAL_S)
        end, sent = self.moment(), self.sent() - sent
        self.prefer(0)
        self.check()
        self.halt()
        return cost(begin, end, sent, self.name)
