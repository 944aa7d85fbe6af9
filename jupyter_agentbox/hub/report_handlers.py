"""REST API of the records that users' servers report."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from tornado import web

from jupyter_agentbox.core.audit_trail import record_time
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.otlp import read_log_record
from jupyter_agentbox.core.report_csv import REPORT_HEADER, report_to_csv
from jupyter_agentbox.core.times import time_from_json
from jupyter_agentbox.services.json_answers import answer_text
from jupyter_agentbox.storage.reports import ReportQuery, ReportRow

from .exports import ExportFormat, ExportHandler, otlp_line
from .handlers import JsonHandler
from .reports import MOST_BYTES, TooManyReportsError


class ReportsHandler(ExportHandler):
    """Takes records from users' servers, and sends them to auditors."""

    async def post(self) -> None:
        """Store records, one line of JSON each, in the name of the user whose token came with them."""
        if not self._has_token or not self.caller.is_user:
            raise web.HTTPError(403, "records must be sent with the token of a user's server")
        if len(self.request.body) > MOST_BYTES:
            raise web.HTTPError(413, f"a report can have at most {MOST_BYTES:,} bytes")
        try:
            taken = await self.parts.reports.take(self.request.body, self.caller)
        except TooManyReportsError as error:
            self.set_status(429)
            self.set_header("Retry-After", str(error.seconds))  # raising an error would drop the header
            self.finish_json({"message": str(error), "reason": None})
            return
        self.finish_json({"accepted": taken.accepted, "duplicates": taken.duplicates})

    async def get(self) -> None:
        """Send reported records and the service's own notes, ordered by user and number.

        The format is JSON Lines, CSV, or one OpenTelemetry export per line, as collectors read from files.
        """
        self.check_may_read_record()
        self.check_parameters(("user", "since", "until"))
        form = self.read_format(FORMATS)
        query = ReportQuery(
            tenant=self.get_query_argument("user", ""), since=self._time("since"), until=self._time("until")
        )
        await self.send_file("agentbox-reports", form, self._pages(query))

    async def _pages(self, query: ReportQuery) -> AsyncIterator[Sequence[ReportRow]]:
        while rows := await self.parts.reports.page(query):
            yield rows
            query = replace(query, after=(rows[-1].tenant, rows[-1].number))

    def _time(self, name: str) -> datetime | None:
        given = self.get_query_argument(name, "")
        if not given:
            return None
        found = time_from_json(given)
        if found is None:
            raise self.bad_query(f"`{name}` must be a time such as 2026-05-01T00:00:00Z")
        return found


class GapsHandler(JsonHandler):
    """Lists the gaps in the reported records."""

    asks_anew = True

    async def get(self) -> None:
        """List the gaps."""
        self.check_may_read_record()
        self.finish_json({"gaps": [gap.to_json() for gap in await self.parts.reports.gaps()]})


def _lines(rows: Sequence[ReportRow]) -> str:
    return "".join(f"{answer_text(row_to_json(row))}\n" for row in rows)


def _csv_lines(rows: Sequence[ReportRow]) -> str:
    return "".join(report_to_csv(row_to_json(row)) for row in rows)


def _otlp_line(rows: Sequence[ReportRow]) -> str:
    logs = [read_log_record(row.record, observed_at=row.received_at) for row in rows if row.record is not None]
    return otlp_line(logs)


#: The formats of reported records, by name.
FORMATS: Final[Mapping[str, ExportFormat[ReportRow]]] = {
    "jsonl": ExportFormat(media="application/jsonl", suffix="jsonl", write=_lines),
    "csv": ExportFormat(media="text/csv; charset=utf-8", suffix="csv", write=_csv_lines, header=REPORT_HEADER),
    "otlp": ExportFormat(media="application/jsonl", suffix="jsonl", write=_otlp_line),
}


def row_to_json(row: ReportRow) -> JsonObject:
    """Return a row as the API sends it."""
    return {
        "user": row.tenant,
        "number": row.number,
        "received_at": record_time(row.received_at),
        "digest": row.digest,
        "hash": row.hash,
        "is_note": row.is_note,
        "record": None if row.record is None else json.loads(row.record),
    }
