# SPDX-License-Identifier: BSD-3-Clause
"""Named sets of addresses in rules: from the configuration, and a million addresses in one of them."""
import json
import time

import pytest

import engine
import frames
from conftest import SLOWER, run

pytestmark = pytest.mark.usefixtures("simulated_nic")

PASSES = 20
ROUND = [frames.udp(0, "10.1.0.1", 1000, "10.9.0.1", 53), frames.udp(0, "10.2.0.1", 1000, "10.9.0.1", 53),
         frames.udp(0, "10.3.0.1", 1000, "10.9.0.1", 53), frames.udp(0, "2001:db8::1", 1000, "2001:db8::9", 53),
         frames.udp(0, "10.2.0.1", 1001, "10.8.0.1", 53)]
RULES = ["flow create 0 ingress pattern eth / ipv4 from_set is bad to_set is served / end actions drop / end",
         "flow create 0 ingress pattern eth / ipv6 from_set is bad / end actions drop / end"]


def configuration(tmp_path, sets, rules, source="source=none"):
    path = tmp_path / "millrace.yaml"
    path.write_text(json.dumps({
        "ports": [{"name": "a", "device": f"net_flowsim0,{source}"}, {"name": "b", "device": "net_flowsim1,source=none"}],
        "wires": [["a", "b"]], "rules": {"sets": sets, "list": rules}}))
    return path


@pytest.mark.parametrize("in_nic", ["drop", "off"])
def test_rules_with_sets(tmp_path, in_nic):
    """A rule that asks for two sets matches what has one address in each, and stays in software."""
    capture = frames.write(tmp_path / "round.pcap", *ROUND, in_order=False)
    (tmp_path / "bad").write_text("# from elsewhere\n10.2.0.0/16\n2001:db8::/32\n")
    path = configuration(tmp_path, [f"bad file {tmp_path}/bad", "bad 10.1.0.1", "served 10.9.0.0/24, 10.9.1.0/24"],
                         RULES, f"capture={capture},passes={PASSES}")
    running = engine.Millrace(tmp_path / "engine", "--config", path, "--offload-rules-in-nic", in_nic)
    running.until(lambda: running.wire()["received"] == PASSES * len(ROUND), "all packets")
    told = running.ask("rule list")
    assert [line["packets"] // PASSES for line in told] == [2, 1]
    assert [line["rule"] for line in told] == RULES
    if in_nic == "drop":
        assert {line["why"] for line in told} == {"it asks for a set of addresses, which is not given to NICs"}
    assert running.ask("config show")[0]["rules"]["sets"][1] == "bad 10.1.0.1"
    steps = running.ask("rule trace", packet="0 eth / ipv4 src is 10.3.0.1 dst is 10.9.0.1 / end")
    assert [step["field"] for step in steps if step.get("number") == 0] == ["src_set"]
    with pytest.raises(AssertionError, match="a packet has one address, not a set of them"):
        running.ask("rule trace", packet="0 eth / ipv4 from_set is bad / end")
    running.stop()


def test_a_million_addresses(tmp_path):
    """They are there in a few seconds, and each is found."""
    count = 1000000
    with (tmp_path / "listed").open("w") as lines:
        lines.writelines(f"{10 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.9\n" for n in range(count))
    path = configuration(tmp_path, [f"listed file {tmp_path}/listed"],
                         [RULES[0].replace("bad to_set is served", "listed")])
    begun = time.monotonic()
    running = engine.Millrace(tmp_path / "engine", "--config", path)
    assert time.monotonic() - begun < 8 * SLOWER
    for source, number in (("10.0.0.9", 0), ("25.66.63.9", 0), ("10.0.0.8", None), ("25.66.64.9", None)):
        steps = running.ask("rule trace", packet=f"0 eth / ipv4 src is {source} / end")
        assert steps[-1].get("number") == number, source
    running.stop()


@pytest.mark.parametrize("sets, rules, said", [
    (["bad 10.0.0.0/8", "good 2001:db8::1"], RULES[1:], None),
    (["bad"], [], "rules.sets[0]: column 4: prefixes are needed, or the word file and a path"),
    (["ok 1.1.1.1", "b@d 10.0.0.1"], [], "rules.sets[1]: column 1: b@d: a name of letters, digits and . _ - is needed"),
    (["bad 10.0.0.1/8"], [], "rules.sets[0]: column 5: 10.0.0.1/8: the address has bits set beyond the prefix"),
    (["bad file /nowhere"], [], "rules.sets[0]: /nowhere: No such file or directory"),
    (["good 10.0.0.1"], RULES[1:],
     "rules.list:1:37: field 'from_set' of item 'ipv6': there is no set 'bad' (rules.sets)"),
    ({"bad": "10.0.0.1"}, [], "rules.sets: a list of sets is needed, 256 at most: NAME PREFIX..., or NAME file PATH"),
])
def test_configuration(tmp_path, sets, rules, said):
    done = run("config", "check", configuration(tmp_path, sets, rules))
    assert (done.code == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr, done.stderr


def test_check_knows_no_sets():
    """A file of rules is checked without the configuration, so that any set may be there."""
    done = run("rule", "check", stdin="\n".join(RULES).encode())
    assert done.stdout.decode().splitlines() == [
        "ok, in software: it asks for a set of addresses, which is not given to NICs"] * 2
    done = run("rule", "check", stdin=b"flow create 0 ingress pattern ipv4 from_set is a/b / end actions drop / end")
    assert done.stdout.decode().startswith("-:1:48: error: a/b: a name of letters, digits and . _ - is needed")
