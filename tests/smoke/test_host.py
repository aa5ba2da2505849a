# SPDX-License-Identifier: BSD-3-Clause
"""The host thread between a router and the kernel: what it tells is what `ip` shows, whatever happens; TAPs live on."""
import contextlib
import pathlib
import random
import subprocess
import tempfile
import time
import types

import pytest

from engine import SLOWER, Millrace
from host import TOOL, Mirror, Zebra, links_of
from network import Namespace

pytestmark = pytest.mark.needs("namespaces", "tap")

PORT = 26200


class Space(Namespace):
    """A namespace with IPv6 and a pair of links, v0 and v1, of which v0 has addresses."""

    def __init__(self, name):
        super().__init__(name)
        for place in ("all", "default"):
            self.set(f"ipv6/conf/{place}/disable_ipv6", 0)
            self.set(f"ipv6/conf/{place}/accept_dad", 0)
        self.ip("link add v0 type veth peer name v1", "link set v1 up")
        self.set_up()

    def set_up(self):
        self.ip("link set v0 up", "addr replace 10.0.0.1/24 dev v0",
                "addr replace fd00::1/64 dev v0 nodad")

    def popen_with_input(self, *command):
        with self.entered():
            return subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True)


@pytest.fixture(name="space")
def make_space():
    with contextlib.closing(Space("host")) as space:
        yield space


@pytest.fixture(name="mirror")
def make_mirror(space):
    """mirror(argument...): a Mirror that has seen everything once."""
    with contextlib.ExitStack() as stack:
        def make(*arguments, **options):
            return stack.enter_context(contextlib.closing(Mirror(space, *arguments, **options)))
        yield make


def many(n, how="add", via="10.0.0.2", first=0):
    return [f"route {how} 10.{100 + i // 65536}.{i // 256 % 256}.{i % 256}/32 via {via}"
            for i in range(first, first + n)]


def many6(n, how="add"):
    return [f"route {how} fd00:{i // 65536 + 1:x}:{i % 65536:x}::/48 via fd00::2" for i in range(n)]


def batch(space, lines):
    with space.entered():
        done = subprocess.run(["ip", "-force", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                              capture_output=True, timeout=300 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr[-300:]


# ------------------------------------------------------------------------------- the kernel's routes

def test_every_kind_of_route(space, mirror):
    follower = mirror()
    follower.equals()
    space.ip(
        "route add 10.1.0.0/16 via 10.0.0.2", "route add 10.1.0.0/16 via 10.0.0.3 metric 50",
        "route add 10.2.0.0/16 nexthop via 10.0.0.2 weight 3 nexthop via 10.0.0.3",
        "route add blackhole 10.3.0.0/16", "route add unreachable 10.4.0.0/16",
        "route add prohibit 10.5.0.0/16", "route add throw 10.6.0.0/16 table 77",
        "route add default via 10.0.0.9 table 100", "route add 10.7.0.0/16 via inet6 fd00::9 dev v0",
        "route add fd01::/48 via fd00::2", "route add fd02::/48 nexthop via fd00::2 nexthop via fd00::3",
        "route add default via fd00::9", "route add blackhole fd03::/48",
        "route add fd04::1/128 dev v0 metric 7")
    follower.equals()
    space.ip("route replace 10.1.0.0/16 via 10.0.0.4", "route change 10.2.0.0/16 via 10.0.0.5",
             "route del blackhole 10.3.0.0/16", "route append fd01::/48 via fd00::4",
             "route del fd02::/48 via fd00::2", "route append 10.4.0.0/16 via 10.0.0.6",
             "route replace default via fd00::8")
    follower.equals()
    space.ip("route del 10.4.0.0/16 via 10.0.0.6", "route prepend 10.7.0.0/16 via 10.0.0.7")
    routes = follower.equals()
    assert routes[("10.7.0.0/16", 254, 0)][1][0][1] == "10.0.0.7"
    space.ip("route flush table 100", "route flush table 77", "route flush proto static",
             "route flush root fd00::/12")
    follower.equals()
    status, _ = follower.status()
    assert status["malformed"] == status["refused"] == status["overruns"] == 0


def test_routes_that_go_without_a_message(space, mirror):
    follower = mirror()
    batch(space, many(2000) + many6(500))
    assert len(follower.equals()) >= 2500
    space.ip("link set v0 down")
    assert not any(key[0].startswith("10.100.") for key in follower.equals())
    space.set_up()
    batch(space, many(2000))
    follower.equals()
    space.ip("addr del 10.0.0.1/24 dev v0")
    follower.equals()
    space.set_up()
    batch(space, many(2000))
    follower.equals()
    space.ip("route flush table main")
    follower.equals()
    space.ip("link del v1")
    follower.equals()


def test_ten_thousand_routes(space, mirror):
    follower = mirror()
    batch(space, many(10000))
    follower.equals()
    status, _ = follower.status()
    assert status["overruns"] == 0 and status["routes"] >= 10000
    # a dump that finds nothing new tells nothing
    told = status["told"], status["gone"]
    synced = follower.synced
    follower.say("resync")
    follower.until(lambda: follower.synced > synced, "another dump")
    status, _ = follower.status()
    assert (status["told"], status["gone"]) == told
    batch(space, many(10000, "del"))
    follower.equals()


def test_churn(space, mirror):
    follower = mirror()
    n, rounds, chosen = 1500, 100, random.Random(34)
    batch(space, many(n))
    for _ in range(rounds):
        third = chosen.sample(range(n), n // 3)
        lines = [many(1, "del", first=i)[0].partition(" via")[0] for i in third]
        lines += [many(1, "add", via=f"10.0.0.{2 + chosen.randrange(9)}", first=i)[0] for i in third]
        batch(space, lines)
    follower.equals()
    status, _ = follower.status()
    assert status["refused"] == status["malformed"] == 0 and status["only_kernel"] == 0
    assert status["told"] >= rounds * (n // 3)


def test_nexthop_objects(space, mirror):
    follower = mirror()
    space.ip("nexthop add id 1 via 10.0.0.2 dev v0", "nexthop add id 2 via 10.0.0.3 dev v0",
             "nexthop add id 3 group 1,3/2", "nexthop add id 4 blackhole",
             "nexthop add id 6 via fd00::2 dev v0", "route add 10.1.0.0/16 nhid 1",
             "route add 10.2.0.0/16 nhid 3", "route add fd01::/48 nhid 6")
    batch(space, [f"route add 10.9.{i}.0/24 nhid 3" for i in range(200)])
    routes = follower.equals()
    assert {hop[2] for hop in routes[("10.2.0.0/16", 254, 0)][1]} == {1, 3}
    space.ip("nexthop replace id 2 via 10.0.0.7 dev v0")
    routes = follower.equals()
    assert "10.0.0.7" in {hop[1] for hop in routes[("10.9.100.0/24", 254, 0)][1]}
    space.ip("nexthop replace id 3 group 2")
    follower.equals()
    space.ip("nexthop del id 2")  # with it the group and its routes go
    assert ("10.9.7.0/24", 254, 0) not in follower.equals()
    space.ip("nexthop flush")
    follower.equals()


def test_messages_that_the_kernel_threw_away(space, mirror):
    """Its buffer is small, and it does not read: it finds the truth, and what stays is never withdrawn."""
    follower = mirror("--buffer", 1)
    batch(space, many(3000))
    follower.equals()
    follower.halt()
    batch(space, many(1000, "del") + many(4000, first=100000) + many6(3000))
    follower.go_on()
    follower.equals(60)
    status, _ = follower.status()
    assert status["overruns"] > 0 and follower.event("overrun")
    stays = {(line.split()[2], 254, 0) for line in many(2000, first=1000)}
    assert len(stays) == 2000 and stays.isdisjoint(follower.gone)


def test_a_bound_on_routes(space, mirror):
    follower = mirror("--max", 100)
    batch(space, many(200))
    follower.event("full")
    status, _ = follower.until(
        lambda: (status := follower.status())[0]["refused"] > 0 and status, "routes are refused")
    assert status["routes"] == 100
    batch(space, many(200, "del"))
    space.ip("route add 10.99.0.0/16 via 10.0.0.2")
    follower.equals()


def test_policy_rules_are_told(space, mirror):
    follower = mirror()
    assert follower.status()[0]["foreign_rules"] == 0
    space.ip("rule add from 10.9.0.0/16 lookup 77 priority 500")
    assert "priority 500, table 77" in follower.event("rules")["text"]
    assert follower.status()[0]["foreign_rules"] == 1
    space.ip("rule del from 10.9.0.0/16 lookup 77 priority 500")
    follower.until(lambda: sum(event["event"] == "rules" for event in follower.events) == 2, "no rule")
    assert follower.status()[0]["foreign_rules"] == 0


def test_neighbours(space, mirror):
    """A neighbour that is wanted is found; the kernel's states are told."""
    follower = mirror()
    with contextlib.closing(Namespace("other")) as other:
        space.ip(f"link set v1 netns {other.path}")
        other.ip("link set v1 address 02:00:00:00:00:99", "link set v1 up", "addr add 10.0.0.2/24 dev v1")
        ifindex = links_of(space)["v0"]
        follower.say(f"use {ifindex} 10.0.0.2")
        place = ("10.0.0.2", ifindex)
        found = follower.until(lambda: (known := follower.neighbours.get(place)) and known["valid"] and known,
                               "the neighbour's MAC")
        assert found["mac"] == "02:00:00:00:00:99" and found["reachable"]
        space.ip("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:98 nud stale dev v0")
        follower.until(lambda: follower.neighbours[place]["mac"] == "02:00:00:00:00:98" and
                       not follower.neighbours[place]["reachable"], "another MAC, stale")
        space.ip("neigh del 10.0.0.2 dev v0")
        follower.until(lambda: not follower.neighbours.get(place, {"valid": False})["valid"], "it is gone")
        follower.say(f"use {ifindex} 10.0.0.77")
        follower.until(lambda: ("10.0.0.77", ifindex) in follower.neighbours, "one that does not answer")
        assert not follower.neighbours[("10.0.0.77", ifindex)]["valid"]


# ------------------------------------------------------------------------------- FPM

@pytest.fixture(name="zebra")
def make_zebra(space):
    """zebra(): a connection to the mirror, as a routing daemon makes it."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(contextlib.closing(Zebra(space, PORT)))


def hops(follower, prefix, metric=20):
    route = follower.routes.get((prefix, 254, metric))
    return route and [hop[1] for hop in route["hops"]]


def test_a_routing_daemon(space, mirror, zebra):
    follower = mirror("--fpm", PORT, "--settle", 1, "--keep", 2)
    dev, first = links_of(space)["v0"], zebra()
    first.send(first.route(first.NEW, "10.5.0.0/16", "10.0.0.2", dev) +
               first.route(first.NEW, "fd05::/48", "fd00::2", dev) +
               first.next_hop(7, "10.0.0.3", dev) +
               first.route(first.NEW, "10.6.0.0/16", next_hop=7) +
               first.route(first.NEW, "10.7.0.0/16", next_hop=8))
    follower.until(lambda: hops(follower, "10.6.0.0/16") == ["10.0.0.3"], "a route by its nexthop object")
    assert hops(follower, "fd05::/48") == ["fd00::2"] and hops(follower, "10.7.0.0/16") is None
    follower.event("fpm_up")
    first.send(first.next_hop(8, "10.0.0.4", dev) + first.next_hop(7, "10.0.0.5", dev))
    follower.until(lambda: hops(follower, "10.7.0.0/16") == ["10.0.0.4"] and
                   hops(follower, "10.6.0.0/16") == ["10.0.0.5"], "objects that come late, and change")
    # it changes a route by removing and adding it: that is one change
    first.send(first.route(first.DELETE, "10.5.0.0/16"))
    first.send(first.route(first.NEW, "10.5.0.0/16", "10.0.0.8", dev))
    follower.until(lambda: hops(follower, "10.5.0.0/16") == ["10.0.0.8"], "a change")
    first.send(first.route(first.DELETE, "10.7.0.0/16"))
    follower.until(lambda: hops(follower, "10.7.0.0/16") is None, "a removal, with nothing after it")
    assert follower.gone == [("10.7.0.0/16", 254, 20)]
    first.close()
    follower.event("fpm_down")
    second = zebra()
    # its numbers of objects are its own: routes of the first that are there yet do not go where these do
    second.send(second.next_hop(7, "10.0.0.99", dev) + second.route(second.NEW, "10.8.0.0/16", next_hop=7))
    second.send(second.route(second.NEW, "10.5.0.0/16", "10.0.0.8", dev))
    follower.until(lambda: hops(follower, "10.6.0.0/16") is None and hops(follower, "fd05::/48") is None,
                   "what is not named again goes")
    assert hops(follower, "10.5.0.0/16") == ["10.0.0.8"]
    assert ("10.5.0.0/16", 254, 20) not in follower.gone
    assert hops(follower, "10.8.0.0/16") == ["10.0.0.99"]
    assert ("10.6.0.0/16", ["10.0.0.99"]) not in follower.history
    second.close()
    follower.until(lambda: hops(follower, "10.5.0.0/16") is None, "nobody comes back")


def test_both_sources_have_a_route(space, mirror, zebra):
    follower = mirror("--fpm", PORT)
    dev, daemon = links_of(space)["v0"], zebra()
    space.ip("route add 10.5.0.0/16 via 10.0.0.2 metric 20")
    follower.until(lambda: hops(follower, "10.5.0.0/16") == ["10.0.0.2"], "the kernel's")
    daemon.send(daemon.route(daemon.NEW, "10.5.0.0/16", "10.0.0.3", dev))
    follower.until(lambda: hops(follower, "10.5.0.0/16") == ["10.0.0.3"], "the daemon's goes first")
    daemon.send(daemon.route(daemon.DELETE, "10.5.0.0/16"))
    follower.until(lambda: hops(follower, "10.5.0.0/16") == ["10.0.0.2"], "the kernel's again")
    assert follower.gone == []


@pytest.mark.parametrize("said", [b"\x02\x01\0\x04", b"\x01\x01\0\x03", b"\x01\x01\0\x20" + b"\xff" * 28])
def test_a_peer_that_says_nonsense(space, mirror, zebra, said):
    follower = mirror("--fpm", PORT)
    peer = zebra()
    peer.send(said)
    assert peer.closed()
    follower.until(lambda: follower.status()[0]["fpm_malformed"] == 1, "it is counted")
    dev, daemon = links_of(space)["v0"], zebra()
    daemon.send(daemon.route(daemon.NEW, "10.5.0.0/16", "10.0.0.3", dev))
    follower.until(lambda: hops(follower, "10.5.0.0/16") == ["10.0.0.3"], "the next one is heard")


def test_fpm_of_a_router(space, tmp_path):
    """A router of the configuration has the routes that a daemon sends, in the namespace of its TAPs."""
    with contextlib.ExitStack() as stack:
        inside = stack.enter_context(contextlib.closing(Space("inside")))
        space.ip("addr flush dev v0", "link set v0 up")
        (tmp_path / "router.yaml").write_text(
            "ports: [{name: p0, device: v0}, {name: p1, device: v1}]\n"
            f"routers: [{{name: r1, netns: {inside.path}, fpm: {PORT}, ports: "
            "[{port: p0, name: eth0}, {port: p1, name: eth1}]}]\n")
        place = types.SimpleNamespace(middle=space, engine_is_there=lambda: None)
        engine = Millrace(tmp_path / "run", "--config", tmp_path / "router.yaml", network=place, joined=False)
        stack.callback(engine.kill)
        inside.ip("link set eth0 up", "addr add 10.50.0.1/24 dev eth0")
        dev, daemon = links_of(inside)["eth0"], stack.enter_context(contextlib.closing(Zebra(inside, PORT)))
        daemon.send(daemon.route(daemon.NEW, "10.5.0.0/16", "10.50.0.2", dev))
        engine.until(lambda: any(hop["gateway"] == "10.50.0.2" for route in
                                 engine.ask("route show", prefix="10.5.0.0/16") for hop in route["hops"]), "the route")
        kernel = engine.ask("domain show")[0]["kernel"]
        assert kernel["fpm_connected"] and kernel["fpm_routes"] == 1 and kernel["synced"]
        assert [(tap["port"], tap["there"]) for tap in kernel["taps"]] == [("p0", True), ("p1", True)]
        inside.ip("rule add from 10.9.0.0/16 lookup 77 priority 500")
        engine.until(lambda: "NOT FOLLOWED: 1 policy rules, as the IPv4 rule of priority 500, table 77" in
                     engine.client("domain", "show"), "the rule is told")
        daemon.send(daemon.route(daemon.DELETE, "10.5.0.0/16"))
        engine.until(lambda: not engine.ask("route show", prefix="10.5.0.0/16"), "it is withdrawn")


FRR = pathlib.Path("/usr/lib/frr")


class Daemons:
    """FRR's zebra and staticd, with static routes of a file."""

    def __init__(self, space, routes):
        self.space, self.running = space, {}
        # they become another user, who is to get there
        self.directory = tempfile.TemporaryDirectory(prefix="millrace-frr-")
        self.place = pathlib.Path(self.directory.name)
        self.place.chmod(0o777)
        (self.place / "frr.conf").write_text("\n".join([f"fpm address 127.0.0.1 port {PORT}", *routes]) + "\n")
        self.start("zebra", "-M", "dplane_fpm_nl")
        self.start("staticd")

    def start(self, name, *more):
        self.running[name] = self.space.popen(
            FRR / name, "-f", self.place / "frr.conf", "-z", self.place / "zserv.api", "-i", self.place / f"{name}.pid",
            "--vty_socket", self.place, "-A", "127.0.0.1", *more, stderr=subprocess.DEVNULL)

    def kill(self, name):
        self.running[name].kill()
        self.running.pop(name).wait()

    def close(self):
        for name in list(self.running):
            self.kill(name)
        self.directory.cleanup()


@pytest.mark.skipif(not (FRR / "zebra").exists(), reason="no zebra here (Debian: frr)")
def test_zebra_itself(space, mirror):
    """Messages of FRR's zebra are understood; when it is killed its routes stay until it is back."""
    follower = mirror("--fpm", PORT, "--settle", 3)
    wanted = {"10.77.0.0/16": {"10.0.0.3"}, "10.78.0.0/16": {"10.0.0.4"}, "10.80.0.0/16": {"10.0.0.3", "10.0.0.4"}}
    lines = [f"ip route {prefix} {via}" for prefix, vias in wanted.items() for via in sorted(vias)]

    def holds():
        return all(set(hops(follower, prefix) or ()) == vias for prefix, vias in wanted.items())

    with contextlib.closing(Daemons(space, lines + ["ip route 10.79.0.0/16 blackhole"])) as daemons:
        follower.event("fpm_up")
        follower.until(holds, "its routes")
        follower.until(lambda: follower.routes[("10.79.0.0/16", 254, 20)]["kind"] == "blackhole", "a blackhole")
        follower.until(lambda: follower.status()[0]["fpm_routes"] >= 4, "they came by FPM too")
        daemons.kill("zebra")
        follower.event("fpm_down")
        assert holds() and follower.status()[0]["fpm_routes"] >= 4
        daemons.start("zebra", "-M", "dplane_fpm_nl")
        follower.until(lambda: follower.status()[0]["fpm_connected"], "it is back")
    assert follower.status()[0]["fpm_malformed"] == follower.status()[0]["malformed"] == 0


# ------------------------------------------------------------------------------- TAPs

def arp(sender, target):
    """Who has `target`? Asked by `sender`, (MAC, address); all as hexadecimal digits."""
    return f"ffffffffffff{sender[0]}08060001080006040001{sender[0]}{sender[1]}000000000000{target}"


def test_a_tap(space, mirror):
    follower = mirror("eth5", "eth6")
    shown = space.links()["eth5"]
    assert shown["address"] == "02:00:00:00:00:00" and shown["mtu"] == 1500
    assert space.links()["eth6"]["address"] == "02:00:00:00:00:01"
    peer = "020000000055", "0a320005"
    follower.say(f"punt 0 {arp(peer, '0a320001')}")
    follower.until(lambda: follower.status()[1][0]["dropped"]["tap_down"] == 1, "it is down")
    space.ip("link set eth5 up", "addr add 10.50.0.1/24 dev eth5")
    link = follower.taps[0]
    assert not follower.until(lambda: (known := follower.links[(link,)])["up"] and known, "up")["carrier"]
    follower.say("carrier 0 1")
    follower.until(lambda: follower.links[(link,)]["carrier"], "its carrier")
    follower.say(f"punt 0 {arp(peer, '0a320001')}")
    answer = bytes.fromhex(f"{peer[0]}02000000000008060001080006040002020000000000" + f"0a320001{peer[0]}{peer[1]}")
    follower.until(lambda: (0, answer) in follower.frames, "the kernel answers")
    ports = follower.status()[1]
    assert ports[0]["to_kernel"] == 1 and ports[0]["from_kernel"] >= 1
    assert ports[1]["to_kernel"] == ports[1]["from_kernel"] == 0
    space.ip("link set eth5 mtu 1400")
    follower.until(lambda: follower.links[(link,)]["mtu"] == 1400, "its MTU")
    follower.say("carrier 0 0")
    follower.until(lambda: not follower.links[(link,)]["carrier"], "no carrier")
    space.ip("link set eth5 down", "link set eth5 name wan")
    follower.until(lambda: follower.links[(link,)]["name"] == "wan", "another name")
    assert follower.taps[0] == link


def test_a_tap_is_deleted(space, mirror):
    follower = mirror("eth5", "eth6")
    before = dict(follower.taps)
    follower.say("carrier 0 1")
    space.ip("link del eth5")
    follower.event("tap_lost")
    follower.event("tap_back")
    assert follower.taps[0] not in (0, before[0]) and follower.taps[1] == before[1]
    ports = follower.status()[1]
    assert ports[0]["lost"] == 1 and ports[0]["there"] and ports[1]["lost"] == 0
    space.ip("link set eth5 up", "addr add 10.50.0.1/24 dev eth5")
    follower.until(lambda: follower.links.get((follower.taps[0],), {"carrier": False})["carrier"],
                   "its carrier is that of the link")
    follower.equals()


def test_a_tap_is_moved_and_its_name_taken(space, mirror):
    """It comes back when it can."""
    follower = mirror("eth5")
    space.ip("link add name tmp type veth peer name tmp1")
    with contextlib.closing(Namespace("elsewhere")) as elsewhere:
        with follower.changed:
            follower.halt()
        space.ip(f"link set eth5 netns {elsewhere.path}", "link set tmp name eth5")
        follower.go_on()
        assert "has this name and is no TAP" in follower.event("tap_failed")["text"]
        space.ip("link del eth5")
        follower.event("tap_back")
        assert "eth5" not in elsewhere.links()
    assert follower.taps[0] != 0


def refused(space, *arguments):
    done = space.run(TOOL, *arguments, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    return done.stderr


def test_what_cannot_be_made(space, mirror):
    assert "an interface has this name and is no TAP" in refused(space, "v0")
    assert "`ip netns add nowhere` makes it" in refused(space, "--space", "nowhere", "eth5")
    assert "is not a network namespace" in refused(space, "--space", "/dev/null", "eth5")
    mirror("eth5", "--fpm", PORT)
    assert "another program uses a TAP of this name" in refused(space, "eth5")
    assert f"cannot listen for FPM at 127.0.0.1:{PORT}" in refused(space, "eth6", "--fpm", PORT)
    assert "eth6" not in space.links()


def test_another_namespace(space, mirror):
    """All is in the namespace that was asked for; that of the process has nothing of it."""
    with contextlib.closing(Space("inside")) as inside:
        follower = mirror("--space", inside.path, "eth5")
        assert "eth5" in inside.links() and "eth5" not in space.links()
        inside.ip("route add 10.8.0.0/16 via 10.0.0.2")
        follower.until(lambda: ("10.8.0.0/16", 254, 0) in follower.routes, "its routes")
        space.ip("route add 10.9.0.0/16 via 10.0.0.2")
        follower.say("resync")
        synced = follower.synced
        follower.until(lambda: follower.synced > synced, "another dump")
        assert ("10.9.0.0/16", 254, 0) not in follower.routes


def test_a_kept_tap_keeps_its_addresses(space, mirror):
    space.ip("tuntap add dev eth5 mode tap", "link set eth5 up", "addr add 10.50.0.1/24 dev eth5")
    follower = mirror("eth5")
    follower.equals()
    assert ("10.50.0.1/24", follower.taps[0]) in follower.addresses


# ------------------------------------------------------------------------------- scale

def test_a_dump_of_a_hundred_thousand(space, mirror):
    """A million may take five seconds of a processor, the kernel's part included: a tenth of them half a second."""
    batch(space, many(100000))
    begun = time.monotonic()
    follower = mirror("--quiet")
    status, _ = follower.status()
    assert status["routes"] >= 100000 and status["refused"] == 0
    before = status["cpu_s"]
    synced = follower.synced
    follower.say("resync")
    follower.until(lambda: follower.synced > synced, "another dump")
    after = follower.status()[0]
    print(f"first dump and start {before} s of CPU, another one {after['cpu_s'] - before:.3f} s, "
          f"{time.monotonic() - begun:.2f} s in all")
    assert after["cpu_s"] - before <= 0.5 * SLOWER
    assert (after["told"], after["gone"]) == (status["told"], status["gone"])
    assert after["routes"] == status["routes"]
