"""The line saved in a notebook for a call that asked a person: what ran, who decided, and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.signatures import replaced, signature
from jupyter_agentbox.core.text import one_line

from .results import comment_of

#: Maximum length, in characters, of a reason, and of a name.
_REASON: Final = 500
_NAME: Final = 80
_COMMENT: Final = 4_000
_NOT_RUN: Final = "; did not run"


def decision_line(what: str, asked: Mapping[str, Any], record: object, outcome: str, *, has_run: bool) -> str:
    """Return the line of a call that ended.

    Parameters
    ----------
    what : str
        ``server.tool``, untrusted.
    asked : mapping
        The arguments as requested by the code.
    record : object
        The server's record of the request: see `services.kernel_connections.records`. Older servers send none.
    outcome : str
        The outcome, unless the call was simply allowed and succeeded; may contain text of people and servers.
    has_run : bool
        Whether the tool answered without an error.
    """
    known: JsonObject = record if isinstance(record, dict) else {}
    call = _call(what, asked, known)
    sign = "✓" if has_run else "✗"
    decision, review = _decision(known), _review(known)
    # The sign shows that it was allowed and ran; the Hub's text says that it did not run.
    is_said = (has_run and (decision or review)) or review.endswith(_NOT_RUN)
    parts = [*_edits(asked, known), *decision, review, "" if is_said else one_line(outcome, _REASON)]
    return f"{sign} {call} — {', '.join(filter(None, parts))}"


def comment_line(what: str, record: object) -> str:
    """Return the line with an approver's comment for the code; empty if there is none.

    Parameters
    ----------
    what, record
        As in `decision_line`.
    """
    comment = comment_of(record)
    if not comment:
        return ""
    by = record.get("by") if isinstance(record, dict) else None
    who = f" by {one_line(by, _NAME)}" if isinstance(by, str) else ""
    return f"Comment{who} on {one_line(what)}: {one_line(comment, _COMMENT)}"


def _call(what: str, asked: Mapping[str, Any], record: JsonObject) -> str:
    if record.get("with_arguments") is not True:
        return f"{one_line(what)}(…)"
    edited = record.get("arguments")
    return signature(what, edited if isinstance(edited, dict) else asked)


def _edits(asked: Mapping[str, Any], record: JsonObject) -> list[str]:
    """Describe the requested arguments, if edited ones ran."""
    if not record.get("is_edited"):
        return []
    edited = record.get("arguments")
    if not isinstance(edited, dict):
        return ["edited"]
    before = replaced(asked, edited)
    return [f"edited (the code asked for {before})" if before else "edited"]


def _decision(record: JsonObject) -> list[str]:
    by, at = record.get("by"), record.get("at")
    if not isinstance(by, str) or not isinstance(at, str):
        return []
    answer = "allowed" if record.get("status") == "approved" else "rejected"
    return [f"{answer} by {one_line(by, _NAME)}", _local_time(at)]


def _review(record: JsonObject) -> str:
    """Describe the answers of those whom the Hub service asked; empty if it asked nobody."""
    hub = record.get("hub")
    text = hub.get("text") if isinstance(hub, dict) else None
    if not isinstance(hub, dict) or not isinstance(text, str):
        return ""
    if hub.get("status") == "pending":  # the call has ended, so its text is outdated
        return "not yet answered at the Hub"
    return f"at the Hub {one_line(text, _REASON)}{'' if hub.get('status') == 'approved' else _NOT_RUN}"


def _local_time(at: str) -> str:
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return ""
