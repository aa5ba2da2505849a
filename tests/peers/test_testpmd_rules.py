# SPDX-License-Identifier: BSD-3-Clause
"""Rules by testpmd's own blocking commands, and what becomes of the packets."""
import re

import pytest
from testpmd import marks

pytestmark = pytest.mark.needs("driver", "dpdk-testpmd")

UDP = "ingress pattern eth / ipv4 / udp / end"


def test_marks_are_those_that_the_driver_counts(testpmd):
    program = testpmd("net_flowsim0,flows=64,passes=40,hostile=0")
    program.verbose()
    all_of_them = program.created(f"flow create 0 priority 1 {UDP} actions mark id 7 / queue index 0 / "
                                  "count / end")
    some = program.created("flow create 0 ingress pattern ipv4 / udp src spec 0x0001 src mask 0x0001 "
                           "/ end actions mark id 0x4d2 / count / end")
    printed = marks(program.received(64 * 40))
    assert sum(printed.values()) == program.xstats()["rx_marked"] == 64 * 40
    assert 0 < printed[0x4d2] < 64 * 40
    assert program.counted(some) == [printed[0x4d2], printed[0x4d2] * 64]
    assert program.counted(all_of_them) == [printed[7], printed[7] * 64]


def test_rules_are_made_listed_asked_and_destroyed(testpmd):
    program = testpmd("net_flowsim0,flows=8,passes=10,hostile=0")
    program.verbose()
    program.does(f"flow validate 0 {UDP} actions drop / end", "Flow rule validated")
    first = program.created(f"flow create 0 {UDP} actions flag / count / end")
    second = program.created(f"flow create 0 priority 3 {UDP} actions drop / end")
    assert len(re.findall(r"^\d+\t", program.run("flow list 0"), re.MULTILINE)) == 2
    assert program.xstats()["flow_rules"] == 2
    program.does("flow dump 0 all", "eth ipv4 udp => flag count")
    program.does(f"flow destroy 0 rule {second}", "destroyed")
    said = program.received(80)
    assert said.count("RTE_MBUF_F_RX_FDIR ") == 80 == program.xstats()["rx_flagged"]
    assert program.counted(first) == [80, 80 * 64]
    program.run("flow flush 0")
    assert program.run("flow list 0") == "" and program.xstats()["flow_rules"] == 0


def test_what_is_wrong_is_told_in_words(testpmd):
    program = testpmd("net_flowsim0,hostile=0")
    for rule, words in (
            ("pattern ipv4 ttl spec 9 ttl last 3 ttl mask 255 / end actions drop / end", "last is below spec"),
            ("pattern eth / end actions queue index 99 / end", "no such queue"),
            ("pattern tcp / vxlan / end actions drop / end", "not supported")):
        for verb in ("validate", "create"):
            program.does(f"flow {verb} 0 ingress {rule}", words)
    assert program.xstats()["flow_rules"] == 0


def test_drop_costs_the_host_nothing(testpmd):
    program = testpmd("net_flowsim0,flows=16,passes=30,hostile=0")
    program.verbose()
    rule = program.created("flow create 0 ingress pattern ipv4 / udp src spec 0 src mask 1 / end "
                           "actions count / drop / end")
    program.forwards(lambda: program.telemetry("/ethdev/xstats,0")["rx_port_packets"] == 16 * 30,
                     "all packets")
    stats = program.xstats()
    assert 0 < program.counted(rule)[0] == stats["rx_rule_dropped_packets"] < 16 * 30
    assert stats["rx_good_packets"] + stats["rx_rule_dropped_packets"] == 16 * 30


def test_groups_and_jumps(testpmd):
    program = testpmd("net_flowsim0,flows=4,passes=10,hostile=0")
    program.verbose()
    program.created(f"flow create 0 {UDP} actions jump group 3 / end")
    program.created(f"flow create 0 group 3 {UDP} actions mark id 33 / queue index 0 / end")
    assert marks(program.received(40)) == {33: 40}


def test_an_indirect_count_is_exact_when_its_rule_is_gone(testpmd):
    program = testpmd("net_flowsim0,flows=8,passes=10,hostile=0")
    program.verbose()
    program.does("flow indirect_action 0 create action_id 5 ingress action count / end", "created")
    rule = program.created(f"flow create 0 {UDP} actions mark id 1 / indirect 5 / queue index 0 / end")
    program.does("flow indirect_action 0 destroy action_id 5", "busy")
    program.received(80)
    program.does(f"flow destroy 0 rule {rule}", "destroyed")
    assert re.search(r"hits: 80\b", program.run("flow indirect_action 0 query 5"))
    program.does("flow indirect_action 0 destroy action_id 5", "destroyed")


def test_an_indirect_rss_moves_the_packets_of_its_rules(testpmd):
    program = testpmd("net_flowsim0,flows=8,passes=10,hostile=0", options=("--rxq=2", "--txq=2"))
    program.verbose()
    program.does("flow indirect_action 0 create action_id 3 ingress action rss queues 0 end / end", "created")
    program.created(f"flow create 0 {UDP} actions mark id 4 / indirect 3 / end")
    program.does("flow indirect_action 0 update 3 action rss queues 1 end / end", "updated")
    assert marks(program.received(80)) == {4: 80}
    assert program.xstats()["rx_q1_marked"] == 80


def test_an_indirect_age_tells_of_its_last_packet(testpmd):
    program = testpmd("net_flowsim0,source=none,hostile=0")
    program.does("flow indirect_action 0 create action_id 4 ingress action age timeout 1 / end", "created")
    program.created(f"flow create 0 {UDP} actions mark id 4 / indirect 4 / end")
    program.until(lambda: "aged: 1" in program.run("flow indirect_action 0 query 4"), "aged")
    assert "sec_since_last_hit_valid: 1" in program.run("flow indirect_action 0 query 4")


def test_a_rule_without_packets_ages_and_is_destroyed(testpmd):
    program = testpmd("net_flowsim0,source=none,hostile=0")
    program.created(f"flow create 0 {UDP} actions age timeout 1 / mark id 1 / end")
    program.created(f"flow create 0 {UDP} actions age timeout 9999 / mark id 2 / end")
    program.until(lambda: "total aged flows: 1" in program.run("flow aged 0 destroy"), "aged")
    assert "total aged flows: 0" in program.run("flow aged 0 destroy")
    stats = program.xstats()
    assert (stats["flow_rules"], stats["flow_aged"]) == (1, 1)


def test_isolated_mode_lets_in_only_what_rules_say(testpmd):
    # while nothing reaches the host the NIC goes on by itself: slowly, until the rule is there
    program = testpmd("net_flowsim0,flows=64,passes=10,rate=1,hostile=0")
    program.verbose()
    program.run("port stop 0")
    program.does("flow isolate 0 1", "now restricted")
    program.run("port start 0")
    rule = program.created("flow create 0 ingress pattern ipv4 / udp src spec 0 src mask 1 / end "
                           "actions mark id 6 / count / queue index 0 / end")
    said = program.forwards(
        lambda: program.telemetry("/ethdev/xstats,0")["rx_port_packets"] == 640, "all packets")
    stats = program.xstats()
    assert 0 < marks(said)[6] == program.counted(rule)[0] == stats["rx_good_packets"] < 640
    assert stats["rx_good_packets"] + stats["rx_rule_dropped_packets"] == 640


def test_a_sample_is_one_packet_more(testpmd):
    program = testpmd("net_flowsim0,flows=4,passes=25,hostile=0")
    program.verbose()
    program.run("set sample_actions 0 mark id 3 / queue index 0 / end")
    program.created(f"flow create 0 {UDP} actions sample ratio 10 index 0 / mark id 4 / queue index 0 / end")
    assert marks(program.received(110)) == {3: 10, 4: 100}
    assert program.xstats()["rx_sampled_packets"] == 10


def test_a_meter_lets_its_burst_through(testpmd):
    """One byte a second, and 640 bytes at once: ten packets of 64 and no more."""
    program = testpmd("net_flowsim0,flows=4,passes=25,hostile=0")
    program.verbose()
    program.run("add port meter profile srtcm_rfc2697 0 0 1 640 0 0")
    program.run("add port meter policy 0 0 g_actions end y_actions end r_actions drop / end")
    program.run("create port meter 0 1 0 0 yes 0x3f 0 g 0")
    program.created(f"flow create 0 {UDP} actions meter mtr_id 1 / mark id 4 / queue index 0 / end")
    said = program.forwards(
        lambda: program.telemetry("/ethdev/xstats,0")["rx_port_packets"] == 100, "all packets")
    assert marks(said) == {4: 10}
