# SPDX-License-Identifier: BSD-3-Clause
"""`millrace probe` as a user runs it, and what each simulated NIC does with rules by its own documentation."""
import json
import os
import subprocess

from conftest import MILLRACE, SLOWER

# docs/hardware.md: the kinds of flows that streams are, with and without tags
MIX = "flows=256,proto=mix,ipv6=50,vlan=30"


class Probe:
    """One finished probe: exit code, report (None where there is none) and the other lines."""

    def __init__(self, code, output, errors):
        self.code = code
        self.errors = errors
        self.report = json.loads(output) if output else None

    def __getitem__(self, key):
        return self.report[key]

    @property
    def levels(self):
        """{(pattern, actions): level} of all forms that were tried."""
        return {(cell["pattern"], cell["actions"]): cell["level"] for cell in self["cells"]}

    def cell(self, pattern, actions):
        (found,) = [cell for cell in self["cells"]
                    if (cell["pattern"], cell["actions"]) == (pattern, actions)]
        return found

    def table(self, back_end="rte_flow"):
        (found,) = [table for table in self["tables"] if table["back_end"] == back_end]
        return found


def start(*words, state=None, json_too=True):
    """A probe that runs; what it finds is kept in `state`, or nowhere."""
    command = [MILLRACE, "probe", *(["--json"] if json_too else []),
               *([] if state else ["--no-store"]), *map(str, words)]
    environment = {**os.environ, **({"XDG_STATE_HOME": str(state)} if state else {})}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def probe(*words, state=None):
    with start(*words, state=state) as process:
        output, errors = process.communicate(timeout=200 * SLOWER)
        return Probe(process.returncode, output, errors)


# The truth about each profile: docs/hardware.md, "Profiles", and drivers/flowsim/kind/profile.h.

MARKS = {"mark", "mark + passthru", "mark + queue", "mark + rss"}
COUNTED = {f"{actions} + count" for actions in MARKS}
PORTS = {"represented_port", "represented_port + count", "port_id"}
DROPS = {"drop", "queue"}
ALL_ACTIONS = (MARKS | COUNTED | PORTS | DROPS |
               {f"{actions} + count" for actions in DROPS})


def has_everything(pattern, actions):
    return True


def has_x710(pattern, actions):
    """Patterns from Ethernet on; no ICMP, no TCP flags, whole fields; Ethernet addresses not alone; no COUNT."""
    return (actions in MARKS | DROPS and pattern.startswith("eth") and
            not any(word in pattern for word in ("flags", "icmp", "/24", "dst", "vxlan"))
            or actions in MARKS | DROPS and pattern == "eth / ipv4 / udp dst")


def has_e810(pattern, actions):
    """As the X710 without VLAN, with Ethernet addresses, VXLAN and COUNT."""
    return (actions not in PORTS and pattern.startswith("eth") and
            not any(word in pattern for word in ("flags", "icmp", "/24", "/ vlan")))


def has_connectx(pattern, actions):
    """Any mask of any field; no SCTP; a fate is needed, and PASSTHRU is none."""
    return ("sctp" not in pattern and
            actions not in {"mark", "mark + count", "mark + passthru", "mark + passthru + count"})


# What it has, and what it says of the others.
PROFILES = {
    "ideal": (has_everything, "no"),
    "tiny": (has_everything, "says yes"),
    "x710": (has_x710, "no"),
    "e810": (has_e810, "says yes"),
    "cx5": (has_connectx, "no"),
    "cx6-hws": (has_connectx, "no"),
}


def truth(profile, pattern, actions):
    """The level that packets of MIX show."""
    has, otherwise = PROFILES[profile]
    if not has(pattern, actions):
        return otherwise
    # no tunnels come
    if pattern.endswith("vxlan"):
        return "accepts"
    # the small hostility `packet_type`: only for packets without layer 4
    if profile == "x710" and pattern in ("eth / ipv4", "eth / ipv6"):
        return "accepts"
    return "works"
