# SPDX-License-Identifier: BSD-3-Clause
"""`millrace rule`: lines of testpmd's flow syntax checked, and the page that says what there is."""
import json
import re
import time

import pytest

from conftest import ROOT, SLOWER, run

EXAMPLES = ROOT.parent / "shared" / "flow-examples" / "visible.txt"
PAGE = ROOT / "docs" / "rules.md"
MARK = "<!-- From here on the page is what `millrace rule grammar` prints. -->\n\n"

GOOD = "flow create 0 ingress pattern eth / ipv4 src is 192.0.2.1 / end actions drop / end"
BAD = "flow create 0 pattern eth / ipv5 / end actions drop / end"
LATER = "flow create 0 pattern ib_bth / end actions drop / end"

# Examples that are misprinted: where they stand, and why they cannot be read.
MISPRINTS = {
    "testpmd_app_ug/testpmd_funcs.rst:4326": "tanle: \"template_table\" is needed here",
    "testpmd_app_ug/testpmd_funcs.rst:4330": "tanle: \"template_table\" is needed here",
    "testpmd_app_ug/testpmd_funcs.rst:4405": "ingress: a number is needed for action_id",
    "testpmd_app_ug/testpmd_funcs.rst:4704": "::1: ip-src, ip-dst, eth-src or eth-dst is needed",
    "nics/ice.rst:745": "mark: index or / is needed here",
}


def check(text, *args):
    """What `rule check` says of a text on standard input."""
    return run("rule", "check", *args, stdin=text.encode())


def test_one_line_for_each(tmp_path):
    path = tmp_path / "rules"
    path.write_text(f"# a comment\n{GOOD}\n\n  {BAD}\n{LATER} # later\n{GOOD}")
    result = run("rule", "check", path)
    assert (result.code, result.stderr) == (1, "")
    assert result.stdout.decode().splitlines() == [
        "ok, for NICs that take it",
        f"{path}:4:31: error: ipv5: a pattern item is needed here; did you mean ipv4?",
        f"{path}:5:23: error: ib_bth: it came with DPDK 23.07; rules here are those of DPDK 22.11",
        f"{path}:6: ok, with a warning: line 2 matches all that this rule matches before it"]


def test_addresses_of_the_other_version():
    """They would make each packet one that cannot be changed, and is dropped."""
    lines = check("flow create 0 ingress pattern eth / ipv4 / end actions set_ipv6_src ipv6_addr ::1 / end\n"
                  "flow create 0 ingress pattern eth / ipv6 / end actions set_ipv4_dst ipv4_addr 1.2.3.4 / end\n"
                  "flow create 0 ingress pattern eth / end actions set_ipv4_dst ipv4_addr 1.2.3.4 / end\n")
    assert lines.stdout.decode().splitlines() == [
        "-:1: ok, but not in software: action 'set_ipv6_src': the rule's packets are not of IPv6",
        "-:2: ok, but not in software: action 'set_ipv4_dst': the rule's packets are not of IPv4",
        "ok, in software: action 'set_ipv4_dst' is not given to NICs"]


def test_where():
    """What keeps a rule from cards is said, as far as it is known without one."""
    drop = "flow create 0 ingress pattern {} / end actions drop / end"
    lines = [drop.format("eth / ipv4 src is 10.0.0.1"),
             drop.format("eth / ipv4 / udp dst is 53").replace("drop", "drop / count / age timeout 5 / mark id 3"),
             drop.format("tcp dst is 80"),
             drop.format("ipv4 ttl is 3").replace("0 ingress", "0 group 1 ingress"),
             drop.format("eth / ipv4 src is 10.0.0.2").replace("drop", "age timeout 5 / queue index 1"),
             drop.format("eth / ipv4 dst is 10.0.0.9"),
             drop.format("eth / ipv4 dst is 10.0.0.9").replace("create 0", "validate 0 priority 3"),
             drop.format("eth / ipv6").replace("drop", "mark id 1 / count"),
             drop.format("ipv4 dst is 10.0.0.3").replace("drop", "jump group 1")]
    where = [None, None, "its pattern names no IP version, so that a NIC cannot leave out fragments",
             "packets come to its group by a jump", "action 'queue' is not given to NICs",
             "line 5 comes before it, matches some of its packets, and does not drop them",
             "line 5 comes before it, matches some of its packets, and does not drop them",
             "action 'mark' is not given to NICs", "action 'jump' is not given to NICs"]
    told = [json.loads(line) for line in check("\n".join(lines), "--json").stdout.splitlines()]
    assert [line.get("why") for line in told] == where
    assert [line["where"] for line in told] == ["software" if why else "nic" for why in where]
    warned = [6]
    text = check("\n".join(lines)).stdout.decode().splitlines()
    assert [line for n, line in enumerate(text) if n not in warned] == [
        f"ok, in software: {why}" if why else "ok, for NICs that take it"
        for n, why in enumerate(where) if n not in warned]
    assert "with a warning: line 6 matches" in text[6]


def test_json():
    result = check(f"{GOOD}\n{BAD}\n{LATER}\n", "--json")
    assert result.code == 1
    lines = [json.loads(line) for line in result.stdout.decode().splitlines()]
    assert lines[0] == {"file": "-", "line": 1, "ok": True, "rule": GOOD, "software": True, "where": "nic"}
    assert lines[1] == {"file": "-", "line": 2, "ok": False, "column": 29, "parsed": False,
                        "error": "ipv5: a pattern item is needed here; did you mean ipv4?"}
    assert lines[2]["parsed"] and lines[2]["line"] == 3 and "rule" not in lines[2]


def test_contradictions():
    """Of rules that no packet can match; a jump to the group may stand behind its rules."""
    line = "flow create 0 {}ingress pattern {} / end actions {} / end"
    told = check("\n".join([
        line.format("", "eth type is 0x0800 / vlan", "drop"), line.format("", "eth type is 0x86dd / ipv4", "drop"),
        line.format("", "eth type is 0x8100 / vlan vid is 5 / ipv4", "drop"),
        line.format("", "eth type is 0x8100 has_vlan is 0 / ipv4", "drop"),
        line.format("", "eth type is 0x0806 / tcp", "drop"),
        line.format("group 2 ", "ipv6", "drop"), line.format("group 3 ", "ipv6", "drop"),
        line.format("", "ipv6 dst is ::9", "jump group 3")]), "--json")
    nothing = "the rule matches nothing: "
    assert [json.loads(text).get("warning") for text in told.stdout.splitlines()] == [
        nothing + "it asks for a VLAN tag, and its Ethernet type is not that of one",
        nothing + "its Ethernet type is not that of its IP version", None,
        nothing + "it asks for no VLAN tag, and its Ethernet type is that of one",
        nothing + "it asks for a protocol of IP, and its Ethernet type is not IP's",
        "no rule jumps to group 2, so that it has no packets", None, None]
    assert told.code == 0


@pytest.mark.parametrize("items, item, said", [
    ("ipv4 / tcp dst spec 1 dst last 1023", "tcp", "also asks for 'src is 0'; masks, as in 'dst mask ...', "),
    ("udp dst spec 53", "udp", "also asks for 'src is 0'; masks, as in 'dst mask ...', "),
    ("ipv4 src spec 10.0.0.1", "ipv4", "also asks for 'dst is 0.0.0.0'; masks, as in 'src mask ...', "),
    ("ipv6 dst spec ::1", "ipv6", "also asks for 'src is ::'; masks, as in 'dst mask ...', "),
    ("eth src spec 02:00:00:00:00:01", "eth", "also asks for 'dst is 00:00:00:00:00:00'; masks, as in 'src mask ...', "),
    ("ipv4 ttl spec 3", "ipv4", "also asks for 'src is 0.0.0.0, dst is 0.0.0.0', and does not look at ttl; "),
    ("ipv4 src spec 10.0.0.1 dst spec 10.0.0.2 tos spec 4", "ipv4", "does not look at tos; "),
    ("vlan pcp spec 3", "vlan", "also asks for 'vid is 0', and does not look at pcp; "),
    ("ipv4 / icmp type spec 8", "icmp", "also asks for 'code is 0'; "),
    ("vlan tci spec 5", "vlan", "does not look at pcp, dei; "),
    ("ipv4 / udp src spec 0 dst spec 53", None, None), ("ipv4 / udp dst is 53", None, None),
    ("ipv4 / tcp dst spec 1 dst last 1023 dst mask 0xffff", None, None), ("ipv4 src spec 10.0.0.0 src prefix 8", None, None),
    ("ipv4 / udp / vxlan vni spec 5", None, None), ("eth / ipv4 / tcp", None, None)])
def test_default_masks(items, item, said):
    """It is told where an item without a mask asks for more than it names, or for less."""
    line = f"flow create 0 ingress pattern {items} / end actions drop / end"
    (told,) = [json.loads(text) for text in check(line, "--json").stdout.splitlines()]
    assert told["software"]
    if said is None:
        assert "warning" not in told
    else:
        assert told["warning"].startswith(f"item '{item}' has no mask, and its default mask {said}"), told["warning"]
    # no warning hides another one
    again = [json.loads(text) for text in check(f"{line}\n{line}", "--json").stdout.splitlines()][1]["warning"]
    assert again.endswith("line 1 matches all that this rule matches before it") and (item is None or item in again)


@pytest.mark.parametrize("text", [" ", "\n\n", "# nothing", f"{GOOD}\n", f"testpmd> {GOOD}\r\n"])
def test_right(text):
    result = check(text, "-")
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.decode() == ("ok, for NICs that take it\n" if "flow" in text else "")


def test_set_lines_hold_for_what_follows():
    """A header of an item that has none is refused where it is set; samples have no samples."""
    result = check("set raw_encap 1 eth / ipv4 / end_set\n"
                   "flow create 0 ingress pattern eth / end actions raw_encap index 1 / end\n"
                   "set raw_encap eth / mark / end_set\n"
                   "set sample_actions 0 sample index 0 / end\n")
    assert result.stdout.decode().splitlines() == [
        "ok", "ok, in software: action 'raw_encap' is not given to NICs", "-:3:21: error: mark: this item cannot be part of an outer header",
        "-:4:22: error: sample: a sample's actions have no sample among them"]


def test_bytes_of_all_kinds():
    """Never more than one line for a line, whatever is in it."""
    text = bytes(range(256)) * 40 + b"\nflow \x00\n" + b"flow " * 5000 + b"\n" + GOOD.encode()
    result = run("rule", "check", stdin=text)
    assert result.code == 1
    lines = result.stdout.decode().splitlines()
    assert lines[-1] == "ok, for NICs that take it" and all(":" in line for line in lines[:-1])
    assert any("the line is longer than 8192 bytes" in line for line in lines)
    objects = run("rule", "check", "--json", stdin=text).stdout.decode().splitlines()
    assert [json.loads(line)["ok"] for line in objects] == [line.startswith("ok") for line in lines]


def test_what_no_screen_shows(tmp_path):
    """A byte order mark in front of a file is skipped; elsewhere such a character is named."""
    mark = "\N{ZERO WIDTH NO-BREAK SPACE}"
    path = tmp_path / "rules"
    path.write_text(f"{mark}{BAD}\n{GOOD}\n{mark}{GOOD}\n{GOOD.replace(' ipv4', chr(0xa0) + 'ipv4')}\n"
                    f"{GOOD.replace('192', chr(0x200b) + '192')}\n", encoding="utf-8")
    for args in ({"stdin": path.read_bytes()}, {}):
        lines = run("rule", "check", *([] if args else [path]), **args).stdout.decode().splitlines()
        assert [line.partition(": ")[2] if "error" in line else line for line in lines] == [
            "error: ipv5: a pattern item is needed here; did you mean ipv4?", "ok, for NICs that take it",
            "error: <U+FEFF>flow: flow, set, add, create, del, enable or disable is needed here",
            "error: /<U+00A0>ipv4: dst, src, type, has_vlan or / is needed here",
            "error: <U+200B>192.0.2.1: an IPv4 address is needed for src"]
        assert lines[0].split(":")[1:3] == ["1", "29"]


@pytest.mark.parametrize("args, words", [
    (["/nowhere/rules"], "/nowhere/rules: No such file or directory"),
    (["/"], "/: Is a directory")])
def test_not_readable(args, words):
    result = run("rule", "check", *args)
    assert (result.code, result.stdout) == (1, b"")
    assert result.lines == [f"millrace: {words}"]


@pytest.mark.parametrize("args, words", [
    (["check", "a", "b"], "rule check: one file at a time"),
    (["check", "--jsn"], "did you mean --json?"),
    (["grammar", "all"], "rule grammar: one word too many"),
    (["shek"], "rule shek: no such verb; did you mean check?")])
def test_misused(args, words):
    result = run("rule", *args)
    assert (result.code, result.stdout) == (2, b"")
    assert words in result.stderr and len(result.lines) == 1


@pytest.mark.parametrize("verb", ["check", "grammar"])
def test_help(verb):
    result = run("rule", verb, "--help")
    text = result.stdout.decode()
    assert (result.code, result.stderr) == (0, "")
    assert run("help", "rule", verb).stdout == result.stdout
    assert text.startswith(f"Usage: millrace rule {verb}")
    assert max(map(len, text.splitlines())) <= 100
    assert f"  {verb} " in run("rule", "--help").stdout.decode()


def test_many_rules():
    """A hundred thousand in less than two seconds, a wrong one among them named."""
    lines = [f"flow create 0 ingress pattern eth / ipv4 src is 10.{n >> 16}.{n >> 8 & 255}.{n & 255} / "
             f"udp dst is {n % 65536} / end actions queue index {n % 16} / end" for n in range(100000)]
    lines[77777] = BAD
    begun = time.monotonic()
    result = check("\n".join(lines))
    assert time.monotonic() - begun < 2 * SLOWER
    assert result.code == 1
    told = result.stdout.decode().splitlines()
    assert len(told) == 100000
    assert told.count("ok, in software: action 'queue' is not given to NICs") == 99999
    assert told[77777].startswith("-:77778:29: error: ipv5: ")


def test_where_of_many_rules():
    """What would have to be compared with too many others is said to be; what a rule says by itself is known of all."""
    count = 33000
    line = "flow create 0 ingress pattern eth / ipv4 src is 10.{}.{}.{} / end actions {} / end"
    lines = [line.format(n >> 16, n >> 8 & 255, n & 255, "drop" if n % 4 == 0 else "queue index 1") for n in range(count)]
    told = check("\n".join(lines)).stdout.decode().splitlines()
    assert len(told) == count
    assert told[0] == told[400] == "ok, for NICs that take it"
    unknown = "ok, where is not known: it was not compared with all rules before it, as they are too many"
    assert told[32996] == unknown and unknown in told[:32768]
    assert set(told) == {told[0], unknown, "ok, in software: action 'queue' is not given to NICs"}
    # one that is compared with few of them is known as far as they were kept
    few = check("\n".join([line.format(99, 0, 0, "mark id 1")] * 32768 + [line.format(99, 0, 0, "drop")] +
                          [line.format(99, 0, 1, "drop")] + [line.format(99, 0, 1, "drop").replace("create", "validate")]),
                "--json")
    last = [json.loads(text) for text in few.stdout.splitlines()[-3:]]
    assert [text["where"] for text in last] == ["software", "unknown", "unknown"]
    assert last[0]["why"].startswith("line 1 comes before it") and last[1]["why"] in unknown


def test_page_is_that_of_the_program():
    """
    docs/rules.md ends with what `rule grammar` prints. The page is that of DPDK 22.11: one field went with 23.03, and some
    have other widths since.
    """
    result = run("rule", "grammar")
    assert (result.code, result.stderr) == (0, "")
    _, _, printed = PAGE.read_text(encoding="utf-8").partition(MARK)
    told = result.stdout.decode()
    if "`mtr_init_color`" not in told:
        printed = "".join(line for line in printed.splitlines(keepends=True) if "`mtr_init_color`" not in line)
        printed, told = (re.sub(r"number, \d+ bits", "number", text) for text in (printed, told))
    assert printed == told


def test_page_has_right_examples():
    """Every line of a command on the page that stands there to be read is read."""
    text = PAGE.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith(("    flow ", "    add ", "    create "))]
    result = check("\n".join(lines))
    assert len(lines) == 21
    told = result.stdout.decode().splitlines()
    # beside one another some match nothing any more, which is told of them
    assert not any(": error: " in line for line in told[:1] + told[2:])
    assert "    rules:3:37: error: ipv5" in text
    assert ":2:37: error: ipv5" in result.stdout.decode()


def examples():
    """(where it stands, its lines) of each example, the lines that prepare it first."""
    for line in EXAMPLES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            where, _, setup, command = line.split("\t")
            before = [] if setup == "-" else setup.split(" ;; ")
            yield where.split(",")[0], [text.strip() for text in [*before, command]]


def test_examples_of_the_guides():
    """All are read, or need another release, but for those that are misprinted."""
    if not EXAMPLES.is_file():
        pytest.skip(f"no examples in {EXAMPLES}")
    all_lines, owners = [], []
    for where, lines in examples():
        all_lines += lines
        owners += [where] * len(lines)
    result = check("\n".join(all_lines), "--json")
    told = [json.loads(line) for line in result.stdout.decode().splitlines()]
    assert len(told) == len(all_lines)
    wrong = {}
    for where, line in zip(owners, told):
        if not line["ok"] and not line["parsed"]:
            wrong[where] = line["error"]
    assert wrong.keys() == MISPRINTS.keys(), wrong
    for where, error in wrong.items():
        assert error.startswith(MISPRINTS[where]), where
    # what is read is printed as lines that are read alike
    rules = [line["rule"] for line in told if line["ok"]]
    again = [json.loads(line) for line in check("\n".join(rules), "--json").stdout.splitlines()]
    assert [line["rule"] for line in again] == rules
    assert len(rules) > len(told) * 0.9
