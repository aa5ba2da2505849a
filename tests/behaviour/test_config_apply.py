# SPDX-License-Identifier: BSD-3-Clause
"""Another configuration for a running engine: all of it or nothing, told before, taken back, and saved."""
import collections
import ctypes
import json
import os
import select
import signal
import socket
import subprocess

import pytest

import engine
import frames
from conftest import MILLRACE, SLOWER
from exports import Collector
from test_rule_load import followed

pytestmark = pytest.mark.usefixtures("simulated_nic")

DNS, WEB, SSH = (f"flow create 0 ingress pattern eth / ipv4 / udp dst is {port} / end actions drop / end"
                 for port in (53, 80, 22))
QUIET = {"offload": {"enabled": "off"}}


@pytest.fixture(name="write")
def write_files(tmp_path):
    """write(name, content): the path of a file; a configuration may be a dict, since JSON is YAML."""
    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path
    return write


def config(running):
    return running.ask("config show")[0]


def status(running):
    return running.ask("config status")[0]


def picture(running):
    """All that a configuration says, and what came of it."""
    return [running.ask(request) for request in ("config show", "rule list", "block list", "rule status")] + [
        [export["to"] for export in running.ask("export show")]]


def rules_in_force(running):
    return [line["rule"] for line in running.ask("rule list")]


def blocked(running):
    return {line["match"]: line.get("reason") for line in running.ask("block list")}


def applied(running, *words, code=0):
    """The answer to config apply, or to another verb of these words: (lines, the last one)."""
    text = running.client("config", *map(str, words), "--json", code=code)
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[:-1], lines[-1]


def differences(running, path):
    return [json.loads(line) for line in running.client("config", "diff", str(path), "--json").splitlines()]


def test_all_of_it(started, write, tmp_path):
    """Rules, blocks, time-outs and exports change together; config show tells it, and config rollback takes it back."""
    rules = {name: write(name, f"{line}\n") for name, line in (("first.rules", DNS), ("second.rules", WEB))}
    first = {**QUIET, "timeouts": {"udp": 50}, "rules": {"file": str(rules["first.rules"])},
             "blocks": {"list": ["192.0.2.0/24 reason old", "198.51.100.1"]}, "active": "off",
             "exports": ["json+file:" + str(tmp_path / "one.json")]}
    second = {**first, "timeouts": {"udp-new": 7}, "rules": {"file": str(rules["second.rules"]), "log-rate": 5},
              "blocks": {"list": ["192.0.2.0/24 reason new", "203.0.113.0/24"]}, "active": 9,
              "exports": ["json+file:" + str(tmp_path / "two.json")]}
    running = started("source=none", "--config", write("first.yaml", first))
    running.ask("flow block", prefix="10.0.0.0/8", reason="by hand")
    path = write("second.yaml", second)
    before = picture(running)
    told, end = running.connection.ask("config stage", text=path.read_text())
    told, end = running.connection.ask("config diff", file=str(path))
    assert {line["key"]: (line["before"], line["after"], line["change"]) for line in told if "key" in line} == {
        "active": ("off", 9, "now"), "timeouts.udp-new": (50, 7, "now"), "timeouts.udp-open": (50, 180, "now"),
        "blocks.list": (first["blocks"]["list"], second["blocks"]["list"], "now"),
        "rules.file": (first["rules"]["file"], second["rules"]["file"], "now"), "rules.log-rate": (100, 5, "now"),
        "exports": (first["exports"], second["exports"], "now")}
    assert next(line["line"] for line in told if line.get("key") == "timeouts.udp-new") == \
        1 + path.read_text().splitlines().index('  "udp-new": 7')
    assert [(line["change"], line["rule"]) for line in told if "rule" in line] == [("removed", DNS), ("added", WEB)]
    assert (end["keys"], end["restart"], end["blocks_added"], end["blocks_removed"], end["exports_opened"]) == (7, 0, 2, 1, 1)
    assert picture(running) == before
    with followed(running) as events:
        lines, last = applied(running, "apply", path)
        loaded, event = events.until("policy_loaded"), events.until("config_applied")
    assert len(lines) == 7 and last["number"] == 2 and last["rules"] == {"added": 1, "removed": 1, "moved": 0, "unchanged": 0}
    assert event["file"] == str(path) and event["keys"] == 7 and loaded["epoch"] == last["epoch"] == 2
    now = config(running)
    assert (now["timeouts"]["udp-new"], now["timeouts"]["udp-open"], now["active"]) == (7, 180, 9)
    assert (now["exports"], now["blocks"]["list"]) == (second["exports"], second["blocks"]["list"])
    assert rules_in_force(running) == [WEB]
    assert blocked(running) == {"192.0.2.0/24": "new", "203.0.113.0/24": None, "10.0.0.0/8": "by hand"}
    assert [export["to"] for export in running.ask("export show")] == second["exports"]
    assert differences(running, path) == []
    assert status(running)["applied"] == str(path) and status(running)["before"]
    with followed(running) as events:
        applied(running, "rollback")
        assert events.until("config_rollback")["why"] == "asked for"
    assert config(running) == before[0][0] and rules_in_force(running) == [DNS]
    assert blocked(running) == {"192.0.2.0/24": "old", "198.51.100.1": None, "10.0.0.0/8": "by hand"}
    assert "there is no configuration to go back to" in running.client("config", "rollback", code=1)
    running.stop(leaves=["records.json"])


def test_what_only_a_restart_changes(started, write):
    """The key, its line, what is and what was wanted are told, and nothing of the file is in effect."""
    running = started("source=none", "--config", write("first.yaml", QUIET))
    before = picture(running)
    for key, value, now, wanted in (
            ("workers", 2, "1", "2"), ("flows", 4096, "1048576", "4096"), ("tcp", "strict", "count", "strict"),
            ("zone", "vlan", "none", "vlan"), ("poll", "always", "adaptive", "always"), ("measure", "yes", "no", "yes"),
            ("socket", "/tmp/other.sock", str(running.socket), "/tmp/other.sock"),
            ("exports", ["json+file:/tmp/x.json"], "[]", '["json+file:/tmp/x.json"]')):
        path = write("second.yaml", f"timeouts: {{udp: 3}}\n{key}: {json.dumps(value)}\noffload: {{enabled: off}}\n")
        said = running.client("config", "apply", str(path), code=1)
        assert said.startswith(f"millrace: {path}:2: {key}: it is {now}, and {wanted} is wanted: restart to change it"), said
        assert "restart to change it" in running.client("config", "diff", str(path))
        assert picture(running) == before
    path = write("second.yaml", "offload:\n  enabled: off\n  slots: 128\nblocks: {max: 7}\nrules: {sets: ['a 10.0.0.0/8']}\n")
    said = running.client("config", "apply", str(path), code=1)
    assert said.startswith(f"millrace: {path}:3: offload.slots: it is 65536, and 128 is wanted") and "2 more" in said
    # what was shown may be applied, also where the wires are the command line's
    shown = write("shown.json", running.client("config", "show", "--json"))
    assert differences(running, shown) == []
    shown.write_text(shown.read_text().replace('"name":"b"', '"name":"c"').replace('["a","b"]', '["a","c"]'))
    assert "ports: it is " in running.client("config", "apply", str(shown), code=1)
    assert picture(running) == before
    running.stop(leaves=["records.json"])


def test_the_command_line_holds(started, write):
    """The command line wins, like at the start, and the answer names the keys."""
    running = started("source=none", "--config", write("first.yaml", QUIET), "--timeout", "udp-open=77", "--rules-log-rate", 3)
    path = write("second.yaml", {**QUIET, "timeouts": {"udp": 40}, "rules": {"log-rate": 9}})
    lines, _ = applied(running, "apply", path)
    assert {line["key"]: (line["file"], line["stays"]) for line in lines if line["change"] == "overridden"} == {
        "timeouts.udp-open": (40, 77), "rules.log-rate": (9, 3)}
    assert (config(running)["timeouts"]["udp-new"], config(running)["timeouts"]["udp-open"]) == (40, 77)
    assert "the file says 40, but the engine's command line says 77" in running.client("config", "diff", str(path))
    running.stop(leaves=["records.json"])


WRONG = {
    "syntax": (b"timeouts: {udp: 3\nactive: 4\n", ":2: "),
    "name": (b"active: 4\ntimeouts: {udp-nwe: 3}\n", ":2: timeouts.udp-nwe: no such key; did you mean udp-new?"),
    "value": (b"active: 4\ntimeouts: {udp: 0}\n", ":2: timeouts.udp: 0: "),
    "number": (b"active: 4\nrules:\n  log-rate: 9999999\n", ":3: rules.log-rate: 9999999: "),
    "bytes": (b"active: 4\n# \xff\n", ":2: it has bytes that are no text in UTF-8"),
    "zero": (b"active: 4\nx: \0\n", ":2: it has bytes that are no text in UTF-8"),
    "large": (b"active: 4\n" + b"#" * (1 << 20) + b"\n", ": more than 1 MB, too long for a configuration"),
    "alias": (b"a: &x 1\nb: *x\n", ":2: aliases (*NAME) are not known here"),
    "rule": (f"active: 4\nrules:\n  list:\n    - {WEB.replace('udp', 'upd')}\n".encode(), ":4: rules.list[0]: column 44: upd: "),
    "port": (f"active: 4\nrules:\n  list: ['{WEB.replace('create 0', 'create 7')}']\n".encode(), "rules.list:1:13: port 7: "),
    "block": (b"active: 4\nblocks:\n  list: [10.0.0.1/8]\n", ":3: blocks.list[0]: column 1: "),
    "export": (b"active: 4\nexports: ['json+file:one.json', 'json+disk:x']\n", ":2: exports[1]: "),
    "rules file": (b"active: 4\nrules: {file: rules}\n", "rules:2:72: dropp: "),
    "no rules file": (b"active: 4\nrules: {file: nowhere}\n", "nowhere: No such file or directory"),
    "blocks file": (b"active: 4\nblocks: {file: blocks}\n", "blocks:3:1: "),
    "no blocks file": (b"active: 4\nblocks: {file: nowhere}\n", "nowhere: No such file or directory"),
    "opens no export": (b"active: 4\nblocks: {list: [10.9.0.0/16]}\nexports: ['json+file:one.json', 'json+file:no/where.json']\n",
                        "no/where.json: "),
    "too many rules": ("active: 4\nblocks: {{list: [10.9.0.0/16, 10.1.0.0/16 reason other]}}\nrules: {{list: {0}}}\n".format(
        [WEB.replace("80", str(port)) for port in range(1, 6)]).encode(), "no room: the list has 5 rules, and there can be 4"),
    "too many blocks": ("active: 4\nblocks: {{list: {0}}}\n".format([f"10.{i}.0.0/16" for i in range(20, 28)]).encode(),
                        "no room for 8 new blocks"),
}


def test_a_wrong_file_changes_nothing(started, write, tmp_path):
    """It says what is wrong and where, whatever part is wrong; traffic is handled as before, and the next right file is taken."""
    capture = frames.write(tmp_path / "three.pcap", *(
        frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", port) for port in (53, 80, 22)))
    start = {"rules": {"list": [DNS]}, "exports": ["json+file:one.json"]}
    running = started(f"capture={capture},pace=20000", "--config", write("first.yaml", start), "--rules-max", 4,
                      "--blocks-max", 8, "--offload", "off")
    (running.directory / "rules").write_text(f"{WEB}\n{WEB.replace('drop', 'dropp')}\n")
    (running.directory / "blocks").write_text("# those\n10.2.0.0/16\nnonsense\n")
    running.ask("flow block", prefix="10.1.0.0/16", reason="by hand")

    def what_is():
        shown = picture(running)
        for rule in shown[1]:
            for key in ("flows", "packets", "bytes", "software_packets", "software_bytes"):
                rule.pop(key, None)
        return shown

    def traffic_goes_on():
        """A third of it is dropped by the rule, and nothing else is."""
        before = running.wire()
        running.until(lambda: running.wire()["out"] > before["out"] + 500, "packets pass")
        assert set(running.drops()) == {"rule"}
        records = {flow["dport"] for flow in running.flows() if flow.get("rule_dropped_packets")}
        assert records == {53}

    traffic_goes_on()
    before = what_is()
    for name, (content, error) in WRONG.items():
        path = write("wrong.yaml", content)
        with followed(running) as events:
            said = running.client("config", "apply", str(path), code=1)
            assert said.startswith("millrace: ") and error in said, (name, said)
            if name not in ("bytes", "zero", "large"):
                assert events.until("config_refused")["file"] == str(path), name
        if not name.startswith(("too many", "opens")):
            assert error in running.client("config", "diff", str(path), code=1), name
        assert what_is() == before, name
    for path, error in ((tmp_path / "missing", "No such file"), (tmp_path, "Is a directory")):
        assert error in running.client("config", "apply", str(path), code=1)
    assert what_is() == before and status(running)["number"] == 1
    traffic_goes_on()
    applied(running, "apply", write("right.yaml", {**start, "rules": {"list": [WEB]}}))
    assert rules_in_force(running) == [WEB]
    running.stop(leaves=["records.json", "one.json", "rules", "blocks"], idle=False)


def test_unless_it_is_confirmed(started, write):
    """It goes back by itself, with rules, blocks and all; until then nothing else is applied or loaded."""
    start = {**QUIET, "rules": {"list": [DNS]}, "timeouts": {"udp": 50}}
    running = started("source=none", "--config", write("first.yaml", start))
    path = write("second.yaml", {**QUIET, "rules": {"list": [WEB]}, "blocks": {"list": ["10.0.0.0/8"]}})
    rules = write("rules", f"{SSH}\n")
    before = config(running)
    with followed(running) as events:
        assert "within 1 s" in running.client("config", "apply", str(path), "--confirm", "1")
        assert status(running)["confirm"] == 1 and rules_in_force(running) == [WEB]
        for words in (("config", "apply", str(path)), ("rule", "load", str(rules)), ("rule", "rollback")):
            assert "waits for config confirm" in running.client(*words, code=1)
        assert "no list of rules waits" in running.client("rule", "confirm", code=1)
        assert events.until("config_rollback")["why"] == "not confirmed"
        assert config(running) == before and rules_in_force(running) == [DNS] and blocked(running) == {}
        running.client("config", "apply", str(path), "--confirm", "600", "--no-wait")
        assert running.client("config", "confirm") == "configuration 4 stays in effect\n"
        events.until("config_confirmed")
        assert "no configuration waits" in running.client("config", "confirm", code=1)
        # and the other way round
        running.client("rule", "load", str(rules), "--confirm", "600")
        assert "wait for rule confirm" in running.client("config", "apply", str(path), code=1)
        assert "wait for rule confirm" in running.client("config", "rollback", code=1)
        running.client("rule", "confirm")
    # its rules are not those that the configuration replaced
    assert "rule rollback comes first" in running.client("config", "rollback", code=1)
    running.client("rule", "rollback")
    assert rules_in_force(running) == [WEB]
    running.stop(leaves=["records.json"])


def test_sighup_reads_it_again(started, write):
    """The engine's own file, and those that it names; what is wrong is told, and changes nothing."""
    rules, blocks = write("rules", f"{DNS}\n"), write("blocks", "10.0.0.0/8\n")
    start = {**QUIET, "rules": {"file": str(rules)}, "blocks": {"file": str(blocks)}}
    path = write("engine.yaml", start)
    running = started("source=none", "--config", path)
    write("blocks", "10.0.0.0/8\n11.0.0.0/8\n")
    write("rules", f"{DNS}\n{WEB}\n")
    write("engine.yaml", {**start, "timeouts": {"icmp": 61}})
    with followed(running) as events:
        running.send_signal(signal.SIGHUP)
        event = events.until("config_applied")
        assert (event["file"], event["keys"], event["rules"], event["blocks_added"]) == (str(path), 1, True, 1)
        assert config(running)["timeouts"]["icmp"] == 61 and len(rules_in_force(running)) == len(blocked(running)) == 2
        running.until(lambda: "the configuration was read again: 1 key changed, rules 1 added" in running.stderr, "it is told")
        assert status(running)["saved"]
        before = picture(running)
        write("engine.yaml", {**start, "timeouts": {"icmp": 62}, "workers": 3})
        running.send_signal(signal.SIGHUP)
        assert "workers: it is 1, and 3 is wanted" in events.until("config_refused")["why"]
        write("engine.yaml", "timeouts: {icmp: x}\n")
        running.send_signal(signal.SIGHUP)
        running.until(lambda: f"the configuration stays as it is: {path}:1: timeouts.icmp: x" in running.stderr, "it is told")
    assert picture(running) == before
    running.stop(leaves=["records.json"])


def test_time_outs_of_live_flows(started, write, tmp_path):
    """Flows that wait for a long time-out end by the shorter one that comes, and by a longer one not."""
    flows = 2000
    capture = frames.write(tmp_path / "once.pcap", *(
        frames.udp(0, f"10.0.{i >> 8}.{i & 255}", 1000, "10.9.0.1", 7) for i in range(flows)))
    running = started(f"capture={capture},passes=1", "--config", write("long.yaml", {**QUIET, "timeouts": {"udp": 3600}}))
    running.until(lambda: running.wire()["received"] == flows, "all packets")
    assert len(running.flows()) == flows
    applied(running, "apply", write("longer.yaml", {**QUIET, "timeouts": {"udp": 7200}}))
    assert running.ask("flow explain", src="10.0.0.1", sport=1000, dst="10.9.0.1", dport=7, proto="udp")[0]["timeout_s"] == 7200
    applied(running, "apply", write("short.yaml", {**QUIET, "timeouts": {"udp": 1}}))
    running.until(lambda: not running.flows(), "they end")
    running.stop(leaves=["records.json"])
    reasons = collections.Counter(record["end_reason"] for record in engine.read_records(running.directory / "records.json"))
    assert reasons == {"idle": flows}


def test_offload_settings(started, write):
    """The threshold takes flows into the NIC and out of it; turned off, all leave, and none comes until it is on again."""
    running = started("flows=20,pace=4000", "--config", write("no.yaml", {"offload": {"threshold": 1000000000}}))

    def states():
        return collections.Counter(flow["offload"]["state"] for flow in running.flows())

    def in_nic():
        return running.ask("offload show")[0]["flows"]["in_hw"] if "flows" in running.ask("offload show")[0] else 0

    running.until(lambda: len(running.flows()) == 20 and states() == {"software": 20}, "flows, in software")
    applied(running, "apply", write("yes.yaml", {"offload": {"threshold": 1}}))
    running.until(lambda: states() == {"in_hw": 20}, "they are in the NIC")
    applied(running, "apply", write("off.yaml", {"offload": {"threshold": 1, "enabled": "off"}}))
    running.until(lambda: states() == {"software": 20}, "they are out of it")
    assert {flow["offload"]["reason"] for flow in running.flows()} == {"off"}
    applied(running, "apply", write("few.yaml", {"offload": {"threshold": 1, "rules": 5, "rules-per-second": 1000}}))
    running.until(lambda: states()["in_hw"] == 5, "as many as may")
    applied(running, "apply", write("more.yaml", {"offload": {"threshold": 1, "rules": 0}}))
    running.until(lambda: states() == {"in_hw": 20}, "all of them again")
    assert in_nic() >= 0
    running.stop(leaves=["records.json"], idle=False)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_record_is_lost_between_exports(started, write, workers):
    """Flows end all the time while exports come and go: each record is in one of those that took turns, and in the one that stays."""
    stays = Collector(socket.SOCK_STREAM, lines=True)

    def with_export(name):
        return {**QUIET, "flows": 64 * workers, "workers": workers, "active": "off",
                "exports": [f"json+tcp://127.0.0.1:{stays.port}", f"json+file:{name}.json"]}

    paths = [write(f"{name}.yaml", with_export(name)) for name in ("one", "two")]
    running = started("flows=1000,pace=4000", "--config", paths[0])
    for turn in range(1, 13):
        made = running.ask("export show")[0]["records"]
        running.until(lambda: running.ask("export show")[0]["records"] > made + 200, "records")  # pylint: disable=cell-var-from-loop
        _, last = applied(running, "apply", paths[turn % 2])
        assert (last["exports_opened"], last["exports_closed"]) == (1, 1)
    # one more, which goes again alone
    more = {**with_export("one"), "exports": [*with_export("one")["exports"], "json+file:three.json"]}
    for name, content, counts in (("more", more, (1, 0)), ("less", with_export("one"), (0, 1))):
        _, last = applied(running, "apply", write(f"{name}.yaml", content))
        assert (last["exports_opened"], last["exports_closed"]) == counts
    assert running.ask("export show")[0]["sessions"] == 1
    running.stop(leaves=["records.json", "one.json", "two.json", "three.json"], idle=False)

    def lines_of(name):
        return collections.Counter((running.directory / f"{name}.json").read_bytes().splitlines(keepends=True))

    wanted = lines_of("records")
    assert sum(wanted.values()) > 2400
    assert collections.Counter(stays.stop().lines()) == wanted == lines_of("one") + lines_of("two")
    assert not lines_of("three") - wanted
    assert " written, 0 lost" in running.stderr and "being lost" not in running.stderr


class Changes:
    """Changes in a directory, told by the kernel."""

    def __init__(self, directory):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        # IN_CREATE, IN_MODIFY, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_ATTRIB, IN_DELETE
        assert libc.inotify_add_watch(self.fd, os.fsencode(directory), 0x100 | 0x2 | 0x8 | 0x40 | 0x80 | 0x4 | 0x200) >= 0

    def until(self, n, process):
        """Waits for the n-th thing to happen, or for the end of a process."""
        with open(os.pidfd_open(process.pid), "rb") as ended:
            for _ in range(n):
                ready = select.select([self.fd, ended], [], [], 60 * SLOWER)[0]
                assert ready, "nothing happens"
                if self.fd not in ready:
                    return
                # one of them, with its name
                os.read(self.fd, 48)

    def close(self):
        os.close(self.fd)


KILLS = 104


@pytest.mark.parametrize("what", ["config", "rule"])
def test_killed_in_the_middle(tmp_path, write, what):
    """Wherever in an apply the engine is killed, its file is the old or the new one, byte for byte, and it starts with it."""
    from simulated import ports  # pylint: disable=import-outside-toplevel
    home = tmp_path / "home"
    home.mkdir()
    own = home / ("engine.yaml" if what == "config" else "rules")
    filler = "".join(f"# {i:90}\n" for i in range(2500))
    texts = {"config": [f"timeouts: {{udp: {seconds}}}\n{filler}offload: {{enabled: off}}\n" for seconds in (50, 60)],
             "rule": [f"{line}\n{filler}" for line in (DNS, WEB)]}[what]
    news = [write(f"new{which}", text) for which, text in enumerate(texts)]
    own.write_text(texts[0])
    verb = ("config", "apply") if what == "config" else ("rule", "load")
    option = ("--config", own) if what == "config" else ("--rules", own, "--offload", "off")
    seen = collections.Counter()
    for kill in range(KILLS // 2):
        running = engine.Millrace(tmp_path / "engine", *ports("source=none"), *option, "--telemetry", "--flows", 1024)
        try:
            there = texts.index(own.read_text())
            if what == "config":
                assert config(running)["timeouts"]["udp-new"] == (50, 60)[there]
            else:
                assert "0 added, 0 removed, 0 moved, 1 unchanged" in running.client("rule", "diff", str(news[there]))
            changes = Changes(home)
            with subprocess.Popen([MILLRACE, *verb, str(news[1 - there]), "--save", "--socket", running.socket],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
                changes.until(1 + kill % 11, client)
                running.kill()
                client.wait(30 * SLOWER)
            changes.close()
        finally:
            running.kill()
        assert own.read_text() in texts, "half of a file"
        seen[texts.index(own.read_text()) != there] += 1
        for left in (tmp_path / "engine").iterdir():
            if not left.is_dir():
                left.unlink()
    assert set(seen) == {True, False}, "all kills came before the file was replaced, or after"
    running = engine.Millrace(tmp_path / "engine", *ports("source=none"), *option, "--flows", 1024)
    try:
        # what a killed one has left is in nobody's way
        assert "was replaced" in running.client(*verb, str(news[0]), "--save") if what == "config" else \
            running.client(*verb, str(news[0]), "--save")
        assert own.read_text() == texts[0] and [entry.name for entry in home.iterdir()] == [own.name]
        running.stop()
    finally:
        running.kill()


def test_saving(started, write, tmp_path):
    """Only what is in force, and what was confirmed; owner's mode and a symbolic link stay."""
    rules = write("rules", f"{DNS}\n")
    start = {**QUIET, "rules": {"file": str(rules)}}
    target = write("target.yaml", start)
    target.chmod(0o640)
    own = tmp_path / "own.yaml"
    own.symlink_to(target)
    running = started("source=none", "--config", own)
    old = target.read_bytes()
    path = write("second.yaml", "# caf\u00e9\n" + json.dumps({**start, "timeouts": {"icmp": 77}}))
    assert "restart" in running.client("config", "apply", str(write("no.yaml", {**start, "workers": 2})), "--save", code=1)
    running.client("config", "apply", str(path), "--save", "--confirm", "600")
    assert target.read_bytes() == old and not status(running)["saved"]
    running.client("config", "rollback")
    assert target.read_bytes() == old and status(running)["saved"]
    running.client("config", "apply", str(path), "--save", "--confirm", "600")
    assert running.client("config", "confirm") == f"configuration 4 stays in effect\n{own} was replaced by it\n"
    assert target.read_bytes() == path.read_bytes() and own.is_symlink() and target.stat().st_mode & 0o777 == 0o640
    assert status(running)["saved"]
    # wires in the file, and on the command line: it could not be started again
    shown = write("shown.json", running.client("config", "show", "--json"))
    assert "has wires of its own" in running.client("config", "apply", str(shown), "--save", code=1)
    # rules alone
    text = f"# \u00fc\n{WEB}\n"
    running.client("rule", "load", str(write("other", text)), "--save", "--confirm", "600")
    assert rules.read_text() == f"{DNS}\n"
    running.client("rule", "confirm")
    assert rules.read_text() == text
    assert "no text in UTF-8" in running.client("rule", "load", str(write("bad", b"# \xff\n")), "--save", code=1)
    assert rules.read_text() == text
    running.stop(leaves=["records.json"])
    running = started("source=none", "--config", own)
    assert config(running)["timeouts"]["icmp"] == 77 and rules_in_force(running) == [WEB]
    running.stop(leaves=["records.json"])


def test_nothing_to_save_to(started, write):
    """An engine that was started without files says so before anything changes."""
    running = started("source=none", "--offload", "off")
    before = picture(running)
    path = write("any.yaml", {**QUIET, "timeouts": {"icmp": 77}})
    assert "without a file that this could be saved to" in running.client("config", "apply", str(path), "--save", code=1)
    assert "has no file of rules" in running.client("rule", "load", str(write("rules", f"{WEB}\n")), "--save", code=1)
    assert picture(running) == before
    # a configuration without rules leaves those of clients alone
    running.ask("rule add", rule=SSH)
    applied(running, "apply", path)
    assert rules_in_force(running) == [SSH] and config(running)["timeouts"]["icmp"] == 77
    running.stop(leaves=["records.json"])
