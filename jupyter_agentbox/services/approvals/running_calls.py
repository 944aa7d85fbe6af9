"""Progress, log messages and questions of running calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.ports import ActivityListener, Announcer
from jupyter_agentbox.core.questions import QuestionRecord
from jupyter_agentbox.core.tools import Activity, LogMessage, Progress
from jupyter_agentbox.exceptions import InvalidTransitionError

from .open_requests import OpenRequests


class RunningCalls:
    """Shows the progress and log messages of running calls, and stores their servers' questions.

    Parameters
    ----------
    requests : OpenRequests
        Holds the requests of the calls.
    announcer : Announcer
        Notifies pages.
    listener : ActivityListener, optional
        Gets the progress and log messages, which are then not shown here.
    """

    def __init__(
        self, *, requests: OpenRequests, announcer: Announcer, listener: ActivityListener | None = None
    ) -> None:
        self._requests = requests
        self._announcer = announcer
        self._listener = listener

    def find(self, request_id: str) -> ApprovalRequest | None:
        """Return a request whose call is running here, if any."""
        return self._requests.running(request_id)

    def set_progress(self, request_id: str, progress: Progress) -> None:
        """Set a running call's progress and notify pages."""
        if self._listener is not None:
            self._listener.progressed(request_id, progress)
            return
        self._set_activity(request_id, lambda activity: activity.with_progress(progress))

    def add_message(self, request_id: str, message: LogMessage) -> None:
        """Add a log message of a running call's server and notify pages."""
        if self._listener is not None:
            self._listener.logged(request_id, message)
            return
        self._set_activity(request_id, lambda activity: activity.with_message(message))

    def activity_of(self, request_id: str) -> Activity | None:
        """Return a running call's progress and log messages; ``None`` if there are none, or it has ended."""
        found = self._requests.find(request_id)
        return None if found is None else found.activity

    def at_hub(self) -> tuple[str, ...]:
        """Return the ids of the running calls that wait for people whom their server asks, oldest first."""
        return tuple(one.request.id for one in self._requests if one.waits_at_hub)

    def _set_activity(self, request_id: str, change: Callable[[Activity], Activity]) -> None:
        found = self._requests.find(request_id)
        if found is not None:
            found.activity = change(found.activity or Activity())
            self._announcer.approval_changed(found.request)

    async def keep_question(self, request_id: str, record: QuestionRecord) -> None:
        """Store a question of a running call's server, with its answer.

        Raises
        ------
        InvalidTransitionError
            The call has ended.
        StorageError
            It could not be stored.
        """
        self.note_question(request_id, record)
        request = self.find(request_id)
        is_kept = False
        try:
            is_kept = request is not None and await asyncio.shield(self._requests.try_write(request, request))
        finally:
            if not is_kept:
                self._change(request_id, lambda present: present.without_question(record))
        if request is None or not is_kept:
            raise InvalidTransitionError(f"the call of request `{request_id}` has ended", request_id=request_id)
        self._announcer.approval_changed(request)

    def note_question(self, request_id: str, record: QuestionRecord) -> None:
        """Remember an unanswered question, to be stored with the next change of the request."""
        self._change(request_id, lambda request: request.with_question(record))

    def _change(self, request_id: str, change: Callable[[ApprovalRequest], ApprovalRequest]) -> None:
        found = self._requests.find(request_id)
        if found is not None and self.find(request_id) is not None:
            found.request = change(found.request)
