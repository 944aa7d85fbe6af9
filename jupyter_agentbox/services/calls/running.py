"""Forwards the progress, log messages and questions of a running call to pages and people."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.questions import QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.tools import LogMessage, Progress
from jupyter_agentbox.services.approvals.running_calls import RunningCalls
from jupyter_agentbox.services.questions.manager import QuestionManager


class RunningCall:
    """A `CallListener` for one call.

    Parameters
    ----------
    request : ApprovalRequest
        The call.
    running_calls : RunningCalls
        Shows progress and log messages.
    questions : QuestionManager
        Asks people questions.
    on_asked : callable
        Called with the request if there is a question, or if its server asks other people.
    """

    def __init__(
        self,
        request: ApprovalRequest,
        *,
        running_calls: RunningCalls,
        questions: QuestionManager,
        on_asked: Callable[[ApprovalRequest], None],
    ) -> None:
        self._request = request
        self._running_calls = running_calls
        self._questions = questions
        self._on_asked = on_asked
        self._waits_elsewhere = False

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self._request.id

    def progressed(self, progress: Progress) -> None:
        """Show the tool's progress; if its server first asks other people, show that where the call was made."""
        self._running_calls.set_progress(self._request.id, progress)
        if progress.review is not None and not self._waits_elsewhere:
            self._waits_elsewhere = True
            self._on_asked(self._request)

    def logged(self, message: LogMessage) -> None:
        """Show a log message of the tool's server."""
        self._running_calls.add_message(self._request.id, message)

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        """Ask a person a question."""
        self._on_asked(self._request)
        return await self._questions.ask(self._request.id, question)
