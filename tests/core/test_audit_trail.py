"""The records of a server's trail: what they say, and what their chain shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Outcome, OutcomeState, Status
from jupyter_agentbox.core.audit_trail import (
    LONGEST_RECORD,
    ArgumentsKept,
    AuditEvent,
    Chain,
    TrailEnd,
    check_trail,
    event_of,
    first_event_of,
    has_long_arguments,
    read_record,
    record_time,
    request_fields,
    sealed_again,
)
from jupyter_agentbox.core.calls import LONG, JsonObject
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.redaction import Redaction
from tests.samples import NOON, a_call, a_decision, a_request, requests

SECRETS = {"note": "Bearer abcdefgh12345678", "password": "hunter2hunter2", "order_id": 7}


def trail(*events: str, chain: str = "c1") -> list[str]:
    link, lines = TrailEnd(), []
    for event in events:
        link, line = link.then({"chain": chain, "event": event})
        lines.append(line.decode())
    return lines


def checked(lines: list[str]) -> Chain:
    (chain,), _ = check_trail(lines)
    return chain


def said_of(request: ApprovalRequest, arguments: ArgumentsKept = ArgumentsKept.REDACTED) -> JsonObject:
    return request_fields(request, arguments, Redaction())


def test_each_record_has_the_next_number_and_the_hash_of_the_one_before() -> None:
    first, second = map(json.loads, trail("started", "stopped"))
    assert (first["sequence"], first["previous"]) == (1, "0" * 64)
    assert (second["sequence"], second["previous"]) == (2, first["hash"])


def test_a_whole_trail_is_found_whole_in_any_order_and_also_if_records_come_twice() -> None:
    lines = trail("started", "asked", "stopped")
    whole = Chain(id="c1", records=3, last=3, is_ended=True)
    assert whole.is_whole
    assert checked(lines) == checked([*reversed(lines), "\n", *lines]) == whole


def test_chains_of_several_servers_are_told_apart_and_what_is_no_record_is_counted() -> None:
    lines = [*trail("started", "stopped"), *trail("started", chain="c2")]
    chains, strange = check_trail([*lines, "no JSON", "[]", '{"schema": "other"}', ""])
    assert [(chain.id, chain.is_whole, chain.is_ended) for chain in chains] == [("c1", True, True), ("c2", True, False)]
    assert strange == 3


def test_a_missing_record_is_named() -> None:
    lines = trail("started", "asked", "decided", "ended", "stopped")
    chain = checked([lines[0], lines[3], lines[4]])
    assert (chain.missing, chain.is_whole, chain.problem) == ((2, 3), False, "")


@pytest.mark.parametrize(
    "forged",
    [
        lambda record: {**record, "event": "stopped"},
        lambda record: {name: value for name, value in record.items() if name != "hash"},
        lambda record: {**record, "sequence": "2"},
        lambda record: {**record, "event": float("nan")},
    ],
    ids=["changed", "without hash", "without number", "no JSON"],
)
def test_a_changed_record_is_found(forged: object) -> None:
    lines = trail("started", "asked", "decided")
    assert callable(forged)
    lines[1] = json.dumps(forged(json.loads(lines[1])))
    chain = checked([*lines, lines[1]])
    assert not chain.is_whole
    assert chain.problem == "line 2 was changed: its hash is another"


def test_a_record_that_a_hub_service_redacted_keeps_its_place_and_is_counted() -> None:
    lines = trail("started", "asked", "stopped")
    redacted = sealed_again({**json.loads(lines[1]), "arguments": {"password": "[redacted]"}}).decode()
    whole = Chain(id="c1", records=3, last=3, is_ended=True, redacted=1)
    assert checked([lines[0], redacted, lines[2]]) == checked([*lines, redacted]) == whole
    assert read_record(redacted) is None
    forged = json.dumps({**json.loads(redacted), "arguments": {}})
    assert checked([lines[0], forged, lines[2]]).problem == "line 2 was changed: its hash is another"
    moved = sealed_again({**json.loads(lines[1]), "hash": "0" * 64}).decode()
    assert checked([lines[0], moved, lines[2]]).problem == "record 3 follows another one"


def test_a_record_that_was_written_anew_does_not_fit_to_the_next_one() -> None:
    lines = trail("started", "asked", "decided")
    other = trail("started", "revoked")[1]
    assert checked([lines[0], other, lines[2]]).problem == "record 3 follows another one"
    assert checked([*lines, other, trail("started", "ended")[1]]).problem == "line 4: there are two records 2"


def test_a_first_record_follows_none() -> None:
    _, line = TrailEnd(sequence=0, hash="1" * 64).then({"chain": "c1", "event": "asked"})
    assert checked([line.decode()]).problem == "record 1 follows another one"


def test_nothing_of_a_chain_but_records_that_were_changed_is_no_chain() -> None:
    record = json.loads(trail("started")[0])
    chain = checked([json.dumps({**record, "hash": "0"})])
    assert (chain.records, chain.last, chain.is_ended) == (0, 0, False)


def test_the_event_is_told_by_how_the_request_stood_before() -> None:
    waiting = a_request()
    allowed = waiting.decide(a_decision(waiting)).with_outcome(Outcome(state=OutcomeState.RUNNING))
    done = allowed.with_outcome(Outcome(state=OutcomeState.SUCCEEDED))
    rejected = waiting.decide(a_decision(waiting, Answer.REJECT_ONCE))
    running = OutcomeState.RUNNING
    assert event_of(waiting.extend(NOON, by="ada"), Status.PENDING, None) is AuditEvent.CHANGED
    assert event_of(allowed, Status.PENDING, None) is event_of(rejected, Status.PENDING, None) is AuditEvent.DECIDED
    assert event_of(allowed, Status.APPROVED, None) is AuditEvent.DECIDED
    assert event_of(allowed, Status.APPROVED, running) is AuditEvent.ANSWERED
    assert event_of(done, Status.APPROVED, running) is AuditEvent.ENDED
    assert event_of(waiting.lapse(Lapse.TIMED_OUT), Status.PENDING, None) is AuditEvent.ENDED
    firsts = [first_event_of(request) for request in (waiting, allowed, rejected, done)]
    assert firsts == [AuditEvent.ASKED, AuditEvent.DECIDED, AuditEvent.DECIDED, AuditEvent.CONFIGURED]


@pytest.mark.parametrize("edited", [False, True])
def test_a_request_has_long_arguments_if_those_asked_for_or_those_that_run_are(*, edited: bool) -> None:
    long = {"note": "x" * LONG}
    request = a_request(call=a_call(arguments={} if edited else long))
    decided = request.decide(a_decision(request, arguments=long)) if edited else request
    assert has_long_arguments(decided)
    assert not has_long_arguments(a_request().decide(a_decision(a_request())))


@pytest.mark.parametrize("arguments", [ArgumentsKept.REDACTED, ArgumentsKept.DIGEST])
def test_secrets_are_in_no_record_unless_all_is_kept(arguments: ArgumentsKept) -> None:
    request = a_request(call=a_call(arguments=SECRETS))
    edited = {**SECRETS, "password": "another-secret"}
    decided = request.decide(a_decision(request, arguments=edited, reason="its token is Bearer abcdefgh12345678"))
    failed = replace(decided, outcome=Outcome(state=OutcomeState.FAILED, error="login with hunter2hunter2 failed"))

    text = json.dumps(said_of(failed, arguments))
    assert [secret for secret in ("hunter2", "abcdefgh", "another-secret") if secret in text] == []
    assert said_of(failed, arguments)["running_digest"] == failed.effective_call.digest
    assert "hunter2" in json.dumps(said_of(failed, ArgumentsKept.FULL))
    assert ("arguments" in said_of(failed, arguments)) is (arguments is ArgumentsKept.REDACTED)


def test_long_arguments_and_texts_are_not_in_a_record() -> None:
    request = a_request(call=a_call(arguments={"text": "x" * LONG}))
    decided = request.decide(a_decision(request, reason="y" * 9000))
    said = said_of(decided)
    assert (said["arguments"], said["arguments_size"]) == (None, LONG + 11)
    assert len(json.dumps(said)) < 8000


def test_a_lasting_answer_is_named() -> None:
    said = said_of(a_request(evaluation=Evaluation(effect=Effect.ALLOW)))
    assert (said["grant"], said["decision"], said["status"]) == (None, None, "approved")


@given(requests)
def test_whatever_a_request_is_its_record_can_be_sealed_and_checked(request: ApprovalRequest) -> None:
    for arguments in ArgumentsKept:
        _, line = TrailEnd().then({**said_of(request, arguments), "chain": "c1", "event": "asked"})
        assert b"\n" not in line
        assert checked([line.decode("ascii")]).is_whole


@pytest.mark.parametrize(
    ("given", "kept"),
    [("\ud800", "\ufffd"), ("a\udc00b", "a\ufffdb"), ("\ud83d" + "\ude00", "😀"), ("😀", "😀"), ("\\ud800", "\\ud800")],
)
def test_no_record_has_half_a_character(given: str, kept: str) -> None:
    _, line = TrailEnd().then({"event": "asked", given: [given]})
    assert json.loads(line)[kept] == [kept]
    assert checked([line.decode()]).is_whole


def test_the_time_of_a_record_has_microseconds() -> None:
    assert record_time(NOON.replace(microsecond=12)) == "2026-05-01T12:00:00.000012Z"


def test_a_number_far_beyond_the_others_is_no_work_to_check() -> None:
    forged = TrailEnd(sequence=10**15).then({"chain": "c1", "event": "stopped"})[1].decode()
    chain = checked([*trail("started"), forged])
    assert (chain.last, chain.missing) == (10**15 + 1, tuple(range(2, 22)))


def test_a_record_that_says_something_twice_is_none() -> None:
    (line,) = trail("started")
    twice = line.replace("{", '{"event":"ended",', 1)
    assert check_trail([twice]) == ((), 1)


def test_a_number_that_is_none_is_a_change() -> None:
    record = json.loads(trail("started")[0]) | {"sequence": True}
    assert "was changed" in checked([json.dumps(record)]).problem


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "\U0001f512" * 40_000},
        {"votes": [{"reviewer": "é" * 900, "reason": "é" * 4000}] * 20},
        {"evaluation": {"arguments": dict.fromkeys(map(str, range(9000)), "x")}, "tool": "drop"},
    ],
)
def test_a_record_fits_into_a_datagram_whatever_is_said_in_it(fields: JsonObject) -> None:
    digest = "0" * 64
    line = TrailEnd().then({**fields, "chain": "c1", "event": "asked", "call_digest": digest})[1]
    assert len(line) < LONGEST_RECORD
    said = json.loads(line)
    assert (said["event"], said["call_digest"], said["shortened"]) == ("asked", digest, True)
    assert checked([line.decode()]).is_whole


def test_arguments_that_are_long_only_as_json_are_left_out() -> None:
    said = said_of(a_request(call=a_call(arguments={"note": "\U0001f512" * (LONG // 4)})))
    assert (said["arguments"], said["arguments_size"]) == (None, LONG + len('{"note":""}'))


class ShortTexts(Redaction):
    """Fails if it reads a long text."""

    def _text(self, text: str, secrets: Sequence[str]) -> str:
        assert len(text) < LONG
        return super()._text(text, secrets)


def test_long_arguments_are_not_read_because_a_record_has_only_their_size() -> None:
    token = "another-secret"
    request = a_request(call=a_call(arguments={"text": "x" * LONG, "password": "hunter2hunter2"}))
    edited = {"text": "y" * LONG, "password": token}
    decided = request.decide(a_decision(request, arguments=edited, reason=f"{token} is right, hunter2hunter2 is not"))

    said = request_fields(decided, ArgumentsKept.REDACTED, ShortTexts())

    assert (said["arguments"], said["edited_arguments"]) == (None, None)
    assert said["edited_arguments_size"] == len(json.dumps(edited, separators=(",", ":")))
    decision = said["decision"]
    assert isinstance(decision, dict)
    assert decision["reason"] == "[redacted] is right, [redacted] is not"
