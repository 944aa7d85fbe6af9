"""Servers' questions, stored as JSON in the row of their call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jupyter_agentbox.core.questions import QuestionAction, QuestionMode, QuestionRecord

from .grant_rows import reviewer_from_json, reviewer_to_json


def question_to_json(record: QuestionRecord) -> dict[str, Any]:
    """Return the record in its stored form: fields as pairs, so that a server's names never become keys of the row."""
    return {
        "mode": record.mode.value,
        "message": record.message,
        "url": record.url,
        "action": record.action.value,
        "content": [list(pair) for pair in record.content],
        "reviewer": None if record.reviewer is None else reviewer_to_json(record.reviewer),
        "asked_at": record.asked_at.isoformat(),
        "answered_at": record.answered_at.isoformat(),
    }


def question_from_json(value: Mapping[str, Any]) -> QuestionRecord:
    """Return the stored record."""
    reviewer = value["reviewer"]
    return QuestionRecord(
        mode=QuestionMode(value["mode"]),
        message=value["message"],
        url=value["url"],
        action=QuestionAction(value["action"]),
        content=tuple((name, kept) for name, kept in value["content"]),
        reviewer=None if reviewer is None else reviewer_from_json(reviewer),
        asked_at=datetime.fromisoformat(value["asked_at"]),
        answered_at=datetime.fromisoformat(value["answered_at"]),
    )
