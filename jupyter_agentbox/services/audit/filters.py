"""Filters for records of calls, as parameters of a URL."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Final, TypeVar

from tornado import web

from jupyter_agentbox.core.approvals import Answer, OutcomeState, Status
from jupyter_agentbox.core.audit_search import AuditQuery
from jupyter_agentbox.core.globs import problem_of_pattern

MAX_TEXT: Final = 200
#: The names of the parameters that `read_filters` reads.
FILTERS: Final = (
    *("since", "until", "server", "tool", "reviewer", "notebook_path", "thread_id", "decision", "status", "outcome"),
    "q",
)

E = TypeVar("E", bound=Enum)


def read_filters(handler: web.RequestHandler) -> AuditQuery:
    """Return the filters in the URL of a request.

    Raises
    ------
    ValueError
        If the value of one is invalid. The message says which, and what is valid.
    """
    text = handler.get_query_argument("q", "")
    if len(text) > MAX_TEXT:
        raise ValueError(f"`q` may have {MAX_TEXT} characters at most")
    return AuditQuery(
        since=_time(handler, "since"),
        until=_time(handler, "until"),
        server=_pattern(handler, "server"),
        tool=_pattern(handler, "tool"),
        reviewer=text_parameter(handler, "reviewer"),
        notebook_path=text_parameter(handler, "notebook_path"),
        thread_id=text_parameter(handler, "thread_id"),
        answers=_members(handler, "decision", Answer),
        statuses=_members(handler, "status", Status),
        outcomes=_members(handler, "outcome", OutcomeState),
        text=text,
    )


def text_parameter(handler: web.RequestHandler, name: str) -> str | None:
    """Return the value of a parameter; ``None`` if it is missing or empty."""
    return handler.get_query_argument(name, "") or None


def _pattern(handler: web.RequestHandler, name: str) -> str | None:
    pattern = text_parameter(handler, name)
    if pattern is not None and (problem := problem_of_pattern(pattern)):
        raise ValueError(f"`{name}`: {problem}")
    return pattern


def _time(handler: web.RequestHandler, name: str) -> datetime | None:
    text = text_parameter(handler, name)
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.replace(" ", "+"))  # an unescaped `+`
    except ValueError:
        raise ValueError(f"`{name}` must be a time in ISO 8601, such as 2026-11-22T08:00:00Z") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _members(handler: web.RequestHandler, name: str, kind: type[E]) -> tuple[E, ...]:
    names = [one for value in handler.get_query_arguments(name) for one in value.split(",") if one]
    unknown = [one for one in names if one not in {member.value for member in kind}]
    if unknown:
        known = ", ".join(str(member.value) for member in kind)
        raise ValueError(f"`{name}` must be one of {known}, not {unknown[0]:.80}")
    return tuple(kind(one) for one in names)
