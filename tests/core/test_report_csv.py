"""Records of users' servers as a table: any field may have any type, and no cell is a formula."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from jupyter_agentbox.core.report_csv import REPORT_COLUMNS, REPORT_HEADER, report_to_csv

EVIL = "=HYPERLINK(0);=1"


def cells(record: Any) -> dict[str, str]:
    """Return the cells of a row with this record."""
    row = {"user": "ada", "number": 7, "received_at": "2026-05-01T12:00:00Z", "digest": "d", "hash": "h"}
    line = report_to_csv({**row, "is_note": False, "record": record})
    [found] = csv.DictReader(io.StringIO(REPORT_HEADER + line))
    return found


def test_a_row_has_what_the_service_knows_and_what_was_reported() -> None:
    record = {
        "user": "bob",
        "event": "ended",
        "sequence": 3,
        "isolation": "bubblewrap",
        "has_own_settings": True,
        "tool": "find",
        "evaluation": {"effect": "ask", "rule": None},
        "decision": {"answer": "allow_once", "reviewer": "ada"},
        "outcome": {"state": "failed", "error": "no such order"},
        "arguments": {"order": "Ä"},
    }
    row = cells(record)
    assert tuple(row) == REPORT_COLUMNS
    assert (row["user"], row["number"], row["is_note"]) == ("ada", "7", "false")
    assert (row["event"], row["sequence"], row["tool"], row["effect"], row["rule"]) == ("ended", "3", "find", "ask", "")
    assert (row["isolation"], row["has_own_settings"]) == ("bubblewrap", "true")
    assert (row["decision"], row["reviewer"]) == ("allow_once", "ada")
    assert (row["outcome"], row["error"], row["arguments"]) == ("failed", "no such order", '{"order": "Ä"}')
    assert json.loads(row["record"]) == record


@pytest.mark.parametrize("decision", ["=1", [EVIL], -1, {"answer": EVIL, "reviewer": {EVIL: -1}}])
def test_no_cell_is_a_formula_whatever_a_server_reports(decision: Any) -> None:
    names = (*REPORT_COLUMNS, "more")
    row = cells({**dict.fromkeys(names, EVIL), "sequence": -1, "decision": decision, "server": "\ud800\x1b\r\n=1"})
    for value in row.values():
        assert not any(part.lstrip(" \"'").startswith("=") for part in value.split(";")[1:] if part[:1] != "'")
        assert not value.startswith(("=", "+", "-", "@"))
        assert value.isprintable()
    assert row["sequence"] == "'-1"


@pytest.mark.parametrize("record", [None, [], "=1"])
def test_a_row_without_a_record_has_the_rest(record: Any) -> None:
    row = cells(record)
    assert (row["number"], row["digest"], row["tool"]) == ("7", "d", "")
