from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_agentbox.core.approvals import (
    INITIAL,
    OUTCOME_TRANSITIONS,
    TRANSITIONS,
    Answer,
    ApprovalRequest,
    Lapse,
    Outcome,
    OutcomeState,
    Status,
    comment_for,
    reason_for,
)
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.questions import QuestionAction, QuestionMode, QuestionRecord
from jupyter_agentbox.exceptions import InvalidDecisionError, InvalidTransitionError, StaleDigestError
from tests.samples import NOON, a_decision, a_request


def step(request: ApprovalRequest, cause: Answer | Lapse) -> ApprovalRequest:
    return request.lapse(cause) if isinstance(cause, Lapse) else request.decide(a_decision(request, cause))


@pytest.mark.parametrize("cause", [*Answer, *Lapse])
@pytest.mark.parametrize("status", Status)
def test_a_status_changes_as_the_table_says_and_in_no_other_way(status: Status, cause: Answer | Lapse) -> None:
    request = replace(a_request(), status=status)

    if (status, cause) in TRANSITIONS:
        assert step(request, cause).status is TRANSITIONS[status, cause]
    else:
        with pytest.raises(InvalidTransitionError) as caught:
            step(request, cause)
        assert caught.value.request_id == request.id


def test_only_pending_requests_can_change() -> None:
    assert {status for status, _ in TRANSITIONS} == {Status.PENDING}
    assert [status for status in Status if not status.is_final] == [Status.PENDING]


def test_every_cause_ends_a_pending_request() -> None:
    assert {cause for _, cause in TRANSITIONS} == {*Answer, *Lapse}


@pytest.mark.parametrize("after", OutcomeState)
@pytest.mark.parametrize("before", [None, *OutcomeState])
@pytest.mark.parametrize("status", Status)
def test_an_outcome_changes_as_the_table_says_and_only_of_an_approved_call(
    status: Status, before: OutcomeState | None, after: OutcomeState
) -> None:
    request = replace(a_request(), status=status, outcome=Outcome(state=before) if before else None)

    if status is Status.APPROVED and (before, after) in OUTCOME_TRANSITIONS:
        assert request.with_outcome(Outcome(state=after)).outcome_state is after
    else:
        with pytest.raises(InvalidTransitionError):
            request.with_outcome(Outcome(state=after))


def test_an_outcome_that_has_ended_never_changes() -> None:
    assert {before for before, _ in OUTCOME_TRANSITIONS} == {None, OutcomeState.RUNNING}


@pytest.mark.parametrize("status", Status)
def test_only_a_pending_request_waits_longer(status: Status) -> None:
    request = replace(a_request(), status=status)
    later = NOON + timedelta(hours=1)

    if status is Status.PENDING:
        assert request.extend(later, by="ada") == replace(request, expires_at=later, extended_by="ada")
    else:
        with pytest.raises(InvalidTransitionError):
            request.extend(later, by="ada")


@pytest.mark.parametrize("effect", Effect)
def test_only_a_request_that_waits_for_a_person_can_expire(effect: Effect) -> None:
    request = a_request(evaluation=Evaluation(effect=effect))

    assert request.status is INITIAL[effect]
    assert (request.expires_at is not None) is (request.status is Status.PENDING)


@pytest.mark.parametrize(
    ("status", "outcome", "expected"),
    [
        (Status.PENDING, None, True),
        (Status.APPROVED, None, True),
        (Status.APPROVED, OutcomeState.RUNNING, True),
        (Status.APPROVED, OutcomeState.SUCCEEDED, False),
        (Status.REJECTED, None, False),
        (Status.ORPHANED, None, False),
    ],
)
def test_a_request_is_open_until_nothing_is_left_to_do(
    status: Status, outcome: OutcomeState | None, expected: bool
) -> None:
    request = replace(a_request(), status=status, outcome=Outcome(state=outcome) if outcome else None)

    assert request.is_open is expected


def test_a_decision_about_other_arguments_is_refused() -> None:
    request = a_request()

    with pytest.raises(StaleDigestError):
        request.decide(a_decision(request, digest="0" * 64))


def test_a_rejection_cannot_edit_the_arguments() -> None:
    request = a_request()

    with pytest.raises(InvalidDecisionError):
        request.decide(a_decision(request, Answer.REJECT_ONCE, arguments={}))


def test_what_runs_is_the_edited_call_and_the_asked_one_is_kept() -> None:
    request = a_request()

    decided = request.decide(a_decision(request, arguments={"order_id": 8}))

    assert decided.effective_call == request.call.with_arguments({"order_id": 8})
    assert decided.call == request.call
    assert decided.effective_call.digest != request.call.digest


def test_an_edit_that_changes_nothing_is_none() -> None:
    request = a_request()
    decided = request.decide(a_decision(request, arguments=dict(request.call.arguments)))
    assert decided == request.decide(a_decision(request))


def test_without_edits_what_runs_is_what_was_asked() -> None:
    request = a_request()

    assert request.effective_call is request.call
    assert request.decide(a_decision(request)).effective_call is request.call


@pytest.mark.parametrize("answer", Answer)
def test_the_four_answers_say_what_they_mean(answer: Answer) -> None:
    assert answer.allows is answer.value.startswith("allow")
    assert answer.is_lasting is answer.value.endswith("always")


def test_the_reason_of_a_rejection_is_the_persons_or_the_rules() -> None:
    rule = Rule(server="shop", tool="*", effect=Effect.DENY, reason="no shopping")
    denied = a_request(evaluation=Evaluation(effect=Effect.DENY, rule=rule))
    asked = a_request()

    assert reason_for(asked.decide(a_decision(asked, Answer.REJECT_ONCE, reason="too many"))) == "too many"
    assert reason_for(denied) == "no shopping"
    assert reason_for(replace(denied, evaluation=Evaluation(effect=Effect.DENY, rule=replace(rule, reason="")))) == (
        "user: deny shop.*"
    )
    assert reason_for(asked) == ""
    rejected = asked.decide(a_decision(asked, Answer.REJECT_ONCE, reason="", rule=rule))
    assert reason_for(rejected) == "no shopping"


@pytest.mark.parametrize(
    ("answer", "tell", "comment"),
    [
        (Answer.ALLOW_ONCE, True, "mind the stock"),
        (Answer.ALLOW_ALWAYS, True, "mind the stock"),
        (Answer.ALLOW_ONCE, False, ""),
        (Answer.REJECT_ONCE, True, ""),
    ],
)
def test_the_code_gets_a_comment_that_an_answer_that_allows_has_for_it(
    answer: Answer, tell: bool, comment: str
) -> None:
    asked = a_request()

    assert comment_for(asked) == ""
    assert comment_for(asked.decide(a_decision(asked, answer, reason="mind the stock", tell=tell))) == comment


def test_the_time_of_a_request_is_over_when_it_expires_and_only_while_it_waits() -> None:
    waiting = a_request(expires_at=NOON + timedelta(seconds=90))
    for_ever = a_request(expires_at=None)
    lapsed = waiting.lapse(Lapse.TIMED_OUT, at=NOON)

    assert (waiting.is_over(NOON), waiting.seconds_left(NOON)) == (False, 90.0)
    assert waiting.is_over(NOON + timedelta(seconds=90))
    assert waiting.seconds_left(NOON + timedelta(seconds=91)) == 0.0
    assert (for_ever.is_over(NOON), for_ever.seconds_left(NOON)) == (False, None)
    assert not lapsed.is_over(NOON + timedelta(hours=1))


def test_what_is_approved_runs_at_once_and_nothing_else_does() -> None:
    waiting = a_request()
    approved = waiting.decide(a_decision(waiting))
    rejected = waiting.decide(a_decision(waiting, Answer.REJECT_ONCE))

    running = approved.running_if_approved(at=NOON)

    assert running.outcome == Outcome(state=OutcomeState.RUNNING, started_at=NOON)
    assert waiting.running_if_approved(at=NOON) is waiting
    assert rejected.running_if_approved(at=NOON) is rejected


def test_the_end_of_a_call_keeps_when_it_began_and_what_its_server_asked() -> None:
    waiting = a_request()
    approved = waiting.decide(a_decision(waiting))
    running = approved.running_if_approved(at=NOON).with_question(a_question())
    end = NOON + timedelta(seconds=2)

    failed = running.record(OutcomeState.FAILED, at=end, error="no such order")
    never_ran, cancelled = running.record_not_run(at=end), running.record(OutcomeState.CANCELLED, at=end)

    assert failed.outcome == Outcome(
        state=OutcomeState.FAILED, started_at=NOON, finished_at=end, error="no such order", questions=(a_question(),)
    )
    assert never_ran.outcome == approved.record_not_run(at=end).outcome
    assert never_ran.outcome == Outcome(state=OutcomeState.CANCELLED, finished_at=end)
    assert [one.has_not_run for one in (never_ran, cancelled, failed, approved)] == [True, False, False, False]


@pytest.mark.parametrize(("status", "is_refusal"), [("approved", False), ("pending", False), ("rejected", True)])
def test_what_the_hub_refused_did_not_run_here(status: str, is_refusal: bool) -> None:
    waiting = a_request()
    running = waiting.decide(a_decision(waiting)).running_if_approved(at=NOON)

    failed = running.record(OutcomeState.FAILED, at=NOON, review=HubReview(status=status))

    assert failed.has_not_run is is_refusal


def test_a_question_that_could_not_be_kept_is_taken_back_and_an_equal_one_stays() -> None:
    waiting = a_request()
    running = waiting.decide(a_decision(waiting)).running_if_approved(at=NOON)
    kept, lost = a_question(), a_question()

    asked = running.with_question(kept).with_question(lost).without_question(lost)

    assert asked.outcome is not None
    assert [question is kept for question in asked.outcome.questions] == [True]
    assert waiting.with_question(kept) is waiting
    assert waiting.without_question(kept) is waiting


def a_question() -> QuestionRecord:
    return QuestionRecord(
        mode=QuestionMode.FORM,
        message="Which order?",
        url="",
        action=QuestionAction.CANCEL,
        content=(),
        reviewer=None,
        asked_at=NOON,
        answered_at=NOON,
    )
