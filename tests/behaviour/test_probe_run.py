# SPDX-License-Identifier: BSD-3-Clause
"""`millrace probe`: of each simulated NIC the truth is known, and has to be told; its lies too."""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from conftest import MILLRACE, ROOT, SLOWER, run
from halted import let_go, stopped_at_fork
from probes import ALL_ACTIONS, MIX, PROFILES, probe, start, truth
from simulated import ports

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

PATTERNS = 33

pytestmark = pytest.mark.usefixtures("simulated_nic")


def check_whole(result):
    """It came to its end, and left nothing."""
    assert result.code == 0, result.errors
    assert result["complete"] and result["rules_left"] == 0 and "ended" not in result.report
    assert len(result.levels) == result["cells_asked"] == PATTERNS * len(ALL_ACTIONS)
    assert {actions for _, actions in result.levels} == ALL_ACTIONS
    assert not any("stays" in cell or "left" in cell for cell in result["cells"])
    return result


@pytest.fixture(name="probed", scope="module")
def probed_profiles():
    """probed(profile): its report, made once."""
    known = {}

    def get(profile):
        if profile not in known:
            known[profile] = check_whole(probe("--max-rules", 1000,
                                               f"net_flowsim0,profile={profile},{MIX}"))
        return known[profile]

    return get


@pytest.mark.parametrize("profile", PROFILES)
def test_the_level_of_every_form(probed, profile):
    result = probed(profile)
    wrong = {form: (level, truth(profile, *form)) for form, level in result.levels.items()
             if level != truth(profile, *form)}
    assert not wrong
    assert result["packets"] == "arriving" and result["flows"] > 200


@pytest.mark.parametrize("profile, bits, back_ends, limits", [
    ("ideal", 32, ["rte_flow async", "rte_flow"], True),
    ("tiny", 32, ["rte_flow"], False),
    ("x710", 32, ["rte_flow"], False),
    ("e810", 32, ["rte_flow"], False),
    ("cx5", 24, ["rte_flow"], False),
    ("cx6-hws", 24, ["rte_flow async"], True),
])
def test_marks_and_calls(probed, profile, bits, back_ends, limits):
    result = probed(profile)
    assert result["marks"] == {"accepted_bits": bits, "seen_bits": bits}
    assert [table["back_end"] for table in result["tables"]] == back_ends
    assert all(table["mark_bits"] == bits for table in result["tables"])
    assert ("async" in result.report) == limits
    # no validate: by templates it is not there, and `ideal` has the hostility no_validate
    validates = {cell["validate"] is not None for cell in result["cells"]}
    assert validates == {profile not in ("ideal", "cx6-hws")}


@pytest.mark.parametrize("profile, counts, indirect", [
    ("ideal", True, {"count": "works", "age": "accepts", "rss": "accepts"}),
    ("tiny", True, {"count": "works", "age": "accepts", "rss": "accepts"}),
    ("x710", False, None),
    ("e810", True, None),
    ("cx5", True, {"count": "works", "age": "accepts", "rss": "accepts"}),
])
def test_counters_and_handles(probed, profile, counts, indirect):
    result = probed(profile)
    assert ("counters" in result.report) == counts
    assert all(table["counts"] == counts for table in result["tables"])
    # of what matches one flow alone, and lets it come
    exact = {cell["counter"] for cell in result["cells"]
             if "counter" in cell and "kind" in cell and "drop" not in cell["actions"]
             and "port" not in cell["actions"]}
    assert exact == ({"exact"} if counts else set())
    if counts:
        assert result["counters"]["counted"] == result["counters"]["came"]
        assert result["counters"]["at_least_bits"] >= 10
    if indirect:
        assert {one["action"]: one["level"] for one in result["indirect"]} == indirect


@pytest.mark.parametrize("words, more, back_end, rules, answer", [
    ("profile=tiny", [], "rte_flow", 512, "ENOSYS"),
    ("profile=x710,create_ns=0,destroy_ns=0", [], "rte_flow", 7168, "ENOBUFS"),
    ("profile=e810,create_ns=0,destroy_ns=0", [], "rte_flow", 16384, "EINVAL"),
    ("profile=cx5,create_ns=0,destroy_ns=0", ["--max-rules", 1100000], "rte_flow", 1048576,
     "ENOMEM"),
    ("profile=cx6-hws,rules=50000", [], "rte_flow async", 50000, None),
    ("profile=ideal,rules=777,async=0,hostile=0", [], "rte_flow", 777, "ENOSPC"),
])
def test_the_size_of_tables(words, more, back_end, rules, answer):
    result = probe(*more, f"net_flowsim0,{words},source=none")
    assert result.code == 0, result.errors
    table = result.table(back_end)
    assert (table["rules"], table["end"], table["left"]) == (rules, "full", 0)
    assert answer is None or table["answer"]["errno"] == answer
    assert result["rules_left"] == 0


def test_a_cap_is_not_a_size():
    table = probe("--max-rules", 300, "net_flowsim0,profile=x710,source=none").table()
    assert (table["rules"], table["end"]) == (300, "cap")


def told(*words):
    """The report as people read it."""
    return run("probe", "--no-store", *words).stdout.decode()


def test_counters_without_a_limit():
    assert "operations, no limit of counters\n" in told("--max-rules", 100, "net_flowsim0,source=none")


def test_inserts_that_failed_are_told():
    text = told("--max-rules", 300, "net_flowsim0,source=none,async=0,fault=fail:op=create:every=3")
    assert re.search(r"room for 2\d\d rules at least: no more were tried \(--max-rules\) "
                     r"\(\d+ inserts failed\)", text), text


@pytest.mark.parametrize("profile, insert_ns, delete_ns", [
    ("x710-stock", 11000000, 11000000),
    ("x710", 22000, 22000),
    ("cx5", 20000, 20000),
])
def test_how_long_a_rule_takes(profile, insert_ns, delete_ns):
    result = probe("--max-rules", 100, f"net_flowsim0,profile={profile},source=none")
    table = result.table()
    for name, least in (("insert", insert_ns), ("delete", delete_ns)):
        latency = table[name]
        assert least <= latency["p50_ns"] <= latency["p99_ns"]
        assert latency["p50_ns"] < 2 * least + 2000000 * SLOWER
        # a whole number, rounded
        assert 0 < latency["per_s"] <= round(1e9 / least)


def test_nothing_comes():
    """No effect is claimed where nobody looked."""
    result = probe("--max-rules", 100, "net_flowsim0,source=none")
    assert (result["packets"], result["flows"], result.code) == ("none", 0, 0)
    assert set(result.levels.values()) == {"accepts"}
    assert {cell["effect"] for cell in result["cells"]} == {"not tried"}
    assert "seen_bits" not in result["marks"]
    done = run("probe", "--no-store", "--max-rules", 100, "net_flowsim0,source=none")
    assert b"no packets came: effects not tried\n" in done.stdout


UDP = "eth / ipv4 / udp"


@pytest.mark.parametrize("fault, lies, because", [
    ("stop_mark", "mark", "0 of"),
    ("stop_mark:every=3", "mark", "packets had the mark"),
    ("wrong_mark", "mark", "had another mark"),
    ("lose", "mark", "0 of"),
    ("lose", "drop", "came nevertheless"),
    ("lose", "queue", "0 of"),
    ("count_nothing", "mark + count", "the counter stood still"),
    ("count_nothing", "drop + count", "the counter stood still"),
])
def test_lies_are_accepted_and_do_not_work(fault, lies, because):
    result = check_whole(probe("--max-rules", 100, f"net_flowsim0,flows=64,fault={fault}"))
    cell = result.cell(UDP, lies)
    assert cell["level"] == "accepts" and cell["create"] is True
    assert because in cell["because"]
    honest = result.cell(UDP, "mark") if "count" in lies else result.cell(UDP, "queue")
    assert honest["level"] == ("accepts" if fault == "lose" else "works")


def test_an_honest_card_is_not_blamed_for_uneven_traffic():
    result = check_whole(probe("--max-rules", 100, "net_flowsim0,profile=tiny,rules=40,flows=400,"
                               "seed=3,load=zipf,side=forward,pace=200000"))
    assert [(cell["pattern"], cell["actions"], cell["because"]) for cell in result["cells"]
            if cell["create"] is True
            and (cell["effect"] == "missing" or cell.get("counter") in ("stuck", "late"))] == []
    assert any(cell["level"] == "works" for cell in result["cells"])


@pytest.mark.parametrize("fault, lies, because", [
    ("lose", "drop", "came nevertheless"),
    ("count_nothing", "drop + count", "the counter stood still"),
])
def test_lies_are_found_out_by_slow_packets(fault, lies, because):
    result = check_whole(probe("--max-rules", 100,
                               f"net_flowsim0,flows=64,pace=20000,fault={fault}"))
    assert because in result.cell(UDP, lies)["because"]


def test_validate_says_yes_where_create_says_no():
    result = probe("--max-rules", 100, "net_flowsim0,flows=64,profile=e810")
    cell = result.cell("eth / ipv4 / icmp", "mark")
    assert (cell["level"], cell["validate"]) == ("says yes", True)
    assert cell["create"]["errno"] == "EINVAL" and cell["create"]["words"]


@pytest.mark.parametrize("bits, engine", [(8, 0), (15, 0), (20, 16), (31, 24)])
def test_marks_are_as_wide_as_they_are(bits, engine):
    result = check_whole(probe("--max-rules", 2000, f"net_flowsim0,flows=64,mark_bits={bits}"))
    assert result["marks"] == {"accepted_bits": bits, "seen_bits": bits}
    assert result.cell(UDP, "mark")["level"] == "works"
    table = result["tables"][-1]
    assert (table["mark_bits"], table["rules"], table["end"]) == (engine, 2000, "cap")


@pytest.mark.parametrize("bits", [12, 16])
def test_a_counter_goes_round(bits):
    result = probe("--max-rules", 100, f"net_flowsim0,flows=4,counter_bits={bits}")
    assert result["counters"]["bits"] == bits


def test_what_stays_of_marks(probed):
    """A NIC whose small hostilities are off does what the others do, and says so."""
    result = check_whole(probe("--max-rules", 100, f"net_flowsim0,profile=x710,hostile=0,{MIX}"))
    differ = {form for form, level in result.levels.items()
              if level != probed("x710").levels[form]}
    assert {pattern for pattern, _ in differ} == {"eth / ipv4", "eth / ipv6"}
    assert result.cell("eth / ipv4", "mark")["level"] == "works"


def test_its_own_packets_on_a_loop():
    result = probe("--max-rules", 100, "--vdev", "net_ring0", "--loopback",
                   "net_flowsim0,profile=cx5,port=net_ring0")
    check_whole(result)
    assert result["packets"] == "loopback"
    for actions in ("mark + queue", "mark + rss + count", "queue", "drop + count"):
        assert result.cell(UDP, actions)["level"] == "works"
    assert result.cell(UDP, "drop + count")["counter"] == "exact"
    # what it sends on cannot be told from what is sent by us
    assert result.cell(UDP, "represented_port")["level"] == "accepts"


def test_packets_are_sent_on_by_another_port():
    words = "profile=cx5,nic=n"
    for target, level in (("nic=n", "works"), ("nic=other", "no")):
        result = probe("--max-rules", 100, "--to", f"net_flowsim1,{target},profile=cx5,source=none",
                       f"net_flowsim0,{words},flows=64")
        check_whole(result)
        for actions in ("represented_port", "represented_port + count", "port_id"):
            assert result.cell(UDP, actions)["level"] == level


def test_null():
    result = check_whole(probe("net_null0"))
    assert set(result.levels.values()) == {"no"}
    assert {cell["create"]["errno"] for cell in result["cells"]} == {"ENOSYS"}
    assert result.table("none")["unable"]
    assert result["heard"] > 0
    assert "packets came, of no flow that can be looked at: effects not tried\n" in told("net_null0")


def test_bonding():
    """A bonding port over two NICs does what both do."""
    result = check_whole(probe(
        "--max-rules", 100, "--vdev", f"net_flowsim0,profile=x710,{MIX}",
        "--vdev", "net_flowsim1,profile=x710,source=none",
        "net_bonding0,mode=1,slave=net_flowsim0,slave=net_flowsim1"))
    assert result["driver"] == "net_bonding"
    wrong = {form: level for form, level in result.levels.items()
             if level != truth("x710", *form)}
    assert not wrong
    assert result["marks"] == {"accepted_bits": 32, "seen_bits": 32}


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="interfaces need root")


@needs_root
def test_tap():
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun")
    result = check_whole(probe("--listen", 1, "net_tap0,iface=mrprobe0"))
    assert all(level != "works" for (_, actions), level in result.levels.items()
               if "mark" in actions)
    assert result.table("none")["unable"]


@pytest.fixture(name="veth")
def make_veth():
    """Two ends of a cable, in a namespace of their own: the words that a command in it begins with."""
    name = f"mrprobe{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        pytest.skip("no network namespaces here")
    inside = ["ip", "netns", "exec", name]
    try:
        done = subprocess.run([*inside, "ip", "link", "add", "pa", "type", "veth", "peer", "name",
                               "pb"], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("no veth here")
        for end in ("pa", "pb"):
            subprocess.run([*inside, "sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1"],
                           capture_output=True, check=False)
            subprocess.run([*inside, "ip", "link", "set", end, "up"], check=True)
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


def probe_inside(inside, *words):
    done = subprocess.run([*inside, MILLRACE, "probe", "--json", "--no-store", *map(str, words)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=200 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_root
def test_af_packet(veth):
    report = probe_inside(veth, "--listen", 1, "--peer", "net_af_packet1,iface=pb",
                          "net_af_packet0,iface=pa")
    assert (report["driver"], report["packets"], report["complete"]) == (
        "net_af_packet", "peer", True)
    assert report["flows"] > 200
    assert {cell["level"] for cell in report["cells"]} == {"no"}


@needs_root
def test_a_peer_sends(veth):
    """A NIC at one end of a cable, and what sends at the other: what it sends on is seen there."""
    report = probe_inside(veth, "--max-rules", 100, "--peer", "net_af_packet1,iface=pb",
                          "--vdev", "net_af_packet0,iface=pa",
                          "net_flowsim0,profile=cx5,port=net_af_packet0")
    levels = {(cell["pattern"], cell["actions"]): cell["level"] for cell in report["cells"]}
    wrong = {form: level for form, level in levels.items() if level != truth("cx5", *form)}
    assert not wrong and report["rules_left"] == 0


def child_of(process):
    """The process that touches the device, once it is at its rules."""
    for _ in range(1000):
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(
            encoding="ascii").split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    raise AssertionError("no child")


def test_a_driver_that_hangs():
    """It is not waited for; the others are tried by another process, some times."""
    begin = time.monotonic()
    result = probe("--step-timeout", 1, "net_flowsim0,flows=8,create_ns=60000000000")
    assert time.monotonic() - begin < 30 * SLOWER
    assert result.code == 1 and not result["complete"]
    assert result["ended"].startswith("no answer for 1 s, at: eth / ipv4 / tcp flags, mark")
    assert result["ended"].endswith(": create")
    lost = [cell for cell in result["cells"] if cell.get("lost")]
    assert len(lost) == len(result["cells"]) == 4
    assert result["rules_left"] == 1


def test_time_that_runs_out():
    """What was found until then is told, and nothing is left."""
    result = probe("--timeout", 3, "net_flowsim0,flows=8,create_ns=30000000,destroy_ns=30000000")
    assert result.code == 1 and result["rules_left"] == 0
    assert not result["complete"] and result["stopped"] == "the time is over"
    assert 0 < len(result["cells"]) < result["cells_asked"]


def test_somebody_interrupts(tmp_path):
    """What was found until then is told, nothing is left, and nothing is kept."""
    with start("net_flowsim0,flows=8,create_ns=20000000", state=tmp_path) as process:
        child_of(process)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60 * SLOWER)
    report = json.loads(output)
    assert process.returncode == 1 and report["rules_left"] == 0, errors
    assert not report["complete"] and report["stopped"] == "interrupted"
    assert 0 < len(report["cells"]) < report["cells_asked"]
    assert not list(tmp_path.iterdir())


def test_a_table_without_marks():
    """Of a card that marks nothing the table is measured by what it takes."""
    table = probe("net_flowsim0,flows=8,actions=queue+drop,rules=300,async=0,hostile=0").table("none")
    assert table["unable"] and table["form"] == "eth / ipv4 / udp, queue"
    assert (table["rules"], table["end"], table["left"]) == (300, "full", 0)
    assert table["answer"]["errno"] == "ENOSPC" and table["insert"]["times"] == 300


def test_a_driver_that_crashes():
    with start("--max-rules", 20, "net_flowsim0,flows=8,create_ns=20000000") as process:
        child = child_of(process)
        # it is at its rules by then, most likely; wherever it is, the parent survives
        time.sleep(1.5)
        os.kill(child, signal.SIGSEGV)
        output, errors = process.communicate(timeout=200 * SLOWER)
    report = json.loads(output)
    lost = [cell for cell in report["cells"] if cell.get("lost")]
    assert len(lost) == 1 and "crashed" in lost[0]["because"], errors
    assert report["complete"] and process.returncode == 0
    assert len(report["cells"]) == report["cells_asked"]


def test_a_parent_that_is_killed():
    """Nobody is left who would take the rules out, or end the process that hangs in a driver."""
    with start("--step-timeout", 600, "net_flowsim0,flows=8,create_ns=60000000000") as process:
        child = os.pidfd_open(child_of(process))
        try:
            process.kill()
            process.communicate(timeout=60 * SLOWER)
            # readable once the process has ended
            assert select.select([child], [], [], 60 * SLOWER)[0], "the child lives on"
        finally:
            os.close(child)


def pipe_within(process):
    """Where its end to read from is, of the only pipe that a process has both ends of."""
    ends = {}
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        flags = int(re.search(r"flags:\s*(\d+)",
                              (entry.parent.parent / "fdinfo" / entry.name).read_text())[1], 8)
        ends.setdefault(os.readlink(entry), {})[flags & os.O_ACCMODE] = entry
    (found,) = [at[os.O_RDONLY] for name, at in ends.items()
                if name.startswith("pipe:") and set(at) == {os.O_RDONLY, os.O_WRONLY}]
    return found


def test_a_parent_that_is_gone_at_once():
    """Killed before its child can ask to be told of that: the child says nothing, touches nothing and ends."""
    process, child = stopped_at_fork([MILLRACE, "probe", "--no-store", "net_flowsim0,flows=8"])
    # held open here, or what it says would end it
    with open(pipe_within(child), "rb", buffering=0) as pipe:
        process.kill()
        process.wait()
        let_go(child)
        assert pipe.read() == b""


def test_a_card_that_fails_on_the_way(tmp_path):
    """What it refuses from then on is none of its inabilities: nothing of it is kept."""
    result = probe("net_flowsim0,profile=tiny,flows=64,fault=dead:after=300", state=tmp_path)
    assert result.code == 1 and not result["complete"] and "kept" not in result.report
    assert result["stopped"] == "it takes no rule any more that it took before"
    assert 0 < len(result["cells"]) < result["cells_asked"]
    assert "works" in result.levels.values()
    assert not list(tmp_path.iterdir())


def test_failures_now_and_then():
    """They are another answer the next time, and say nothing of what the card can do."""
    whole, failing = (
        probe("--max-rules", 20, f"net_flowsim0,profile=tiny,flows=64{fault}")
        for fault in ("", ",fault=[fail:op=create:every=2]"))
    assert failing.levels == whole.levels
    assert failing["marks"] == whole["marks"] == {"accepted_bits": 32, "seen_bits": 32}
    assert failing["indirect"] == whole["indirect"]


def test_rules_that_do_not_go():
    result = probe("net_flowsim0,flows=8,fault=[fail:op=destroy]")
    assert result.code == 1
    assert result["rules_left"] >= 8 and result["stopped"] == "rules do not go again"
    left = [cell for cell in result["cells"] if "left" in cell]
    assert left and left[0]["left"]["errno"] == "EIO"


@pytest.mark.parametrize("words, said", [
    ([], "a device is needed"),
    (["net_null0", "net_null1"], "one device at a time"),
    (["--max-rules", "0", "net_null0"], "--max-rules 0"),
    (["--peer", "net_null1", "--loopback", "net_null0"], "only one of them"),
    (["--to", "net null", "net_null0"], "blanks"),
    (["--vdev", "eth1", "net_null0"], "a DPDK device is needed"),
    (["--tiemout", "3", "net_null0"], "did you mean --timeout?"),
    (["net_flowsim0,fl ws=3"], "blanks"),
])
def test_misuse(words, said):
    done = run("probe", *words)
    assert done.code == 2 and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("words, said", [
    (["net_flowsim0,flow=3"], "did you mean flows=?"),
    (["nosuchiface"], "no such interface"),
    (["net_flosim0"], "did you mean net_flowsim?"),
    (["net_null0,wrong=1"], "net_null0: DPDK does not open it: "),
    (["--vdev", "net_rin0", "net_null0"], "--vdev net_rin0"),
    (["0000:fe:1f.7"], " PCI device"),  # or there is no hugepage for it
    (["--peer", "0000:fe:1f.7", "net_null0"], " PCI device"),
])
def test_devices_that_do_not_open(words, said):
    """In words of our own; EAL's are told as part of them at most."""
    done = run("probe", "--no-store", *words)
    without = said.replace(" PCI device", "PCI ports need")
    assert done.code == 1 and (said in done.stderr or without in done.stderr) and not done.stdout
    assert "EAL:" not in done.stderr


def test_what_is_found_is_kept_and_known(tmp_path):
    """A file, of this device alone; an engine with such a card says what is in it."""
    words = "profile=x710,create_ns=0,destroy_ns=0,flows=40"
    result = probe(f"net_flowsim0,{words}", state=tmp_path)
    assert result.code == 0, result.errors
    (kept,) = (tmp_path / "millrace").iterdir()
    stored = json.loads(kept.read_text())
    assert stored["arguments"] == words and stored["driver"] == "net_flowsim"
    assert stored["cells"] == result["cells"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stored["time"])
    # the device has another number: what it is made of is the same
    running = engine.Millrace(
        tmp_path / "engine", "--port", f"a=net_flowsim7,{words}", "--port",
        "b=net_flowsim8,source=none", "--wire", "a,b",
        environment={"XDG_STATE_HOME": str(tmp_path)})
    try:
        a, b = running.ask("offload show")
        assert "probed" not in b
        assert (a["probed"]["rules"], a["probed"]["full"]) == (7168, True)
        assert a["probed"]["mark_bits"] == 32 and a["probed"]["inserts_per_s"] > 0
        assert a["probed"]["time"] == stored["time"]
        running.stop()
    finally:
        running.kill()


def test_bonding_ports_are_what_they_are_made_of(tmp_path):
    """Their own arguments are the same. The report says where it is kept, also who reads the text."""
    def keep(profile):
        member = f"profile={profile},create_ns=0,destroy_ns=0,source=none"
        with start("--listen", 1, "--max-rules", 8, "--vdev", f"net_flowsim0,{member}",
                   "--vdev", f"net_flowsim1,{member}",
                   "net_bonding0,mode=1,slave=net_flowsim0,slave=net_flowsim1",
                   state=tmp_path, json_too=False) as process:
            output, errors = process.communicate(timeout=60 * SLOWER)
        assert process.returncode == 0, errors
        tried, kept = output.splitlines()[-2:]
        assert re.fullmatch(r"495 forms of rules tried in \d+ s, and no rule is left", tried)
        return pathlib.Path(kept.removeprefix("kept in "))

    one, other, again = keep("x710"), keep("e810"), keep("x710")
    assert one == again != other
    assert sorted((tmp_path / "millrace").iterdir()) == sorted([one, other])
    assert "profile=x710" in json.loads(one.read_text())["arguments"]


def test_deletes_that_were_none_have_no_times():
    """Of a NIC that fails one call in three: a place without a rule goes at once, and a refusal is no delete."""
    device = "net_flowsim0,profile=x710,destroy_ns=400000,flows=64,fault=fail:every=3:errno=EIO"
    result = probe("--max-rules", 300, device)
    table = result.table()
    assert table["inserts_failed"] > 0 and table["deletes_failed"] > 0
    assert table["delete"]["times"] == table["rules"] - table["deletes_failed"]
    assert table["delete"]["p50_ns"] >= 400000
    assert table["delete"]["per_s"] <= 2500


def test_nothing_is_kept(tmp_path):
    """Neither where that was asked for, nor half a report."""
    done = run("probe", "--no-store", "--json", "net_null0")
    assert "kept" not in json.loads(done.stdout)
    result = probe("--step-timeout", 1, "net_flowsim0,flows=8,create_ns=60000000000",
                   state=tmp_path)
    assert result.code == 1 and not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    result = probe("net_null0", state=tmp_path / "file")
    assert result.code == 0 and result["kept"] is False
    assert "what was found is not kept" in result.errors


def test_offload_check(tmp_path):
    """A flow that is not there, one that is, and one of a kind that the card does not take."""
    running = engine.Millrace(
        tmp_path / "engine", *ports("flows=8,profile=x710,side=forward", "source=none"),
        "--offload-threshold", 0, environment={"XDG_STATE_HOME": str(tmp_path)})
    try:
        name = {"src": "10.9.9.9", "sport": 1, "dst": "10.9.9.8", "dport": 2, "proto": "udp"}
        running.until(lambda: all(line["would"] or line["reason"] != "trial"
                                  for line in running.ask("offload check", **name)),
                      "the NICs have been tried")
        a, b = running.ask("offload check", **name)
        assert (a["port"], a["would"], a["live"], a["kind"]) == ("a", True, False, "ipv4/udp")
        assert a["shape"] == "eth / ipv4 / udp, mark" and "now" not in a
        assert a["needs_pps"] == 0 and a["because"] == "with its first packet"
        assert b["would"]
        a, b = running.ask("offload check", src="10.9.9.9", dst="10.9.9.8", proto="icmp")
        assert (a["would"], a["reason"], b["would"]) == (False, "kind", True)
        assert a["refusal"]["errno"] == "EINVAL" and "ipv4/icmp" in a["because"]
        (a, _) = running.ask("offload check", src="10.9.9.9", dst="10.9.9.8", proto=47)
        assert (a["would"], a["reason"], a["kind"]) == (False, "kind", "other")
        running.until(lambda: running.ask("flow list", offload="in_hw"), "a flow in the NIC")
        flow = running.ask("flow list", offload="in_hw")[0]
        name = {key: flow[key] for key in ("src", "sport", "dst", "dport", "proto")}
        a, b = running.ask("offload check", **name)
        assert a["live"] and b["live"] and a["now"]["state"] == "in_hw"
        assert (a["now"]["direction"], b["now"]["direction"]) == ("forward", "reverse")
        assert b["now"]["state"] == "software"
        running.stop()
    finally:
        running.kill()


def test_offload_check_of_a_full_card(tmp_path):
    """What it takes to get in is what the agent asks for, not the threshold."""
    running = engine.Millrace(
        tmp_path / "engine", *ports("flows=64,profile=x710,rules=16,pace=20000", "source=none"),
        environment={"XDG_STATE_HOME": str(tmp_path)})
    name = {"src": "10.9.9.9", "sport": 1, "dst": "10.9.9.8", "dport": 2, "proto": "udp"}
    try:
        running.until(lambda: any("as all places are taken" in line["because"]
                                  for line in running.ask("offload check", **name)),
                      "the card is full, and who is in it is known")
        a, b = running.ask("offload check", **name)
        assert a["would"] and b["would"] and "as all places are taken" not in b["because"]
        needed = int(re.search(r"at ([\d,]+) a second", a["because"])[1].replace(",", ""))
        assert a["needs_pps"] == needed > 100
        assert b["needs_pps"] == running.ask("config show")[0]["offload"]["threshold"]
        running.stop()
    finally:
        running.kill()


def test_offload_check_where_it_is_off(tmp_path):
    running = engine.Millrace(tmp_path / "engine", *ports("flows=8"), "--offload", "off")
    try:
        for line in running.ask("offload check", src="10.9.9.9", dst="10.9.9.8", proto="udp"):
            assert (line["would"], line["reason"]) == (False, "off")
        running.stop()
    finally:
        running.kill()
