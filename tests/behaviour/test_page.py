# SPDX-License-Identifier: BSD-3-Clause
"""The page that the engine shows, in a real browser: its figures are those of the control socket."""
import os
import pathlib

import pytest

from browser import CHROMIUM, Browser
from web import FLOWS, PASSES, Web, quiet_engine

pytestmark = [pytest.mark.usefixtures("simulated_nic"),
              pytest.mark.skipif(not CHROMIUM, reason="no chromium (./dev setup page)")]

# Where whoever wants to look at them finds the pictures; else they are in the test's own directory.
PICTURES = os.environ.get("MILLRACE_PICTURES")
FIGURES = """[...document.querySelectorAll("#%s tr")].map((row) =>
    [row.cells[0].innerText, ...[...row.querySelectorAll("[data-exact]")].map((cell) => Number(cell.dataset.exact))])"""
SHOWN = 'document.querySelectorAll("#ports .card").length && document.querySelectorAll("#talkers a").length'


@pytest.fixture(name="browser")
def begin_browser(tmp_path):
    browser = Browser(tmp_path / "profile")
    yield browser
    browser.close()


@pytest.fixture(name="quiet")
def begin_quiet(started, tmp_path):
    return quiet_engine(started, tmp_path)


def test_figures(quiet, browser):
    """Each exact number on the page, by equality; and nothing on the console."""
    running, web = quiet
    browser.size(1280, 1000)
    browser.open(web.url)
    browser.until(SHOWN)
    assert browser.value(FIGURES % "drops") == [["rule", PASSES]]
    assert browser.value(FIGURES % "wires") == [
        [f"{wire['wire']}: {' – '.join(wire['ports'])}", wire["received"], wire["out"], wire["dropped"], wire["flows"]]
        for wire in running.ask("wire show")]
    assert browser.value(FIGURES % "threads") == [
        [line["thread"], line["received"], line["flows"], line["capacity"]] for line in running.ask("worker show")]
    ports = browser.value('[...document.querySelectorAll("#ports .card")].map((card) => '
                          '[card.dataset.port, Number(card.dataset.rx), Number(card.dataset.tx)])')
    assert ports == [[port["port"], port["rx_packets"], port["tx_packets"]] for port in running.ask("port show")]
    talkers = browser.value(FIGURES % "talkers")
    assert len(talkers) == 15 and {(row[-2], row[-1]) for row in talkers} <= {
        (flow["packets"] + flow["reverse_packets"], flow["bytes"] + flow["reverse_bytes"]) for flow in running.ask("flow list")}
    # of a moment that may lie two seconds back
    browser.until('[...document.querySelectorAll(".tile")].find((tile) => '
                  f'tile.innerText.includes("live flows")).firstChild.innerText === "{FLOWS}"')
    assert browser.complaints == []
    running.stop(leaves=["records.json"])


def test_ten_minutes_are_there_at_once(quiet, browser):
    """A page that is opened late shows what was before it."""
    running, web = quiet
    running.until(lambda: web.fetch("/api/history")[2].count("[") > 6, "some rows")
    browser.open(web.url)
    browser.until('document.querySelectorAll("#packets path").length === 3')
    # all packets came before the page did, and are in the picture as rates, unless the first row has them already
    points = browser.value('document.querySelector("#packets path").getAttribute("d").split("L").length')
    assert points > 2
    assert browser.complaints == []
    running.stop(leaves=["records.json"])


def test_explanation_on_a_click(quiet, browser):
    running, web = quiet
    browser.open(web.url)
    browser.until(SHOWN)
    assert not browser.value('document.getElementById("flow").open')
    browser.value('document.querySelector("#talkers a").click()')
    text = browser.until('document.querySelectorAll("#flow-text li").length > 3 && document.getElementById("flow").innerText')
    assert "10.0.0.1:" in text and "learned from a" in text and "worker " in text and "When it ends" in text
    browser.value('document.getElementById("close").click()')
    browser.until('!document.getElementById("flow").open && location.hash === ""')
    # a flow that has ended meanwhile is no fault of the page
    browser.value('location.hash = "#src=10.9.9.9&sport=1&dst=10.0.0.2&dport=53&proto=17&wire=0&zone=0"')
    browser.until('document.getElementById("flow-text").innerText === "no such flow"')
    assert browser.complaints == []
    running.stop(leaves=["records.json"])


def test_drops_of_cards(started, browser, tmp_path):
    """What a card drops alone stands among the drops, as wire show has it."""
    (tmp_path / "rules").write_text("flow create 0 ingress pattern ipv4 / end actions drop / end\n")
    running = started("flows=20,passes=400,pace=5000,side=forward", "--metrics", "127.0.0.1:0", "--rules", tmp_path / "rules")
    running.until(lambda: running.wire()["received"] + running.wire()["nic_dropped"] == 20 * 400, "all packets")
    wire = running.idle()
    assert wire["nic_dropped"] > 0
    browser.open(Web(running).url)
    browser.until(SHOWN.partition(" && ")[0])
    expected = [["in NIC", wire["nic_dropped"]], *([["rule", wire["dropped"]]] if wire["dropped"] else [])]
    assert sorted(browser.value(FIGURES % "drops")) == sorted(expected)
    assert browser.complaints == []
    running.stop(leaves=["records.json"])


def test_names_are_no_markup(started, browser):
    """Names of the configuration and words of the operator are shown as they are, whatever they are."""
    running = started("source=none", "--metrics", "127.0.0.1:0", "--port", "<img>=net_flowsim2,flows=3,side=forward,pace=1000",
                      "--port", "<u>&amp;=net_flowsim3,source=none", "--wire", "<img>,<u>&amp;")
    web = Web(running)
    flow = running.until(lambda: next(iter(running.ask("flow list")), None), "a flow")
    words = {key: flow[key] for key in ("src", "sport", "dst", "dport", "proto", "wire", "zone")}
    running.ask("flow block", reason="<script>alert(1)</script><b>", **words)
    running.until(lambda: "block" in running.ask("flow explain", **words)[0], "it is blocked")
    browser.open(web.url + "#" + "&".join(f"{key}={value}" for key, value in words.items()))
    browser.until(SHOWN)
    browser.until('document.getElementById("flow-text").innerText.includes("<script>alert(1)</script><b>")')
    assert browser.value('[...document.querySelectorAll("#ports b")].map((name) => name.innerText)') == ["a", "b", "<img>", "<u>&amp;"]
    assert browser.value('document.querySelectorAll("img, u, #flow b, main script").length') == 0
    assert browser.complaints == []
    running.stop(leaves=["records.json"], idle=False)


def test_complaints_are_heard(quiet, browser):
    """The tests above would notice: a script that the policy forbids, and an error that is thrown."""
    running, web = quiet
    browser.open(web.url)
    browser.until(SHOWN)
    browser.value('document.body.append(Object.assign(document.createElement("script"), {textContent: "window.evil = 1"}))')
    browser.until('document.querySelectorAll("body > script").length > 1')
    assert browser.value("window.evil") is None
    browser.value('setTimeout(() => { throw new Error("on purpose"); })')
    browser.value("new Promise((done) => setTimeout(done, 50))")
    told = "\n".join(browser.complaints)
    assert "Content Security Policy" in told and "on purpose" in told
    running.stop(leaves=["records.json"])


@pytest.mark.parametrize("name, width, height, dark", [
    ("desktop", 1280, 1000, False), ("phone", 390, 844, False), ("phone-dark", 390, 844, True), ("desktop-dark", 1280, 1000, True)])
def test_it_fits(quiet, browser, tmp_path, name, width, height, dark):
    """Nothing sticks out at the side, on a phone or a screen; what it is like is seen in the picture."""
    running, web = quiet
    browser.size(width, height, dark)
    browser.open(web.url)
    browser.until(SHOWN)
    browser.until('document.querySelectorAll("#packets path").length === 3')
    assert browser.value("document.documentElement.scrollWidth") <= width
    light = browser.value('getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)')
    assert (sum(light) < 3 * 100) == dark
    directory = pathlib.Path(PICTURES) if PICTURES else tmp_path
    browser.picture(directory / f"page-{name}.png")
    browser.value('document.querySelector("#talkers a").click()')
    browser.until('document.querySelectorAll("#flow-text li").length > 3')
    assert browser.value('document.getElementById("flow").getBoundingClientRect().width') <= width
    browser.picture(directory / f"page-{name}-flow.png")
    assert browser.complaints == []
    running.stop(leaves=["records.json"])
