# SPDX-License-Identifier: BSD-3-Clause
"""How an engine starts and ends where it has too little of something, and what it keeps; ports of net_null."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import threading

import pytest

import simulated
from conftest import MILLRACE, ROOT

UNIT = ROOT / "packaging" / "systemd" / "millrace.service"
PORTS = ["--port", "a=net_null0,copy=0", "--port", "b=net_null1,copy=0", "--wire", "a,b",
         "--offload", "off"]
LIMIT_S = 60
# linux/capability.h
CAP_SYS_ADMIN = 21


class Engine:
    """A running engine. `until` reads its lines up to one that has the text."""

    def __init__(self, directory, *args, limits=(), ports=PORTS, **more):
        def limit():
            for which, value in limits:
                resource.setrlimit(which, (value, value))

        self.socket = directory / "socket"
        # pylint: disable-next=subprocess-popen-preexec-fn
        self.process = subprocess.Popen(
            [MILLRACE, "run", *ports, "--socket", str(self.socket), *map(str, args)],
            stderr=subprocess.PIPE, text=True, preexec_fn=limit, **more)
        self.lines = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def until(self, text):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if text in line:
                return
        pytest.fail(f"no line with {text!r}: {self.lines}")

    def ready(self):
        self.until("; socket ")
        return self

    def ask(self, request):
        """The lines of an answer, but for the last one; its error if there is one."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LIMIT_S)
            client.connect(str(self.socket))
            with client.makefile("rw") as stream:
                stream.readline()
                stream.write(json.dumps(request) + "\n")
                stream.flush()
                lines = []
                for line in stream:
                    line = json.loads(line)
                    if "end" in line and "src" not in line:
                        return lines, line["error"]
                    lines.append(line)
        return lines, "the connection ended"

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        rest = self.process.communicate(timeout=LIMIT_S)[1]
        self.lines += rest.splitlines()
        return self.process.returncode


@pytest.mark.unsanitized
def test_a_signal_while_memory_is_taken(tmp_path):
    """The largest table takes half a minute; who is told to end meanwhile does so, and leaves nothing."""
    if int(re.search(r"MemAvailable: *(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) < 4 << 20:
        pytest.skip("less than 4 GB of memory are free")
    with Engine(tmp_path, "--flows", 67108864) as engine:
        smaps = pathlib.Path(f"/proc/{engine.process.pid}/status")
        while int(re.search(r"VmRSS:\s*(\d+)", smaps.read_text())[1]) < 400 << 10:
            assert engine.process.poll() is None
        assert engine.end() == 0
        assert engine.lines == ["millrace: it was told to end before it had started"]
        assert list(tmp_path.iterdir()) == []


@pytest.mark.unsanitized
def test_a_limit_of_file_sizes_kills_nobody(tmp_path):
    """EAL's memory file is larger than that: SIGXFSZ would end the engine without a word, its socket left."""
    with Engine(tmp_path, "--flows", 1000, limits=[(resource.RLIMIT_FSIZE, 1000000)]) as engine:
        try:
            engine.ready()
        finally:
            code = engine.end()
        assert code == 0
        assert not any(line.startswith("EAL:") for line in engine.lines)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.unsanitized
@pytest.mark.parametrize("megabytes", [100, 200, 400])
def test_too_little_memory_is_one_line(tmp_path, megabytes):
    limits = [(resource.RLIMIT_AS, megabytes * 1000000)]
    with Engine(tmp_path, "--flows", 1, limits=limits) as engine:
        lines = engine.process.communicate(timeout=LIMIT_S)[1].splitlines()
        assert engine.process.returncode == 1
        assert len(lines) == 1 and lines[0].startswith("millrace: "), lines
        assert "EAL:" not in lines[0]
        assert list(tmp_path.iterdir()) == []


@pytest.mark.unsanitized
@pytest.mark.parametrize("workers, said", [(1, "1 worker"), (2, "2 workers")])
def test_flows_that_have_no_room(tmp_path, workers, said):
    """Enough for DPDK, too little for the table."""
    limits = [(resource.RLIMIT_AS, 2000000000)]
    with Engine(tmp_path, "--flows", 67108864, "--workers", workers, limits=limits) as engine:
        lines = engine.process.communicate(timeout=LIMIT_S)[1].splitlines()
        assert engine.process.returncode == 1
        assert lines == [f"millrace: no memory for 67108864 flows and {said}"]


def test_records_are_not_for_everybody(tmp_path):
    with Engine(tmp_path, "--flows", 1000, "--output", tmp_path / "records", umask=0) as engine:
        engine.ready()
        assert stat.S_IMODE((tmp_path / "records").stat().st_mode) == 0o640
        assert engine.end() == 0


def threads(pid):
    """Of each thread: its name, and its effective, permitted and bounding capabilities."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        found[re.search(r"Name:\s*(.*)", text)[1]] = [
            int(re.search(rf"{name}:\s*([0-9a-f]+)", text)[1], 16)
            for name in ("CapEff", "CapPrm", "CapBnd")]
    return found


def test_threads_have_no_right_that_the_start_needed(tmp_path):
    own = threads(os.getpid())
    if not all(caps >> CAP_SYS_ADMIN & 1 for caps in next(iter(own.values()))):
        pytest.skip("this user has no CAP_SYS_ADMIN")
    with Engine(tmp_path, "--flows", 1000) as engine:
        engine.ready()
        found = threads(engine.process.pid)
        for name in ("millrace", "worker-0", "exporter"):
            assert not any(caps >> CAP_SYS_ADMIN & 1 for caps in found[name]), name
        assert engine.end() == 0


def most_memory(pid, anew=False):
    """The most that was resident, in kB; from now on, if so."""
    if anew:
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    return int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


@pytest.mark.unsanitized
@pytest.mark.usefixtures("simulated_nic")
def test_requests_take_no_memory(tmp_path):
    """Lists by rate and changes of all clients together: the memory for them was taken at the start."""
    requests = [{"ask": "flow list", "with": {"top": 10, "over_ms": 100}},
                {"ask": "offload events"}]
    with Engine(tmp_path, "--flows", 300000, "--offload", "off",
                ports=simulated.ports("flows=200000,rate=200000")) as engine:
        engine.ready()
        while engine.ask({"ask": "wire show"})[0][0]["flows"] < 200000:
            assert engine.process.poll() is None

        def ask_all(requests):
            results = []
            clients = [threading.Thread(target=lambda request=request: results.append(
                engine.ask(request))) for request in requests]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            return results

        # what a connection itself takes is there by then
        ask_all(8 * [{"ask": "flow list", "with": {"top": 10, "by": "bytes"}}])
        before = most_memory(engine.process.pid, anew=True)
        results = ask_all(4 * requests)
        assert {error for _, error in results} == {None}
        assert sorted(len(lines) for lines, _ in results) == 4 * [0] + 4 * [10]
        # a list by rate once took 2.4 MB of so many flows, and there were four at a time
        assert most_memory(engine.process.pid) - before < 4 << 10
        assert engine.end() == 0


def test_the_unit_starts_for_ever():
    """systemd gives up after five failures within ten seconds, unless it is told otherwise."""
    sections, section = {}, None
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(line)
    assert "StartLimitIntervalSec=0" in sections["Unit"]
    assert "Restart=on-failure" in sections["Service"]
    (after,) = [line for line in sections["Unit"] if line.startswith("After=")]
    assert "time-sync.target" in after.removeprefix("After=").split()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_the_unit_is_right(tmp_path):
    unit = tmp_path / "millrace.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/millrace", MILLRACE))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True,
                          text=True, timeout=LIMIT_S, check=False)
    assert not re.search(r"millrace\.service.*(Unknown|Failed to parse|ignoring)", done.stderr), done.stderr


@pytest.mark.parametrize("first, second", [(signal.SIGTERM, signal.SIGTERM),
                                           (signal.SIGINT, signal.SIGTERM)])
def test_signals_that_come_together_are_one(tmp_path, first, second):
    """As timeout(1) sends them, to its child and to the group: the engine ends as after one of them."""
    with Engine(tmp_path, "--flows", 1000) as engine:
        engine.ready()
        engine.process.send_signal(first)
        engine.process.send_signal(second)
        lines = engine.process.communicate(timeout=LIMIT_S)[1].splitlines()
        assert engine.process.returncode == 0
        assert " records" in lines[-1], lines


@pytest.mark.usefixtures("simulated_nic")
def test_a_reload_hides_no_trouble(tmp_path):
    """What is wrong before the service manager asked for a reload is wrong after it."""
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "manager"))
    manager.settimeout(LIMIT_S)

    def heard(text):
        while text not in (said := manager.recv(4096).decode()):
            pass
        return said

    ports = simulated.ports("flows=8,side=forward", "flows=8,side=reverse")
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "manager")}
    with manager, Engine(tmp_path, "--offload", "off", "--active", 1, "--output", "/dev/full",
                         ports=ports, env=environment) as engine:
        assert "READY=1" in heard("READY=1")
        heard("records are being lost")
        engine.process.send_signal(signal.SIGHUP)
        assert "RELOADING=1" in heard("RELOADING=1")
        assert "READY=1" in heard("READY=1")
        heard("records are being lost")
        engine.end()
