# SPDX-License-Identifier: BSD-3-Clause
"""Metrics of a running engine: the numbers are those of the control socket, and Prometheus has no complaint."""
import json
import re
import shutil
import socket
import subprocess

import pytest

import frames
from conftest import MILLRACE, ROOT, SLOWER, run
from web import FLOWS, PASSES, Web, quiet_engine, samples

pytestmark = pytest.mark.usefixtures("simulated_nic")

PROMTOOL = shutil.which("promtool")
RULES = ROOT / "packaging" / "prometheus" / "millrace.rules.yml"
DASHBOARD = ROOT / "packaging" / "grafana" / "millrace.json"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@pytest.fixture(name="quiet")
def begin_quiet(started, tmp_path):
    return quiet_engine(started, tmp_path)


def test_same_as_the_control_socket(quiet):
    """Each number that both tell, by equality."""
    running, web = quiet
    told = samples(web.metrics())
    for wire in running.ask("wire show"):
        number = str(wire["wire"])
        for name, key in [("received_packets", "received"), ("received_bytes", "received_bytes"), ("non_ip_packets", "non_ip"),
                          ("out_packets", "out"), ("out_bytes", "out_bytes"), ("delivered_packets", "delivered"),
                          ("mirrored_packets", "mirrored"), ("nic_forwarded_packets", "nic_forwarded"),
                          ("nic_dropped_packets", "nic_dropped"), ("one_sided_packets", "one_sided")]:
            assert told[f"millrace_wire_{name}_total", "wire", number] == wire[key], name
        assert told["millrace_wire_held_packets", "wire", number] == wire["held"] == 0
        assert told["millrace_wire_flows", "wire", number] == wire["flows"] == FLOWS
    for drop in running.ask("drop show"):
        assert [told["millrace_wire_dropped_packets_total", "wire", str(wire), "reason", drop["reason"]]
                for wire in range(len(drop["wires"]))] == drop["wires"]
    assert told["millrace_wire_dropped_packets_total", "wire", "0", "reason", "rule"] == PASSES
    for port in running.ask("port show"):
        for key in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes"):
            assert told[f"millrace_port_{key}_total", "port", port["port"]] == port[key]
        assert told["millrace_port_mtu_bytes", "port", port["port"]] == port["mtu"]
        assert told["millrace_port_up", "port", port["port"]] == (port["link"] == "up")
        assert told["millrace_port_nic_rx_packets_total", "port", port["port"]] == port["nic"]["rx_packets"]
        assert told["millrace_port_nic_rx_missed_packets_total", "port", port["port"]] == port["nic"]["rx_missed"]
    for thread in running.ask("worker show"):
        for key in ("received", "out", "dropped", "handed_in", "handed_out"):
            assert told[f"millrace_thread_{key}_packets_total", "thread", thread["thread"]] == thread[key]
        number = str(thread["worker"])
        assert sum(told["millrace_flows", "worker", number, "state", state]
                   for state in ("new", "open", "closing")) == thread["flows"]
        assert told["millrace_flow_capacity", "worker", number] == thread["capacity"]
        assert sum(value for key, value in told.items() if key[:3] == ("millrace_flows_learned_total", "worker", number)
                   ) == thread["new_flows"]
        times = {state: told["millrace_thread_time_seconds_total", "thread", thread["thread"], "state", state]
                 for state in ("busy", "idle", "sleep")}
        assert times["busy"] > 0 and sum(times.values()) > 0
    for line in running.ask("offload show"):
        port = line["port"]
        assert told["millrace_offload_rules", "port", port] == line["rules"]
        assert told["millrace_offload_operations_total", "port", port, "operation", "insert", "result", "done"] == line["inserts"]
        assert told["millrace_offload_flows", "port", port, "state", "in_hw", "proven", "yes"] == line["flows"]["proven"]
        assert told["millrace_offload_breaker", "port", port, "state", line["health"]["state"]] == 1
        assert told["millrace_offload_slots", "wire", "0", "state", "used"] == line["slots_used"]
        for operation in ("wait", "insert", "remove", "counter"):
            assert told["millrace_offload_call_seconds_count", "port", port, "operation", operation] >= line[
                "latency"][operation]["times"] - 2
        assert told["millrace_offload_call_seconds_count", "port", port, "operation", "insert"] == line[
            "latency"]["insert"]["times"]
    assert told["millrace_rules",] == 1
    assert told["millrace_records_made_total",] == 0
    running.stop(leaves=["records.json"])


def test_records(started, tmp_path):
    """Records that flows have made are told as made and written."""
    frames.write(tmp_path / "some.pcap", *[frames.udp(0, "10.0.0.1", 1000 + i, "10.0.0.2", 53) for i in range(7)])
    running = started(f"capture={tmp_path / 'some.pcap'},passes=1", "--metrics", "127.0.0.1:0")
    web = Web(running)
    running.until(lambda: running.wire()["received"] == 7, "all packets")
    for i in range(7):
        running.ask("flow kill", src="10.0.0.1", sport=1000 + i, dst="10.0.0.2", dport=53, proto="udp")
    told = running.until(lambda: next((told for told in [samples(web.metrics())] if
                                       told["millrace_records_written_total",] == 7), None), "all are written")
    assert told["millrace_records_made_total",] == 7
    assert told["millrace_flows_ended_total", "worker", "0", "reason", "killed"] == 7
    assert {told["millrace_records_lost_total", "reason", why] for why in ("overflow", "write", "reader")} == {0}
    running.stop(leaves=["records.json"])


def test_formats(quiet):
    running, web = quiet
    status, headers, plain = web.fetch("/metrics")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    status, headers, opened = web.fetch("/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert (status, headers["Content-Type"]) == (200, OPENMETRICS)
    assert opened.endswith("\n# EOF\n") and "# EOF" not in plain
    # but for what goes on without packets, they say the same
    numbers = [{key: value for key, value in samples(text).items()
                if not re.search("_seconds|_idle_|_bursts_", key[0])} for text in (plain, opened)]
    assert numbers[0] == numbers[1]
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", opened, re.MULTILINE))
    units = dict(re.findall(r"^# UNIT (\w+) (\w+)$", opened, re.MULTILINE))
    assert types["millrace_build"] == "info" and types["millrace_wire_received_bytes"] == "counter"
    assert all(name in types and name.endswith("_" + unit) for name, unit in units.items())
    running.stop(leaves=["records.json"])


def test_questions(quiet):
    """The same lines as by the control socket; nothing that changes anything."""
    running, web = quiet
    for path, words in [("wire/show", {}), ("drop/show", {}), ("port/show", {}), ("config/show", {}), ("block/list", {}),
                        ("flow/list", {"top": 5, "by": "packets"}), ("flow/list", {"port": 1007, "proto": "udp"})]:
        assert web.query(path, **words) == running.ask(path.replace("/", " "), **words), path
    (flow,) = web.query("flow/explain", src="10.0.0.1", sport=1003, dst="10.0.0.2", dport=53, proto="udp")
    assert flow["packets"] == PASSES and len(flow["directions"]) == 2
    assert [rule["packets"] for rule in web.query("rule/list")] == [PASSES]
    for path in ("flow/kill", "flow/block", "rule/add", "rule/del", "event/follow"):
        assert web.fetch(f"/api/{path}?src=10.0.0.1&sport=1003&dst=10.0.0.2&dport=53&proto=udp")[0] == 404
    assert web.fetch("/metrics", method="POST")[0] == 405
    assert web.fetch("/metrics", Host="rebound.example")[0] == 403
    assert len(running.ask("flow list")) == FLOWS
    running.stop(leaves=["records.json"])


def test_at_a_unix_socket(started):
    running = started("source=none", "--metrics", "./http")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30 * SLOWER)
        connection.connect(str(running.directory / "http"))
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        with connection.makefile("rb") as answer:
            assert answer.read().startswith(b"HTTP/1.1 200 OK\r\n")
    assert (running.directory / "http").stat().st_mode & 0o777 == 0o600
    running.stop(leaves=["records.json"])


def test_off_unless_asked_for(started):
    """By the kernel's own list of sockets: it listens nowhere."""
    running = started("source=none")
    mine = {fd.readlink().name for fd in (running.proc / "fd").iterdir() if fd.is_symlink()}
    listening = [line.split()[9] for table in ("tcp", "tcp6") for line in (running.proc / "net" / table).read_text().splitlines()[1:]
                 if line.split()[3] == "0A"]
    assert not [inode for inode in listening if f"socket:[{inode}]" in mine]
    assert running.ask("config show")[0]["metrics"] == {"listen": None}
    running.stop(leaves=["records.json"])


def test_where_it_listens(started, tmp_path):
    """An address that is taken, and those that others can reach."""
    running = started("source=none", "--metrics", "0.0.0.0:0")
    told = running.until(lambda: re.search(r"metrics: http://0.0.0.0:(\d+)/metrics.*; whoever reaches", running.stderr), "told")
    with socket.create_connection(("127.0.0.1", int(told[1])), timeout=30 * SLOWER):
        pass
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        place = f"127.0.0.1:{other.getsockname()[1]}"
        done = run("run", "--wire", "a,b", "--socket", tmp_path / "s", "--metrics", place)
    assert (done.code, done.lines) == (1, [f"millrace: metrics: http://{place}: Address already in use"])
    for wrong in ("localhost:9180", "127.0.0.1:99999", ""):
        done = run("run", "--wire", "a,b", "--metrics", wrong)
        assert done.code == 2 and done.lines[0].startswith(f"millrace: --metrics {wrong}"), done.stderr
    running.stop(leaves=["records.json"])


@pytest.mark.skipif(not PROMTOOL, reason="no promtool (Debian package prometheus)")
def test_promtool(quiet):
    """Prometheus's own tool has no complaint about the metrics and the alerts."""
    running, web = quiet
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=web.metrics(), text=True, capture_output=True, check=False,
                          timeout=60 * SLOWER)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run([PROMTOOL, "check", "rules", RULES], text=True, capture_output=True, check=False, timeout=60 * SLOWER)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    running.stop(leaves=["records.json"])


def test_exports(started):
    """Each by its URL, with the numbers of export show, once nothing comes any more."""
    url = "ipfix+file:flows.ipfix?domain=7"
    running = started("flows=100", "--metrics", "127.0.0.1:0", "--active", 1, "--export", url)
    web = Web(running)

    def still():
        before, after = running.ask("export show"), running.ask("export show")
        return before if before == after and before[0]["written"] > 0 else None

    (export,) = running.until(still, "records, and then no more")
    told = samples(web.metrics())
    assert told["millrace_export_up", "export", url] == 1
    assert told["millrace_export_written_records_total", "export", url] >= export["written"]
    assert told["millrace_export_lost_records_total", "export", url] == 0
    assert told["millrace_export_records_total", "export", url] == (
        told["millrace_export_written_records_total", "export", url]
        + told["millrace_export_waiting_records", "export", url])
    running.stop(leaves=["records.json", "flows.ipfix"])


def test_alerts_and_dashboard_name_what_there_is(quiet):
    """Each metric in them is told by the engine, and each label value that they pick."""
    running, web = quiet
    # of what there is none here, as of exports, the head is told
    told = set(re.findall(r"^# TYPE (millrace_\w+)", web.metrics(), re.MULTILINE)) | {
        key[0] for key in samples(web.metrics())}
    board = json.loads(DASHBOARD.read_text())
    used = set(re.findall(r"millrace_\w+", "\n".join(
        target["expr"] for panel in board["panels"] for target in panel["targets"])))
    # rules by the form of Prometheus (level:metric:operation) are their own
    alerts = re.sub(r"\w+:millrace_\w+:\w+", "", RULES.read_text())
    used |= set(re.findall(r"\b(millrace_\w+)[{\[) ]", alerts))
    assert len(used) > 20 and used <= told, used - told
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    running.stop(leaves=["records.json"])


def test_crowd_of_clients(quiet):
    """A hundred connections that say nothing, or half of something: the control socket answers, and packets are counted."""
    running, web = quiet
    crowd = []
    try:
        for i in range(100):
            crowd.append(socket.create_connection((web.host, web.port), timeout=30 * SLOWER))
            crowd[-1].sendall(b"GET /metrics HTTP/1.1\r\n"[:i % 24])
        for _ in range(50):
            assert running.wire()["received"] == PASSES * FLOWS
    finally:
        for connection in crowd:
            connection.close()
    assert samples(web.metrics())["millrace_wire_received_packets_total", "wire", "0"] == PASSES * FLOWS
    running.stop(leaves=["records.json"])


def test_program_says_what_it_takes():
    done = subprocess.run([MILLRACE, "run", "--help"], capture_output=True, text=True, check=True, timeout=30 * SLOWER)
    assert "--metrics ADDRESS:PORT" in done.stdout
