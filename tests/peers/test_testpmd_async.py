# SPDX-License-Identifier: BSD-3-Clause
"""Rules by templates and queues, by testpmd's own commands."""
import re
import time

import pytest
from testpmd import marks

pytestmark = pytest.mark.needs("driver", "dpdk-testpmd")


def pulled(program, want, queue=0):
    """Pulls until so many operations are done: how many have failed."""
    done = [0, 0]

    def look():
        found = re.search(r"pulled (\d+) operations \((\d+) failed, (\d+) succeeded\)",
                          program.run(f"flow pull 0 queue {queue}"))
        done[0] += int(found[1])
        done[1] += int(found[2])
        return done[0] >= want
    program.until(look, f"{want} operations done")
    assert done[0] == want
    return done[1]


def prepare(program):
    """Two queues, and a table of rules that mark UDP by source port."""
    program.run("port stop 0")
    program.does("flow configure 0 queues_number 2 queues_size 64 counters_number 8", "queues 2")
    program.run("port start 0")
    for line in ("pattern_template 0 create ingress pattern_template_id 1 template "
                 "eth / ipv4 / udp src mask 0x0003 / end",
                 "actions_template 0 create ingress actions_template_id 1 template "
                 "mark / count / queue / end mask mark / count / queue / end",
                 "template_table 0 create table_id 1 group 0 priority 0 ingress rules_number 100 "
                 "pattern_template 1 actions_template 1"):
        program.does(f"flow {line}", "created")


def enqueue(program, number, postpone="no"):
    program.does("flow queue 0 create 0 template_table 1 pattern_template 0 actions_template 0 "
                 f"postpone {postpone} pattern eth / ipv4 / udp src is {number} / end "
                 f"actions mark id {0x100 + number} / count / queue index 0 / end", "enqueued")


def test_templates_and_queues(testpmd):
    program = testpmd("net_flowsim0,flows=32,passes=20,hostile=0")
    program.verbose()
    program.does("flow info 0", "Number of queues")
    prepare(program)
    for number in range(4):
        enqueue(program, number, "yes")
    program.does("flow push 0 queue 0", "pushed")
    assert pulled(program, 4) == 0
    assert program.xstats()["flow_rules"] == 4
    printed = marks(program.received(32 * 20))
    assert sum(printed.values()) == program.xstats()["rx_marked"] == 32 * 20
    assert set(printed) <= {0x100, 0x101, 0x102, 0x103} and len(printed) > 1
    assert [program.counted(number)[0] for number in range(4)] == [
        printed.get(0x100 + number, 0) for number in range(4)]
    program.does("flow queue 0 destroy 0 postpone no rule 0 rule 1 rule 2 rule 3", "enqueued")
    program.does("flow push 0 queue 0", "pushed")
    assert pulled(program, 4) == 0
    assert program.xstats()["flow_rules"] == 0
    for line in ("template_table 0 destroy table 1", "pattern_template 0 destroy pattern_template 1",
                 "actions_template 0 destroy actions_template 1"):
        program.does(f"flow {line}", "destroyed")


def test_indirect_actions_by_a_queue(testpmd):
    program = testpmd("net_flowsim0,source=none,hostile=0")
    prepare(program)
    program.does("flow queue 0 indirect_action 1 create action_id 9 ingress postpone no "
                 "action count / end", "queued")
    program.does("flow push 0 queue 1", "pushed")
    assert pulled(program, 1, queue=1) == 0
    program.does("flow indirect_action 0 query 9", "hits: 0")
    program.does("flow queue 0 indirect_action 1 destroy postpone no action_id 9", "queued")
    program.does("flow push 0 queue 1", "pushed")
    assert pulled(program, 1, queue=1) == 0


def test_a_nic_of_queues_has_no_blocking_calls(testpmd):
    program = testpmd("net_flowsim0,profile=cx6-hws,hostile=0")
    program.does("flow create 0 ingress pattern eth / end actions drop / end", "not implemented")
    prepare(program)
    enqueue(program, 1)
    program.does("flow push 0 queue 0", "pushed")
    assert pulled(program, 1) == 0


@pytest.fixture(name="with_fault", params=("devarg", "telemetry"))
def make_with_fault(request, testpmd):
    """with_fault("drop_completion:every=3"): a testpmd with its table and that fault."""
    def make(text):
        how = request.param
        program = testpmd("net_flowsim0,source=none,hostile=0" + (f",fault={text}" if how == "devarg" else ""))
        prepare(program)
        if how == "telemetry":
            assert "error" not in program.telemetry(f"/flowsim/fault,0:{text}")
        return program
    return make


def test_every_third_completion_is_dropped(with_fault):
    program = with_fault("drop_completion:every=3")
    for number in range(9):
        enqueue(program, number % 4)
    program.does("flow push 0 queue 0", "pushed")
    assert pulled(program, 6) == 0
    program.until(lambda: program.telemetry("/flowsim/faults,0")["drop_completion"]["chances"] == 9, "done")
    program.does("flow pull 0 queue 0", "pulled 0 operations")
    assert program.telemetry("/flowsim/faults,0")["drop_completion"]["strikes"] == 3
    assert program.xstats()["flow_rules"] == 9


def test_every_second_queued_creation_fails(with_fault):
    program = with_fault("fail:every=2:op=create:errno=ENOSPC")
    for number in range(8):
        enqueue(program, number % 4)
    program.does("flow push 0 queue 0", "pushed")
    assert pulled(program, 8) == 4
    assert program.telemetry("/flowsim/faults,0")["fail"]["strikes"] == 4


def test_every_second_completion_is_late(with_fault):
    program = with_fault("late:every=2:ms=60")
    for number in range(4):
        enqueue(program, number, "yes")
    begin = time.monotonic()
    program.does("flow push 0 queue 0", "pushed")
    assert pulled(program, 4) == 0
    assert time.monotonic() - begin >= 0.06
    assert program.telemetry("/flowsim/faults,0")["late"]["strikes"] == 2 == program.xstats()["flow_late"]
