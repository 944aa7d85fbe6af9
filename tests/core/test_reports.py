"""What is taken of the records that users' servers report, and what is noted of what is missing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.audit import GENESIS
from jupyter_agentbox.core.audit_trail import SCHEMA, TrailEnd, read_record
from jupyter_agentbox.core.calls import canonical_json
from jupyter_agentbox.core.reports import (
    LONGEST_REPORT,
    Gap,
    Note,
    check_distance,
    news_of,
    ranges,
    read_report,
    row_hash,
)
from jupyter_agentbox.exceptions import ReportRefusedError

#: Ends a line for some readers, or changes how it is displayed.
STRANGE = "\u2028\x85\u202e\x9b\ufeff"


def raw(line: bytes) -> bytes:
    """Return a record with the characters that a server escapes: its hash is the same."""
    return json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def a_line(**fields: Any) -> bytes:
    said = {"user": "ada", "hub_server": "ada/gpu", "chain": "c1", "time": "2026-05-01T12:00:00.000012Z", **fields}
    return TrailEnd().then(said)[1]


def test_a_record_that_its_server_sealed_is_read() -> None:
    report = read_report(a_line(event="stopped"), tenant="ada")
    assert (report.chain, report.sequence, report.hub_server, report.is_last) == ("c1", 1, "ada/gpu", True)
    assert report.digest == hashlib.sha256(a_line(event="stopped")).hexdigest()
    assert report.at.isoformat() == "2026-05-01T12:00:00.000012+00:00"


def test_what_a_record_says_and_its_hash_belong_together() -> None:
    record = json.loads(a_line())
    assert read_record(json.dumps(record)) == record
    assert read_record(json.dumps({**record, "user": "eve"})) is None
    assert read_record(json.dumps({**record, "text": "\ud800"})) is None
    assert read_record(json.dumps({**record, "n": float("nan")})) is None
    assert read_record("[]") is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{}", "not an audit record"),
        (b"\xff", "not an audit record"),
        (a_line().replace(b"gpu", b"cpu"), "changed"),
        (a_line(user="bob"), "another user"),
        (a_line(hub_server="bob/gpu"), "another user"),
        (a_line(user=None), "another user"),
        (a_line(chain="service/ada"), "no chain"),
        (a_line(chain=7), "no chain"),
        (a_line(time="noon"), "no time"),
        (a_line(redacted_hash="0f" * 32), "only the service adds"),
        (a_line(time="2026-05-01T12:00:00"), "no time"),
        (b"x" * (LONGEST_REPORT + 1), "bytes"),
        *((raw(a_line(tool=character)), "not an audit record") for character in (*STRANGE, "\x7f", "ü")),
        (a_line(tool="").replace(b'"tool":"', b'"tool":"\x7f'), "not an audit record"),
    ],
)
def test_what_is_no_record_of_the_user_is_refused(line: bytes, why: str) -> None:
    with pytest.raises(ReportRefusedError, match=why):
        read_report(line, tenant="ada")


def test_a_record_with_half_a_character_is_refused_because_strict_sinks_refuse_it() -> None:
    said = {"user": "ada", "hub_server": "ada/", "chain": "c1", "time": "2026-05-01T12:00:00Z", "tool": "\ud800"}
    record = {**said, "schema": SCHEMA, "sequence": 1, "previous": GENESIS}
    text = canonical_json(record).encode("utf-8", "surrogatepass")
    line = json.dumps({**record, "hash": hashlib.sha256(text).hexdigest()}).encode()
    assert read_record(line.decode()) is not None
    with pytest.raises(ReportRefusedError):
        read_report(line, tenant="ada")


def test_a_number_that_is_no_servers_next_is_refused() -> None:
    report = read_report(a_line(), tenant="ada")
    check_distance(report, 0)
    with pytest.raises(ReportRefusedError, match="too far"):
        check_distance(report, -100_000_000)


def test_the_hash_of_a_row_is_of_all_that_it_says() -> None:
    row: dict[str, Any] = {"tenant": "ada", "number": 1, "chain": "c1", "sequence": 1, "received_at": 2, "at": 3}
    row |= {"digest": "d", "previous": "p"}
    others = [{**row, name: 9 if isinstance(value, int) else "other"} for name, value in row.items()]
    assert len({row_hash(**one) for one in (row, *others)}) == 1 + len(row)


def test_gaps_read_as_people_say_it() -> None:
    gap = Gap(tenant="anna", hub_server="anna/", chain="c1", first=41, last=57)
    assert str(gap) == "records 41–57 of anna's server are missing (chain c1)"
    named = Gap(tenant="anna", hub_server="anna/gpu", chain="c1", first=41, last=41)
    assert str(named) == "record 41 of anna's server `gpu` is missing (chain c1)"
    end = Gap(tenant="anna", hub_server="anna/", chain="c1", first=58, last=0)
    assert "from 58 on" in str(end)
    assert (end.to_json()["last"], end.to_json()["user"]) == (None, "anna")


def test_what_is_missing_and_what_came_late_is_noted() -> None:
    assert list(news_of(0, [1, 2])) == []
    assert list(news_of(40, [58, 60])) == [(Note.MISSING, 41, 57), (Note.MISSING, 59, 59)]
    assert list(news_of(60, [41, 42, 44, 61])) == [(Note.FILLED, 41, 42), (Note.FILLED, 44, 44)]


@given(st.lists(st.sets(st.integers(1, 40), min_size=1), max_size=6))
def test_missing_without_filled_is_what_is_not_there(batches: list[set[int]]) -> None:
    has: set[int] = set()
    missing: set[int] = set()
    for batch in batches:
        for note, first, last in news_of(max(has, default=0), sorted(batch - has)):
            numbers = set(range(first, last + 1))
            missing = missing | numbers if note is Note.MISSING else missing - numbers
        has |= batch
    assert missing == set(range(1, max(has, default=0) + 1)) - has
    assert [number for run in ranges(sorted(has)) for number in range(run[0], run[1] + 1)] == sorted(has)
