"""REST: search and download records of calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from typing import Final, TypeVar

from jupyter_server.auth.decorator import authorized
from tornado import iostream, web

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.audit_csv import csv_header, record_to_csv
from jupyter_agentbox.core.audit_search import AuditPage, AuditQuery, record_to_json
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.json_answers import answer_text

AUTH_RESOURCE: Final = "jupyter_agentbox:audit"
MAX_LIMIT: Final = 500
MAX_TEXT: Final = 200

E = TypeVar("E", bound=Enum)


def _json_line(request: ApprovalRequest) -> str:
    return answer_text(record_to_json(request)) + "\n"


#: Format -> media type, preamble, and the function that writes a record.
_FORMATS: Final[dict[str, tuple[str, str, Callable[[ApprovalRequest], str]]]] = {
    "jsonl": ("application/x-ndjson", "", _json_line),
    "csv": ("text/csv; charset=utf-8", csv_header(), record_to_csv),
}


class AuditHandler(AgentBoxHandler):
    """The record of all calls."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Return a page of records, newest first, or all of them as a file."""
        form = self.get_query_argument("format", "json")
        try:
            query = self._query()
            if form == "json":
                page = await self.services.audit.search(query)
            elif form not in _FORMATS:
                raise ValueError(f"`format` must be one of json, {', '.join(_FORMATS)}")
        except ValueError as error:
            raise self.bad_query(str(error)) from None
        if form == "json":
            self.finish_text(await asyncio.to_thread(_page_text, page))
        else:
            await self._download(query, form)

    async def _download(self, query: AuditQuery, form: str) -> None:
        """Write all records, page by page, with only one page in memory."""
        media, text, line = _FORMATS[form]
        self.set_header("Content-Disposition", f'attachment; filename="agentbox-history.{form}"')
        self.set_header("Content-Type", media)
        self.set_header("Cache-Control", "no-store")
        try:
            async for page in self.services.audit.export(query):
                text += await asyncio.to_thread(_lines, page, line)
                self.write(text)
                text = ""
                await self.flush()
        except iostream.StreamClosedError:
            return  # the client has disconnected
        self.finish(set_content_type=media)

    def _query(self) -> AuditQuery:
        limit = self.get_query_argument("limit", "100")
        if re.fullmatch("[0-9]{1,9}", limit) is None or not 1 <= int(limit) <= MAX_LIMIT:
            raise ValueError(f"`limit` must be a number from 1 to {MAX_LIMIT}")
        text = self.get_query_argument("q", "")
        if len(text) > MAX_TEXT:
            raise ValueError(f"`q` may have {MAX_TEXT} characters at most")
        return AuditQuery(
            since=self._time("since"),
            until=self._time("until"),
            server=self._text("server"),
            tool=self._text("tool"),
            reviewer=self._text("reviewer"),
            notebook_path=self._text("notebook_path"),
            thread_id=self._text("thread_id"),
            answers=self._members("decision", Answer),
            statuses=self._members("status", Status),
            outcomes=self._members("outcome", OutcomeState),
            text=text,
            limit=int(limit),
            cursor=self._text("cursor"),
        )

    def _text(self, name: str) -> str | None:
        return self.get_query_argument(name, "") or None

    def _time(self, name: str) -> datetime | None:
        text = self._text(name)
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text.replace(" ", "+"))  # an unescaped `+`
        except ValueError:
            raise ValueError(f"`{name}` must be a time in ISO 8601, such as 2026-11-22T08:00:00Z") from None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

    def _members(self, name: str, kind: type[E]) -> tuple[E, ...]:
        names = [one for value in self.get_query_arguments(name) for one in value.split(",") if one]
        unknown = [one for one in names if one not in {member.value for member in kind}]
        if unknown:
            known = ", ".join(str(member.value) for member in kind)
            raise ValueError(f"`{name}` must be one of {known}, not {unknown[0]:.80}")
        return tuple(kind(one) for one in names)


def _page_text(page: AuditPage) -> str:
    return answer_text(
        {
            "records": [record_to_json(request) for request in page.records],
            "next": page.next,
            "searched_until": json_time(page.searched_until),
        }
    )


def _lines(page: AuditPage, line: Callable[[ApprovalRequest], str]) -> str:
    return "".join(map(line, page.records))


default_handlers = [(r"/jupyter-agentbox/audit/?", AuditHandler)]
