"""What is said while a call runs, on its way to pages and people."""

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
        Shows how far it is, and what its server logs.
    questions : QuestionManager
        Puts questions to a person.
    on_asked : callable
        Called with the request when there is a question, and when its server asks other persons.
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
        """The request of the call."""
        return self._request.id

    def progressed(self, progress: Progress) -> None:
        """Show how far the tool says it is; if its server asks other persons first, where who asked sees it."""
        self._running_calls.set_progress(self._request.id, progress)
        if progress.review is not None and not self._waits_elsewhere:
            self._waits_elsewhere = True
            self._on_asked(self._request)

    def logged(self, message: LogMessage) -> None:
        """Show what the tool's server logs."""
        self._running_calls.add_message(self._request.id, message)

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        """Put a question to a person."""
        self._on_asked(self._request)
        return await self._questions.ask(self._request.id, question)
