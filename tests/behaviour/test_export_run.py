# SPDX-License-Identifier: BSD-3-Clause
"""IPFIX exports of an engine that runs: what collectors get, what becomes of them, and what is told of it."""
import collections
import json
import signal
import socket
import time

import pytest

import engine
import frames
import ipfix
from exports import Collector, check, octets_of, octets_told
from mixture import make_mixture

pytestmark = pytest.mark.usefixtures("simulated_nic")


def exports_of(running):
    """As export show has them, once all that was made has gone its way."""
    shown = running.ask("export show")
    for export in shown:
        assert export["records"] == export["written"] + export["lost"] + export["waiting"], export
    return shown


def records_of(running):
    return engine.read_records(running.directory / "records.json")


@pytest.mark.parametrize("workers, offload", [(1, "off"), (2, "off"), (1, "on"), (2, "on")])
def test_collectors_get_what_json_has(started, tmp_path, workers, offload):
    """Three of them, each all of it; octets are those of the packets, also of those that came with marks."""
    path, frames = make_mixture(tmp_path)
    passes = 60
    udp, tcp = Collector(), Collector(socket.SOCK_STREAM)
    running = started(f"capture={path},passes={passes}" + (",pace=20000" if offload == "on" else ""),
                      "--workers", workers, "--offload", offload, "--offload-threshold", 0, "--active", 1,
                      "--export", f"ipfix://127.0.0.1:{udp.port}?biflow=yes&pen=32473",
                      "--export", f"ipfix+tcp://127.0.0.1:{tcp.port}?domain=9",
                      "--export", "ipfix+file:flows.ipfix")
    running.until(lambda: running.wire()["received"] == passes * len(frames), "all packets")
    running.idle()
    assert len(exports_of(running)) == 3
    running.stop(leaves=["records.json", "flows.ipfix"])
    records = records_of(running)
    file = type(udp.decoder)()
    assert file.stream((running.directory / "flows.ipfix").read_bytes()) == b""
    wanted = collections.Counter({way: passes * octets for way, octets in octets_of(frames).items()})
    for decoder in (udp.stop(), tcp.stop(), file):
        check(decoder, records)
        assert octets_told(decoder.flows) == wanted
        names = {option["ingressInterface"]: option["interfaceName"] for option in decoder.options
                 if "interfaceName" in option}
        assert names == {1: "a", 2: "b"}
        assert {(flow["ingressInterface"], flow["egressInterface"]) for flow in decoder.flows} <= {(1, 2), (2, 1)}
    assert tcp.decoder.domains == {9} and udp.decoder.domains == {0}


def test_a_collector_comes_back(started):
    """What was sent while it was away is missing by the sequence numbers, and it can read on at once."""
    first = Collector()
    running = started("flows=500,proto=mix,pace=20000", "--active", 1,
                      "--export", f"ipfix://127.0.0.1:{first.port}")
    running.until(lambda: len(first.decoder.flows) >= 500, "reports of all flows")
    before = first.stop()
    first.socket.close()
    running.until(lambda: exports_of(running)[0]["refused"] > 0, "nobody listens")
    away = exports_of(running)[0]["written"]
    running.until(lambda: exports_of(running)[0]["written"] > away + 500, "more reports")
    second = Collector(port=first.port, late=True)
    running.until(lambda: len(second.decoder.flows) > 0, "reports to the one that came back")
    running.stop(leaves=["records.json"])
    after = second.stop()
    assert after.missing == before.missing == 0 and "nobody listened" in running.stderr
    told = int(running.stderr.split(" records sent")[0].rsplit(" ", 1)[1].replace(",", ""))
    # what goes with templates says how many records of flows had been sent before
    sent = next(option["exportedFlowRecordTotalCount"] for option in after.options
                if "exportedFlowRecordTotalCount" in option)
    assert sent >= len(before.flows) + 500
    assert told == sent + len(after.flows)
    # the sequence has them too, and the three records of options of each set of templates
    others = after.first_sequence - sent
    assert others > 0 and others % 3 == 0 and (after.first_sequence - before.sequence) >= sent - len(before.flows)


def test_a_collector_that_reads_nothing(started):
    """It loses its own records, which are counted, and nobody else any."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        other = Collector()
        running = started("flows=3000,proto=mix,pace=200000", "--active", 1,
                          "--export", f"ipfix+tcp://127.0.0.1:{listener.getsockname()[1]}?queue=131072",
                          "--export", f"ipfix://127.0.0.1:{other.port}")
        connection = listener.accept()[0]
        running.until(lambda: exports_of(running)[0]["lost"] > 0, "records are lost", timeout=60)
        slow, good = exports_of(running)
        assert slow["waiting"] > 0 and good["lost"] == 0
        running.until(lambda: "records are being lost" in running.stderr, "it is told")
        running.stop(code=1, leaves=["records.json"])
        connection.close()
    check(other.stop(), records_of(running))


def test_a_hundred_collectors(started):
    """Each gets all of it; those that are not there cost the end no more than one that is not."""
    there = Collector()
    words = ["--export", f"ipfix://127.0.0.1:{there.port}"]
    for number in range(50):
        # nobody is there; and one that is told of nothing
        words += ["--export", "ipfix+tcp://127.0.0.1:9", "--export", f"ipfix+file:{number}.ipfix?proto=254"]
    running = started("flows=200,proto=mix,pace=20000", "--active", 1, *words)
    running.until(lambda: len(there.decoder.flows) > 1000, "many reports")
    shown = exports_of(running)
    assert len(shown) == 101 and not any(export["lost"] for export in shown)
    begun = time.monotonic()
    running.stop(code=1, leaves=["records.json", *[f"{number}.ipfix" for number in range(50)]])
    assert time.monotonic() - begun < 10 * engine.SLOWER
    records = records_of(running)
    there.stop()
    assert sum(flow["packetDeltaCount"] for flow in there.decoder.flows) == sum(
        record["packets"] + record["reverse_packets"] for record in records)


def test_a_file_is_opened_anew(started):
    """As logrotate does it: moved away, then SIGHUP; each part can be read by itself, and together they are all."""
    running = started("flows=300,proto=mix,pace=20000", "--active", 1, "--export", "ipfix+file:flows.ipfix")
    path, old = running.directory / "flows.ipfix", running.directory / "old.ipfix"
    running.until(lambda: path.stat().st_size > 20000, "something is written")
    path.rename(old)
    running.send_signal(signal.SIGHUP)
    running.until(lambda: path.exists() and path.stat().st_size > 20000, "and something more")
    running.stop(leaves=["records.json", "flows.ipfix", "old.ipfix"])
    flows = []
    for part in (old, path):
        decoder = ipfix.Decoder()
        assert decoder.stream(part.read_bytes()) == b"" and decoder.first_sequence == 0 and decoder.missing == 0
        flows += decoder.flows
    both = ipfix.Decoder()
    both.flows = flows
    check(both, records_of(running))


class Timed(ipfix.Decoder):
    """Notes when the records of each message came, in microseconds of Unix time."""

    def __init__(self):
        super().__init__()
        self.came = []

    def message(self, data):
        super().message(data)
        self.came += (len(self.flows) - len(self.came)) * [time.time_ns() // 1000]


def test_records_come_within_a_second_of_the_timeout(started, tmp_path):
    """Never before it, and at most a second later: half of one until the next tick, and the way to the collector."""
    path = tmp_path / "many.pcap"
    frames.write(path, [frames.udp(number / 1000, "10.0.0.1", 1000 + number, "10.0.0.2", 53) for number in range(2000)])
    collector = Collector()
    collector.decoder = Timed()
    running = started(f"capture={path},passes=1,pace=1000", "--timeout", "udp=2",
                      "--export", f"ipfix://127.0.0.1:{collector.port}")
    running.until(lambda: len(collector.decoder.flows) == 2000, "all flows have ended")
    running.stop(leaves=["records.json"])
    got = collector.stop()
    late = sorted(came - flow["flowEndMicroseconds"] - 2_000_000 for came, flow in zip(got.came, got.flows))
    assert late[0] >= 0
    assert late[len(late) * 9 // 10] <= 600_000 * engine.SLOWER, f"nine of ten are late by {late[1800]} us at most"
    assert late[-1] <= 1_000_000 * engine.SLOWER, f"one is late by {late[-1]} us"


def test_rules_are_told(started, tmp_path):
    """Which rule decided a direction, and the port that it sends packets to in place of the peer."""
    path = tmp_path / "round.pcap"
    frames.write(path, [frames.udp(0, "10.0.0.1", 1000 + port, "10.0.0.2", port) for port in (53, 80, 443)])
    rules = tmp_path / "rules"
    rules.write_text("flow create 0 ingress pattern udp dst is 80 / end actions port_id id 0 / end\n"
                     "flow create 0 ingress pattern udp dst is 53 / end actions mark id 5 / end\n", encoding="utf-8")
    collector = Collector()
    running = started(f"capture={path},passes=40", "--rules", rules, "--timeout", "udp=1",
                      "--export", f"ipfix://127.0.0.1:{collector.port}?pen=32473")
    running.until(lambda: len(collector.decoder.flows) == 3, "all flows have ended")
    running.stop(leaves=["records.json"])
    told = {flow["destinationTransportPort"]: (flow["ingressInterface"], flow["egressInterface"],
                                               flow["millraceRule"], flow["millraceRuleMark"])
            for flow in collector.stop().flows}
    none = 0xffffffff
    assert told == {80: (1, 1, 0, 0), 53: (1, 2, 1, 5), 443: (1, 2, none, 0)}


def test_the_client_shows_them(started):
    running = started("flows=10", "--export", "ipfix+file:flows.ipfix?domain=5")
    shown = running.client("export", "show")
    assert "ipfix+file:flows.ipfix?domain=5" in shown and "waiting" in shown
    (line,) = [json.loads(line) for line in running.client("export", "show", "--json").splitlines()]
    assert (line["transport"], line["up"], line["lost"]) == ("file", True, 0)
    running.stop(leaves=["records.json", "flows.ipfix"])


def test_without_exports(started):
    running = started("flows=10")
    assert running.ask("export show") == []
    assert "there are no exports" in running.client("export", "show")
    running.stop(leaves=["records.json"])
