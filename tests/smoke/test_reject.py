# SPDX-License-Identifier: BSD-3-Clause
"""Kernels understand at once that they are rejected, and wait in vain where a rule only drops."""
import contextlib
import errno
import socket
import time

import pytest

from network import AF_PACKET, TAP

PORT = 5001
# Where nothing comes back at all.
SILENCE_S = 1
AT_ONCE_S = 20
RULES = {
    "usual": "reject", "port": "reject type port", "host": "reject type host", "admin": "reject type admin",
    "drop": "drop",
}
# What connect() says for each; TCP by a reset is refused, as by a port that is unreachable.
TCP_SAYS = {
    (4, "usual"): errno.ECONNREFUSED, (6, "usual"): errno.ECONNREFUSED,
    (4, "port"): errno.ECONNREFUSED, (6, "port"): errno.ECONNREFUSED,
    (4, "host"): errno.EHOSTUNREACH, (6, "host"): errno.EHOSTUNREACH,
    (4, "admin"): errno.EHOSTUNREACH, (6, "admin"): errno.EACCES,
}


def rule(version, protocol, actions):
    return f"flow create 0 ingress pattern eth / ipv{version} / {protocol} / end actions {actions} / end"


def open_socket(end, version, kind):
    made = end.space.socket(socket.AF_INET if version == 4 else socket.AF_INET6, kind)
    made.settimeout(AT_ONCE_S)
    return made


def address_of(end, version):
    return end.address if version == 4 else end.address6


def tcp_error(net, version, timeout=AT_ONCE_S):
    """What connect() from the left says, and how long that takes."""
    left, right = net.ends
    begun = time.monotonic()
    with contextlib.closing(open_socket(left, version, socket.SOCK_STREAM)) as client:
        client.settimeout(timeout)
        try:
            client.connect((address_of(right, version), PORT))
        except TimeoutError:
            return errno.ETIMEDOUT, time.monotonic() - begun
        except OSError as error:
            return error.errno, time.monotonic() - begun
    return 0, time.monotonic() - begun


def udp_error(net, version, timeout=AT_ONCE_S):
    left, right = net.ends
    with contextlib.closing(open_socket(left, version, socket.SOCK_DGRAM)) as client:
        client.settimeout(timeout)
        client.connect((address_of(right, version), PORT))
        client.send(b"x" * 1400)
        try:
            client.recv(100)
        except TimeoutError:
            return errno.ETIMEDOUT
        except OSError as error:
            return error.errno
    return 0


def answers(wire):
    return wire["reject_replies"]


@pytest.mark.parametrize("driver", [AF_PACKET, TAP])
def test_kernels_are_told(network, millrace, driver):
    """TCP and UDP are refused at once, a ping is told, over both versions; each answer is counted."""
    net = network(driver)
    left, right = net.ends
    engine = millrace("--output", "records.json", network=net)
    for version in (4, 6):
        for word in ("usual", "port", "host", "admin"):
            number = engine.ask("rule add", rule=rule(version, "tcp", RULES[word]))[0]["line"].split("#")[1].split()[0]
            before = answers(engine.wire())
            said, took = tcp_error(net, version)
            assert said == TCP_SAYS[version, word], (version, word, errno.errorcode.get(said))
            # the first SYN is answered: the second would come after a second
            assert took < AT_ONCE_S and answers(engine.wire()) > before
            engine.ask("rule del", port=0, number=int(number))
            engine.until(lambda: engine.connection.ask("rule list")[1]["unsettled"] == 0, "it is settled")
        engine.ask("rule add", rule=rule(version, "udp", "reject"))
        assert udp_error(net, version) == errno.ECONNREFUSED
        engine.ask("rule add", rule=rule(version, "icmp" if version == 4 else "icmp6", "reject"))
        done = left.space.run("ping", "-n", "-c", 1, "-W", AT_ONCE_S, address_of(right, version), check=False)
        assert done.returncode == 1 and "+1 errors" in done.stdout, done.stdout
        assert ("filtered" if version == 4 else "prohibited") in done.stdout, done.stdout
    wire = engine.idle()
    rejected = engine.drops()["rejected"]
    assert rejected == wire["reject_replies"] + wire["reject_limited"] + wire["reject_unanswered"]
    assert (wire["reject_limited"], wire["reject_unanswered"]) == (0, 0)
    assert engine.ports()["a"]["reject_replies"] == rejected and engine.ports()["b"]["reject_replies"] == 0
    assert sum(line["packets"] for line in engine.ask("rule list")) <= rejected
    engine.stop(leaves=["records.json"])


def test_a_connection_ends_by_a_reset(network, millrace):
    """What is open is over with the next segment, as the rule comes while it is there."""
    net = network(AF_PACKET)
    left, right = net.ends
    engine = millrace("--output", "records.json", network=net)
    with contextlib.closing(open_socket(right, 4, socket.SOCK_STREAM)) as server, \
            contextlib.closing(open_socket(left, 4, socket.SOCK_STREAM)) as client:
        server.bind((right.address, PORT))
        server.listen(1)
        client.connect((right.address, PORT))
        other = server.accept()[0]
        other.settimeout(AT_ONCE_S)
        client.sendall(b"one")
        assert other.recv(3) == b"one"
        engine.ask("rule add", rule=rule(4, "tcp", "reject"))
        engine.until(lambda: engine.ask("flow explain", src=left.address, sport=client.getsockname()[1],
                                        dst=right.address, dport=PORT, proto="tcp")[0]["verdict"] == "reject",
                     "the flow is decided")
        client.sendall(b"two")
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        other.close()
    engine.stop(leaves=["records.json"])


def test_dropped_is_silence(network, millrace):
    """Nothing comes back where a rule drops, nor where answers are not to be made."""
    net = network(AF_PACKET)
    engine = millrace("--output", "records.json", "--rules-reject-rate", 0, network=net)
    for actions in ("drop", "reject"):
        for protocol in ("tcp", "udp"):
            engine.ask("rule add", rule=rule(4, protocol, actions))
        assert tcp_error(net, 4, SILENCE_S)[0] == errno.ETIMEDOUT
        assert udp_error(net, 4, SILENCE_S) == errno.ETIMEDOUT
        engine.client("rule", "add", "flow", "flush", "0")
    wire = engine.idle()
    assert (wire["reject_replies"], wire["reject_unanswered"]) == (0, 0)
    assert engine.drops()["rejected"] == wire["reject_limited"] > 0
    engine.stop(leaves=["records.json"])
