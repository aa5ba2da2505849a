# SPDX-License-Identifier: BSD-3-Clause
"""`millrace run` with its offload, or without: what its NICs counted, and what it says of a flow."""
import pathlib
import re
import subprocess

from contender import PATIENCE_S, Failed
from engine import MILLRACE
from ours import Ours
from steady import until_steady
from testpmd import ask_telemetry

# How long the rate of flows is measured of which the busiest is looked for.
RATE_MS = 500
TRIES = 5


class OffloadOurs(Ours):
    """`mode` is off, mark or full."""

    def __init__(self, directory, devices, flows, mode):
        words = ["--telemetry", "--offload", "off" if mode == "off" else "on"]
        if mode != "off":
            words += ["--offload-mode", mode]
        super().__init__(directory, devices, flows, words)
        self.telemetry = None

    def begin(self):
        self.until(self.answers, "answers")
        self.find_thread("worker")
        said = (self.directory / "said").read_text(errors="replace")
        found = re.search(r"telemetry: (.+)", said)
        if found is None:
            raise Failed(f"{self.name} does not say where its telemetry is: {said.strip()}")
        self.telemetry = pathlib.Path(found[1])
        until_steady(self, self.known)

    def nic(self):
        return [ask_telemetry(self.telemetry.parent, f"/ethdev/xstats,{port}", self.telemetry.name) for port in (0, 1)]

    def known(self):
        return self.worker()["flows"]

    def own(self):
        """Packets and busy cycles, from its average; it does not tell how many had a mark."""
        worker = self.worker()
        return worker["received"], worker["cycles_per_packet"] * worker["received"], None

    def says(self):
        """Directions that it says a NIC has."""
        states = [port["flows"] for port in self.connection.ask("offload show")[0] if port.get("ready")]
        return {"in_hw": sum(state["in_hw"] for state in states)} if states else {}

    def unfit(self):
        """The busiest flow in software, and what `millrace flow explain` says of it."""
        told = None
        for state in ("software", "refused") * TRIES:
            busiest = self.connection.ask("flow list", offload=state, top=1, by="rate", over_ms=RATE_MS)[0]
            told = self.explained(busiest[0]) if busiest else told
            # rates change, and so may who has a rule, while it is asked
            if told and {told["state"], *told["handled"]} <= {"software", "refused"}:
                break
        return told

    def explained(self, flow):
        ends = {name: flow[name] for name in ("src", "sport", "dst", "dport", "proto")}
        answer = self.connection.ask("flow explain", **ends)[0][0]
        text = self.client("flow", "explain", f"{flow['src']}:{flow['sport']}", f"{flow['dst']}:{flow['dport']}", "udp")
        says = about_offload(text)
        return {"flow": f"{flow['src']}:{flow['sport']} {flow['dst']}:{flow['dport']} udp",
                "packets": flow["packets"] + flow["reverse_packets"], "state": answer["where"],
                "reasons": [direction["reason"] for direction in answer["directions"]],
                "because": answer["where_because"], "handled": handled(says), "says": says}

    def client(self, *words):
        done = subprocess.run([MILLRACE, *words, "--socket", str(self.directory / "socket")], text=True, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise Failed(f"{self.name}: {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout


def handled(says):
    """In these lines, where each direction is handled."""
    return re.findall(r"^ *(?:->|<-) ([\w ]+),", "\n".join(says), re.MULTILINE)


def about_offload(text):
    """Of what `flow explain` prints, the first line, and those about where the flow is handled."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith(" handled ")), None)
    if begin is None:
        raise Failed(f"flow explain does not say where the flow is handled:\n{text}")
    end = next((i for i, line in enumerate(lines) if i > begin and re.match(r" \w", line)), len(lines))
    return [line[1:] for line in lines[:1] + lines[begin:end]]
