# SPDX-License-Identifier: BSD-3-Clause
"""What an engine answers by HTTP, and an engine that is idle after its packets."""
import http.client
import json
import re
import urllib.parse

import frames
from conftest import SLOWER

LINE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Of the quiet engine: flows, and how often each packet comes.
FLOWS, PASSES = 41, 50


class Web:
    """At the address that the engine has told."""

    def __init__(self, running):
        told = running.until(lambda: re.search(r"metrics: http://([\d.]+):(\d+)/metrics", running.stderr), "the address")
        self.host, self.port = told[1], int(told[2])

    @property
    def url(self):
        return f"http://{self.host}:{self.port}/"

    def fetch(self, path, method="GET", **headers):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30 * SLOWER)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def metrics(self, **headers):
        status, _, body = self.fetch("/metrics", **headers)
        assert status == 200, body
        return body

    def query(self, path, **words):
        status, _, body = self.fetch(f"/api/{path}?{urllib.parse.urlencode(words)}")
        assert status == 200, body
        lines = json.loads(body)
        end = lines.pop()
        assert end["end"] is True and end["error"] is None, end
        return lines


def samples(text):
    """{(name, label, value, ...): number}"""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, number = LINE.match(line).groups()
            key = (name, *(part for pair in LABEL.findall(labels or "") for part in pair))
            assert key not in found, line
            found[key] = float(number)
    return found


def quiet_engine(started, tmp_path):
    """An engine that has carried its packets, dropped those of one flow, and is idle; beside it what it answers by HTTP."""
    conversations = [frames.udp(0, "10.0.0.1", 1000 + i, "10.0.0.2", 53) for i in range(FLOWS - 1)]
    frames.write(tmp_path / "some.pcap", *conversations, frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 80), in_order=False)
    (tmp_path / "rules").write_text("flow create 0 ingress pattern ipv4 / udp dst is 80 / end actions drop / end\n")
    running = started(f"capture={tmp_path / 'some.pcap'},passes={PASSES}", "--metrics", "127.0.0.1:0", "--workers", 2,
                      "--pin", "no", "--rules", tmp_path / "rules", "--offload-rules-in-nic", "off")
    running.until(lambda: running.wire()["received"] == PASSES * FLOWS, "all packets")
    running.idle()
    running.until(lambda: all(line.get("ready", True) for line in running.ask("offload show")), "cards were tried")
    running.until(lambda: running.ask("offload show")[0]["under_way"] == 0
                  and running.ask("offload show")[0]["flows"]["queued"] == 0, "the card is at rest")
    return running, Web(running)
