# SPDX-License-Identifier: BSD-3-Clause
"""The shell: lines from a pipe, and from a terminal with completion and history."""
import os
import pty
import select
import time

import pytest

from conftest import MILLRACE, SLOWER, run
from fake_engine import FakeEngine

PROMPT = "millrace> "


def lines(*text, args=()):
    return run("shell", *args, stdin="".join(f"{line}\n" for line in text).encode())


def test_lines_from_a_pipe():
    result = lines("help rule", "", "  # a comment", "rule check /dev/null # and another")
    assert result.code == 0, result.stderr
    assert b"grammar" in result.stdout


def test_a_line_that_fails_is_named_and_the_others_run():
    result = lines("flow lst", "help rule", '"open', "shell")
    assert result.code == 1
    assert "did you mean list?" in result.stderr
    assert [line for line in result.stderr.splitlines() if line.endswith("failed")] == [
        f"millrace: line {n} failed" for n in (1, 3, 4)]
    assert "a quote \" is open" in result.stderr
    assert b"grammar" in result.stdout


@pytest.mark.parametrize("word", ["quit", "exit"])
def test_what_follows_the_end_is_not_read(word):
    result = lines(word, "no such thing")
    assert result.code == 0 and not result.stderr and not result.stdout


def test_the_socket_is_told_to_each_line():
    with FakeEngine() as engine:
        result = lines("wire show", "config show --json", args=("--socket", engine.path))
    assert result.code == 0, result.stderr
    assert [request["ask"] for request in engine.requests] == ["wire show", "config show"]


def test_rules_go_to_the_engine_as_they_are_written():
    """What both languages have is the client's: `flow list`, but `flow list 0` is of rules."""
    rule = "flow create 0 ingress pattern eth / end actions drop / end"
    with FakeEngine() as engine:
        result = lines(rule, "testpmd> flow list 0", "set vxlan ip-version ipv4 vni 4", "flow list",
                       args=("--socket", engine.path))
    assert result.code == 0, result.stderr
    assert [(request["ask"], request["with"].get("rule")) for request in engine.requests] == [
        ("rule add", rule), ("rule add", "testpmd> flow list 0"),
        ("rule add", "set vxlan ip-version ipv4 vni 4"), ("flow list", None)]


def test_quotes_and_backslashes():
    with FakeEngine() as engine:
        lines("flow block 10.0.0.1 --reason 'two  words'", r"flow block 10.0.0.2 --reason a\ b",
              args=("--socket", engine.path))
    assert [request["with"]["reason"] for request in engine.requests] == ["two  words", "a b"]


@pytest.mark.parametrize("args, code", [(("--help",), 0), (("--sokcet", "x"), 2), (("word",), 2)])
def test_its_own_command_line(args, code):
    result = run("shell", *args)
    assert result.code == code
    assert bool(result.stdout) == (code == 0)


class Typist:
    """Somebody at a terminal."""

    def __init__(self, home, *args):
        self.shown = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", XDG_STATE_HOME=str(home), HOME=str(home))
            os.execv(MILLRACE, [str(MILLRACE), "shell", *args])

    def __enter__(self):
        self.until(PROMPT)
        return self

    def __exit__(self, *_):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)

    def until(self, text):
        """Reads until the text has been shown since the last call, and returns what has been."""
        end = time.monotonic() + 20 * SLOWER
        while text not in self.shown:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.terminal], [], [], left)[0], repr(self.shown)
            self.shown += os.read(self.terminal, 4096).decode(errors="replace")
        at = self.shown.index(text) + len(text)
        shown, self.shown = self.shown[:at], self.shown[at:]
        return shown

    def types(self, text):
        os.write(self.terminal, text.encode())


def test_completion_of_commands(tmp_path):
    with Typist(tmp_path) as typist:
        typist.types("wi\t")
        typist.until("re ")
        typist.types("\t\x15flow list --pro\t")
        typist.until("to ")
        typist.types("\t")
        typist.until("udplite")
        typist.types("u\t")
        typist.until("dp")


def test_completion_of_rules_and_of_both_languages(tmp_path):
    with Typist(tmp_path) as typist:
        typist.types("flow create 0 ingress pattern eth / ipv4 s\t")
        typist.until("rc ")
        typist.types("\t")
        assert "number of leading bits" in typist.until("prefix  ") + typist.until(PROMPT)
        typist.types("\x15flow \t")
        # a verb of the client, and one of rules
        shown = typist.until(PROMPT)
        assert "explain" in shown and "create" in shown
        # one that both have is shown once
        assert shown.count("\n  list ") == 1


def test_completion_behind_rule_add(tmp_path):
    with Typist(tmp_path) as typist:
        typist.types("rule add fl\t")
        typist.until("ow ")
        typist.types("\x15rule add --socket /x flow create 0 ingress pattern eth / ipv4 s\t")
        typist.until("rc ")
        typist.types("\t")
        assert "number of leading bits" in typist.until("prefix  ") + typist.until(PROMPT)
        typist.types("\x15rule add --js\t")
        typist.until("on ")
        typist.types("\x15rule add \t")
        shown = typist.until(PROMPT)
        assert "--socket" in shown and "\n  flow " in shown and "ADDR:PORT" not in shown
        typist.types("\x15help flow cre\t")
        typist.until("ate ")


@pytest.mark.parametrize("words, told", [
    (["flow", "create"], ["flow create {port}", "make a rule", "priority", "Pattern items: end void",
                          "Actions: end void", "rule grammar"]),
    (["flow", "indirect_action", "create"], ["flow indirect_action {port} create", "make an action that rules share"]),
    (["set", "vxlan"], ["set vxlan", "headers of vxlan_encap"]),
    (["add", "port", "meter", "policy"], ["add port meter policy"]),
    (["flow", "list"], ["Usage: millrace flow list "]),
])
def test_help_of_rules(words, told):
    """Of a command that only the rule language has; what both have is the client's."""
    text = run("help", *words).stdout.decode()
    assert all(part in text for part in told), text
    assert ("Pattern items" in text) == (words == ["flow", "create"])
    assert lines("help " + " ".join(words)).stdout.decode() == text


def test_help_of_no_command():
    for words in (["flow", "creat"], ["flow", "create", "drop"], ["nothing"]):
        result = run("help", *words)
        assert result.code == 2 and not result.stdout


def test_lines_are_remembered_for_their_user_alone(tmp_path):
    with Typist(tmp_path) as typist:
        typist.types("help rule\n")
        typist.until("grammar")
        typist.types("quit\n")
        os.waitid(os.P_PID, typist.pid, os.WEXITED | os.WNOWAIT)
    history = tmp_path / "millrace" / "history"
    assert "help" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600
    with Typist(tmp_path) as typist:
        typist.types("\x1b[A\x1b[A\n")  # two lines up: quit is the last one
        typist.until("grammar")


def test_an_interrupt_leaves_the_line(tmp_path):
    with Typist(tmp_path) as typist:
        typist.types("no such command")
        typist.until("command")
        typist.types("\x03")
        typist.until(PROMPT)
        typist.types("help rule\n")
        shown = typist.until("grammar")
        assert "no such command" not in shown


def test_an_interrupt_ends_what_runs(tmp_path):
    with FakeEngine([{"time": 0, "event": "x"}], stays=True) as engine, \
            Typist(tmp_path, "--socket", engine.path) as typist:
        typist.types("event follow --json\n")
        typist.until('"event":"x"')
        typist.types("\x03")
        typist.until(PROMPT)
        typist.types("help rule\n")
        typist.until("grammar")
