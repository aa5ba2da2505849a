# SPDX-License-Identifier: BSD-3-Clause
"""What is told of the offload of both programs: side by side, or an object for each program and mode."""
import json
import statistics

from rows import lower_quartile, spread

NAMES = {"millrace": "millrace", "ovs": "Open vSwitch"}
ASKED = {"millrace": "flow explain, of its offload", "ovs": "dpctl/dump-flows -m, but for what is not compared"}
LABEL, COLUMN = 34, 14


def values(profile, plan, outcome, ghz):
    """Of all intervals: of costs the lower quartile, as the other measure has them, of shares the median."""
    def all_of(name):
        return [getattr(part, name) for part in outcome.parts]

    def median(name):
        return None if None in all_of(name) else round(statistics.median(all_of(name)), 4)

    cycles = [ns * ghz for ns in all_of("cpu_ns")]
    quartile = lower_quartile(cycles)
    return {"bench": "peers", "measure": "offload", "nic": profile, "load": "zipf", "flows": plan.flows,
            "room": plan.rules, "who": outcome.who, "offload": outcome.mode, "cycles": round(quartile, 1),
            "spread": round(spread(cycles), 2), "own_cycles": round(lower_quartile(all_of("own_cycles")), 1),
            "mpps": round(1000 * ghz / quartile, 2), "in_nic": median("in_nic"), "forwarded": median("forwarded"),
            "own_marked": median("own_marked"), "rules": outcome.rules, "refused": outcome.refused,
            "knows": outcome.knows, "says": outcome.says, "intervals": len(outcome.parts), "unfit": outcome.unfit}


def share(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def said(row):
    return ", ".join(f"{number:,} {word}" for word, number in row["says"].items()) or "-"


LINES = (
    ("cycles a packet", lambda row: f"{row['cycles']:.1f}"),
    ("  spread", lambda row: f"{100 * row['spread']:.0f} %"),
    ("cycles a packet that it received,", lambda row: f"{row['own_cycles']:.1f}"),
    ("  as it counts itself", lambda row: ""),
    ("million packets a second of CPU", lambda row: f"{row['mpps']:.2f}"),
    ("packets in hardware, by the NIC", lambda row: share(row["in_nic"])),
    ("  of these sent on by it alone", lambda row: share(row["forwarded"])),
    ("  known by their marks, by itself", lambda row: share(row["own_marked"])),
    ("flows that it knows, by itself", lambda row: f"{row['knows']:,}"),
    ("  of these in the NIC, by itself", said),
    ("rules in the NIC", lambda row: f"{sum(row['rules']):,}"),
    ("calls that the NIC refused", lambda row: f"{row['refused']:,}"),
)


def of_log(log):
    if log["of_this_flow"]:
        return f"{log['of_this_flow'][-1]} (of this flow)"
    if log["refusals"]:
        return f"nothing of this flow; of {log['refusals']:,} others, the last one: {log['last']}"
    return "nothing"


def unfit_lines(row):
    """What one of them says of a flow of its that is not in the NIC."""
    unfit, name = row["unfit"], NAMES[row["who"]]
    if unfit is None:
        yield f"  {name}, offload {row['offload']}: has none"
        return
    yield f"  {name}, offload {row['offload']} ({ASKED[row['who']]}):"
    yield from (f"    {line}" for line in unfit["says"])
    if "log" in unfit:
        yield f"    and in its log: {of_log(unfit['log'])}"


def as_text(rows):
    """A column for each program and mode, and below it what was said."""
    first = rows[0]
    yield (f"offload, {first['nic']} with room for {first['room']:,} rules at each port; {first['flows']:,} UDP flows "
           f"by Zipf's law, 64 bytes")
    for head in ([NAMES[row["who"]] for row in rows], [f"offload {row['offload']}" for row in rows]):
        yield " " * LABEL + "".join(f"{word:>{COLUMN}}" for word in head)
    for label, cell in LINES:
        yield (f"{label:<{LABEL}}" + "".join(f"{cell(row):>{COLUMN}}" for row in rows)).rstrip()
    yield "the busiest flow that is not in the NIC:"
    for row in rows:
        if row["offload"] != "off":
            yield from unfit_lines(row)


def as_json(row):
    return json.dumps(row, separators=(",", ":"))
