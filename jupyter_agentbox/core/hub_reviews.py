"""The Hub service's reviews: whom it asks before it runs a central tool, and what they answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from .calls import JsonObject, JsonValue
from .times import json_time, time_from_json

#: Key in the `_meta` of MCP progress notifications and results.
REVIEW_KEY: Final = "jupyter-agentbox/review"
#: Valid statuses: those of a request.
_STATUSES: Final = frozenset({"pending", "approved", "rejected", "expired", "cancelled", "orphaned"})
#: Maximum length of a text and of a name, in characters, and maximum number of names; the rest is cut.
_LONGEST: Final = 500
_LONGEST_NAME: Final = 100
_MOST_NAMES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HubReview:
    """The state of a review at the Hub service, as the service reports it.

    Parameters
    ----------
    status : str
        As that of a request: ``"pending"`` until it is decided.
    groups : tuple of str
        Groups whose members can answer; empty if the caller answers.
    count : int
        How many approvals are required.
    approved_by : tuple of str
        Names of those who have approved.
    expires_at : datetime or None
        Expiry time of a pending review; ``None`` if it does not expire or has ended.
    rejected_by : str
        Name of whoever rejected it; empty if nobody did, or a rule of the Hub service.
    reason : str
        Reason of the rejection.
    url : str
        The review's page at the service; empty if unknown.
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
        members = "a member" if self.count == 1 else f"{self.count} members"
        who = f"{members} of {' or '.join(self.groups)}" if self.groups else "you"
        by = " and ".join(self.approved_by)
        match self.status:
            case "pending":
                where = f" at {self.url}" if self.url else ""
                until = f" until {self.expires_at:%Y-%m-%d %H:%M} UTC" if self.expires_at else ""
                so_far = f"; approved by {by} so far" if by else ""
                return f"waiting for {who}{where}{until}{so_far}"
            case "approved":
                return f"approved by {by}" if by else "approved"
            case "rejected":
                return f"rejected by {self.rejected_by or 'a rule'}{self._why}"
            case "expired":
                return f"expired while waiting for {who}{f'; only {by} approved it' if by else ''}"
            case _:
                return f"withdrawn after {by} approved it" if by else "withdrawn before it was decided"

    @property
    def _why(self) -> str:
        return f": {self.reason}" if self.reason else ""

    @property
    def is_refusal(self) -> bool:
        """Whether the tool did not run, and will not."""
        return self.status not in ("pending", "approved")

    def to_json(self) -> JsonObject:
        """Return the review as JSON, for MCP, the store and the REST API."""
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

    def redacted(self, redact: Callable[[str], str]) -> HubReview:
        """Return the review with secrets redacted from its texts."""
        return replace(
            self,
            groups=tuple(map(redact, self.groups)),
            approved_by=tuple(map(redact, self.approved_by)),
            rejected_by=redact(self.rejected_by),
            reason=redact(self.reason),
            url=redact(self.url),
        )


def review_from_json(value: object) -> HubReview | None:
    """Return the review in an untrusted value; ``None`` if it is not one. Long texts are cut."""
    status = _text(value.get("status"), _LONGEST_NAME) if isinstance(value, Mapping) else ""
    if not isinstance(value, Mapping) or status not in _STATUSES:
        return None
    count = value.get("count")
    return HubReview(
        status=status,
        groups=_names(value.get("groups")),
        count=count if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= 1000 else 1,
        approved_by=_names(value.get("approved_by")),
        expires_at=time_from_json(value.get("expires_at")),
        rejected_by=_text(value.get("rejected_by"), _LONGEST_NAME),
        reason=_text(value.get("reason"), _LONGEST),
        url=_text(value.get("url"), _LONGEST),
    )


def review_in(meta: Mapping[str, Any]) -> HubReview | None:
    """Return the review in the `_meta` of an MCP message, if there is one."""
    return review_from_json(meta.get(REVIEW_KEY))


def _names(value: object) -> tuple[str, ...]:
    names = value[:_MOST_NAMES] if isinstance(value, list | tuple) else ()
    return tuple(name[:_LONGEST_NAME] for name in names if isinstance(name, str) and name)


def _text(value: object, longest: int) -> str:
    return value[:longest] if isinstance(value, str) else ""
