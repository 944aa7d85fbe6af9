"""How long requests wait for a person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.waiting_times import WaitingTimes
from tests.samples import NOON, a_request

ASK = Evaluation(effect=Effect.ASK)
PATIENT = Evaluation(effect=Effect.ASK, rule=Rule(server="*", tool="*", effect=Effect.ASK, timeout=5000.0))


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("times", "evaluation", "expected"),
    [
        (WaitingTimes(), ASK, None),
        (WaitingTimes(timeout=seconds(600)), ASK, 600),
        (WaitingTimes(timeout=seconds(600)), PATIENT, 5000),
        (WaitingTimes(longest=seconds(900)), ASK, None),
        (WaitingTimes(longest=seconds(900)), PATIENT, 5000),
    ],
)
def test_a_request_waits_as_its_rule_says_or_else_as_all(
    times: WaitingTimes, evaluation: Evaluation, expected: float | None
) -> None:
    end = None if expected is None else NOON + seconds(expected)
    assert times.end(evaluation, created_at=NOON, now=NOON) == end


@pytest.mark.parametrize("evaluation", [ASK, PATIENT])
def test_where_what_waits_keeps_a_server_alive_the_longest_wait_holds_for_all(evaluation: Evaluation) -> None:
    times = WaitingTimes(longest=seconds(900), bounds_all=True)
    assert times.end(evaluation, created_at=NOON, now=NOON) == NOON + seconds(900)


@pytest.mark.parametrize(("longest", "expected"), [(600, 600), (900, 660)])
def test_the_longest_wait_begins_when_the_call_came_and_a_timeout_when_a_person_is_asked(
    longest: float, expected: float
) -> None:
    times = WaitingTimes(timeout=seconds(600), longest=seconds(longest), bounds_all=True)
    assert times.end(ASK, created_at=NOON, now=NOON + seconds(60)) == NOON + seconds(expected)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (WaitingTimes(timeout=seconds(300)), 500 + 300),
        (WaitingTimes(), 500 + 600),
        (WaitingTimes(timeout=seconds(300), longest=seconds(700)), 700),
    ],
)
def test_more_time_is_what_a_new_request_has_up_to_the_longest_wait(times: WaitingTimes, expected: float) -> None:
    assert times.extended_end(a_request(), now=NOON + seconds(500)) == NOON + seconds(expected)
