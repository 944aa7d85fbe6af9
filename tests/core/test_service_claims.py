"""Who may take over the database of a Hub service, and when."""

from __future__ import annotations

import pytest

from jupyter_agentbox.core.service_claims import Claim, NextStep, Process, Sighting, judge, refusal


def a_claim(id: str = "one", *, beat: int = 7) -> Claim:
    process = Process(id=id, host="node-1", pid=41, machine="m", started="9")
    return Claim(process=process, since=0, beat=beat, timeout=20.0)


SEEN = Sighting(claim=a_claim(), at=100.0)


def test_what_nobody_holds_is_taken_at_once() -> None:
    assert judge(None, is_gone=False, first=None, now=0.0) is NextStep.TAKE


def test_what_a_process_held_that_is_known_to_have_ended_is_taken_at_once() -> None:
    assert judge(a_claim(), is_gone=True, first=None, now=0.0) is NextStep.TAKE


def test_a_holder_is_watched_before_anything_is_decided() -> None:
    assert judge(a_claim(), is_gone=False, first=None, now=1e9) is NextStep.WATCH


@pytest.mark.parametrize(("now", "step"), [(100.0, NextStep.WATCH), (119.9, NextStep.WATCH), (120.0, NextStep.TAKE)])
def test_a_silent_holder_is_followed_after_the_time_that_it_gave_itself(now: float, step: NextStep) -> None:
    assert judge(a_claim(), is_gone=False, first=SEEN, now=now) is step


@pytest.mark.parametrize("now", [100.5, 120.0, 1e9])
@pytest.mark.parametrize("claim", [a_claim(beat=8), a_claim("other"), a_claim(beat=6)])
def test_a_sign_of_life_refuses_the_second_however_long_it_watched(claim: Claim, now: float) -> None:
    assert judge(claim, is_gone=False, first=SEEN, now=now) is NextStep.REFUSE


def test_the_refusal_says_who_holds_the_database_and_what_to_do() -> None:
    text = refusal(a_claim(), "2026-05-01T12:00:00Z")
    for part in ("process 41 on node-1", "2026-05-01T12:00:00Z", "End that process", "--standby", "20 seconds"):
        assert part in text
