# SPDX-License-Identifier: BSD-3-Clause
"""`millrace top`: what a person sees of a running engine, and does with keys."""
import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time

import pytest

import frames
from conftest import MILLRACE, SLOWER, run
from fake_engine import END, GREETING, FakeEngine, line
from terminal import Terminal

ENDS = {53: ("10.0.0.1", 1000), 123: ("10.0.0.2", 1001), 443: ("10.0.0.3", 1002)}


@pytest.fixture(name="traffic")
def write_traffic(tmp_path):
    """Three flows; one has four packets of seven, and one two."""
    packets = [frames.udp(0, *ENDS[dport], "10.9.9.9", dport, size=100)
               for dport in (53, 123, 53, 443, 53, 123, 53)]
    return frames.write(tmp_path / "traffic.pcap", *packets)


@pytest.fixture(name="running")
def start_engine(simulated_nic, started, traffic):  # pylint: disable=unused-argument
    running = started(f"capture={traffic},pace=2000")
    running.until(lambda: len(running.flows()) == 3, "all flows")
    return running


def top(running, *words, **size):
    return Terminal("top", "--socket", running.socket, "--interval", "0.2", *words, **size)


def flow_lines(lines):
    return [text for text in lines if "10.9.9.9" in text]


@pytest.mark.parametrize("cols, rows", [(80, 24), (120, 40)])
def test_a_picture(running, cols, rows):
    with top(running, cols=cols, rows=rows) as terminal:
        lines = terminal.until(
            lambda lines: len(flow_lines(lines)) == 3 and "- bit/s" not in lines[1] and " %" in lines[5] and
            "-" not in lines[8][:16], "flows and rates")
        assert re.match(r" millrace \S+  up \d+(\.\d)? s  3 flows \(0 new/s\) +every 0.2 s$", lines[0])
        assert re.match(r" [1-9][\d.]*k? pkt/s  [1-9][\d.]*[kM] bit/s  0 drops/s  ", lines[1])
        assert lines[2].split()[0] == "port" and lines[3].split()[0] == "a" and \
            lines[4].split()[:2] == ["b", "up"]
        assert re.search(r"worker 0  \[.{12}\] +\d+ %", lines[5])
        assert lines[6] == " drops  none"
        # the busiest first, under the cursor
        assert lines[8][0] == ">" and "10.0.0.1:1000" in lines[8]
        assert "10.0.0.2:1001" in lines[9] and "10.0.0.3:1002" in lines[10]
        assert ("state" in lines[7]) == (cols == 120)
        assert lines[-1].endswith("? help  q quit") and " by rate, 1 to 3 of 3 listed" in lines[-1]
        assert max(map(len, lines)) <= cols and len(lines) == rows
        terminal.type("q")
        assert terminal.code() == 0


def test_too_small(running):
    """It says so, and goes on as soon as there is room."""
    with top(running, cols=40, rows=10) as terminal:
        terminal.shows("40x10; 60x16 or more needed")
        terminal.resize(80, 24)
        terminal.shows("10.0.0.1:1000")
        terminal.resize(40, 10)
        terminal.shows("too small a terminal")
        terminal.type("q")
        assert terminal.code() == 0


def test_sort_and_freeze(running):
    with top(running) as terminal:
        terminal.shows("10.0.0.1:1000")
        for key, title, order in (("p", "pkts", "packets"), ("y", "bytes", "bytes"), ("a", "pkt/s", "age"),
                                  ("s", "pkt/s", "rate")):
            terminal.type(key)
            lines = terminal.until(lambda lines, order=order: f" by {order}," in lines[-1], order)
            assert lines[7].split()[0] == title
        terminal.type("p")
        terminal.shows("by packets, 1 to 3")
        terminal.type("Space")
        terminal.shows("FROZEN")
        before = terminal.screen()
        # the engine goes on, the picture does not
        received = running.wire()["received"]
        running.until(lambda: running.wire()["received"] > received + 2000, "a second's packets")
        assert terminal.screen() == before
        # the cursor still moves
        terminal.type("Down")
        terminal.until(lambda lines: lines[9][0] == ">", "the cursor")
        terminal.type("Space")
        terminal.hides("FROZEN")
        terminal.until(lambda lines: lines[8:11] != before[8:11], "a new picture")
        terminal.type("q")
        assert terminal.code() == 0


def test_filter(running):
    with top(running) as terminal:
        terminal.shows("10.0.0.3:1002")
        terminal.type("f")
        terminal.shows("filter (as of flow list")
        terminal.write("port 123")
        terminal.type("Enter")
        lines = terminal.until(lambda lines: len(flow_lines(lines)) == 1, "one flow")
        assert "10.0.0.2:1001" in flow_lines(lines)[0]
        assert "filter: port 123" in lines[-1]
        terminal.type("f", "C-u")
        terminal.write("prt 123")
        terminal.type("Enter")
        terminal.shows("filter: prt: did you mean --port?")
        terminal.type("f", "C-u")
        terminal.write("10.0.0.3 proto tcp")
        terminal.type("Enter")
        terminal.shows("no flow fits the filter")
        terminal.type("f", "C-u", "Enter")
        terminal.until(lambda lines: len(flow_lines(lines)) == 3, "all flows")
        terminal.type("q")
        assert terminal.code() == 0


def test_filter_of_the_command_line(running):
    with top(running, "--port", "443", "--proto", "udp", "--by", "bytes") as terminal:
        lines = terminal.until(lambda lines: len(flow_lines(lines)) == 1, "one flow")
        assert "10.0.0.3:1002" in flow_lines(lines)[0] and "by bytes" in lines[-1]
        assert "filter: port 443 proto udp" in lines[-1]
        terminal.type("C-c")
        assert terminal.code() == 0


def test_explain_and_block(running):
    """The flow under the cursor, as the control socket has it."""
    with top(running) as terminal:
        terminal.until(lambda lines: len(flow_lines(lines)) == 3, "all flows")
        terminal.type("Down", "Enter")
        terminal.shows("explain udp 10.0.0.2:1001 10.9.9.9:123")
        terminal.shows("handled in ")
        # it goes on to be told
        said = terminal.shows(" packets ")
        terminal.until(lambda lines: said not in lines, "more packets")
        terminal.type("Escape")
        terminal.shows("by rate, 1 to 3")
        terminal.type("b")
        terminal.shows("block udp 10.0.0.2:1001 10.9.9.9:123? y/n")
        terminal.type("n")
        terminal.shows("not blocked")
        assert running.ask("block list") == []
        terminal.type("b", "y")
        terminal.shows("for how many seconds?")
        terminal.write("600")
        terminal.type("Enter")
        terminal.shows("blocked: flow 10.0.0.2:1001 10.9.9.9:123 udp, block 1, for 9 min 59 s more")
        (block,) = running.ask("block list")
        assert (block["src"], block["sport"], block["dport"]) == ("10.0.0.2", 1001, 123)
        assert 590_000_000 < block["expires_in_us"] <= 600_000_000
        running.until(lambda: [flow["dport"] for flow in running.ask("flow list", blocked=True)] == [123],
                      "it is blocked")
        terminal.until(lambda lines: any(
            "blocked" in text and "10.0.0.2:1001" in text for text in flow_lines(lines)), "blocked")
        terminal.shows("drops  blocked")
        # the cursor has stayed with the flow, which is the slowest now
        terminal.until(lambda lines: lines[10].startswith(">") and "10.0.0.2:1001" in lines[10],
                       "the cursor")
        terminal.type("u", "y")
        terminal.shows("unblocked: flow 10.0.0.2:1001 10.9.9.9:123 udp, block 1; it dropped")
        assert running.ask("block list") == []
        # without end, and a second time there is nothing to take back
        terminal.type("b", "y", "Enter")
        terminal.shows("blocked: flow 10.0.0.2:1001 10.9.9.9:123 udp, block 2")
        assert "expires" not in running.ask("block list")[0]
        terminal.type("u", "y")
        terminal.shows("unblocked: ")
        terminal.type("u", "y")
        terminal.shows("flow unblock: no such block")
        terminal.type("q")
        assert terminal.code() == 0


def test_the_first_rates_come_soon(running):
    """However seldom there is a new picture: after a second there are two answers."""
    with top(running, "--interval", "3600") as terminal:
        terminal.shows("every 3600 s")
        terminal.until(lambda lines: re.search(r" [1-9][\d.]*k? pkt/s", lines[1]), "its rate")
        terminal.type("q")
        assert terminal.code() == 0


def test_help(running):
    with top(running) as terminal:
        terminal.shows("? help  q quit")
        terminal.type("?")
        terminal.shows("Enter, e         explain the flow under the cursor")
        terminal.type("q")
        terminal.shows("10.0.0.1:1000")
        terminal.type("q")
        assert terminal.code() == 0


def test_the_engine_restarts(running, started, traffic):
    """It is told, and looked for until it is there again."""
    with top(running) as terminal:
        terminal.shows("10.0.0.1:1000")
        running.stop(leaves=["records.json"], idle=False)
        terminal.shows("NO ENGINE")
        terminal.shows("no millrace runs here")
        again = started(f"capture={traffic},pace=2000")
        again.until(lambda: len(again.flows()) == 3, "all flows")
        terminal.hides("NO ENGINE")
        terminal.until(lambda lines: re.search(r" [1-9][\d.]*k? pkt/s", lines[1]), "its rate")
        terminal.type("q")
        assert terminal.code() == 0


def test_an_engine_that_does_not_answer(running):
    """Keys are heeded all the same."""
    with top(running) as terminal:
        terminal.shows("10.0.0.1:1000")
        with running.halted():
            terminal.shows("NO ANSWER FOR")
            terminal.type("?")
            terminal.shows("explain the flow under the cursor")
            terminal.type("q")
            terminal.hides("explain the flow under the cursor")
        terminal.hides("NO ANSWER FOR")
        terminal.type("q")
        assert terminal.code() == 0


@pytest.mark.parametrize("environment, colour", [
    ({"TERM": "vt100"}, False), ({"TERM": "screen", "NO_COLOR": "1"}, False), ({"TERM": "screen"}, True)])
def test_colour(running, environment, colour):
    """The cursor and titles are seen without."""
    with top(running, "--by", "age", **environment) as terminal:
        terminal.shows("10.0.0.1:1000")
        text = "\n".join(terminal.screen("-e"))
        assert bool(re.search(r"\x1b\[(\d+;)*3[0-7]", text)) == colour
        assert re.search(r"\x1b\[(0;)?7m(\x1b\[\d+m)*>", text) and "\x1b[" in text.split("initiator")[0]
        terminal.type("q")
        assert terminal.code() == 0


def test_ascii(running):
    """Where the locale has no UTF-8 bars are of ASCII."""
    with top(running, LC_ALL="C") as terminal:
        terminal.shows("10.0.0.1:1000")
        assert terminal.text().isascii()
        terminal.type("q")
        assert terminal.code() == 0


@pytest.mark.unsanitized  # of a terminal libedit keeps two words to the end, which the leak checker tells of
def test_the_shell(running):
    with Terminal("shell", "--socket", running.socket) as terminal:
        terminal.shows("millrace>")
        terminal.write("top --interval 0.2")
        terminal.type("Enter")
        terminal.shows("10.0.0.1:1000")
        terminal.type("q")
        terminal.hides("10.0.0.1:1000")
        terminal.write("quit")
        terminal.type("Enter")
        assert terminal.code() == 0


# ------------------------------ one picture


def test_once(running):
    """Without a terminal it is one picture, as text of at most 100 columns."""
    for words in ([], ["--once"]):
        result = run("top", "--socket", running.socket, "--interval", "0.4", *words)
        assert result.code == 0 and result.stderr == ""
        lines = result.stdout.decode().splitlines()
        assert [ENDS[dport][0] in text for dport, text in zip((53, 123, 443), lines[-3:])] == [True] * 3
        assert re.match(r" [1-9][\d.]*k? pkt/s ", lines[1]) and max(map(len, lines)) <= 100
        assert not any(text.startswith(">") or "q quit" in text for text in lines)
    assert len(flow_lines(run("top", "--socket", running.socket, "--top", "2", "--by", "packets")
                          .stdout.decode().splitlines())) == 2


def test_json(running):
    result = run("top", "--socket", running.socket, "--json", "--port", "53")
    picture = json.loads(result.stdout)
    assert result.code == 0 and result.stdout.count(b"\n") == 1
    assert picture["flows"] == 3 and picture["pps"] > 0 and picture["drops_pps"] == 0
    (flow,) = picture["list"]
    assert flow["dport"] == 53 and flow["rate_pps"] > 0
    assert flow["rate_bps"] == pytest.approx(flow["rate_pps"] * 8 * flow["bytes"] / flow["packets"], rel=0.5)
    assert {port["port"]: port["rx_pps"] > 0 for port in picture["ports"]} == {"a": True, "b": False}
    (worker,) = picture["workers"]
    assert 0 <= worker["busy_now_percent"] <= 100 and worker["pps"] > 0
    assert picture["started"].startswith("20") and picture["millrace"]
    assert set(picture) >= {"wires", "drops", "offload", "in_nic", "new_flows_pps"}


def test_by_age(running):
    ages = [flow["start"] for flow in map(json.loads, running.client(
        "flow", "list", "--top", "3", "--by", "age", "--json").splitlines())]
    assert len(ages) == 3 and ages == sorted(ages)


@pytest.mark.parametrize("words, code, said", [
    (["--socket", "/nowhere/socket"], 1, "no millrace runs here: /nowhere/socket does not exist"),
    (["--once", "--socket", "/nowhere/socket"], 1, "no millrace runs here"),
    (["--interval", "0"], 2, "top: --interval 0: seconds from 0.1 to 3600 are needed"),
    (["--by", "agee"], 2, "did you mean age?"), (["--intervl", "1"], 2, "did you mean --interval?"),
    (["flow"], 2, "top: flow: one word too many")])
def test_what_is_wrong(words, code, said):
    result = run("top", *words)
    assert result.code == code and said in result.stderr and not result.stdout


# ------------------------------ a terminal without tmux


class TopEngine(FakeEngine):
    """Serves any number of clients at a time; each request gets what `answers` has, by its name. A list of
    flows takes `slow_s`; `lists` has when each was asked for, and answered."""

    def __init__(self, answers, slow_s=0):
        super().__init__()
        self.answers, self.slow_s, self.lists = answers, slow_s, []

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.talk_to, args=(client,), daemon=True).start()

    def talk_to(self, client):
        with client, client.makefile("rb") as requests, contextlib.suppress(ConnectionError):
            client.sendall(line(GREETING))
            for request in requests:
                name, asked = json.loads(request)["ask"], time.monotonic()
                if name == "flow list":
                    time.sleep(self.slow_s)
                    self.lists.append((asked, time.monotonic()))
                for answer in self.answers.get(name, []):
                    client.sendall(line(answer))
                client.sendall(line(END))


class Pty:
    """The program on a terminal of which every byte is seen."""

    def __init__(self, *words, **environment):
        try:
            self.ours, theirs = pty.openpty()
        except OSError as error:
            pytest.skip(f"no pseudo terminal here: {error}")
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [MILLRACE, *words], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**os.environ, "TERM": "xterm", "LINES": "24", "COLUMNS": "80", "LC_ALL": "C.UTF-8",
                 **environment})
        os.close(theirs)
        self.shown = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.ours >= 0:
            os.close(self.ours)

    def read_until(self, text):
        while text not in self.shown:
            assert select.select([self.ours], [], [], 30 * SLOWER)[0], self.shown
            self.shown += os.read(self.ours, 65536)

    def type(self, keys):
        os.write(self.ours, keys)

    def wait(self):
        return self.process.wait(30 * SLOWER)


EVIL = "x\x1b]0;owned\x07\x9b2J\r\n\u202ey"


def evil_answers():
    flow = {"proto": 6, "src": EVIL, "sport": 1, "dst": EVIL, "dport": 2, "state": EVIL, "wire": 0,
            "start": EVIL, "packets": 5, "bytes": 9, "offload": {"state": EVIL}}
    return {"wire show": [{"wire": 0, "flows": 1}], "port show": [{"port": EVIL, "link": EVIL}],
            "worker show": [{"thread": EVIL}], "drop show": [{"reason": EVIL, "packets": 5}],
            "offload show": [{"port": EVIL, "offload": True, "flows": {"in_hw": 1},
                              "health": {"state": EVIL}}],
            "flow list": [flow], "flow explain": [{**flow, "where": EVIL, "where_because": EVIL}],
            "flow block": [{"match": EVIL, "number": 1, "reason": EVIL}]}


def test_text_of_an_engine_is_no_command():
    """What somebody may have made up controls no terminal."""
    with TopEngine(evil_answers()) as engine, Pty("top", "--socket", engine.path) as terminal:
        terminal.read_until(b"owned")
        terminal.read_until(b"1 to 1 of 1 listed")
        terminal.type(b"\r")
        terminal.read_until(b"explain")
        terminal.read_until(b"handled")
        terminal.type(b"\x1b")
        terminal.type(b"by\r")
        # ncurses does not write again what stood there
        terminal.read_until(b"locked: ")
        terminal.type(b"q")
        assert terminal.wait() == 0
        assert b"\x1b]0;" not in terminal.shown and b"\x07" not in terminal.shown
        assert b"\x9b" not in terminal.shown and "\u202e".encode() not in terminal.shown


def test_a_line_that_never_ends_holds_up_no_key():
    """Nor does an answer without end: it is a fault, and keys go on."""
    lines = [{"wire": n} for n in range(3000)]
    with TopEngine({"wire show": lines}) as engine, Pty("top", "--socket", engine.path) as terminal:
        terminal.read_until(b"more than 2000 lines")
        terminal.type(b"q")
        assert terminal.wait() == 0


def test_an_engine_with_many_flows_has_its_rest():
    """A list that took 0.5 s longer than it measured is asked for again after four times that."""
    with TopEngine({}, slow_s=0.6) as engine, \
            Pty("top", "--interval", "0.1", "--socket", engine.path) as terminal:
        terminal.read_until(b"no flows")
        deadline = time.monotonic() + 30 * SLOWER
        while len(engine.lists) < 2:
            assert time.monotonic() < deadline
            assert terminal.process.poll() is None
            time.sleep(0.01)
        assert engine.lists[1][0] - engine.lists[0][1] > 1.9
        terminal.type(b"q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("term, said", [
    ("nosuchterm", b"the terminal \"nosuchterm\" is not known here; set TERM to what it is, or use --once"),
    ("dumb", b"the terminal \"dumb\" cannot be drawn on")])
def test_terminals_that_cannot(term, said):
    with TopEngine({}) as engine, Pty("top", "--socket", engine.path, TERM=term) as terminal:
        terminal.read_until(said)
        assert terminal.wait() == 1


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)])
def test_signals(number, code):
    """The terminal is left as it was."""
    with TopEngine({}) as engine, Pty("top", "--socket", engine.path) as terminal:
        terminal.read_until(b"q quit")
        terminal.process.send_signal(number)
        assert terminal.wait() == code
        terminal.read_until(b"\x1b[?1049l")


def test_the_terminal_goes():
    """As when a connection breaks: it does not stay behind."""
    with TopEngine({}) as engine, Pty("top", "--socket", engine.path) as terminal:
        terminal.read_until(b"q quit")
        os.close(terminal.ours)
        terminal.ours = -1
        assert terminal.wait() == -signal.SIGHUP
