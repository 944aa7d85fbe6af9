"""Records of users' servers lose what the Hub service calls secret, and keep their places in their chains."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from jupyter_agentbox.core.audit_trail import LONGEST_RECORD, Chain, TrailEnd, check_trail
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from jupyter_agentbox.core.report_redaction import redacted_line, redacted_report
from jupyter_agentbox.core.reports import Report, read_report
from tests.samples import json_objects

SECRET = "hunter2hunter2"
USUAL = Redaction()


def a_report(**fields: Any) -> Report:
    said = {"user": "ada", "hub_server": "ada/", "chain": "c1", "time": "2026-05-01T12:00:00.000012Z", **fields}
    return read_report(TrailEnd().then(said)[1], tenant="ada")


def kept_of(report: Report, redaction: Redaction = USUAL) -> JsonObject:
    kept: JsonObject = json.loads(redacted_report(report, redaction).line)
    return kept


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {"password": SECRET, "n": 1}},
        {"edited_arguments": {"deep": [{"api_key": SECRET}]}},
        {"arguments": {"token": SECRET}, "decision": {"answer": "allow_once", "reason": f"with {SECRET}"}},
        {"votes": [{"reviewer": "bob", "reason": f"password={SECRET}"}]},
        {"arguments": {"token": SECRET}, "outcome": {"state": "failed", "error": f"no login with {SECRET}"}},
        {"outcome": {"questions": [{"content": {"pin": 7, "passcode": SECRET}}]}},
        {"arguments": f"password={SECRET}", "votes": f"password={SECRET}", "outcome": {"error": [{"pwd": SECRET}]}},
        {"decision": f"password={SECRET}", "outcome": f"password={SECRET}"},
    ],
)
def test_secrets_go_wherever_a_request_has_them_and_everything_else_stays(fields: Any) -> None:
    report = a_report(event="ended", call_digest="0f" * 32, **fields)
    found = kept_of(report)
    assert found.pop("redacted_hash")
    assert found == {**report.fields, **json.loads(json.dumps(fields).replace(SECRET, REDACTED))}
    assert redacted_report(report, USUAL).seal == report.seal


def test_an_error_that_ends_in_the_middle_of_a_secret_loses_its_beginning() -> None:
    report = a_report(arguments={"token": SECRET}, outcome={"error": f"no login with {SECRET[:8]}"})
    assert kept_of(report)["outcome"] == {"error": f"no login with {REDACTED}"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"arguments": {"city": "Oslo"}},
        {"arguments": {"password": REDACTED}, "outcome": {"error": "token=[redacted]"}},
    ],
)
def test_a_record_without_secrets_or_that_its_server_redacted_stays_as_it_was_sealed(fields: Any) -> None:
    report = a_report(**fields)
    assert redacted_report(report, USUAL) is report
    assert redacted_line(report.line, USUAL) is report.line


def test_a_site_to_which_nothing_is_secret_gets_every_record_as_it_was_sealed() -> None:
    report = a_report(arguments={"password": SECRET}, outcome={"error": f"password={SECRET}"})
    assert redacted_report(report, Redaction(())) is report


def test_names_that_were_declared_secret_later_are_removed_from_what_was_redacted_before() -> None:
    once = redacted_report(a_report(arguments={"password": SECRET, "iban": "DE02"}), USUAL)
    again = redacted_line(once.line, Redaction(["iban"]))
    assert json.loads(again)["arguments"] == {"password": REDACTED, "iban": REDACTED}
    assert json.loads(again)["hash"] == once.seal
    assert check_trail([again.decode()])[0] == (Chain(id="c1", records=1, last=1, redacted=1),)


def test_a_pattern_for_every_name_leaves_what_says_whose_record_it_is() -> None:
    report = a_report(server="shop", arguments={"city": "Oslo"}, decision={"reviewer": "ada", "reason": ""})
    found = kept_of(report, Redaction(["*"]))
    assert found.pop("redacted_hash")
    assert found == {**report.fields, "arguments": {"city": REDACTED}}


def test_a_record_that_grows_still_fits_into_a_datagram() -> None:
    report = a_report(arguments=[{"pwd": "x"}] * 4800)
    line = redacted_report(report, USUAL).line
    assert len(report.line) > 55_000 > len(line)
    assert len(line) < LONGEST_RECORD
    assert check_trail([line.decode()])[0] == (Chain(id="c1", records=1, last=1, redacted=1),)


@given(json_objects)
def test_whatever_a_record_contains_it_is_read_once_and_then_stays(fields: JsonObject) -> None:
    names = ("arguments", "edited_arguments", "decision", "votes", "outcome")
    said = {name: {**fields, "password": SECRET, "reason": fields, "error": fields} for name in names}
    line = redacted_report(a_report(**said), USUAL).line
    assert redacted_line(line, USUAL) == line
    (chain,), strange = check_trail([line.decode()])
    assert (chain.is_whole, strange) == (True, 0)
