"""Records of calls as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from .approvals import ApprovalRequest
from .askers import in_words
from .audit_search import record_to_json
from .calls import JsonObject
from .text import visible

#: The start of a cell that spreadsheets interpret as a formula.
_FORMULA: Final = re.compile(" *[=+\\-@\t\r＝＋－＠]")
#: The same in locales in which semicolons separate cells, even within quotes.
_INNER_FORMULA: Final = re.compile(";(?=[ \"']*[=+\\-@＝＋－＠])")
#: How many characters a cell of a spreadsheet holds.
_LONGEST_CELL: Final = 32_767
#: The CSV columns, in order.
CSV_COLUMNS: Final = (
    *("created_at", "ended_at", "server", "tool", "call", "notebook_path", "cell_id", "kernel_id", "thread_id"),
    *("turn_id", "isolation", "has_own_settings", "status", "effect", "rule", "decision", "decided_by", "reviewer"),
    *("via", "decided_at", "reason", "outcome", "error", "started_at", "finished_at", "seconds", "arguments"),
    "edited_arguments",
    *("digest", "id", "person", "asked_by", "policy_version"),
)


def csv_header(more: Collection[str] = ()) -> str:
    """Return the CSV header line, with the names of additional columns."""
    return csv_line(_columns(more))


def _columns(more: Collection[str]) -> Sequence[str]:
    return (*(name for name in CSV_COLUMNS if name not in more), *more)


def record_to_csv(request: ApprovalRequest, more: Mapping[str, object] = MappingProxyType({})) -> str:
    """Return a record as a line of CSV that is safe to open: no cell is a formula, and none controls a terminal.

    Parameters
    ----------
    request : ApprovalRequest
        The record.
    more : mapping
        Values of additional columns, or overrides of the record's: strings, or values to be written as JSON.
    """
    record = record_to_json(request)
    call, evaluation = _object(record["call"]), _object(record["evaluation"])
    decision, outcome = _object(record["decision"]), _object(record["outcome"])
    flat = {
        **{name: record[name] for name in ("created_at", "ended_at", "status", "decided_by", "seconds", "id")},
        **{name: call[name] for name in ("server", "tool", "notebook_path", "cell_id", "kernel_id", "thread_id")},
        **{name: call[name] for name in ("turn_id", "isolation", "digest", "person")},
        "effect": evaluation["effect"],
        "policy_version": evaluation.get("policy_version"),
        "rule": _object(decision.get("rule")).get("rule", evaluation["rule"]),
        **{name: decision.get(name) for name in ("decision", "reviewer", "via", "decided_at", "reason")},
        **{name: outcome.get(name) for name in ("error", "started_at", "finished_at")},
        "call": record["signature"],
        "asked_by": in_words(request.call.origin.askers),
        "has_own_settings": _json(call["has_own_settings"]),
        "outcome": outcome.get("state"),
        "arguments": _json(call["arguments"] if call["arguments"] is not None else call["omitted"]),
        "edited_arguments": _json(decision.get("arguments")),
    }
    cells = {**flat, **{name: one if isinstance(one, str) else _json(one) for name, one in more.items()}}
    return csv_line([cells[name] for name in _columns(more)])


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _json(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def csv_line(cells: Iterable[object]) -> str:
    """Return a line of CSV that is safe to open: no cell is a formula, and none controls a terminal."""
    line = io.StringIO()
    csv.writer(line).writerow(map(_cell, cells))
    return line.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else visible(str(value)).replace("\n", " ")
    text = _INNER_FORMULA.sub(";'", text)
    text = f"'{text}" if _FORMULA.match(text) else text
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
