"""Records that users' servers report to the Hub service, as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from .audit_csv import csv_line
from .calls import JsonObject, JsonValue
from .otlp import field_at

#: Columns that the service fills in, which come first.
_RECEIVED: Final = ("user", "number", "received_at", "is_note")
#: Column -> its path in a record.
_RECORDED: Final[Mapping[str, Sequence[str]]] = {
    **{name: (name,) for name in ("time", "event", "hub_server", "request_id", "created_at", "ended_at")},
    **{name: (name,) for name in ("server", "tool", "notebook_path", "cell_id", "kernel_id", "thread_id")},
    **{name: (name,) for name in ("turn_id", "isolation", "has_own_settings", "status")},
    **{name: ("evaluation", name) for name in ("effect", "rule")},
    "decision": ("decision", "answer"),
    **{name: ("decision", name) for name in ("reviewer", "via", "decided_at", "reason")},
    "outcome": ("outcome", "state"),
    **{name: ("outcome", name) for name in ("error", "started_at", "finished_at")},
    **{name: (name,) for name in ("arguments", "edited_arguments", "call_digest", "person", "asked_by")},
    **{name: (name,) for name in ("chain", "sequence")},
}
#: Columns for finding a row in the service's chain, and the whole record.
_SEALED: Final = ("digest", "hash", "record")
#: The CSV columns, in order.
REPORT_COLUMNS: Final = (*_RECEIVED, *_RECORDED, *_SEALED)

#: The header line.
REPORT_HEADER: Final = csv_line(REPORT_COLUMNS)


def report_to_csv(row: Mapping[str, JsonValue]) -> str:
    """Return a row of a user's chain as a line of CSV.

    Parameters
    ----------
    row : mapping
        The row as the REST API sends it. Its record is untrusted: any field may have any type.
    """
    record = row["record"]
    fields: JsonObject = record if isinstance(record, dict) else {}
    cells = {**row, **{name: field_at(fields, path) for name, path in _RECORDED.items()}}
    return csv_line(_text(cells[name]) for name in REPORT_COLUMNS)


def _text(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
