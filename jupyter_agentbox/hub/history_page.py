"""The Hub service's page of past requests: those of the person's own code, those that they answered, or all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from tornado import web

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.audit_search import AuditQuery, decided_by
from jupyter_agentbox.core.calls import LONG
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.services.audit.filters import text_parameter

from .api_handlers import AUDIT_FILTERS, read_record_filters
from .callers import asker_of
from .handlers import PageHandler
from .pages import arguments_text, brief, listed_arguments, status_of

#: The number of requests on a page.
_PAGE: Final = 50
#: Arguments that are longer on the screen, in characters, are shown whole only on the request's own page.
_WHOLE: Final = LONG
#: Which requests are listed. Only auditors may list all.
_WHOSE: Final = {"asked": "Asked by your code", "answered": "Answered by you", "all": "All"}
_DATE_LENGTH: Final = len("2026-01-31")


class HistoryPageHandler(PageHandler):
    """Lists past requests."""

    async def get(self) -> None:
        """Show a page of those that match the filters, newest first."""
        whose, query = self._whose(), self._query()
        if whose == "asked":
            query = replace(query, kernel_id=self.caller.name)
        elif whose == "answered":
            query = replace(query, answered_by=self.caller.name)
        try:
            page = await self.parts.audit.search(query)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from None
        given = self._given()
        rows = await asyncio.to_thread(lambda: [self._row(one) for one in page.records])  # long arguments take long
        self.render(
            "history.html",
            caller=self.caller,
            prefix=self.parts.prefix,
            tabs=[
                {"label": label, "query": urlencode({**given, "whose": name}), "is_current": name == whose}
                for name, label in self._tabs().items()
            ],
            whose=whose,
            given=given,
            statuses=[status.value for status in Status],
            rows=rows,
            older="" if page.next is None else urlencode({**given, "whose": whose, "cursor": page.next}),
            searched_until="" if page.searched_until is None else f"{page.searched_until:%Y-%m-%d %H:%M} UTC",
            export=_download_of(given, query) if whose == "all" else "",
        )

    def _tabs(self) -> Mapping[str, str]:
        may_all = self.parts.reviews.may_read_record(self.caller)
        return {name: label for name, label in _WHOSE.items() if name != "all" or may_all}

    def _whose(self) -> str:
        whose = self.get_query_argument("whose", "") or ("all" if "all" in self._tabs() else "answered")
        if whose not in _WHOSE:
            raise web.HTTPError(400, f"`whose` must be one of {', '.join(_WHOSE)}")
        if whose == "all":
            self.check_may_read_record()
        return whose

    def _query(self) -> AuditQuery:
        try:
            found = read_record_filters(self)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from None
        if found.until is not None and len(self.get_query_argument("until", "")) == _DATE_LENGTH:
            found = replace(found, until=_end_of_day(found.until))  # people mean the whole day
        return replace(found, limit=_PAGE, cursor=text_parameter(self, "cursor"))

    def _given(self) -> dict[str, str]:
        """Return the filters in the URL, without empty ones."""
        given = {name: self.get_query_argument(name, "") for name in AUDIT_FILTERS}
        return {name: text for name, text in given.items() if text}

    def _row(self, request: ApprovalRequest) -> dict[str, Any]:
        arguments, is_whole = listed_arguments(request)
        return {
            "id": request.id,
            "has_page": self.parts.reviews.may_see(request, self.caller),
            "at": f"{request.created_at:%Y-%m-%d %H:%M:%S} UTC",
            "name": visible(request.call.qualified_name),
            "asked_by": visible(asker_of(request)),
            "arguments": arguments,
            "is_whole": is_whole,
            "all_arguments": "" if is_whole else _whole_arguments(request),
            "status": status_of(request, self.parts.reviews.now),
            "decided_by": visible(decided_by(request)),
            "reason": brief(_reason_of(request)),
        }


def _end_of_day(day: datetime) -> datetime | None:
    """Return the end of a day that begins at a time; ``None`` for the last day that there is."""
    try:
        return day + timedelta(days=1)
    except OverflowError:
        return None


def _download_of(given: Mapping[str, str], query: AuditQuery) -> str:
    """Return the parameters that download what is listed: there, a date as `until` does not include its day."""
    until = {} if query.until is None else {"until": query.until.isoformat()}
    return urlencode({**given, **until, "format": "csv"})


def _whole_arguments(request: ApprovalRequest) -> str:
    """Return all arguments for the list; empty if they are too long for it."""
    if request.call.omitted is not None or len(arguments_text(request, indent=None)) > _WHOLE:
        return ""  # with indents, which take time, it would be no shorter
    shown = arguments_text(request)
    return shown if len(shown) <= _WHOLE and len(shown := visible(shown)) <= _WHOLE else ""


def _reason_of(request: ApprovalRequest) -> str:
    return "" if request.decision is None else request.decision.reason
