# SPDX-License-Identifier: BSD-3-Clause
"""Queues, RSS, links, and where packets come from, by testpmd's own commands."""
import contextlib
import re

import pytest
from network import Namespace
from testpmd import marks

pytestmark = pytest.mark.needs("driver", "dpdk-testpmd")

UDP = "ingress pattern eth / ipv4 / udp / end"
QUEUES = ("--rxq=2", "--txq=2", "--rss-udp")


def hashes(said):
    """{hash: queues} of printed packets."""
    found = {}
    for value, queue in re.findall(r"RSS hash=0x([0-9a-f]+) - RSS queue=0x([0-9a-f]+)", said):
        found.setdefault(int(value, 16), set()).add(int(queue, 16))
    return found


def test_two_queues_by_rss(testpmd):
    program = testpmd("net_flowsim0,flows=256,side=both,passes=4,hostile=0", options=QUEUES)
    program.verbose()
    seen = hashes(program.received(256 * 2 * 4))
    stats = program.xstats()
    assert stats["rx_q0_packets"] + stats["rx_q1_packets"] == 2048
    assert min(stats["rx_q0_packets"], stats["rx_q1_packets"]) > 512
    assert len(seen) > 256 and all(queues == {value % 2} for value, queues in seen.items())


def test_a_key_that_repeats_makes_both_directions_one(testpmd):
    program = testpmd("net_flowsim0,flows=128,side=both,passes=2,hostile=0", options=QUEUES)
    program.verbose()
    program.run("port config 0 rss-hash-key ipv4-udp " + "6d5a" * 26)
    program.does("show port 0 rss-hash key", ("6D5A" * 26))
    seen = hashes(program.received(128 * 2 * 2))
    assert 100 < len(seen) <= 128


def test_the_table_of_queues_says_where_packets_go(testpmd):
    program = testpmd("net_flowsim0,flows=256,passes=2,hostile=0", options=QUEUES)
    program.verbose()
    for begin in range(0, 128, 8):
        words = ",".join(f"({number},1)" for number in range(begin, begin + 8))
        program.run(f"port config 0 rss reta {words}")
    program.received(512)
    stats = program.xstats()
    assert (stats["rx_q0_packets"], stats["rx_q1_packets"]) == (0, 512)


def test_a_rule_spreads_over_its_own_queues(testpmd):
    program = testpmd("net_flowsim0,flows=64,passes=4,hostile=0", options=QUEUES)
    program.verbose()
    program.created(f"flow create 0 {UDP} actions mark id 5 / rss queues 1 end / end")
    assert marks(program.received(256)) == {5: 256}
    assert program.xstats()["rx_q1_packets"] == 256 == program.xstats()["rx_q1_marked"]


def test_a_link_that_is_down_brings_nothing(testpmd):
    program = testpmd("net_flowsim0,flows=8,passes=10,hostile=0")
    program.verbose()
    rule = program.created(f"flow create 0 {UDP} actions mark id 5 / count / end")
    program.run("set link-down port 0")
    program.until(lambda: "Link status: down" in program.run("show port info 0"), "down")
    # packets would come at once: it asks the link and the counters while it forwards
    program.forwards(lambda: program.telemetry("/ethdev/link_status,0")["status"] == "DOWN", "forwarding")
    assert program.packets() == 0
    program.run("set link-up port 0")
    program.until(lambda: "Link status: up" in program.run("show port info 0"), "up")
    assert marks(program.received(80)) == {5: 80}
    assert program.counted(rule)[0] == 80


def test_rules_end_with_the_port_and_the_port_starts_again(testpmd):
    program = testpmd("net_flowsim0,flows=8,passes=10,hostile=0")
    program.verbose()
    program.created(f"flow create 0 {UDP} actions mark id 5 / end")
    program.run("port stop 0")
    program.run("port start 0")
    assert program.xstats()["flow_rules"] == 0
    assert marks(program.received(80)) == {}


def test_a_port_of_the_same_nic_is_sent_to_without_a_cpu(testpmd):
    program = testpmd("net_flowsim0,flows=8,passes=50,nic=A,hostile=0",
                      "net_flowsim1,source=none,nic=A,hostile=0")
    program.run("set fwd rxonly")
    rule = program.created("flow create 0 transfer pattern eth / ipv4 / end actions count / "
                           "represented_port ethdev_port_id 1 / end")
    program.forwards(lambda: program.telemetry("/ethdev/xstats,0")["rx_forwarded_packets"] == 400,
                     "all sent on")
    assert program.counted(rule) == [400, 400 * 64]
    assert program.xstats()["rx_good_packets"] == 0
    sent = program.xstats(1)
    assert (sent["tx_nic_packets"], sent["tx_nic_bytes"]) == (400, 400 * 64)


def test_packets_of_a_capture_port_are_matched_as_they_come(testpmd, directory):
    from scapy.all import IP, UDP as Udp, TCP, Ether, wrpcap  # pylint: disable=import-outside-toplevel
    packets = [Ether(dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2", ttl=9) / Udp(sport=1, dport=2),
               Ether(dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=1, dport=2, flags="S")] * 50
    wrpcap(str(directory / "in.pcap"), packets)
    program = testpmd(f"net_pcap0,rx_pcap={directory}/in.pcap,tx_pcap={directory}/out.pcap",
                      "net_flowsim0,port=net_pcap0,hostile=0")
    program.verbose()
    rule = program.created("flow create 1 ingress pattern ipv4 ttl is 9 / udp / end "
                           "actions mark id 9 / count / end")
    program.created("flow create 1 ingress pattern tcp flags spec 2 flags mask 2 / end actions drop / end")
    assert marks(program.received(50, port=1)) == {9: 50}
    assert program.counted(rule, port=1)[0] == 50
    assert program.xstats(1)["rx_rule_dropped_packets"] == 50


@pytest.mark.needs("namespaces", "ip")
def test_packets_of_a_real_interface(testpmd):
    """A veth pair in a namespace: what the kernel counts is what the rule counts."""
    from scapy.all import IP, UDP as Udp, Ether  # pylint: disable=import-outside-toplevel
    import socket  # pylint: disable=import-outside-toplevel
    frame = bytes(Ether(dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2") /
                  Udp(sport=7, dport=8) / (b"x" * 22))
    with contextlib.closing(Namespace("veth")) as space:
        space.ip("link add va type veth peer name vb", "link set va up arp off multicast off",
                 "link set vb up arp off multicast off")
        program = testpmd("net_af_packet0,iface=vb,framecnt=512", "net_flowsim0,port=net_af_packet0,hostile=0",
                          space=space)
        program.verbose()
        rule = program.created("flow create 1 ingress pattern eth / ipv4 / udp src is 7 / end "
                               "actions mark id 77 / count / end")
        before = space.received("vb")
        with contextlib.closing(space.socket(socket.AF_PACKET, socket.SOCK_RAW)) as sender:
            sender.bind(("va", 0))
            for _ in range(200):
                sender.send(frame)
        assert marks(program.received(200, port=1)) == {77: 200}
        assert program.counted(rule, port=1) == [200, 200 * 64]
        assert space.received("vb") - before == 200
