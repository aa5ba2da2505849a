# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others that the simulated NIC is loaded into; skipped by name where one is not there."""
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# the namespaces are those of the smoke tests
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("peers", "smoke", "")]
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from guest import lacks_guest  # noqa: E402
from network import Namespace  # noqa: E402
from ovs import lacks_hugepages, lacks_ovs  # noqa: E402
from testpmd import Testpmd, lacks_driver  # noqa: E402

PROGRAMS = {"dpdk-testpmd": "dpdk-dev", "iperf3": "iperf3", "ethtool": "ethtool",
            "ip": "iproute2", "ping": "iputils-ping"}


def lacks_namespaces():
    """Privileges, and veth."""
    try:
        with contextlib.closing(Namespace("probe")) as space:
            space.ip("link add va type veth peer name vb")
    except (OSError, AssertionError) as error:
        return f"no veth pairs in namespaces here: {error}"
    return None


def lacks_root():
    """A user namespace's root is not enough for Open vSwitch's rings of af_packet."""
    return None if os.geteuid() == 0 else "not root"


def lacks_processors():
    return None if len(os.sched_getaffinity(0)) > 1 else "one for what is measured, one for all else"


def lacks(what):
    """Why a test that needs `what` cannot run here; None when it can."""
    special = {"driver": lacks_driver, "namespaces": lacks_namespaces, "ovs": lacks_ovs,
               "hugepages": lacks_hugepages, "root": lacks_root, "guest": lacks_guest,
               "two processors": lacks_processors}
    if what in special:
        return special[what]()
    return None if shutil.which(what) else f"not here (Debian: {PROGRAMS[what]})"


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(name...): skipped by name where one is not there")


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            why = lacks(name)
            if why:
                pytest.skip(f"needs {name}: {why}")


def pytest_terminal_summary(terminalreporter):
    """What was not tried, test by test, and why."""
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        terminalreporter.write_line(f"SKIPPED {report.nodeid}: {reason}")


@pytest.fixture(name="directory")
def make_directory():
    """Gone with the test; its name is short, since sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="millrace-peers-") as name:
        yield pathlib.Path(name)


@pytest.fixture(name="testpmd")
def make_testpmd(directory):
    """testpmd(device...): a Testpmd at its prompt. At the end of the test it has to end well."""
    with contextlib.ExitStack() as stack:
        made = []

        def make(*devices, space=None, **options):
            runtime = directory / f"testpmd{len(made)}"
            runtime.mkdir(mode=0o700)
            program = Testpmd.__new__(Testpmd)
            stack.callback(lambda: hasattr(program, "process") and program.kill())
            with space.entered() if space else contextlib.nullcontext():
                program.__init__(runtime, *devices, **options)
            made.append(program)
            return program
        yield make
        for program in made:
            assert program.close() == 0, program.said[-2000:]
