# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch with its conntrack between the two ports that bring packets, else as it comes."""
import json
import re
import socket

from contender import PATIENCE_S, Apart, Contender, Failed, Moment, measured_cpu, other_cpus
from ovs import Switch
from testpmd import ask_telemetry

# Of 2 MB: its packets and ours.
PAGES = 800
# Ours to choose, so that no connection ends because this machine is slow; they cost nothing.
UDP_TIMEOUTS = ("udp_first", "udp_single", "udp_multiple")
# What has not been there yet asks conntrack, what it does not know begins a connection.
RULES = ("table=0,ip,ct_state=-trk,actions=ct(table=1)",
         *(f"table=1,in_port={port},ip,ct_state=+trk+new,actions=ct(commit),output:{3 - port}"
           for port in (1, 2)),
         *(f"table=1,in_port={port},ip,ct_state=+trk+est,actions=output:{3 - port}" for port in (1, 2)))


def counters(text):
    """Of `pmd-stats-show`, for one thread that polls: packets received, and all cycles."""
    packets = re.search(r"packets received: (\d+)", text)
    cycles = [int(re.search(rf"^  {kind} cycles: (\d+)", text, re.MULTILINE)[1])
              for kind in ("idle", "processing") if f"  {kind} cycles:" in text]
    if packets is None or len(cycles) != 2:
        raise Failed(f"Open vSwitch tells no packets or cycles:\n{text}")
    return int(packets[1]), sum(cycles)


class Theirs(Contender):
    name = "Open vSwitch"

    def __init__(self, switch, directory, devices, flows):
        """`switch` is not begun yet: who made it can kill it whatever happens here."""
        self.switch, self.flows = switch, flows
        switch.__init__(directory, Apart(other_cpus()), devices,
                        f"other_config:pmd-cpu-mask={1 << measured_cpu():#x}")
        self.process = switch.processes[-1]
        self.begun = None

    def begin(self):
        """Every connection is there, and has been seen from both sides."""
        self.find_thread("pmd-")
        self.switch.vsctl("--id=@netdev", "create", "Datapath", "datapath_version=0", "--", "set", "Open_vSwitch",
                          ".", "datapaths:netdev=@netdev")
        self.switch.vsctl("add-zone-tp", "netdev", "zone=0", *(f"{name}=3600" for name in UDP_TIMEOUTS))
        self.ask("dpctl/ct-set-maxconns", str(max(2 * self.flows, 1 << 16)))
        self.switch.rules(*RULES)
        self.until(lambda: self.connections() >= self.flows, f"{self.flows} connections")
        self.passes(2 * self.flows)

    def ask(self, method, *words):
        """As ovs-appctl asks, without a program that starts for it."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(str(self.switch.directory / "switch.ctl"))
            client.sendall(json.dumps({"id": 0, "method": method, "params": words}).encode())
            text = ""
            while part := client.recv(1 << 16):
                text += part.decode()
                try:
                    answer = json.loads(text)
                    break
                except json.JSONDecodeError:
                    continue
            else:
                raise Failed(f"{self.name}: {method}: no answer")
        if answer["error"]:
            raise Failed(f"{self.name}: {method}: {answer['error'].strip()}")
        return answer["result"]

    def connections(self):
        return int(self.ask("dpctl/ct-get-nconns"))

    def counters(self):
        return counters(self.ask("dpif-netdev/pmd-stats-show"))

    def packets(self):
        return self.counters()[0]

    def moment(self):
        return Moment(self.booked(), *self.counters())

    def sent(self):
        return sum(ask_telemetry(self.switch.files, f"/ethdev/stats,{port}")["opackets"] for port in (0, 1))

    def unanswered(self):
        """Packets of connections of which one side only had been seen. It knows half a second later."""
        said = self.switch.run("ovs-ofctl", "dump-aggregate", self.switch.directory / "br0.mgmt",
                               "table=1,ct_state=+trk+new")
        return int(re.search(r"packet_count=(\d+)", said)[1])

    def check(self):
        if (found := self.connections()) != self.flows:
            raise Failed(f"{self.name} has {found} connections, not {self.flows}")
        unanswered = self.unanswered()
        if self.begun not in (None, unanswered):
            raise Failed(f"{self.name} began {unanswered - self.begun} connections while it was measured")
        self.begun = unanswered

    def close(self):
        self.go_on()
        self.switch.close()


def unbegun():
    """A switch that can be killed, and begun."""
    return Switch.__new__(Switch)
