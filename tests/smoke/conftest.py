# SPDX-License-Identifier: BSD-3-Clause
"""What this machine has, and the engines and networks of a test: all closed when it ends."""
import contextlib
import functools
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import simd as simd_levels  # noqa: E402
from capture import Capture  # noqa: E402
from engine import MILLRACE, Gone, Millrace  # noqa: E402
from network import AF_PACKET, AF_XDP, Namespace, Network  # noqa: E402

# Programs that a test may need, and who has them.
PROGRAMS = {"ip": "iproute2", "ping": "iputils-ping", "ethtool": "ethtool", "iperf3": "iperf3",
            "curl": "curl", "tcpdump": "tcpdump", "setpriv": "util-linux",
            "nft": "nftables", "prometheus": "prometheus", "nmap": "nmap", "dnsmasq": "dnsmasq-base"}


def lacks_namespaces():
    """Making namespaces, links in them, and looking at these takes privileges."""
    for program in ("ip", "ethtool"):
        if not shutil.which(program):
            return f"no {program} here (Debian: {PROGRAMS[program]})"
    try:
        space = Namespace("probe")
    except OSError as error:
        return f"no network namespaces here: {error.strerror}"
    with contextlib.closing(space):
        try:
            space.ip("link add va type veth peer name vb")
        except AssertionError as error:
            return f"no veth pairs here: {error}"
    return None


def lacks_tap():
    if lacks_namespaces():
        return lacks_namespaces()
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}"
    return None


def lacks_xdp():
    """The engine itself knows best whether af_xdp would work: it says why not."""
    if lacks_namespaces():
        return lacks_namespaces()
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(contextlib.closing(Network(AF_XDP)))
        directory = stack.enter_context(temporary_directory())
        engine = Millrace(directory, network=network, wait=False)
        stack.callback(engine.kill)
        try:
            engine.until(engine.answers, "the socket answers")
        except Gone as error:
            return f"no engine: {error}"
        if all(port["driver"] == "net_af_xdp" for port in engine.ports().values()):
            return None
        said = engine.stderr.partition("not af_xdp: ")[2].partition(")")[0]
        return f"no af_xdp here: {said}"


@contextlib.contextmanager
def temporary_directory():
    import tempfile  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory(prefix="millrace-smoke-") as name:
        yield name


@functools.cache
def lacks(what):
    """Why a test that needs `what` cannot run here; None when it can."""
    special = {"namespaces": lacks_namespaces, "tap": lacks_tap, "af_xdp": lacks_xdp,
               "af_packet": lacks_namespaces, "root": lacks_root, "tcpdump": lacks_tcpdump, "mount": lacks_mount}
    if what in special:
        return special[what]()
    return None if shutil.which(what) else f"no {what} here (Debian: {PROGRAMS[what]})"


def lacks_tcpdump():
    """It gives up privileges before it begins, which not everywhere is possible."""
    if lacks_namespaces() or not shutil.which("tcpdump"):
        return lacks_namespaces() or f"not here (Debian: {PROGRAMS['tcpdump']})"
    with contextlib.closing(Network(AF_PACKET)) as network, temporary_directory() as directory:
        try:
            Capture(network.left, f"{directory}/probe.pcap").close()
        except AssertionError as error:
            return str(error)
    return None


def lacks_root():
    """To become somebody else one has to be somebody."""
    if os.geteuid() != 0:
        return "not root"
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "true"], check=False,
                          capture_output=True)
    return None if done.returncode == 0 else "this root may not become another user"


def lacks_mount():
    done = subprocess.run(["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"],
                          check=False, capture_output=True, text=True)
    return None if done.returncode == 0 else f"nothing can be mounted here: {done.stderr.strip()}"


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(name...): skipped by name where one is not there")


def pytest_collection_modifyitems(items):
    """Nothing here is worth running without the program: say so once, clearly."""
    if items and not os.access(MILLRACE, os.X_OK):
        pytest.exit(f"no program at {MILLRACE}: ./dev build makes it", returncode=2)


def pytest_terminal_summary(terminalreporter):
    """What was not tried, test by test, and why."""
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        terminalreporter.write_line(f"SKIPPED {report.nodeid}: {reason}")


def skip_without(*names):
    for name in names:
        why = lacks(name)
        if why:
            pytest.skip(f"needs {name}: {why}")


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs"):
        skip_without(*marker.args)


@pytest.fixture(name="network")
def make_network():
    """network(driver, option...): a Network, where this machine can have it."""
    with contextlib.ExitStack() as stack:
        def make(driver, **options):
            skip_without("namespaces", driver)
            made = stack.enter_context(contextlib.closing(Network(driver, **options)))
            stack.callback(describe, made)
            return made
        yield make


def describe(network):
    """What the kernel counted; shown when the test has failed."""
    for space in (network.left.space, network.middle, network.right.space):
        print(space.name, space.run("ip", "-s", "-s", "link", check=False).stdout)


@pytest.fixture(params=simd_levels.LEVELS)
def simd(request, monkeypatch):
    """A SIMD level, each in turn: engines of the test run under it."""
    simd_levels.force(MILLRACE, request.param, monkeypatch)
    return request.param


@pytest.fixture(name="millrace")
def make_millrace(tmp_path, network):  # pylint: disable=unused-argument
    """millrace(argument..., network=): a Millrace that answers. Gone before the network is."""
    with contextlib.ExitStack() as stack:
        def make(*arguments, directory="run", **options):
            engine = Millrace.__new__(Millrace)
            stack.callback(kill, engine)
            engine.__init__(tmp_path / directory, *arguments, **options)
            return engine
        yield make


def kill(engine):
    if hasattr(engine, "pidfd"):
        with contextlib.suppress(Exception):
            engine.describe()
        engine.kill()


@pytest.fixture(name="captures")
def make_captures(tmp_path):
    """captures(network): one at each end, listening."""
    with contextlib.ExitStack() as stack:
        def make(network):
            skip_without("tcpdump")
            return [stack.enter_context(contextlib.closing(
                Capture(end, tmp_path / f"{end.space.name}.pcap"))) for end in network.ends]
        yield make
