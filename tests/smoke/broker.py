# SPDX-License-Identifier: BSD-3-Clause
"""A broker of Kafka: one node, out of the jars that Maven has, started and stopped by a test."""
import base64
import json
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import time

import pytest

from engine import ROOT, SLOWER

JARS = ROOT / "build" / "kafka"
START_S = 120


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def jars():
    """Where the jars lie. Once there they stay, so that only the first test of a checkout fetches them."""
    for program, package in (("java", "default-jre-headless"), ("mvn", "maven"), ("kcat", "kcat")):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here (Debian: {package})")
    if not (JARS / "all").exists():
        done = subprocess.run(["mvn", "-q", "-B", "-f", pathlib.Path(__file__).parent / "kafka" / "pom.xml",
                               "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"],
                              text=True, capture_output=True, check=False, timeout=300)
        if done.returncode != 0:
            pytest.skip(f"the jars of Kafka are not to be had: {(done.stdout or done.stderr).strip()[-300:]}")
        (JARS / "all").touch()
    return JARS


class Broker:
    """Its data outlast stop() and start(). With `tls`, a file with a key and its certificate, it takes TLS, too."""

    def __init__(self, directory, partitions=3, tls=None):
        self.jars, self.directory, self.process = jars(), directory, None
        self.port = free_port()
        controller, self.tls_port = free_port(), free_port()
        plain = f"PLAINTEXT://127.0.0.1:{self.port}"
        secure = f",SSL://localhost:{self.tls_port}" if tls else ""
        options = f"ssl.keystore.type=PEM\nssl.keystore.location={tls}" if tls else ""
        self.config = directory / "server.properties"
        self.config.write_text(f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={plain}{secure},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={plain}{secure}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
log.dirs={directory}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.partitions={partitions}
auto.create.topics.enable=true
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
{options}
""", encoding="utf-8")
        identity = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        self.java("kafka.tools.StorageTool", "format", "-t", identity, "-c", self.config).communicate()

    def java(self, *words):
        with (self.directory / "broker.log").open("ab") as log:
            return subprocess.Popen(
                ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                 "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{self.jars}/*", *words],
                stdout=log, stderr=log)

    def log(self):
        return (self.directory / "broker.log").read_text(errors="replace")[-2000:]

    def start(self):
        self.process = self.java("kafka.Kafka", self.config)
        deadline = time.monotonic() + START_S * SLOWER
        while subprocess.run(["kcat", "-b", self.address, "-L", "-m", "2"], capture_output=True,
                             check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return
        self.process.send_signal(how)
        self.process.wait(60 * SLOWER)
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def messages(self, topic):
        """(partition, offset, key, value) of all messages that there are, by partition and offset."""
        there = subprocess.run(["kcat", "-b", self.address, "-L", "-J"], capture_output=True, check=True,
                               timeout=60 * SLOWER)
        if not any(one["topic"] == topic for one in json.loads(there.stdout)["topics"]):
            return []
        done = subprocess.run(["kcat", "-b", self.address, "-C", "-t", topic, "-o", "beginning", "-e", "-q",
                               "-f", r"%p\t%o\t%k\t%s\n"], capture_output=True, check=True, timeout=60 * SLOWER)
        rows = [line.split(b"\t", 3) for line in done.stdout.splitlines()]
        return sorted((int(partition), int(offset), key.decode(), value) for partition, offset, key, value in rows)
