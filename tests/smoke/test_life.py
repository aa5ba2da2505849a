# SPDX-License-Identifier: BSD-3-Clause
"""What befalls a running engine: peers, links and ports that go, and its own end in all its forms."""
import json
import signal
import socket

import pytest

import traffic
from engine import Connection, read_records, refused
from network import AF_PACKET, AF_XDP, TAP

DRIVERS = pytest.mark.parametrize("driver", [AF_PACKET, AF_XDP, TAP])
pytestmark = pytest.mark.needs("ping")


def link_of(engine, port):
    return engine.ports()[port]["link"]


def events_until(follower, **wanted):
    """Reads events up to one with these keys."""
    while True:
        event = follower.next()
        if all(event.get(key) == value for key, value in wanted.items()):
            return event


def send_some(network, count=50):
    """Datagrams that nobody waits for, both ways."""
    for end, other in (network.ends, network.ends[::-1]):
        with end.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as outbox:
            for _ in range(count):
                try:
                    outbox.sendto(b"into the void", (other.address, 9))
                except OSError:  # this end has no link any more
                    return


@DRIVERS
def test_link_down_and_up(network, millrace, driver):
    """The peer's interface goes down and comes back: told, counted, and then it works again."""
    net = network(driver)
    engine = millrace(network=net)
    with Connection(engine.socket) as follower, engine.watched():
        follower.send("event follow", flows=False)
        traffic.ping(net.left, net.right.address)
        net.left.space.ip("link set dev end down")
        if driver != TAP:  # from the middle a tap that was moved cannot be seen
            events_until(follower, event="link", port="a", link="down")
            assert link_of(engine, "a") == "down" and "millrace: a: link down" in engine.stderr
        send_some(net)
        net.left.space.ip("link set dev end up")
        net.left.meet(net.right)
        if driver != TAP:
            events_until(follower, event="link", port="a", link="up")
        traffic.ping(net.left, net.right.address)
    wire = engine.idle()
    assert wire["received"] == wire["out"] + wire["dropped"]
    engine.stop()


@pytest.mark.parametrize("driver", [AF_PACKET, AF_XDP])
def test_own_interface_down_and_up(network, millrace, driver):
    """The same, set by who runs the engine: on its own side."""
    net = network(driver)
    engine = millrace(network=net)
    traffic.ping(net.left, net.right.address)
    net.middle.ip("link set dev va down")
    engine.until(lambda: link_of(engine, "a") == "down", "the link is down")
    send_some(net)
    net.middle.ip("link set dev va up")
    engine.until(lambda: link_of(engine, "a") == "up", "the link is up")
    traffic.ping(net.left, net.right.address)
    engine.stop()


@DRIVERS
@pytest.mark.parametrize("gone", ["peer", "port"])
def test_gone(network, millrace, driver, gone):
    """The interface is deleted, at the other end or in the middle: the engine tells, and lives on."""
    net = network(driver)
    engine = millrace("--output", "records.json", network=net)
    traffic.ping(net.left, net.right.address)
    with Connection(engine.socket) as follower, engine.watched():
        follower.send("event follow", flows=False)
        engine.wire()
        if gone == "port" and driver != TAP:
            net.middle.ip("link del dev va")
        else:
            net.left.space.ip("link del dev end")
        events_until(follower, event="link", port="a", link="removed")
        assert link_of(engine, "a") == "removed"
        send_some(net)
    assert "millrace: a: link removed" in engine.stderr
    wire = engine.idle()
    assert wire["received"] == wire["out"] + wire["dropped"]
    engine.stop(leaves=["records.json"])
    (record,) = read_records(engine.directory / "records.json")
    assert (record["packets"], record["reverse_packets"]) == (5, 5)


@pytest.mark.parametrize("driver", [AF_PACKET, AF_XDP])
def test_renamed(network, millrace, driver):
    """The name of now is told, also when another port had it before; it stays the port it was."""
    net = network(driver)
    engine = millrace(network=net)
    with Connection(engine.socket) as follower, engine.watched():
        follower.send("event follow", flows=False)
        engine.wire()
        for old, new, port in (("va", "vc", "a"), ("vb", "va", "b"), ("vc", "vb", "a")):
            net.middle.rename(old, new)
            event = events_until(follower, event="renamed")
            assert (event["port"], event["interface"], event["before"]) == (port, new, old)
            assert engine.ports()[port]["interface"] == new
            assert f"millrace: {port}: interface {old} is called {new} now" in engine.stderr
        engine.until(lambda: (link_of(engine, "a"), link_of(engine, "b")) == ("up", "up"),
                     "both links are up")
        traffic.ping(net.left, net.right.address)
    assert engine.wire()["received"] == engine.wire()["out"] == 10
    # what is gone is gone, though another interface takes the name
    net.middle.ip("link del dev vb", "link add vb type veth peer name vz", "link set vb up",
                  "link set vz up")
    engine.until(lambda: link_of(engine, "a") == "removed", "the interface is gone")
    net.middle.ip("link del dev vz")
    assert link_of(engine, "a") == "removed" and link_of(engine, "b") == "up"
    engine.stop()


def test_renamed_again_and_again(network, millrace):
    """Two hundred times while packets pass: never taken for gone, whenever the engine looks."""
    net = network(AF_PACKET)
    engine = millrace(network=net)
    names, count, told = ("va", "vnew"), 0, 0
    with Connection(engine.socket) as follower, engine.watched():
        follower.send("event follow", flows=False)
        engine.wire()
        while count < 200 or told < 3:
            net.middle.rename(names[0], names[1])
            names = names[::-1]
            send_some(net, 1)
            count += 1
            told = engine.stderr.count("is called")
            assert "link removed" not in engine.stderr
    engine.until(lambda: engine.ports()["a"]["interface"] == names[0], "the last name is told")
    engine.until(lambda: link_of(engine, "a") == "up", "the link is up")
    sent = sum(end.space.sent() for end in net.ends)
    engine.until(lambda: engine.wire()["out"] == sent, f"{sent} of {2 * count} packets left")
    assert engine.idle()["received"] == sent
    if names[0] != "va":
        net.middle.rename("vnew", "va")
    engine.stop()


# -------------------------------------------------------------------------------- its own end


@DRIVERS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped(network, millrace, driver, number):
    """Flows that live are reported with `shutdown`; nothing stays behind (stop() looks)."""
    net = network(driver)
    engine = millrace("--output", "records.json", network=net)
    traffic.ping(net.left, net.right.address)
    traffic.datagram(net.left, net.right, 100)
    engine.stop(number, leaves=["records.json"])
    records = read_records(engine.directory / "records.json")
    assert sorted((record["proto"], record["packets"], record["reverse_packets"],
                   record["end_reason"], record["state"]) for record in records) == [
                       (1, 5, 5, "shutdown", "ended"), (17, 1, 0, "shutdown", "ended")]


@DRIVERS
def test_stopped_under_traffic(network, millrace, driver):
    """Packets keep coming while it ends: of those it took only dropped ones are not in the records."""
    net = network(driver)
    engine = millrace("--output", "records.json", "--workers", 2, network=net)
    with traffic.flood(net.left, net.right):
        engine.until(lambda: engine.wire()["received"] > 1000, "the flood comes")
        before = engine.wire()
        engine.stop(idle=False, leaves=["records.json"])
    records = read_records(engine.directory / "records.json")
    assert {record["end_reason"] for record in records} == {"shutdown"}
    # on a busy machine a ring to the other worker may have been full
    known = before["received"] - before["held"] - before["dropped"]
    assert known > 0 and sum(record["packets"] for record in records) >= known


@DRIVERS
def test_killed_and_started_again(network, millrace, driver):
    """kill -9: the next one takes over the socket and the record file, and packets pass again."""
    net = network(driver)
    engine = millrace("--output", "records.json", network=net)
    traffic.ping(net.left, net.right.address)
    engine.kill()
    assert engine.socket.exists()
    again = millrace("--output", "records.json", network=net)
    assert "was left by an engine that is dead" in again.stderr
    assert {port["driver"] for port in again.ports().values()} == {f"net_{driver}"}
    traffic.ping(net.left, net.right.address)
    traffic.datagram(net.left, net.right, 100)
    again.stop(leaves=["records.json"])
    assert not again.socket.exists()
    assert len(read_records(again.directory / "records.json")) == 2


def test_socket_in_use(network, millrace):
    """Of two engines the second is refused, and the first does not notice."""
    net, other = network(AF_PACKET), network(AF_PACKET)
    engine = millrace(network=net)
    code, line = refused(engine.directory, *other.arguments(), network=other)
    assert code == 1 and line == f"millrace: another millrace answers at {engine.socket}"
    other.check_nothing_left()
    traffic.ping(net.left, net.right.address)
    # and with a socket of its own it may
    second = millrace("--socket", "second.sock", directory="second", network=other,
                      socket_name="second.sock")
    traffic.ping(other.left, other.right.address)
    second.stop()
    engine.stop()


def test_socket_path_that_is_no_socket(tmp_path, network):
    """What lies there is left alone."""
    (tmp_path / "millrace.sock").write_text("precious")
    net = network(AF_PACKET)
    code, line = refused(tmp_path, *net.arguments(), network=net)
    assert code == 1 and "something that is no socket lies there already" in line
    assert (tmp_path / "millrace.sock").read_text() == "precious"
    net.check_nothing_left()


def test_configuration_is_that_of_the_file(network, millrace, tmp_path):
    """A file with the same words does the same, and says so when asked."""
    net = network(AF_PACKET)
    config = tmp_path / "millrace.yaml"
    config.write_text("wires: [[va, vb]]\nworkers: 2\nthreads: split\ntimeouts: {icmp: 77}\n")
    engine = millrace("--config", config, network=net, joined=False)
    traffic.ping(net.left, net.right.address)
    shown = json.loads(engine.client("config", "show", "--json"))
    assert (shown["workers"], shown["threads"], shown["timeouts"]["icmp"]) == (2, "split", 77)
    engine.stop()
