# SPDX-License-Identifier: BSD-3-Clause
"""Completion of bash and zsh: its words are those of the program's own help."""
import os
import pty
import re
import select
import shutil
import subprocess

import pytest

from conftest import MILLRACE, ROOT, SLOWER, run

SCRIPTS = ROOT / "packaging" / "completion"

BASH = r"""
source "$1"; program=$2; shift 2
compopt() { printf '(%s)\n' "${*: -1}"; }
COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
read -ra COMP_WORDS <<<"$COMP_LINE"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_millrace "$program"
printf '%s\n' "${COMPREPLY[@]}"
"""

# Stands in for what zsh has only while somebody types.
ZSH = r"""
script=$1; shift
_describe() { [[ $1 == -o ]] && shift; local item
	for item in "${(@P)2}"; do print -r -- "${item%%:*}"; done }
_files() { print '(default)' }
compadd() { local -a given
	while [[ $1 == -* ]]; do
		case $1 in (-a) given=("${(@P)2}"); shift 2;; (-S) given=(); shift 2;; (--) shift; break;; esac
	done
	print -rl -- $given "$@" }
compset() { [[ $1 == -P && $2 == '--*=' && $words[CURRENT] == --*=* ]] || return 1
	IPREFIX=${words[CURRENT]%%=*}= words[CURRENT]=${words[CURRENT]#*=} }
words=("$@") CURRENT=$# IPREFIX=
begun=${words[CURRENT]#--*=}
source "$script" | while IFS= read -r word; do
	[[ $word == "$begun"* || $word == '('* ]] && print -r -- $word
done
"""


def bash(*words):
    """What bash would offer for the last word."""
    return shell(["bash", "-c", BASH, "bash", SCRIPTS / "millrace.bash", MILLRACE, "millrace",
                  *words])


def zsh(*words):
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    return shell(["zsh", "-f", "-c", ZSH, "zsh", SCRIPTS / "_millrace", MILLRACE, *words])


def shell(command):
    result = subprocess.run(list(map(str, command)), capture_output=True, timeout=60 * SLOWER,
                            stdin=subprocess.DEVNULL, check=False)
    assert result.stderr == b""
    return set(result.stdout.decode().split())


SHELLS = pytest.mark.parametrize("offered", [bash, zsh])


def help_of(*words):
    result = run("help", *words)
    assert result.code == 0
    return result.stdout.decode()


def commands():
    return re.findall(r"^  ([a-z]+)  +", help_of(), re.M)


def verbs(command):
    """Of a noun; [] of a command that has none."""
    _, _, listed = help_of(command).partition("\nVerbs\n")
    return re.findall(r"^  ([a-z]+)  +", listed, re.M)


def all_commands():
    """Each with its verb, if it has verbs."""
    for command in commands():
        if command != "help":
            yield from [[command, verb] for verb in verbs(command)] or [[command]]


@SHELLS
def test_commands_and_verbs(offered):
    assert offered("") == {*commands(), "--version"}
    nouns = [command for command in commands() if command != "help" and verbs(command)]
    assert {"flow", "port", "worker", "wire", "drop", "event", "config", "rule"} <= set(nouns)
    for noun in nouns:
        assert offered(noun, "") == offered("help", noun, "") == set(verbs(noun))


@SHELLS
def test_every_option_of_every_command(offered):
    """What stands anywhere in a help as an option is offered, and nothing else."""
    for words in all_commands():
        listed = set(re.findall(r"^  (--[a-z-]+)", help_of(*words), re.M))
        assert listed and offered(*words, "--") == listed, words


@SHELLS
def test_values_are_what_the_program_takes(offered):
    """Each is taken, and all that the error names: no engine is there, so 1 and not 2."""
    for option, sure in (("--proto", "udp"), ("--state", "time-wait"), ("--by", "bytes"),
                         ("--offload", "in_hw")):
        values = offered("flow", "list", option, "")
        assert sure in values and values == offered("flow", "list", f"{option}=")
        for value in values:
            result = run("flow", "list", "--top", "1", option, value, "--socket", "/nowhere")
            assert result.code == 1, result.stderr
    assert offered("flow", "list", "--state", "op") == {"open"}


@SHELLS
def test_places(offered):
    """A FLOW ends with its protocol, wherever options stand."""
    flow = ("10.0.0.1:1", "--wire", "3", "[2001:db8::1]:443")
    assert offered("flow", "explain", *flow[:3], "") == set()
    assert {"tcp", "icmp6"} <= offered("flow", "kill", *flow, "")
    assert offered("flow", "kill", *flow, "tc") == {"tcp"}
    assert offered("flow", "kill", *flow, "--zo") == {"--zone"}
    assert offered("flow", "list", "--port", "") == set()
    assert "--json" in offered("flow", "list", "--port", "1", "")


@SHELLS
def test_files(offered):
    for words in (["replay", ""], ["replay", "a", "b"], ["replay", "--output", ""],
                  ["config", "check", ""], ["rule", "check", ""], ["wire", "show", "--socket", "/"]):
        assert offered(*words) == {"(default)"}, words


@SHELLS
def test_words_of_other_commands(offered):
    assert offered("replay", "--tcp", "") == {"strict"}
    assert offered("replay", "--fragments", "") == {"follow", "separate"}
    names = offered("replay", "--timeout", "")
    assert {"tcp-open", "icmp"} <= {name.rstrip("=") for name in names - {"(nospace)"}}
    if "run" in commands():
        there = {name for name in os.listdir("/sys/class/net")
                 if name != "lo" and os.path.islink(f"/sys/class/net/{name}")}
        assert offered("run", "--wire", "") == there
        assert offered("probe", "") == offered("probe", "--peer", "") == there


@SHELLS
def test_words_that_are_none(offered):
    assert offered("nonsense", "") == offered("flow", "nonsense", "") == set()
    assert offered("wir") == {"wire"}


def test_bash_knows_the_command():
    """Sourced, it is registered; and a program that is not there offers nothing."""
    script = f"source '{SCRIPTS}/millrace.bash'; complete -p millrace"
    result = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert result.stdout == b"complete -F _millrace millrace\n"
    assert shell(["bash", "-c", BASH, "bash", SCRIPTS / "millrace.bash", "/nowhere/millrace",
                  "millrace", ""]) == set()


def test_zsh_at_a_terminal(tmp_path):
    """The real thing: a word is completed where somebody types it."""
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    program = tmp_path / "millrace"
    program.symlink_to(MILLRACE)
    (tmp_path / ".zshrc").write_text(
        f"PS1='ready> '; PATH={tmp_path}:$PATH; fpath=('{SCRIPTS}' $fpath)\n"
        f"autoload -Uz compinit; compinit -u -D\n")
    master, slave = pty.openpty()
    environment = {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "dumb"}
    with subprocess.Popen(["zsh", "-i"], stdin=slave, stdout=slave, stderr=slave, env=environment,
                          start_new_session=True) as process:
        os.close(slave)
        try:
            expect(master, b"ready> ")
            os.write(master, b"millrace flow list --sta\t")
            expect(master, b"--state ")
            os.write(master, b"closi\t")
            expect(master, b"closing")
        finally:
            os.close(master)
            process.kill()


def expect(terminal, words):
    shown = b""
    while words not in shown:
        assert select.select([terminal], [], [], 60 * SLOWER)[0], shown
        shown += os.read(terminal, 4096)
