# SPDX-License-Identifier: BSD-3-Clause
"""Threads of another process that get no turn, and a process that is caught at its fork: by ptrace(2).

Where that is not allowed the test is skipped."""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess

import pytest

# linux/ptrace.h, linux/wait.h
TRACEME, CONT, DETACH, SETOPTIONS, GETEVENTMSG, SEIZE, INTERRUPT = (
    0, 7, 17, 0x4200, 0x4201, 0x4206, 0x4207)
O_TRACEFORK, EVENT_FORK = 2, 1
WALL = 0x40000000

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


def ptrace(request, thread, data=None):
    if LIBC.ptrace(request, thread, None, data) == 0:
        return
    error = ctypes.get_errno()
    if request in (SEIZE, SETOPTIONS):
        pytest.skip(f"ptrace: {os.strerror(error)}")
    raise OSError(error, os.strerror(error))


def thread_of(process, name):
    """The number of the thread of this name."""
    (found,) = [int(task.name) for task in pathlib.Path(f"/proc/{process}/task").iterdir()
                if (task / "comm").read_text().strip() == name]
    return found


@contextlib.contextmanager
def halted(process, name):
    """Meanwhile this thread of the process does not run; all others do."""
    thread = thread_of(process, name)
    ptrace(SEIZE, thread)
    ptrace(INTERRUPT, thread)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        ptrace(DETACH, thread)


def stopped_at_fork(command):
    """Starts a program; returns it and the number of the first process that it forks, both stopped there."""
    # pylint: disable-next=subprocess-popen-preexec-fn,consider-using-with
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: LIBC.ptrace(TRACEME, 0, None, None))
    os.waitpid(process.pid, WALL)  # at its exec
    ptrace(SETOPTIONS, process.pid, O_TRACEFORK)
    ptrace(CONT, process.pid)
    while True:
        _, status = os.waitpid(process.pid, WALL)
        assert os.WIFSTOPPED(status), f"it ended, {status:#x}, and has forked nothing"
        if status >> 8 == signal.SIGTRAP | EVENT_FORK << 8:
            break
        ptrace(CONT, process.pid, os.WSTOPSIG(status))
    child = ctypes.c_ulong()
    ptrace(GETEVENTMSG, process.pid, ctypes.addressof(child))
    os.waitpid(child.value, WALL)
    return process, child.value


def let_go(process):
    """It runs on."""
    ptrace(DETACH, process)
