# SPDX-License-Identifier: BSD-3-Clause
"""
A real Prometheus takes the engine's metrics while hosts talk, with our alerts, and has the engine's own numbers.

MILLRACE_SCRAPE_S says for how many seconds (2 when it is not set).
"""
import contextlib
import json
import os
import re
import subprocess

import pytest

import traffic
from conftest import ROOT
from network import AF_PACKET

SCRAPE_S, A_SECOND = int(os.environ.get("MILLRACE_SCRAPE_S", "2")), 2
RULES = ROOT / "packaging" / "prometheus" / "millrace.rules.yml"
CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: millrace, static_configs: [{{targets: ["{target}"]}}]}}]
"""


@contextlib.contextmanager
def prometheus(space, directory, target, log):
    """A server in the namespace, and where it answers."""
    directory.mkdir()
    (directory / "prometheus.yml").write_text(CONFIG.format(rules=RULES, target=target))
    with log.open("wb") as errors, space.popen(
            "prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
            "--web.listen-address=127.0.0.1:9090", stdout=subprocess.DEVNULL, stderr=errors) as server:
        try:
            yield "http://127.0.0.1:9090/api/v1/"
        finally:
            server.kill()


@pytest.mark.needs("ping", "curl", "prometheus")
def test_prometheus(tmp_path, network, millrace):
    net = network(AF_PACKET)
    engine = millrace("--metrics", "127.0.0.1:0", "--workers", 2, network=net)
    target = engine.until(lambda: re.search(r"metrics: http://([\d.]+:\d+)/metrics", engine.stderr), "the address")[1]
    with prometheus(net.middle, tmp_path / "prometheus", target, tmp_path / "log") as place:
        def ask(path, **words):
            data = [word for key, value in words.items() for word in ("--data-urlencode", f"{key}={value}")]
            done = net.middle.run("curl", "--silent", "--get", *data, place + path, check=False)
            return json.loads(done.stdout)["data"] if done.stdout.startswith('{"status":"success"') else None

        def value(query):
            found = ask("query", query=query)
            return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in found["result"]} if found else {}

        engine.until(lambda: 1.0 in value("up").values(), "Prometheus has the engine")
        traffic.ping(net.left, net.right.address)
        wire = engine.idle()
        assert wire["received"] > 0
        engine.until(lambda: list(value("sum(millrace_wire_received_packets_total)").values()) == [wire["received"]],
                     "it has the last packet")
        assert list(value("sum(millrace_wire_out_packets_total)").values()) == [wire["out"]]
        assert list(value("sum(millrace_flows)").values()) == [wire["flows"]]
        scrapes = SCRAPE_S * A_SECOND
        engine.until(lambda: traffic.ping(net.left, net.right.address) or
                     max(value("count_over_time(up[1h])").values()) >= scrapes, "it has scraped so often",
                     30 + 2 * SCRAPE_S)
        wire = engine.idle()
        engine.until(lambda: list(value("sum(millrace_wire_received_packets_total)").values()) == [wire["received"]],
                     "it has the last packet of these")
        assert set(value("resets(millrace_wire_received_packets_total[1h])").values()) == {0.0}
        # by what it says itself: no sample was refused, and the rules are in force
        assert set(value("min_over_time(up[1h])").values()) == {1.0}
        (scraped,) = ask("targets")["activeTargets"]
        assert (scraped["health"], scraped["lastError"]) == ("up", "")
        rules = [rule for group in ask("rules")["groups"] for rule in group["rules"]]
        engine.until(lambda: all(rule["health"] == "ok" for group in ask("rules")["groups"] for rule in group["rules"]),
                     "each rule was evaluated")
        assert {rule["name"] for rule in rules} >= {"MillraceLinkDown", "MillraceRecordsLost"}
        (about,) = ask("metadata", metric="millrace_wire_received_bytes")["millrace_wire_received_bytes"]
        assert (about["type"], about["unit"]) == ("counter", "bytes")
    engine.stop()
