# SPDX-License-Identifier: BSD-3-Clause
"""Faults, by device argument and by telemetry: each strikes exactly as often as it was told.

Those of completions are in test_testpmd_async.py.
"""
import time

import pytest
from testpmd import marks

pytestmark = pytest.mark.needs("driver", "dpdk-testpmd")

UDP = "ingress pattern eth / ipv4 / udp / end"
RULE = f"flow create 0 {UDP} actions mark id 8 / queue index 0 / count / end"
DEVICE = "net_flowsim0,flows=16,passes=20,hostile=0"
PACKETS = 16 * 20


def numbered(number):
    return f"flow create 0 priority {number} {UDP} actions mark id {number} / queue index 0 / count / end"


def struck(program, name):
    """(chances, strikes) of a fault, as the driver tells."""
    told = program.telemetry("/flowsim/faults,0")[name]
    return told["chances"], told["strikes"]


def timed(program, command):
    begin = time.monotonic()
    program.run(command)
    return time.monotonic() - begin


@pytest.fixture(name="with_fault", params=("devarg", "telemetry"))
def make_with_fault(request, testpmd):
    """with_fault("lose:every=3"): a testpmd over 16 streams of 20 packets, with that fault."""
    def make(text):
        if request.param == "devarg":
            program = testpmd(f"{DEVICE},fault={text}")
        else:
            program = testpmd(DEVICE)
            answer = program.telemetry(f"/flowsim/fault,0:{text}")
            assert "error" not in answer, answer
        program.verbose()
        return program
    return make


def test_it_stops_marking_and_counts_on(with_fault):
    program = with_fault("stop_mark:after=100")
    rule = program.created(RULE)
    assert marks(program.received(PACKETS)) == {8: 100}
    assert program.xstats()["rx_marked"] == 100
    assert program.counted(rule)[0] == PACKETS
    assert struck(program, "stop_mark") == (PACKETS, PACKETS - 100)


def test_it_stops_marking_one_flow(with_fault):
    program = with_fault("stop_mark:mark=9:after=10")
    program.created(RULE.replace("0 ingress", "0 priority 1 ingress"))
    program.created("flow create 0 ingress pattern ipv4 / udp src spec 0 src mask 1 / end "
                    "actions mark id 9 / queue index 0 / count / end")
    found = marks(program.received(PACKETS))
    nine, eight = program.counted(1)[0], program.counted(0)[0]
    assert found == {8: eight, 9: 10} and nine + eight == PACKETS
    assert struck(program, "stop_mark") == (nine, nine - 10)


def test_wrong_marks(with_fault):
    program = with_fault("wrong_mark:every=3:value=3")
    program.created(RULE)
    assert marks(program.received(PACKETS)) == {8: PACKETS - 106, 8 ^ 3: 106}
    assert struck(program, "wrong_mark") == (PACKETS, 106)


def test_every_third_rule_is_lost(with_fault):
    program = with_fault("lose:every=3")
    for number in range(9):
        program.created(numbered(number))
    assert struck(program, "lose") == (9, 3)
    assert program.xstats()["flow_lost"] == 3
    assert program.telemetry("/flowsim/rules,0")["lost"] == 3
    for there in (0, 1, 3, 4, 6, 7):
        program.does(f"flow destroy 0 rule {there}", "destroyed")
    # three rules are there, says testpmd; none of them is
    assert marks(program.received(PACKETS)) == {}
    for lost in (2, 5, 8):
        assert program.counted(lost) == [0, 0]


@pytest.mark.parametrize("text,errors", (("every=2:errno=5:op=create", "Input/output error"),
                                         ("every=2:errno=ENOSPC:op=create", "No space left")))
def test_every_second_call_fails(with_fault, text, errors):
    program = with_fault(f"fail:{text}")
    answers = [program.run(RULE) for _ in range(6)]
    assert ["created" in answer for answer in answers] == [True, False] * 3
    assert [errors in answer for answer in answers] == [False, True] * 3
    assert struck(program, "fail") == (6, 3)
    assert program.xstats()["flow_rules"] == 3


def test_a_fault_that_ends_by_itself(with_fault):
    program = with_fault("fail:times=2:op=destroy")
    rule = program.created(RULE)
    answers = [program.run(f"flow destroy 0 rule {rule}") for _ in range(3)]
    assert ["destroyed" in answer for answer in answers] == [False, False, True]
    assert struck(program, "fail")[1] == 2


def test_dead_until_it_is_started_again(with_fault):
    program = with_fault("dead:after=2")
    for number in range(2):
        program.created(numbered(number))
    for _ in range(3):
        program.does(RULE, "Input/output error")
    assert struck(program, "dead") == (5, 3)
    assert program.telemetry("/flowsim/rules,0")["dead"] == 1
    assert program.telemetry("/flowsim/rules,0")["gone"] == 2
    program.run("port stop 0")
    program.run("port start 0")
    program.created(RULE)
    assert marks(program.received(PACKETS)) == {8: PACKETS}


def test_deleting_stalls(with_fault):
    program = with_fault("stall_delete:every=2:ms=60")
    for number in range(4):
        program.created(numbered(number))
    times = [timed(program, f"flow destroy 0 rule {number}") for number in range(4)]
    assert min(times[1], times[3]) >= 0.06
    assert struck(program, "stall_delete") == (4, 2)
    assert program.xstats()["flow_rules"] == 0


def test_answers_are_late(with_fault):
    program = with_fault("late:every=2:ms=60")
    times = [timed(program, numbered(number)) for number in range(4)]
    assert min(times[1], times[3]) >= 0.06
    assert struck(program, "late") == (4, 2)
    assert program.xstats()["flow_late"] == 2


def test_counters_stand_still(with_fault):
    program = with_fault("count_nothing")
    rule = program.created(RULE)
    program.received(PACKETS)
    assert program.counted(rule) == [0, 0] == program.counted(rule)
    assert struck(program, "count_nothing") == (2, 2)


def test_all_rules_are_forgotten(testpmd):
    program = testpmd(DEVICE)
    program.verbose()
    for number in range(5):
        program.created(numbered(number))
    program.telemetry("/flowsim/fault,0:forget")
    assert marks(program.received(PACKETS)) == {}
    assert struck(program, "forget")[1] == 5 == program.xstats()["flow_forgotten"]


def test_the_oldest_rule_is_evicted(with_fault):
    program = with_fault("evict:every=2")
    for number in range(5):
        program.created(numbered(number))
    # the first was alone, which is no chance
    assert struck(program, "evict") == (4, 2)
    assert program.xstats()["flow_forgotten"] == 2
    assert marks(program.received(PACKETS)) == {2: PACKETS}


def test_counters_wrap(with_fault):
    program = with_fault("wrap:bits=8")
    rule = program.created(RULE)
    program.received(PACKETS)
    assert program.counted(rule) == [PACKETS % 256, PACKETS * 64 % 256]
    assert struck(program, "wrap") == (2, 2)


def test_rules_of_an_earlier_run(with_fault):
    program = with_fault("ghost:rules=4")
    program.run("flow flush 0")
    found = marks(program.received(PACKETS))
    assert found == dict.fromkeys(range(4), 20)
    assert program.xstats()["rx_marked"] == 80
    assert struck(program, "ghost")[1] == 4 == program.telemetry("/flowsim/rules,0")["ghosts"]


def test_a_word_that_is_wrong_changes_nothing(testpmd):
    program = testpmd(DEVICE)
    assert "did you mean 'lose'" in program.telemetry("/flowsim/fault,0:loose:every=2")["error"]
    assert program.telemetry("/flowsim/faults,0") == {}
    program.created(RULE)
