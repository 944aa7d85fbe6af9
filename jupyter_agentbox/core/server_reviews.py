"""What the service beside a JupyterHub says of the persons whom it asks before it runs a central tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from .calls import JsonObject, JsonValue
from .times import json_time, time_from_json

#: Where it stands in the `_meta` of a progress notification and of a result of MCP.
REVIEW_KEY: Final = "jupyter-agentbox/review"
#: How it may stand: as a request does.
_STATUSES: Final = frozenset({"pending", "approved", "rejected", "expired", "cancelled", "orphaned"})
#: Characters of a text, and how many names, that are taken of what a server says.
_LONGEST: Final = 500
_LONGEST_NAME: Final = 100
_MOST_NAMES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReview:
    """How far the persons are whom the Hub service asks. It knows them from the Hub; whoever reads this has its word.

    Parameters
    ----------
    status : str
        As that of a request: ``"pending"`` while they are asked.
    groups : tuple of str
        Whose members can answer; empty if it is the person whose code asks.
    count : int
        How many have to approve.
    approved_by : tuple of str
        Who has approved.
    expires_at : datetime or None
        When it stops waiting; ``None`` if it does not, or has ended.
    rejected_by : str
        Who rejected it; empty if nobody did.
    reason : str
        Why they did.
    url : str
        The server's page of it, if it says so.
    """

    status: str
    groups: tuple[str, ...] = ()
    count: int = 1
    approved_by: tuple[str, ...] = ()
    expires_at: datetime | None = None
    rejected_by: str = ""
    reason: str = ""
    url: str = ""

    def __str__(self) -> str:
        who = f"{self.count} of the group {' or '.join(self.groups)}" if self.groups else "you"
        by = " and ".join(self.approved_by)
        match self.status:
            case "pending":
                where = f" at {self.url}" if self.url else ""
                until = f" until {self.expires_at:%Y-%m-%d %H:%M} UTC" if self.expires_at else ""
                so_far = f"; approved so far by {len(self.approved_by)} ({by})" if by else ""
                return f"waits for {who}{where}{until}{so_far}"
            case "approved":
                return f"approved by {by}" if by else "approved"
            case "rejected":
                return f"rejected{f' by {self.rejected_by}' if self.rejected_by else ''}{self._why}"
            case "expired":
                return f"expired: it waited for {who}{f', and was approved by {by} only' if by else ''}"
            case _:
                return "withdrawn before it was decided"

    @property
    def _why(self) -> str:
        return f": {self.reason}" if self.reason else ""

    def to_json(self) -> JsonObject:
        """Return it as servers, the store and the REST API have it."""
        groups: list[JsonValue] = [*self.groups]
        approved_by: list[JsonValue] = [*self.approved_by]
        return {
            "status": self.status,
            "groups": groups,
            "count": self.count,
            "approved_by": approved_by,
            "expires_at": json_time(self.expires_at),
            "rejected_by": self.rejected_by or None,
            "reason": self.reason,
            "url": self.url or None,
        }

    def redacted(self, redact: Callable[[str], str]) -> ServerReview:
        """Return it without what is secret in a text."""
        return replace(
            self,
            groups=tuple(map(redact, self.groups)),
            approved_by=tuple(map(redact, self.approved_by)),
            rejected_by=redact(self.rejected_by),
            reason=redact(self.reason),
            url=redact(self.url),
        )


def review_from_json(value: object) -> ServerReview | None:
    """Read what anybody may have sent; ``None`` if it is no such thing. Long texts are cut."""
    status = _text(value.get("status"), _LONGEST_NAME) if isinstance(value, Mapping) else ""
    if not isinstance(value, Mapping) or status not in _STATUSES:
        return None
    count = value.get("count")
    return ServerReview(
        status=status,
        groups=_names(value.get("groups")),
        count=count if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= 1000 else 1,
        approved_by=_names(value.get("approved_by")),
        expires_at=time_from_json(value.get("expires_at")),
        rejected_by=_text(value.get("rejected_by"), _LONGEST_NAME),
        reason=_text(value.get("reason"), _LONGEST),
        url=_text(value.get("url"), _LONGEST),
    )


def review_in(meta: Mapping[str, Any]) -> ServerReview | None:
    """Return what the `_meta` of a message of MCP says of a review, if anything."""
    return review_from_json(meta.get(REVIEW_KEY))


def _names(value: object) -> tuple[str, ...]:
    names = value[:_MOST_NAMES] if isinstance(value, list | tuple) else ()
    return tuple(name[:_LONGEST_NAME] for name in names if isinstance(name, str) and name)


def _text(value: object, longest: int) -> str:
    return value[:longest] if isinstance(value, str) else ""
