"""The service's log: one JSON object per line, with ids, names and statuses, never arguments or results."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.log_levels import set_log_level

from .callers import asker_of
from .metrics import Metrics

log = logging.getLogger(__name__)

#: The attribute of a log record that holds further fields besides the message.
_FIELDS: Final = "agentbox_fields"


class JsonLines(logging.Formatter):
    """Formats a log record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class RequestLog:
    """Logs and counts requests as they change; an `Announcer`.

    Parameters
    ----------
    metrics : Metrics
        Counts them.
    on_change : callable
        Called with each new or changed request.
    """

    def __init__(self, metrics: Metrics, on_change: Callable[[ApprovalRequest], None] = lambda _: None) -> None:
        self._metrics = metrics
        self._on_change = on_change
        self._said: dict[str, JsonObject] = {}

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Log a new or changed request, but not the progress of its tool."""
        self._metrics.approval_changed(request)
        self._on_change(request)
        decision, outcome = request.decision, request.outcome_state
        fields: JsonObject = {
            "request": request.id,
            "server": request.call.server,
            "tool": request.call.tool,
            "asked_by": asker_of(request),
            "status": request.status.value,
            "votes": [vote.reviewer.name for vote in request.votes],
            "decided_by": None if decision is None else decision.reviewer.name,
            "decided_via": None if decision is None else decision.reviewer.via.value,
            "outcome": None if outcome is None else outcome.value,
        }
        if self._said.get(request.id) == fields:
            return
        if request.is_open:
            self._said[request.id] = fields
        else:
            self._said.pop(request.id, None)
        log.info("request", extra={_FIELDS: fields})

    def servers_changed(self) -> None:
        """Log nothing: servers have logs of their own."""

    def grants_changed(self) -> None:
        """Log nothing: there are no grants here."""

    def questions_changed(self) -> None:
        """Log nothing: the request is announced, too, when a question is answered."""


def log_as_json(level: int | str) -> None:
    """Make this process log JSON Lines to standard error.

    Parameters
    ----------
    level : int or str
        The lowest level that is logged.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], force=True)
    set_log_level(level)
