from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_agentbox.core.approvals import Answer, Lapse, Outcome, OutcomeState, Status
from jupyter_agentbox.core.approvers import Approvers
from jupyter_agentbox.core.audit_search import (
    AuditQuery,
    decided_by,
    has_answered,
    has_words,
    record_to_json,
    seconds_of,
)
from jupyter_agentbox.core.calls import Omission
from jupyter_agentbox.core.changes import WHOEVER
from jupyter_agentbox.core.grant_json import grant_use_to_json
from jupyter_agentbox.core.grant_uses import GrantUse, Scope
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.reviewers import Reviewer, Via
from tests.samples import LATER, NOON, a_call, a_decision, a_request, an_ended_request

RULE = Rule(server="shop", tool="*", effect=Effect.DENY, reason="month's end")


def test_what_a_rule_decided_names_it_and_what_lapsed_names_nobody() -> None:
    denied = a_request(evaluation=Evaluation(effect=Effect.DENY, rule=RULE))
    assert decided_by(denied) == f"rule {RULE}"
    assert decided_by(a_request(evaluation=Evaluation(effect=Effect.DENY))) == "rule"
    assert decided_by(a_request().lapse(Lapse.TIMED_OUT)) == ""


def test_all_who_approved_a_call_are_named_and_of_a_rejected_one_who_rejected_it() -> None:
    request = a_request()
    bob, cleo = (Reviewer(name=name, via=Via.BROWSER) for name in ("bob", "cleo"))
    endorsed = request.endorse(a_decision(request, reviewer=bob))

    assert decided_by(endorsed) == ""
    decided = endorsed.decide(a_decision(request, reviewer=cleo))
    assert decided_by(decided) == "bob and cleo"
    assert [has_words(decided, [word]) for word in ("bob", "cleo", "dan")] == [True, True, False]
    assert decided_by(endorsed.decide(a_decision(request, Answer.REJECT_ONCE, reviewer=cleo))) == "cleo"
    assert [has_answered(decided, name) for name in ("bob", "cleo", "dan")] == [True, True, False]
    assert [AuditQuery(answered_by=name).accepts(decided) for name in ("bob", "dan")] == [True, False]
    assert [AuditQuery(answered_by="bob", text=word).accepts(decided) for word in ("cleo", "dan")] == [True, False]


def test_nobody_is_whoever_can_write_a_file_whatever_their_name_is() -> None:
    changed = a_request().decide(a_decision(a_request(), reviewer=WHOEVER))
    assert not has_answered(changed, WHOEVER.name)


@pytest.mark.parametrize(
    ("query", "reads"),
    [({}, False), ({"server": "shop"}, False), ({"text": "a"}, True), ({"answered_by": "ada"}, True)],
)
def test_records_are_read_only_for_what_no_index_tells(query: dict[str, str], reads: bool) -> None:
    assert AuditQuery(**query).reads_records is reads  # type: ignore[arg-type]


def test_who_approved_a_users_own_tool_at_the_hub_is_named_and_until_then_the_rule() -> None:
    rule = replace(RULE, effect=Effect.ASK, approvers=Approvers(group="g"))
    request = replace(
        a_request(evaluation=Evaluation(effect=Effect.ALLOW, rule=rule)), status=Status.APPROVED, outcome=None
    )
    review = HubReview(status="approved", approved_by=("bob", "cleo"))
    ended = replace(request, outcome=Outcome(state=OutcomeState.SUCCEEDED, review=review))
    plain = replace(ended, evaluation=Evaluation(effect=Effect.ALLOW, rule=RULE))

    assert decided_by(request) == f"rule {rule}"
    assert decided_by(ended) == "bob and cleo, at the Hub"
    assert decided_by(plain) == f"rule {RULE}"
    assert ended.evaluation.to_json()["asks_group"] == "g"


def test_what_a_grant_decided_names_who_gave_it_and_the_record_has_the_grant() -> None:
    use = GrantUse(id="g1", scope=Scope.KERNEL, granter=Reviewer(name="ada", via=Via.BROWSER), granted_at=NOON)
    request = a_request(evaluation=Evaluation(effect=Effect.DENY, grant=use))
    assert decided_by(request) == use.granter.in_words != "rule"
    evaluation = record_to_json(request)["evaluation"]
    assert isinstance(evaluation, dict)
    assert evaluation["grant"] == grant_use_to_json(use)


@pytest.mark.parametrize(
    "words",
    [("orders",), ("shop.delete_order",), ("order_id", "8"), ("fine", "ada"), ("no such",), ("order(order_id=8)",)],
)
def test_words_are_found_in_names_arguments_reasons_and_errors(words: tuple[str, ...]) -> None:
    assert has_words(an_ended_request(), words)
    assert not has_words(an_ended_request(), (*words, "nothing"))


def test_words_are_found_in_a_rule_and_in_the_beginning_of_long_arguments() -> None:
    call = replace(a_call(), arguments={}, omitted=Omission(size=20_000, head='{"text": "lorem'))
    request = a_request(call=call, evaluation=Evaluation(effect=Effect.DENY, rule=RULE))
    assert has_words(request, ("month's", "lorem"))
    assert record_to_json(request)["signature"] == "delete_order(…)"


def test_the_words_of_a_query_are_in_no_capitals_and_a_page_has_a_size() -> None:
    assert AuditQuery(text=" Ada  STRASSE").words == ("ada", "strasse")
    assert [AuditQuery(limit=limit).page_size for limit in (0, 7, 9_999)] == [1, 7, 500]


def test_a_record_says_how_long_the_call_ran() -> None:
    assert seconds_of(an_ended_request()) == 90
    assert seconds_of(a_request()) is None
    ended = an_ended_request()
    assert ended.outcome is not None
    refused = replace(ended.outcome, state=OutcomeState.FAILED, review=HubReview(status="rejected"))
    assert seconds_of(replace(ended, outcome=refused)) is None  # it waited at the Hub, and did not run
    assert record_to_json(a_request())["outcome"] is None


def test_times_of_the_end_are_of_the_end() -> None:
    asked = a_request()
    rejected = asked.decide(a_decision(asked, Answer.REJECT_ONCE, decided_at=LATER))
    approved = asked.decide(a_decision(asked))
    found = {
        "pending": asked.ended_at,
        "running": approved.ended_at,
        "ended": an_ended_request().ended_at,
        "rejected": rejected.ended_at,
        "denied": a_request(evaluation=Evaluation(effect=Effect.DENY)).ended_at,
        "withdrawn": asked.lapse(Lapse.WITHDRAWN, at=LATER).ended_at,
        "expired before this was kept": asked.lapse(Lapse.TIMED_OUT).ended_at,
        "withdrawn before this was kept": asked.lapse(Lapse.WITHDRAWN).ended_at,
    }
    assert found == {
        "pending": None,
        "running": None,
        "ended": LATER,
        "rejected": LATER,
        "denied": NOON,
        "withdrawn": LATER,
        "expired before this was kept": asked.expires_at,
        "withdrawn before this was kept": None,
    }
