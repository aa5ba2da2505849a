# SPDX-License-Identifier: BSD-3-Clause
"""docs/offload.md and docs/control.md have every word that the engine says of offload, and no other."""
import re

from conftest import ROOT

OFFLOAD = (ROOT / "docs" / "offload.md").read_text()
CONTROL = (ROOT / "docs" / "control.md").read_text()


def source(name):
    return (ROOT / "src" / "offload" / name).read_text()


def section(text, title):
    """What stands below a title, up to the next one."""
    return re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", text, re.M | re.S)[1]


def rows(text, title):
    """The first cells of the table in a section."""
    return re.findall(r"^\| `([a-z_]+)`", section(text, title), re.M)


def test_reasons():
    names = re.findall(r"\bX\([A-Z_]+, ([a-z_]+),", source("reason.h"))
    assert len(names) == 32
    assert rows(OFFLOAD, "Reasons") == [*names, "refused"]


def test_states():
    names = re.findall(r"\[OFFLOAD_[A-Z_]+\] = \"([a-z_]+)\"", source("state.c"))
    assert len(names) == 8
    assert sorted(rows(OFFLOAD, "States")) == sorted(set(names))


def test_events():
    names = re.findall(r"\[CHANGE_[A-Z_]+\] = \"([a-z_]+)\"", source("change.c"))
    told = section(CONTROL, "offload events")
    assert len(names) == 15
    for name in names:
        assert f"`{name}`" in told, name


def test_breaker():
    names = re.findall(r"\[HEALTH_[A-Z_]+\] = \"([a-z]+)\"", source("health.c"))
    assert len(names) == 3
    for name in names:
        assert f"**{name}**" in section(OFFLOAD, "The breaker"), name
        assert f"`{name}`" in section(CONTROL, "offload show"), name
