# SPDX-License-Identifier: BSD-3-Clause
"""devtools/driver-headers: where DPDK's private headers come from, and which ones are refused.

Without the network: apt and its helper are small programs of the test's own, which write down what
they are asked for.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "devtools/driver-headers"
PLACES = ("drivers/bus/vdev", "lib/eal/include", "lib/ethdev", "lib/ethdev", "lib/ethdev",
          "lib/ethdev")
NAMES = ("bus_vdev_driver.h", "dev_driver.h", "ethdev_driver.h", "ethdev_vdev.h",
         "rte_flow_driver.h", "rte_mtr_driver.h")


def ask(*command):
    return subprocess.run(command, text=True, capture_output=True, check=False).stdout.strip()


VERSION = ask("pkg-config", "--modversion", "libdpdk")
RELEASE = ".".join(VERSION.split(".")[:2])
HEADERS = ask(SCRIPT, "--where")

pytestmark = pytest.mark.skipif(
    not HEADERS, reason="no driver headers here, or DPDK is installed with them")

# What apt and apt-cache say here, and what the former does for `source`.
APT = """#!/bin/sh
archive="http://archive.example/debian here/main"
echo "$(basename "$0") $*" >>"$ASKED"
case "$(basename "$0") $*" in
"apt-cache madison"*) echo "libdpdk-dev | $EXACT | $archive amd64 Packages" ;;
"apt-cache"*showsrc*) printf 'Version: %s\\n' $SOURCES ;;
"dpkg-query"*) echo "$EXACT" ;;
"apt-helper"*) for last; do :; done; cp "$TARBALL" "$last" ;;
"apt-get"*" source "*)
	for last; do :; done
	case " $HAD " in *" ${last#dpdk=} "*) cp "$TARBALL" dpdk_x.orig.tar.xz ;; *) exit 100 ;; esac ;;
esac
"""


class Tree:
    """A tree of DPDK's sources with nothing but these headers in it."""

    def __init__(self, path):
        self.path = path
        for place, name in zip(PLACES, NAMES):
            if (pathlib.Path(HEADERS) / name).exists():
                (path / place).mkdir(parents=True, exist_ok=True)
                shutil.copy(pathlib.Path(HEADERS) / name, path / place / name)
        (path / "VERSION").write_text(VERSION + "\n")

    def change(self, name, pattern, by):
        path = next(self.path.rglob(name))
        text, times = re.subn(pattern, by, path.read_text())
        assert times == 1
        path.write_text(text)

    def tarball(self):
        name = self.path.with_suffix(".tar.xz")
        subprocess.run(["tar", "-cJf", name, "-C", self.path.parent, self.path.name], check=True)
        return name


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path / "dpdk-source")


@pytest.fixture
def get(tmp_path, tree):
    """Runs the script with apt's stand-ins; tells its result, and what it asked apt for."""
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    for name in ("apt-get", "apt-cache", "apt-helper", "dpkg-query"):
        (stand_ins / name).write_text(APT)
        (stand_ins / name).chmod(0o755)

    def run(*arguments, exact=VERSION + "-1", sources=(), had=()):
        asked = tmp_path / "asked"
        asked.write_text("")
        env = dict(os.environ, PATH=f"{stand_ins}:{os.environ['PATH']}", ASKED=str(asked),
                   EXACT=exact, SOURCES="\n".join(sources), HAD=" ".join(had),
                   TARBALL=str(tree.tarball()))
        result = subprocess.run([SCRIPT, "--to", tmp_path / "to", *arguments], env=env, text=True,
                                capture_output=True, timeout=60, check=False)
        result.asked = asked.read_text().splitlines()
        result.tried = re.findall(r" source .*dpdk=(\S+)", asked.read_text())
        result.got = sorted(path.name for path in (tmp_path / "to").glob("*"))
        return result

    return run


def all_of(tree):
    return sorted(path.name for path in tree.path.rglob("*.h"))


def refused(result, *words):
    assert result.returncode == 1
    assert result.got == []
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_from_a_tree(get, tree):
    result = get("--dpdk-source", tree.path)
    assert result.returncode == 0, result.stderr
    assert result.got == all_of(tree)
    assert result.asked == []


def test_from_a_tarball(get, tree):
    result = get("--dpdk-source", tree.tarball())
    assert result.returncode == 0, result.stderr
    assert result.got == all_of(tree)


def test_from_a_directory_of_headers(get, tree):
    result = get("--dpdk-source", HEADERS)
    assert result.returncode == 0, result.stderr
    assert result.got == all_of(tree)


def test_a_header_is_missing(get, tree):
    next(tree.path.rglob("ethdev_vdev.h")).unlink()
    refused(get("--dpdk-source", tree.path), "there is no ethdev_vdev.h")


def test_of_another_release(get, tree):
    (tree.path / "VERSION").write_text("20.11.3\n")
    refused(get("--dpdk-source", tree.tarball()), "DPDK 20.11.3", VERSION)


def test_with_another_layout(get, tree):
    tree.change("ethdev_driver.h", r"\nstruct (\w+ )?rte_eth_dev \{", r"\g<0> char more[64];")
    refused(get("--dpdk-source", tree.path), "librte_ethdev.so", "array of ports")


def test_does_not_compile(get, tree):
    tree.change("ethdev_vdev.h", r"\n#include <rte_config.h>", "\n#include <rte_nowhere.h>")
    refused(get("--dpdk-source", tree.path), "do not compile", "rte_nowhere.h")


@pytest.mark.parametrize("name", ["/nowhere", "/etc/passwd", "/dev/null", "/usr/share"])
def test_no_source_at_all(get, name):
    refused(get("--dpdk-source", name), name)


def test_a_refused_source_leaves_what_was_there(get, tree):
    assert get("--dpdk-source", tree.path).returncode == 0
    (tree.path / "VERSION").write_text("20.11.3\n")
    assert get("--dpdk-source", tree.path).got == all_of(tree)


def test_nothing_is_asked_when_all_are_there(get, tree):
    assert get("--dpdk-source", tree.path).returncode == 0
    result = get()
    assert (result.returncode, result.stderr, result.asked) == (0, "", [])


def test_the_very_version_first(get, tree):
    exact, newer = f"{VERSION}-1", f"{RELEASE}.99-1"
    result = get(exact=exact, sources=[newer, exact, "20.11.3-1"], had=[newer, exact])
    assert result.returncode == 0, result.stderr
    assert result.tried == [exact]
    assert result.got == all_of(tree)


def test_then_any_of_the_release(get, tree):
    exact, newer, older = f"{VERSION}-1", f"{RELEASE}.99-1", f"{RELEASE}-1"
    result = get(exact=exact, sources=[older, "20.11.3-1", exact, newer, f"{RELEASE}9-1"],
                 had=[older, "20.11.3-1"])
    assert result.returncode == 0, result.stderr
    assert result.tried == [exact, newer, older]
    assert result.got == all_of(tree)


def test_a_known_tarball_by_its_checksum_only(get):
    # what is fetched would do, but is not what it should be
    result = get()
    assert result.returncode == 1
    assert result.got == []
    if f"\n\t\"{RELEASE} " in SCRIPT.read_text():
        assert any(re.match(rf"apt-helper .*{RELEASE}\.", line) for line in result.asked)
    assert "--dpdk-source" in result.stderr
    assert "ethdev_driver.h" in result.stderr


def test_a_failure_is_remembered_for_an_hour(get, tmp_path):
    assert get().asked
    result = get()
    assert result.returncode == 1
    assert result.asked == []
    assert len(result.stderr.splitlines()) == 1
    assert get("--again").asked
    failed = tmp_path / "to.failed"
    before = failed.stat().st_mtime - 3601
    os.utime(failed, (before, before))
    assert get().asked


def test_success_ends_what_was_remembered(get, tree, tmp_path):
    assert get().returncode == 1
    assert get("--dpdk-source", tree.path).returncode == 0
    assert not (tmp_path / "to.failed").exists()
