"""Announces changes through `jupyter_events`: ids and statuses, never arguments or results."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from jupyter_events import EventLogger

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState
from jupyter_agentbox.core.threads import ThreadState
from jupyter_agentbox.core.times import json_time

log = logging.getLogger(__name__)

APPROVAL_EVENT: Final = "https://events.jupyter-agentbox.org/approval/v1"
SERVERS_EVENT: Final = "https://events.jupyter-agentbox.org/servers/v1"
QUESTION_EVENT: Final = "https://events.jupyter-agentbox.org/question/v1"
GRANT_EVENT: Final = "https://events.jupyter-agentbox.org/grant/v1"
KERNEL_EVENT: Final = "https://events.jupyter-agentbox.org/kernel/v1"
THREAD_EVENT: Final = "https://events.jupyter-agentbox.org/thread/v1"

_SCHEMAS: Final = Path(__file__).parent / "event_schemas"

#: Seconds between two announcements of the same running call's progress.
PROGRESS_INTERVAL: Final = 0.25
#: How many requests' last announcements are remembered.
MOST_ANNOUNCED: Final = 10_000


class EventAnnouncer:
    """An `Announcer` over the server's event logger.

    Parameters
    ----------
    events : EventLogger
        The server's event logger. The package's schemas are registered with it.
    """

    def __init__(self, events: EventLogger) -> None:
        self._events = events
        self._announced: dict[str, tuple[str, str | None]] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._held_back: set[str] = set()
        for schema in sorted(_SCHEMAS.glob("*.yaml")):
            if not any(id in schema.read_text() for id in events.schemas.schema_ids):
                events.register_event_schema(schema)

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Announce a new or changed request. Progress of a running call is announced at most a few times a second."""
        outcome = request.outcome.state.value if request.outcome else None
        state = (request.status.value, outcome)
        if self._announced.get(request.id) == state:
            self._announce_progress(request)
            return
        self._announced[request.id] = state
        if len(self._announced) > MOST_ANNOUNCED:  # the end of some is never announced
            self._forget(next(iter(self._announced)))
        if outcome not in (None, OutcomeState.RUNNING.value) or request.status.value not in ("pending", "approved"):
            self._forget(request.id)
        self._emit_approval(request)

    def servers_changed(self) -> None:
        """Announce that an MCP server's state or the configuration has changed."""
        self._emit(SERVERS_EVENT, {})

    def grants_changed(self) -> None:
        """Announce that a grant was created or used, or has ended."""
        self._emit(GRANT_EVENT, {})

    def questions_changed(self) -> None:
        """Announce a new question of an MCP server, or the end of one."""
        self._emit(QUESTION_EVENT, {})

    def kernel_ended(self, kernel_id: str) -> None:
        """Announce that a kernel ended by itself."""
        self._emit(KERNEL_EVENT, {"kernel_id": kernel_id})

    def thread_changed(self, thread_id: str, state: ThreadState) -> None:
        """Announce that a thread was created, changed, renamed or removed."""
        self._emit(THREAD_EVENT, {"thread_id": thread_id, "state": state.value})

    def _announce_progress(self, request: ApprovalRequest) -> None:
        if request.id in self._later:
            self._held_back.add(request.id)
            return
        loop = asyncio.get_running_loop()
        self._later[request.id] = loop.call_later(PROGRESS_INTERVAL, self._announce_held_back, request)
        self._emit_approval(request)

    def _announce_held_back(self, request: ApprovalRequest) -> None:
        """Announce the progress that has arrived in the meantime, if any."""
        self._later.pop(request.id, None)
        if request.id in self._held_back:
            self._held_back.discard(request.id)
            self._announce_progress(request)

    def _forget(self, request_id: str) -> None:
        self._announced.pop(request_id, None)
        self._held_back.discard(request_id)
        timer = self._later.pop(request_id, None)
        if timer is not None:
            timer.cancel()

    def _emit_approval(self, request: ApprovalRequest) -> None:
        """Announce a request without what it asks: whoever hears events may not have the right to read requests."""
        decision, evaluation, origin = request.decision, request.evaluation, request.call.origin
        self._emit(
            APPROVAL_EVENT,
            {
                "id": request.id,
                "status": request.status.value,
                "outcome": request.outcome.state.value if request.outcome else None,
                "kernel_id": origin.kernel_id,
                "isolation": origin.isolation.value,
                "asked_by": origin.asked_by,
                "effect": evaluation.effect.value,
                "layer": evaluation.rule.layer.value if evaluation.rule else None,
                "created_at": json_time(request.created_at),
                "expires_at": json_time(request.expires_at),
                "decision": decision.answer.value if decision else None,
                "reviewer": decision.reviewer.name if decision else None,
                "reviewer_kind": decision.reviewer.kind.value if decision else None,
                "via": decision.reviewer.via.value if decision else None,
                "decided_at": json_time(decision.decided_at) if decision else None,
                "ended_at": json_time(request.ended_at),
            },
        )

    def _emit(self, schema_id: str, data: dict[str, str | None]) -> None:
        try:
            self._events.emit(schema_id=schema_id, data=data)
        except Exception:
            # A boundary: pages also poll, and a failing listener must not stop a call.
            log.exception("an event could not be announced")
