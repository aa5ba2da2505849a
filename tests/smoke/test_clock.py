# SPDX-License-Identifier: BSD-3-Clause
"""The machine's clock is set while the engine runs, as by NTP right after the boot."""
import datetime
import json
import subprocess
import time

import pytest

import traffic
from engine import read_records
from network import AF_PACKET
from test_records import end_flow

# Stands before libc's: the machine's clock is as many seconds ahead as a file says.
AHEAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	FILE *file;
	long ahead = 0;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (clock != CLOCK_REALTIME || !(file = fopen(getenv("CLOCK_AHEAD"), "re")))
		return real(clock, now);
	if (fscanf(file, "%ld", &ahead) != 1)
		ahead = 0;
	fclose(file);
	int ret = real(clock, now);
	now->tv_sec += ahead;
	return ret;
}
"""


@pytest.fixture(name="ahead")
def make_ahead(tmp_path):
    """ahead(SECONDS) sets the clock of whoever has its environment."""
    source, library, file = (tmp_path / name for name in ("ahead.c", "ahead.so", "ahead"))
    source.write_text(AHEAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)

    def ahead(seconds):
        fresh = tmp_path / "ahead.new"
        fresh.write_text(f"{seconds}\n")
        fresh.rename(file)  # whoever reads it sees the one or the other
    ahead.environment = {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(file)}
    return ahead


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.needs("cc")
@pytest.mark.parametrize("first, then", [(-3600, 0), (0, -86400), (-400 * 86400, 30)])
def test_the_clock_is_set(network, millrace, ahead, first, then):
    """From then on every record has the new time, begin and end alike; no flow ends of it, and none lives longer."""
    net = network(AF_PACKET)
    ahead(first)
    began = time.time()
    engine = millrace("--output", "records.json", "--timeout", "udp=3000", network=net,
                      environment=ahead.environment)
    records = engine.directory / "records.json"
    end_flow(engine, net, 7001)
    traffic.datagram(net.left, net.right, 100, port=7002)
    engine.until(lambda: b"7001" in records.read_bytes(), "the first record is written")
    ahead(then)
    way = "forward" if then > first else "back"
    engine.until(lambda: f"the machine's clock was set {way} by " in engine.stderr, "it is told", 5)
    told = engine.stderr.count("the machine's clock was set")
    end_flow(engine, net, 7003)
    (flow,) = engine.ask("flow list", port=7002)
    assert abs(seconds(flow["start"]) - then - began) < 30
    engine.stop(leaves=["records.json"])
    ended = time.time()
    assert engine.stderr.count("the machine's clock was set") == told == 1
    lines = {record["dport"]: record for record in read_records(records)}
    assert lines[7002]["end_reason"] == "shutdown"
    for port, is_ahead in ((7001, first), (7002, then), (7003, then)):
        start, end = (seconds(lines[port][key]) - is_ahead for key in ("start", "end"))
        assert began - 1 <= start <= end <= ended + 1, json.dumps(lines[port])
