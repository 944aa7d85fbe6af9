"""REST: search and download records of calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import iostream, web

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_csv import csv_header, record_to_csv
from jupyter_agentbox.core.audit_search import AuditPage, AuditQuery, record_to_json
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.json_answers import answer_text

from .filters import read_filters, text_parameter

AUTH_RESOURCE: Final = "jupyter_agentbox:audit"
MAX_LIMIT: Final = 500


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
        return replace(read_filters(self), limit=int(limit), cursor=text_parameter(self, "cursor"))


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
