# SPDX-License-Identifier: BSD-3-Clause
"""The same load and the same simulated NIC for both programs, with its table of rules in use and not.

Each of them is begun anew, one at a time: which flows a NIC has depends on how it came to them, and a
program that stands still meanwhile would lose them.
"""
import contextlib
import pathlib
import tempfile
import typing

from contender import Failed
from offload_ours import OffloadOurs
from offload_theirs import OffloadTheirs
from theirs import unbegun

# What a NIC can do decides what is asked of it: some can only mark.
MODES = {"x710": (("millrace", "off"), ("millrace", "mark"), ("ovs", "off"), ("ovs", "on")),
         "cx5": (("millrace", "off"), ("millrace", "mark"), ("millrace", "full"), ("ovs", "off"), ("ovs", "on"))}
# Of what came to the program, how much must have been sent: the rest may be under way.
SENT_AT_LEAST = 0.999
SETTLE_TURNS = 10
COUNTERS = ("rx_good_packets", "rx_forwarded_packets", "rx_marked", "rx_rule_dropped_packets", "tx_good_packets")


class Plan(typing.NamedTuple):
    """How often and how long, in processor time; `starts` of each program, so many intervals of each start."""
    flows: int
    rules: int
    starts: int
    settle_s: float
    intervals: int
    interval_s: float


class Look(typing.NamedTuple):
    """Of one moment: the thread's processor time, what both ports counted, what the program itself did."""
    cpu_ns: int
    nic: typing.Dict[str, int]
    own_packets: int
    own_cycles: float
    own_marked: typing.Optional[int]


class Part(typing.NamedTuple):
    """Of one interval. `packets` are all that came, those too that the NIC sent on alone."""
    packets: int
    cpu_ns: float  # a packet
    in_nic: float  # share of them that was marked or sent on
    forwarded: float  # share that was sent on
    own_cycles: float  # a packet that came to the program
    own_marked: typing.Optional[float]  # share of packets that it says it knew by their marks


class Outcome(typing.NamedTuple):
    """Of all starts of one program in one mode; what it said is of the last one."""
    who: str
    mode: str
    parts: typing.List[Part]
    rules: typing.List[int]  # of both ports
    refused: int  # calls, since its start
    knows: int  # flows, as it counts them
    says: typing.Dict[str, int]  # how many flows it says are in the NIC, by its own word for it
    unfit: typing.Optional[typing.Dict]  # a flow that has no rule, and what is told of it


def devices(profile, plan):
    return [f"net_flowsim{number},flows={plan.flows},load=zipf,side={side},nic=n,profile={profile},rules={plan.rules}"
            for number, side in enumerate(("forward", "reverse"))]


def look(contender):
    ports = contender.nic()
    packets, cycles, marked = contender.own()
    return Look(contender.booked(), {name: sum(port.get(name, 0) for port in ports) for name in COUNTERS},
                packets, cycles, marked)


def turn(contender, seconds):
    """Until its thread has had the processor for so long: on a busy machine that is later."""
    end = contender.cpu_ns() + seconds * 1e9
    contender.until(lambda: contender.cpu_ns() >= end, f"{seconds} s of processor time")


def settle(contender, plan):
    """Until the NIC has got no more rules for a while; who exchanges some all the time has hardly more."""
    most = -1.0
    for _ in range(SETTLE_TURNS):
        turn(contender, plan.settle_s)
        rules = sum(port["flow_rules"] for port in contender.nic())
        if rules <= most + plan.rules / 100:
            break
        most = rules


def part(before, after, who):
    """What lies between two looks; Failed where packets did not come, or not go out."""
    nic = {name: after.nic[name] - before.nic[name] for name in COUNTERS}
    received, forwarded = nic["rx_good_packets"], nic["rx_forwarded_packets"]
    own = after.own_packets - before.own_packets
    if received <= 0 or own <= 0:
        raise Failed(f"{who} has received no packet")
    if nic["rx_rule_dropped_packets"]:
        raise Failed(f"{who} has had the NIC drop {nic['rx_rule_dropped_packets']} packets")
    if nic["tx_good_packets"] < SENT_AT_LEAST * received:
        raise Failed(f"{who} has sent {nic['tx_good_packets']} packets of {received}")
    packets = received + forwarded
    marked = None if after.own_marked is None else (after.own_marked - before.own_marked) / own
    return Part(packets, (after.cpu_ns - before.cpu_ns) / packets, (nic["rx_marked"] + forwarded) / packets,
                forwarded / packets, (after.own_cycles - before.own_cycles) / own, marked)


@contextlib.contextmanager
def begun(who, mode, profile, plan):
    """The program, all flows known to it, its rules made."""
    with contextlib.ExitStack() as stack:
        place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-peers-")))
        if who == "ovs":
            switch = unbegun()
            stack.callback(lambda: hasattr(switch, "processes") and switch.kill())
            contender = OffloadTheirs(switch, place, devices(profile, plan), plan.flows, mode)
        else:
            contender = OffloadOurs(place, devices(profile, plan), plan.flows, mode)
            stack.callback(contender.kill)
        contender.begin()
        settle(contender, plan)
        yield contender
        contender.close()


def measure_once(who, mode, profile, plan):
    with begun(who, mode, profile, plan) as contender:
        parts = []
        contender.prefer(contender.priority)
        for _ in range(plan.intervals):
            before = look(contender)
            turn(contender, plan.interval_s)
            parts.append(part(before, look(contender), contender.name))
        contender.prefer(0)
        nic = contender.nic()
        return Outcome(who, mode, parts, [port["flow_rules"] for port in nic],
                       sum(port["flow_refused"] for port in nic), contender.known(), contender.says(),
                       None if mode == "off" else contender.unfit())


def measure(profile, plan):
    """An Outcome of each program in each mode, in turns."""
    outcomes = {}
    for _ in range(plan.starts):
        for who, mode in MODES[profile]:
            outcome = measure_once(who, mode, profile, plan)
            earlier = outcomes.get((who, mode))
            outcomes[who, mode] = outcome._replace(parts=(earlier.parts if earlier else []) + outcome.parts)
    return list(outcomes.values())
