# SPDX-License-Identifier: BSD-3-Clause
"""Brings what the host thread tells its follower and what `ip` shows into one form."""
import ipaddress
import json
import os
import pathlib
import signal
import socket
import struct
import threading
import time

from engine import MILLRACE, SLOWER

TOOL = pathlib.Path(MILLRACE).parent / "tests" / "host_mirror"
KINDS = {"anycast": "local", "throw": "only", "unspec": "only"}
TABLES = {"main": 254, "local": 255, "default": 253}
MILLION_S = 600


class Mirror:
    """A host_mirror in a namespace. `routes`, `links` and so on are what a follower would know."""

    def __init__(self, space, *arguments, wait=True):
        self.space = space
        self.changed = threading.Condition()
        self.routes, self.links, self.addresses, self.neighbours = {}, {}, {}, {}
        self.taps, self.events, self.frames, self.gone = {}, [], [], []
        self.statuses, self.wrong, self.history = [], [], []
        self.synced = 0
        self.process = space.popen_with_input(TOOL, *arguments)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        if wait:
            self.until(lambda: self.synced, "the first dump")

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                try:
                    self.take(json.loads(line))
                except (AssertionError, KeyError) as wrong:
                    self.wrong.append(f"{wrong!r} at {line}")
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def take(self, said):
        gone = said.pop("gone", False)
        for name, table, key in (
                ("route", self.routes, ("route", "table", "metric")),
                ("link", self.links, ("link",)), ("address", self.addresses, ("address", "ifindex")),
                ("neighbour", self.neighbours, ("neighbour", "ifindex"))):
            if name not in said:
                continue
            place = tuple(said[word] for word in key)
            if gone:
                table.pop(place)  # what is not there cannot be gone
                self.gone.append(place)
            else:
                if name == "route":
                    self.history.append((said["route"], [hop[1] for hop in said["hops"]]))
                assert table.get(place) != said, f"told twice: {said}"
                table[place] = said
        if "tap" in said:
            self.taps[said["tap"]] = said["ifindex"]
        elif "event" in said:
            self.events.append(said)
        elif "frame" in said:
            self.frames.append((said["frame"], bytes.fromhex(said["hex"])))
        elif "status" in said:
            self.statuses.append(said)
        elif "synced" in said:
            self.synced += 1

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def until(self, condition, what, timeout=30):
        """Waits until the condition holds, and returns it."""
        deadline = time.monotonic() + timeout * SLOWER
        with self.changed:
            while not (result := condition()):
                assert self.process.poll() is None, f"it ended: {what}"
                assert not self.wrong, self.wrong
                left = deadline - time.monotonic()
                assert left > 0, f"waited in vain: {what}"
                self.changed.wait(min(left, 0.1))
            return result

    def status(self):
        """(how the host stands, what was counted for each TAP)"""
        known = len(self.statuses)
        self.say("status")
        said = self.until(lambda: self.statuses[known:], "the status")[0]
        return said["status"], said["ports"]

    def event(self, name):
        return self.until(lambda: [event for event in self.events if event["event"] == name], name)[0]

    def equals(self, timeout=30):
        """Waits until the follower knows the routes that the kernel has."""
        deadline = time.monotonic() + timeout * SLOWER
        while True:
            expected = routes_of(self.space)
            with self.changed:
                known = {key: shape(route) for key, route in self.routes.items()}
                if known == expected:
                    return expected
            differs = {key: (known.get(key), expected.get(key))
                       for key in known.keys() | expected.keys() if known.get(key) != expected.get(key)}
            assert time.monotonic() < deadline, (
                f"{len(differs)} routes differ (follower, kernel): {list(differs.items())[:5]}")
            self.until(lambda: True, "")
            time.sleep(0.05)

    def halt(self):
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        """Its end comes with its input's; no memory is lost on the way, as far as a sanitizer sees."""
        self.go_on()
        self.process.stdin.close()
        try:
            code = self.process.wait(30 * SLOWER)
        finally:
            self.process.kill()
            self.reader.join()
        assert code == 0 and not self.wrong, (code, self.wrong)


def shape(route):
    """The parts of a route that are compared: its kind and its hops."""
    hops = sorted(tuple(hop) for hop in route["hops"])
    return route["kind"], tuple(hops) if route["kind"] == "unicast" else ()


def links_of(space):
    return {link["ifname"]: link["ifindex"]
            for link in json.loads(space.run("ip", "-j", "link", "show").stdout)}


def hop_of(shown, links, flags, weight):
    via = shown.get("via", {}).get("host", shown.get("gateway", ""))
    dead = any(flag in flags for flag in ("dead", "linkdown"))
    return links[shown["dev"]], via, weight, dead


def routes_of(space):
    """{(prefix, table, metric): (kind, hops)} of the kernel's, the first of those with one key."""
    links, routes = links_of(space), {}
    for family in ("-4", "-6"):
        shown = json.loads(space.run("ip", family, "-j", "-d", "-N", "route", "show", "table", "all",
                                     timeout=MILLION_S).stdout)
        for route in shown:
            dst = route["dst"]
            if dst == "default":
                dst = "0.0.0.0/0" if family == "-4" else "::/0"
            prefix = str(ipaddress.ip_network(dst))
            table = int(TABLES.get(route.get("table", 254), route.get("table", 254)))
            kind = kind_of(route["type"])
            hops = [hop_of(hop, links, hop.get("flags", []), hop.get("weight", 1))
                    for hop in route.get("nexthops", [])]
            if not hops and "dev" in route:
                hops = [hop_of(route, links, route.get("flags", []), 1)]
            key = (prefix, table, route.get("metric", 0))
            routes.setdefault(key, (kind, tuple(sorted(hops)) if kind == "unicast" else ()))
    return routes


def kind_of(name):
    """Its kind by the name or the number that `ip` shows."""
    numbers = {"1": "unicast", "2": "local", "3": "broadcast", "4": "anycast", "5": "multicast",
               "6": "blackhole", "7": "unreachable", "8": "prohibit", "9": "throw"}
    name = numbers.get(str(name), name)
    return KINDS.get(name, name)


class Zebra:
    """The end of FPM that a routing daemon has."""

    NEW, DELETE = 24, 25
    NEW_NEXT_HOP = 104

    def __init__(self, space, port):
        self.socket = space.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.connect(("127.0.0.1", port))
        self.sequence = 0

    def send(self, data):
        self.socket.sendall(data)

    def close(self):
        self.socket.close()

    def closed(self, timeout=10):
        """The other end has hung up."""
        self.socket.settimeout(timeout * SLOWER)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    @staticmethod
    def attribute(kind, value):
        return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)

    def frame(self, kind, body):
        """A netlink message behind FPM's header."""
        message = struct.pack("=IHHII", 16 + len(body), kind, 0x501, self.sequence, 0) + body
        return struct.pack(">BBH", 1, 1, 4 + len(message)) + message

    def route(self, kind, prefix, via=None, dev=0, next_hop=0, metric=20):
        network = ipaddress.ip_network(prefix)
        family = socket.AF_INET if network.version == 4 else socket.AF_INET6
        body = struct.pack("=BBBBBBBBI", family, network.prefixlen, 0, 0, 254, 186, 0, 1, 0)
        body += self.attribute(1, network.network_address.packed)
        body += self.attribute(6, struct.pack("=I", metric))
        if via:
            body += self.attribute(5, ipaddress.ip_address(via).packed)
            body += self.attribute(4, struct.pack("=I", dev))
        if next_hop:
            body += self.attribute(30, struct.pack("=I", next_hop))
        return self.frame(kind, body)

    def next_hop(self, number, via, dev):
        address = ipaddress.ip_address(via)
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        body = struct.pack("=BBBBI", family, 0, 186, 0, 0)
        body += self.attribute(1, struct.pack("=I", number))
        body += self.attribute(5, struct.pack("=I", dev)) + self.attribute(6, address.packed)
        return self.frame(self.NEW_NEXT_HOP, body)
