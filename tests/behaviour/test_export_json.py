# SPDX-License-Identifier: BSD-3-Clause
"""Lines of JSON as exports: byte for byte what the output has, by each transport, and each at its own cost alone."""
import collections
import json
import os
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from conftest import MILLRACE, SLOWER, run
from exports import Collector, check
from mixture import make_mixture


@pytest.fixture(name="mixture")
def mixture_of_frames(tmp_path):
    return make_mixture(tmp_path)[0]


def replayed(tmp_path, capture, *urls):
    """The lines of the output of a replay with these exports, and what it said."""
    output = tmp_path / "flows.json"
    words = [word for url in urls for word in ("--export", url)]
    done = run("replay", *words, "--output", output, capture)
    assert done.code == 0, done.stderr
    return output.read_bytes().splitlines(keepends=True), done


def test_a_file_and_standard_output(tmp_path, mixture):
    path = tmp_path / "more.json"
    path.write_text("it is emptied first\n", encoding="utf-8")
    lines, done = replayed(tmp_path, mixture, f"json+file:{path}", f"json+file:{tmp_path}/tcp.json?proto=tcp",
                           "json+file:-")
    assert path.read_bytes() == b"".join(lines) == done.stdout
    assert (tmp_path / "tcp.json").read_bytes() == b"".join(line for line in lines if b'"proto":6,' in line)
    assert f"{len(lines)} records sent" in done.stderr


def test_a_fifo(tmp_path, mixture):
    """A replay waits for its reader."""
    path, got = tmp_path / "fifo", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    with subprocess.Popen([MILLRACE, "replay", "--export", f"json+file:{path}", "--output", tmp_path / "flows.json",
                           mixture], stderr=subprocess.DEVNULL) as process:
        reader.start()
        assert process.wait(60 * SLOWER) == 0
    reader.join()
    assert got == [(tmp_path / "flows.json").read_bytes()]


def test_udp_has_one_in_each_datagram(tmp_path, mixture):
    collector = Collector(lines=True)
    lines, _ = replayed(tmp_path, mixture, f"json+udp://127.0.0.1:{collector.port}")
    got = collector.stop()
    assert got.lines() == lines and got.lengths == [len(line) for line in lines]


def test_tcp(tmp_path, captures):
    collector = Collector(socket.SOCK_STREAM, lines=True)
    lines, _ = replayed(tmp_path, captures / "zeek-echo-connections.pcap", f"json+tcp://127.0.0.1:{collector.port}")
    assert collector.stop().lines() == lines and len(lines) == 500


def test_tls(tmp_path, mixture):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    collector = Collector(socket.SOCK_STREAM, context=context, lines=True)
    lines, _ = replayed(tmp_path, mixture,
                        f"json+tls://127.0.0.1:{collector.port}?ca={certificate}&name=localhost")
    assert collector.stop().lines() == lines


def test_names_of_captures_are_told(tmp_path, mixture):
    """As the output has them, where there is more than one."""
    path, output = tmp_path / "more.json", tmp_path / "flows.json"
    done = run("replay", "--export", f"json+file:{path}", "--output", output, mixture, mixture)
    assert done.code == 0 and path.read_bytes() == output.read_bytes()
    assert all("file" in json.loads(line) for line in path.read_text().splitlines())


@pytest.mark.parametrize("url, why", [
    ("json+tcp://127.0.0.1", "a port is needed"),
    ("json+udp://127.0.0.1:9?domain=7", "no use for it"),
    ("json+udp://127.0.0.1:9?mtu=576", "no use for it"),
    ("json+file:", "a file"),
    ("json:flows.json", "begins with"),
    ("kafka://127.0.0.1", "a topic is needed"),
    ("kafka://127.0.0.1/", "a topic has"),
    ("kafka://127.0.0.1/one/two", "a topic has"),
    ("kafka:///flows", "a broker is needed"),
    ("kafka://127.0.0.1,/flows", "a broker is needed"),
    ("kafka://127.0.0.1,::1/flows", "in brackets"),
    ("kafka://127.0.0.1:0/flows", "from 1 to 65535"),
    ("kafka://127.0.0.1/flows?biflow=yes", "no use for it"),
    ("kafka://127.0.0.1/flows?ca=/etc/hostname", "no use for it"),
    ("kafka+tls://127.0.0.1/flows?name=broker", "no use for it"),
])
def test_a_wrong_url_is_told(mixture, url, why):
    done = run("replay", "--export", url, mixture)
    assert done.code == 2 and why in done.stderr, done.stderr


def test_a_wrong_authority_is_told(mixture):
    done = run("replay", "--export", "kafka+tls://127.0.0.1/flows?ca=/nowhere.pem", mixture)
    assert done.code == 1 and "/nowhere.pem: not to be used for TLS: No such file or directory" in done.stderr


def records_of(running):
    return (running.directory / "records.json").read_bytes().splitlines(keepends=True)


@pytest.mark.usefixtures("simulated_nic")
@pytest.mark.parametrize("workers", [1, 2])
def test_all_get_all(started, workers):
    udp, tcp = Collector(lines=True), Collector(socket.SOCK_STREAM, lines=True)
    running = started("flows=500,proto=mix,pace=20000", "--workers", workers, "--active", 1,
                      "--export", f"json+udp://127.0.0.1:{udp.port}",
                      "--export", f"json+tcp://127.0.0.1:{tcp.port}", "--export", "json+file:more.json")
    running.until(lambda: udp.decoder.count > 1200, "many reports")
    shown = running.ask("export show")
    assert [(export["format"], export["transport"]) for export in shown] == [
        ("json", "udp"), ("json", "tcp"), ("json", "file")]
    assert not any(export["lost"] for export in shown)
    running.stop(leaves=["records.json", "more.json"])
    lines = records_of(running)
    assert (running.directory / "more.json").read_bytes().splitlines(keepends=True) == lines
    assert udp.stop().lines() == tcp.stop().lines() == lines


@pytest.mark.usefixtures("simulated_nic")
def test_an_output_that_nobody_reads_costs_exports_nothing(started, tmp_path):
    """Its reader takes nothing: its records are lost, in the end, and all others get all."""
    fifo = tmp_path / "output"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    udp, tcp = Collector(), Collector(socket.SOCK_STREAM, lines=True)
    running = started("flows=2000,proto=mix,pace=20000", "--active", 1, "--output", fifo,
                      "--export", f"ipfix://127.0.0.1:{udp.port}",
                      "--export", f"json+tcp://127.0.0.1:{tcp.port}")
    running.until(lambda: "takes none" in running.stderr, "it is told")
    before = tcp.decoder.count
    running.until(lambda: tcp.decoder.count > before + 4000, "many more reports", timeout=60)
    shown = running.ask("export show")
    assert not any(export["lost"] for export in shown), shown
    running.stop(code=1)
    os.close(reader)
    records = [json.loads(line) for line in tcp.stop().lines()]
    assert "no reader, or a slow one" in running.stderr and "no room to wait" not in running.stderr
    check(udp.stop(), records)


@pytest.mark.usefixtures("simulated_nic")
def test_readers_of_a_fifo_come_and_go(started, tmp_path):
    """Each begins with a whole line; what none of them was given is in no other one's part."""
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    running = started("flows=300,proto=mix,pace=20000", "--active", 1, "--export", f"json+file:{fifo}?queue=1048576")
    running.until(lambda: running.ask("export show")[0]["waiting"] > 0, "nobody reads, and records wait")
    assert not running.ask("export show")[0]["up"]
    for _ in range(3):
        with open(fifo, "rb", buffering=0) as reader:
            data = b""
            while data.count(b"\n") < 50:
                data += reader.read(100000)
            got.append(data)
        running.until(lambda: not running.ask("export show")[0]["up"], "it has gone")
    running.stop(code=1, leaves=["records.json"])
    known = collections.Counter(records_of(running))
    for data in got:
        told = collections.Counter(data.splitlines(keepends=True)[:-1])
        assert told and told <= known
        known -= told


@pytest.mark.usefixtures("simulated_nic")
def test_a_reader_of_a_fifo_takes_over_at_once(started, tmp_path):
    """Before it is seen that the one before has gone: what waits in the pipe begins with a whole line as well."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    running = started("flows=300,proto=mix,pace=20000", "--active", 1, "--export", f"json+file:{fifo}?queue=1048576")
    for _ in range(30):
        with open(fifo, "rb", buffering=0) as reader:
            data = reader.read(100000)
        assert data.startswith(b"{"), data[:100]
        assert data.endswith(b"}\n"), data[-100:]
    running.stop(code=1, leaves=["records.json"])


@pytest.mark.usefixtures("simulated_nic")
def test_a_file_is_opened_anew(started):
    running = started("flows=300,proto=mix,pace=20000", "--active", 1, "--export", "json+file:more.json")
    path, old = running.directory / "more.json", running.directory / "old.json"
    running.until(lambda: path.stat().st_size > 20000, "something is written")
    path.rename(old)
    running.send_signal(signal.SIGHUP)
    running.until(lambda: path.exists() and path.stat().st_size > 20000, "and something more")
    running.stop(leaves=["records.json", "more.json", "old.json"])
    parts = old.read_bytes(), path.read_bytes()
    assert all(part.endswith(b"\n") for part in parts)
    assert b"".join(parts).splitlines(keepends=True) == records_of(running)


@pytest.mark.usefixtures("simulated_nic")
def test_a_reader_that_comes_back_gets_whole_lines(started):
    """A connection that breaks in the midst of a line: the next one begins with that line, whole."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = started("flows=2000,proto=mix,pace=50000", "--active", 1,
                          "--export", f"json+tcp://127.0.0.1:{listener.getsockname()[1]}?queue=67108864")
        listener.settimeout(30 * SLOWER)
        connection, got = listener.accept()[0], [b"", b""]
        while got[0].count(b"\n") < 1000:
            got[0] += connection.recv(1001)
        connection.close()
        connection = listener.accept()[0]
        rest = threading.Thread(target=read_all, args=(connection, got))
        rest.start()
        running.until(lambda: got[-1].count(b"\n") > 1000, "and more")
        running.stop(leaves=["records.json"])
        rest.join()
    assert got[1].endswith(b"\n")
    told = collections.Counter(got[0].splitlines(keepends=True)[:-1] + got[1].splitlines(keepends=True))
    assert told <= collections.Counter(records_of(running)), "whole lines, none twice"


def read_all(connection, got):
    with connection:
        while data := connection.recv(65536):
            got[-1] += data
