# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch with hw-offload, or without: what its NICs counted, and what it says of a flow."""
import collections
import re

from contender import Failed
from steady import until_steady
from testpmd import ask_telemetry
from theirs import Theirs

# What is sent out of the other port depends on all five fields, as where one of several paths is chosen
# by a hash of them: so there is a flow of the datapath, and a rule of the NIC, for each direction of
# each connection. The path chosen lies in a register that nobody reads.
PATH = "multipath(symmetric_l3l4+udp,50,modulo_n,1,0,NXM_NX_REG0[0..15])"
RULES = tuple(f"in_port={port},udp,actions={PATH},output:{3 - port}" for port in (1, 2))
# Of its log: why, and on the next line of the same thread which rule.
REFUSED = re.compile(r"\|(\w+: rte_flow creation failed: .*)\n(?:.*\|\w+: Failed flow: +(flow create .*))?")
ENDS = re.compile(r"ipv4\(src=([0-9.]+),dst=([0-9.]+),.*udp\(src=(\d+),dst=(\d+)\)")


class OffloadTheirs(Theirs):
    """`mode` is off or on."""

    def __init__(self, switch, directory, devices, flows, mode):
        super().__init__(switch, directory, devices, flows)
        self.mode = mode

    def begin(self):
        self.find_thread("pmd-")
        # Ports begin with a flow that drops all; in the NIC it would have the order of packets changed. So
        # they stand still until the rules are there, and offload begins with them: who comes first then is
        # the load's choice.
        self.ask("netdev-dpdk/set-admin-state", "down")
        self.switch.rules(*RULES)
        self.ask("revalidator/purge")
        if self.mode == "on":
            self.switch.vsctl("set", "Open_vSwitch", ".", "other_config:hw-offload=true")
        # as users have it: refusals that it warns of
        self.ask("vlog/set", "netdev_offload_dpdk:file:info")
        self.ask("netdev-dpdk/set-admin-state", "up")
        until_steady(self, self.known)

    def nic(self):
        return [ask_telemetry(self.switch.files, f"/ethdev/xstats,{port}") for port in (0, 1)]

    def known(self):
        return int(re.search(r"flows: (\d+)", self.ask("dpctl/show"))[1])

    def own(self):
        return processed(self.ask("dpif-netdev/pmd-stats-show"))

    def says(self):
        """Flows that it says are offloaded: yes, or partially."""
        return dict(collections.Counter(flow[3] for flow in self.switch.flows() if flow[3]))

    def unfit(self):
        """The busiest flow that is not offloaded, and what `ovs-appctl dpctl/dump-flows -m` says of it."""
        left = [flow for flow in self.switch.flows() if not flow[3]]
        if not left:
            return None
        line, packets, *_ = max(left, key=lambda flow: flow[1])
        text = (self.switch.directory / "switch.log").read_text(errors="replace")
        return {"packets": packets, "says": [compared(line)], "log": refusals(text, line)}


def processed(text):
    """Of `pmd-stats-show`, for one thread that polls: packets, cycles it worked, packets known by their marks."""
    packets, marked, cycles = (re.search(rf"^  {name}: (\d+)", text, re.MULTILINE)
                               for name in ("packets received", "phwol hits", "processing cycles"))
    if None in (packets, marked, cycles):
        raise Failed(f"Open vSwitch tells no packets, marks or cycles:\n{text}")
    return int(packets[1]), int(cycles[1]), int(marked[1])


def refusals(log, line):
    """Of its log: how many refusals it has, which is limited in rate, and what it has of this very flow."""
    found = REFUSED.findall(log)
    ends = ENDS.search(line)
    rule = ends and "ipv4 src is {} dst is {} .*udp src is {} dst is {} ".format(*map(re.escape, ends.groups()))
    mine = [why for why, flow in found if rule and re.search(rule, flow)]
    return {"refusals": len(found), "last": found[-1][0] if found else None, "of_this_flow": mine}


def compared(line):
    """A flow without its number and the fields that it does not compare, whose mask is 0."""
    line = re.sub(r"ufid:[0-9a-f-]+, *|\w+\(0/0\),|packet_type\(ns=0,id=0\),", "", line.strip())
    line = re.sub(r"\w+=[^,()]*/0[0:]*(,|(?=\)))", "", line)
    return re.sub(r"\w+\(\),", "", line)
