# SPDX-License-Identifier: BSD-3-Clause
"""A terminal of any size in which the program runs, and what it shows: tmux."""
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import MILLRACE, SLOWER

LIMIT_S = 30


class Terminal:
    """`millrace WORDS` in a terminal of so many columns and rows. `before` and `after` are its settings."""

    def __init__(self, *words, cols=80, rows=24, **environment):
        if not shutil.which("tmux"):
            pytest.skip("no tmux here")
        # a socket's path is short: not below pytest's own directory
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="millrace-test-"))
        command = shlex.join([MILLRACE, *map(str, words)])
        script = self.directory / "script"
        script.write_text(f"cd {self.directory}\ntrap : INT\necho begun\nstty -g >before\n{command}\n"
                          "echo $? >code.part\nstty -g >after\nmv code.part code\nexec cat\n")
        self.environment = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
        self.environment.pop("NO_COLOR", None)
        self.environment.update(environment)
        self.term = environment.get("TERM", "screen")
        self.tmux("-f", os.devnull, "new-session", "-d", "-x", str(cols), "-y", str(rows),
                  f"TERM={self.term} exec sh {script}")

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-u", "-S", str(self.directory / "tmux"), *words], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env=self.environment, timeout=LIMIT_S * SLOWER)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.tmux("kill-server")
        finally:
            shutil.rmtree(self.directory)

    def screen(self, *more):
        """The lines that it shows now."""
        return self.tmux("capture-pane", "-p", *more).split("\n")[:-1]

    def text(self):
        return "\n".join(self.screen())

    def type(self, *keys):
        """Keys by tmux's names: "q", "Enter", "C-c"."""
        for key in keys:
            self.tmux("send-keys", key)

    def write(self, text):
        self.tmux("send-keys", "-l", text)

    def resize(self, cols, rows):
        self.tmux("resize-window", "-x", str(cols), "-y", str(rows))

    def until(self, condition, what):
        """Waits until the condition of its lines holds; returns them."""
        deadline = time.monotonic() + LIMIT_S * SLOWER
        while not condition(lines := self.screen()):
            assert time.monotonic() < deadline, f"waited in vain: {what}\n" + "\n".join(lines)
        return lines

    def shows(self, text):
        """Waits until it shows the text; returns the line that has it."""
        lines = self.until(lambda lines: any(text in line for line in lines), text)
        return next(line for line in lines if text in line)

    def hides(self, text):
        return self.until(lambda lines: not any(text in line for line in lines), f"no {text}")

    def code(self):
        """Waits for the end; the exit code. The terminal is as it was before."""
        path = self.directory / "code"
        self.until(lambda _: path.exists(), "the end")
        assert (self.directory / "before").read_text() == (self.directory / "after").read_text()
        if self.term != "vt100":  # which has one screen alone
            self.until(lambda lines: lines[0] == "begun", "what stood there before")
        assert self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}") == "0 1\n"
        return int(path.read_text())
