# SPDX-License-Identifier: BSD-3-Clause
"""`millrace probe` against drivers that are not ours: DPDK's igb on QEMU's 82576, and net_tap on a kernel's tc.

What is said here of them is what DPDK 22.11 does, as its source has it, and QEMU 10.
"""
import json

import pytest
from guest import HUGEPAGES, IGB, Guest

pytestmark = pytest.mark.needs("guest")

# What igb's n-tuple filters take: addresses, ports and protocol, to a queue.
IGB_TAKES = {(f"{eth}ipv4 / {proto}", "queue") for eth in ("eth / ", "") for proto in ("tcp", "udp", "sctp")}

# What net_tap turns into a flower filter. It wants its Ethernet item, and knows neither SCTP nor ICMP, nor TCP's flags.
TAP_TAKES = {"eth / ipv4 / tcp", "eth / ipv4 / udp", "eth / ipv6 / tcp", "eth / ipv6 / udp", "eth type / ipv4 / udp",
             "eth type / ipv6 / udp", "eth / ipv4", "eth / ipv6", "eth / ipv4 src /24", "eth / ipv4 / udp dst",
             "eth dst"}
# These too, but with another VLAN number than it was told: its mask is taken in the wrong order of bytes, and of
# the number eight bits are kept (tap_flow_create_vlan).
TAP_SPOILS = {"eth / vlan / ipv4 / tcp", "eth / vlan / ipv4 / udp", "eth / vlan / ipv6 / udp", "eth / vlan"}
TAP_ACTIONS = ("queue", "drop")


def of_tap(patterns):
    return {(pattern, actions) for pattern in patterns for actions in TAP_ACTIONS}


@pytest.fixture(name="guest", scope="module")
def make_guest():
    """It has to end well."""
    guest = Guest.__new__(Guest)
    try:
        guest.__init__()
        yield guest
        guest.close()
    finally:
        if hasattr(guest, "process"):
            guest.kill()


@pytest.fixture(name="igb", scope="module")
def probe_igb(guest):
    """One port of an igb; the other one sends the packets."""
    return guest.probe(IGB[0], "--peer", IGB[1])


@pytest.fixture(name="veth", scope="module")
def make_veth(guest):
    """A pair of ends."""
    guest.does("/sbin/ip link add va type veth peer name vb && ip link set va up && ip link set vb up")
    return "va", "vb"


def check(report, driver):
    """The driver survived all forms, and nothing of them is left."""
    assert (report.code, report["complete"], report["driver"]) == (0, True, driver), report
    assert len(report["cells"]) == report["cells_asked"]
    assert not any(key in cell for cell in report["cells"] for key in ("lost", "left", "stays"))
    assert report["rules_left"] == 0
    assert all((table["left"], table["deletes_failed"]) == (0, 0) for table in report["tables"])
    assert not {"ended", "stopped", "failed"} & report.report.keys()


def test_igb_survives_and_keeps_no_rule(igb):
    check(igb, "net_e1000_igb")
    assert (igb["packets"], igb["flows"], igb["queues"], igb["templates"]) == ("peer", 256, 4, False)
    assert igb["firmware"]


def test_igb_takes_rules_to_queues_that_the_card_does_not_know(igb):
    # QEMU's card has RSS and no n-tuple filters: what is written into their registers nobody reads
    assert igb.forms("accepts") == IGB_TAKES
    assert not igb.forms("works", "says yes")
    for form in IGB_TAKES:
        cell = igb.cell(*form)
        assert cell["effect"] == "missing"
        assert cell["seen"] == {"packets": 16, "by_queue": 0}
        assert cell["because"] == "0 of 16 packets came by the queue that was named"


def test_igb_refuses_all_else_and_never_says_why(igb):
    # it asks one parser after the other, and hands on what the last one said: of actions, where items were at fault too
    for form in igb.forms("no"):
        cell = igb.cell(*form)
        assert cell["validate"] == {"errno": "EINVAL", "words": "Not supported action."}
        assert cell["create"] == {"errno": "EINVAL", "words": "Failed to create flow."}
    assert {actions for _, actions in igb.forms("no")} == {actions for _, actions in igb.levels}


def test_igb_has_room_for_eight_rules(igb):
    (table,) = igb["tables"]
    assert table["unable"].startswith("net_e1000_igb takes no rules that mark packets")
    assert table["form"] == "eth / ipv4 / tcp, queue"
    assert (table["rules"], table["end"], table["inserts_failed"]) == (8, "full", 0)
    # of all errors, for the ninth
    assert table["answer"] == {"errno": "ENOSYS", "words": "Failed to create flow."}
    assert (table["insert"]["times"], table["delete"]["times"]) == (8, 8)


def test_what_was_found_of_igb_is_kept(guest, igb):
    def kept():
        (name,) = guest.does("ls /state/millrace").split()
        return name, json.loads(guest.does(f"cat /state/millrace/{name}"))
    assert igb["kept"]
    name, first = kept()
    assert first["tables"] == igb["tables"]
    # the other port is one of the same kind: its report takes the place of the first one's
    other = guest.probe(IGB[1], "--peer", IGB[0])
    check(other, "net_e1000_igb")
    assert other.levels == igb.levels
    assert kept()[0] == name
    assert kept()[1]["device"] == IGB[1] != first["device"]


def test_an_engine_on_igb_knows_what_was_found(guest, igb):
    assert igb["kept"]
    # asked again and again, and not any longer when the engine has ended
    guest.does(f"millrace run --wire {','.join(IGB)} >/run/engine 2>&1 & "
               "until millrace offload show --json >/run/shown 2>/run/said; do kill -0 $! || break; done; "
               "kill -INT $!; wait $!")
    lines = [json.loads(line) for line in guest.does("cat /run/shown").splitlines()]
    assert [line["port"] for line in lines] == IGB, guest.does("cat /run/engine")
    for line in lines:
        assert (line["probed"]["rules"], line["probed"]["full"]) == (8, True)
        assert line["back_end"] == "none"
    assert guest.free_hugepages() == HUGEPAGES


def test_tap_without_packets(guest):
    report = guest.probe("net_tap0,iface=ta", "--no-store", "--listen", "1", "--max-rules", "256")
    check(report, "net_tap")
    assert report["packets"] == "none"
    assert report.forms("accepts") == of_tap(TAP_TAKES | TAP_SPOILS)
    assert not report.forms("works", "says yes")
    assert {report.cell(*form)["effect"] for form in report.forms("accepts")} == {"not tried"}
    assert "ta:" not in guest.does("/sbin/ip link")


def test_tap_does_with_packets_what_it_says(guest, veth):
    # rules for what arrives by a veth, which the tap takes over, are filters of the kernel's
    ours, peer = veth
    report = guest.probe(f"net_tap0,iface=ta,remote={ours}", "--peer", f"net_af_packet0,iface={peer}", "--no-store",
                         "--max-rules", "256")
    check(report, "net_tap")
    assert report["packets"] == "peer"
    assert report.forms("works") == of_tap(TAP_TAKES)
    assert report.forms("accepts") == of_tap(TAP_SPOILS)
    assert not report.forms("says yes")
    assert report.cell("eth / ipv4 / tcp", "queue")["seen"] == {"packets": 16, "by_queue": 16}
    assert report.cell("eth / ipv6 / udp", "drop")["seen"]["packets"] == 0
    (table,) = report["tables"]
    assert (table["form"], table["rules"], table["end"]) == ("eth / ipv4 / tcp, queue", 256, "cap")


def test_packets_that_are_late_are_waited_for(guest, veth):
    # 30 ms, by the qdisc of the end that sends
    ours, peer = veth
    guest.does(f"/sbin/tc qdisc add dev {peer} root netem delay 30ms")
    report = guest.probe(f"net_tap0,iface=ta,remote={ours}", "--peer",
                         f"net_af_packet0,iface={peer},qdisc_bypass=0", "--no-store", "--max-rules", "1")
    guest.does(f"/sbin/tc qdisc del dev {peer} root")
    check(report, "net_tap")
    assert report.forms("works") == of_tap(TAP_TAKES)
    assert report.forms("accepts") == of_tap(TAP_SPOILS)


def test_tap_leaves_no_filter_in_the_kernel(guest, veth):
    # but it leaves what they hung from, its ingress qdisc: empty
    for end in veth:
        assert guest.does(f"/sbin/tc filter show dev {end} ingress; /sbin/tc filter show dev {end}") == ""
