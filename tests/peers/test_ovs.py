# SPDX-License-Identifier: BSD-3-Clause
"""Stock Open vSwitch offloads into the simulated NIC: all of it into one, marks into the other."""
import contextlib

import pytest
from network import AF_PACKET, Network
from ovs import Switch, hugepages, in_line
from traffic import Iperf, ping

pytestmark = pytest.mark.needs("driver", "ovs", "root", "namespaces", "hugepages", "ip", "ping", "iperf3",
                               "ethtool")

PORT = 5201


@pytest.fixture(name="between")
def make_between(directory):
    """between(profile): (switch, network) that it joins. The switch has to end well."""
    with contextlib.ExitStack() as stack:
        made = []

        def make(profile):
            stack.enter_context(hugepages())
            network = stack.enter_context(contextlib.closing(Network(AF_PACKET)))
            switch = Switch.__new__(Switch)
            stack.callback(lambda: hasattr(switch, "processes") and switch.kill())
            switch.__init__(directory, network.middle, in_line(profile), "other_config:hw-offload=true")
            made.append(switch)
            return switch, network
        yield make
        for switch in made:
            switch.close()


def all_offloaded(switch, how, at_least):
    flows = switch.flows()
    return len(flows) >= at_least and all(flow[3] == how for flow in flows)


def talk(network):
    """A TCP connection at full speed, in both directions."""
    with contextlib.closing(Iperf(network.right)) as iperf:
        iperf.run(network.left, "-t", "1", "-w", "128K")


def over(network):
    """No connection says anything any more."""
    return all(end.space.tcp_under_way() == 0 for end in network.ends)


def sums(switch, network):
    """What has to be equal: (flows and misses, what the NIC received), (sent, what the ends have)."""
    left, right = switch.nic()
    flows = sum(flow[1] for flow in switch.flows())
    misses = sum(number for name, number in switch.threads().items() if name.startswith("miss with"))
    return ((flows + misses, left["rx_port_packets"] + right["rx_port_packets"]),
            (left["tx_port_packets"], network.left.space.received()),
            (right["tx_port_packets"], network.right.space.received()))


def settle(switch, network):
    """All is said, and all counters agree: the switch's, the NIC's, the kernel's."""
    switch.until(lambda: over(network), "the end of all connections")
    try:
        switch.until(lambda: all(a == b for a, b in sums(switch, network)), "equal counters")
    except AssertionError as error:
        raise AssertionError(f"{sums(switch, network)}\n{switch.nic()}\n{switch.flows()}\n"
                             f"{switch.threads()}") from error


def marked_and_known(switch):
    """Packets that the NIC handed over, with a mark, that the switch knew by it; and sent on itself."""
    nic, threads = switch.nic(), switch.threads()
    assert threads["packets received"] == sum(port["rx_good_packets"] for port in nic)
    return (threads["packets received"], sum(port["rx_marked"] for port in nic), threads["phwol hits"],
            sum(port["rx_forwarded_packets"] for port in nic))


def test_all_is_offloaded_into_a_connectx(between):
    switch, network = between("cx5")
    switch.rules("in_port=1,actions=output:2", "in_port=2,actions=output:1")
    ping(network.left, network.right.address, count=1)
    switch.until(lambda: all_offloaded(switch, "yes", 2), "two flows offloaded")
    assert {flow[4] for flow in switch.flows()} == {"dpdk"}
    seen_before = switch.threads()["packets received"]
    talk(network)
    settle(switch, network)
    nic = switch.nic()
    forwarded = [port["rx_forwarded_packets"] for port in nic]
    assert min(forwarded) > 100
    # the switch's processor saw what came before there were rules, and nothing since
    assert switch.threads()["packets received"] == seen_before
    assert sum(port["rx_good_packets"] for port in nic) == seen_before
    assert forwarded == [nic[0]["rx_matched"], nic[1]["rx_matched"]]
    assert [port["tx_nic_packets"] for port in nic] == forwarded[::-1]


def test_marks_are_offloaded_into_an_x710(between):
    switch, network = between("x710")
    address = f"nw_src={network.left.address},nw_dst={network.right.address}"
    answer = f"nw_src={network.right.address},nw_dst={network.left.address}"
    switch.rules(f"in_port=1,tcp,{address},tp_dst={PORT},actions=output:2",
                 f"in_port=2,tcp,{answer},tp_src={PORT},actions=output:1")
    talk(network)
    switch.until(lambda: all_offloaded(switch, "partial", 2), "two flows offloaded")
    assert {flow[4] for flow in switch.flows()} == {"ovs"}
    settle(switch, network)
    # a rule marks a little before the switch knows whose mark that is: exact from here on
    before = marked_and_known(switch)
    talk(network)
    settle(switch, network)
    received, marked, known, forwarded = (now - then for now, then in zip(marked_and_known(switch), before))
    assert received == marked == known > 200
    assert forwarded == 0
