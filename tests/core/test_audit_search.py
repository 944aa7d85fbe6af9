from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Outcome, OutcomeState
from jupyter_agentbox.core.audit_search import (
    CSV_COLUMNS,
    AuditQuery,
    csv_header,
    decided_by,
    has_words,
    record_to_csv,
    record_to_json,
    seconds_of,
)
from jupyter_agentbox.core.calls import Omission
from jupyter_agentbox.core.grant_json import grant_use_to_json
from jupyter_agentbox.core.grant_uses import GrantUse, Scope
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.reviewers import Reviewer, Via
from tests.samples import NOON, a_call, a_decision, a_request

LATER = NOON + timedelta(seconds=90)
RULE = Rule(server="shop", tool="*", effect=Effect.DENY, reason="month's end")


def an_ended_request(**changes: Any) -> ApprovalRequest:
    request = a_request(**changes)
    decided = request.decide(a_decision(request, arguments={"order_id": 8}, reason="fine"))
    running = decided.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
    return running.with_outcome(
        Outcome(state=OutcomeState.FAILED, started_at=NOON, finished_at=LATER, error="no such order")
    )


def test_what_a_rule_decided_names_it_and_what_lapsed_names_nobody() -> None:
    denied = a_request(evaluation=Evaluation(effect=Effect.DENY, rule=RULE))
    assert decided_by(denied) == f"rule {RULE}"
    assert decided_by(a_request(evaluation=Evaluation(effect=Effect.DENY))) == "rule"
    assert decided_by(a_request().lapse(Lapse.TIMED_OUT)) == ""


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


def cells(request: ApprovalRequest) -> dict[str, str]:
    [row] = csv.DictReader(io.StringIO(csv_header() + record_to_csv(request)))
    return row


def test_a_line_of_csv_has_all_columns() -> None:
    row = cells(an_ended_request())
    assert tuple(row) == CSV_COLUMNS
    assert (row["call"], row["decided_by"], row["outcome"], row["seconds"]) == (
        "delete_order(order_id=8)",
        "ada",
        "failed",
        "90.0",
    )
    assert (row["arguments"], row["edited_arguments"]) == ('{"order_id": 7}', '{"order_id": 8}')
    assert cells(a_request())["reviewer"] == ""


def test_more_columns_stand_at_the_end_and_none_is_there_twice() -> None:
    more = {"asked_by": "ada", "votes": [1]}
    header, line = csv.reader([csv_header(tuple(more)), record_to_csv(a_request(), more)])
    assert header == [*(name for name in CSV_COLUMNS if name != "asked_by"), "asked_by", "votes"]
    assert (len(line), line[-2:]) == (len(header), ["ada", "[1]"])


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "＝", " =", "\n="])
def test_no_cell_is_a_formula(start: str) -> None:
    evil = f'{start}HYPERLINK("http://x","y")'
    for value in cells(a_request(call=a_call(server=evil, tool=evil, arguments={evil: evil}))).values():
        assert not value.lstrip(" ").startswith(("=", "+", "-", "@", "＝"))


def test_no_cell_is_a_formula_where_a_semicolon_begins_a_cell() -> None:
    evil = "select 1; =cmd|' /C calc'!A0;\"@SUM(1)"
    line = record_to_csv(a_request(call=a_call(server=evil, tool=evil, arguments={evil: evil})))
    assert not any(cell.strip(" '\"").startswith(("=", "@")) and cell[0] != "'" for cell in line.split(";")[1:])
    assert "select 1;' =cmd" in line


def test_nothing_in_a_cell_steers_a_terminal() -> None:
    line = record_to_csv(a_request(call=a_call(tool="\x1b]0;owned\x07\x9b2J\u202e\r\nx")))
    assert line.endswith("\r\n")
    assert line[:-2].isprintable()
