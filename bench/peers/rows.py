# SPDX-License-Identifier: BSD-3-Clause
"""What is told of two rows of samples, in the shape of `millrace bench` (bench/bench.c)."""
import json
import typing

HEAD = (f"{'measure':<20} {'load':<8} {'flows':>11}  {'ours':>10}  {'against':<18} {'theirs':>10}"
        f"  {'unit':<7}  {'ratio':>5}  {'goal':>5} {'':<4} {'spread':>6}")
# A ratio is of at least so much: what costs nothing, or less by chance.
LEAST = 0.05
MOST_SIZES, MOST_FLOWS, MOST_RULES = 16, 8388608, 65536


def lower_quartile(samples):
    return sorted(samples)[len(samples) // 4]


def spread(samples):
    """How far apart the middle half lies, as a share of the quartile told."""
    ordered, n = sorted(samples), len(samples)
    return (ordered[3 * n // 4] - ordered[n // 4]) / ordered[n // 4] if ordered[n // 4] > 0 else 0


def goal_at(flows):
    """The ratio that is wanted."""
    return 10 if flows < 10000 else 15


class Row(typing.NamedTuple):
    """Cycles a packet, a sample a turn."""
    flows: int
    ours: typing.Sequence[float]
    theirs: typing.Sequence[float]

    def values(self):
        ours, theirs, goal = lower_quartile(self.ours), lower_quartile(self.theirs), goal_at(self.flows)
        ratio = theirs / max(ours, LEAST)
        return {"bench": "peers", "measure": "conntrack_total", "load": "uniform", "flows": self.flows,
                "unit": "cycles", "ours": ours, "against": "ovs", "theirs": theirs, "ratio": ratio,
                "goal": goal, "holds": ratio >= goal, "rounds": len(self.ours),
                "spread": max(spread(self.ours), spread(self.theirs))}

    def as_json(self):
        digits = {"ours": 1, "theirs": 1, "ratio": 2, "goal": 2, "spread": 2}
        return json.dumps({key: round(value, digits[key]) if key in digits else value
                           for key, value in self.values().items()}, separators=(",", ":"))

    def as_text(self):
        row = self.values()
        return (f"{row['measure']:<20} {row['load']:<8} {row['flows']:>11,}  {row['ours']:10.1f}"
                f"  {row['against']:<18} {row['theirs']:10.1f}  {row['unit']:<7}  {row['ratio']:5.2f}"
                f"  {row['goal']:5.2f} {'' if row['holds'] else 'low':<4} {100 * row['spread']:4.0f} %")


def parse_flows(text):
    """Sizes from "1000,10000"; ValueError."""
    sizes = text.split(",")
    if not all(size.isascii() and size.isdigit() and 0 < int(size) <= MOST_FLOWS for size in sizes) or \
            len(sizes) > MOST_SIZES:
        raise ValueError(f"--flows {text}: not sizes of 1 to {MOST_FLOWS}, at most {MOST_SIZES} of them")
    return [int(size) for size in sizes]


def parse_names(option, text, known):
    """Those of `known` that stand in "one,other", in the order of `known`; ValueError."""
    names = text.split(",")
    for name in names:
        if name not in known:
            raise ValueError(f"{option} {text}: no {name!r}; there are {', '.join(known)}")
    return tuple(name for name in known if name in names)


def parse_rules(text):
    """How many rules; ValueError."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST_RULES):
        raise ValueError(f"--rules {text}: not 1 to {MOST_RULES}")
    return int(text)


def parse_machine(line):
    """GHz of the time stamp counter, from the line by which the benches tell the machine; ValueError."""
    words = line.replace(",", "").split()
    if "TSC" not in words[:-2] or words[words.index("TSC") + 2] != "GHz":
        raise ValueError(f"no time stamp counter in: {line.strip()}")
    return float(words[words.index("TSC") + 1])
