"""The running calls of a connection: they receive the server's questions, during which their timeouts are paused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.questions import NOBODY, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.tools import LogMessage

from .sent_requests import SentRequest


class RunningCall:
    """A running call. Its tool may take `seconds`, not counting waits for a person.

    Parameters
    ----------
    listener : CallListener or None
        Asks a person questions.
    seconds : float
        Timeout of the tool, in seconds.
    """

    def __init__(self, listener: CallListener | None, seconds: float) -> None:
        self.listener = listener
        self.sent: SentRequest | None = None
        self.questions: set[asyncio.Task[QuestionAnswer]] = set()
        self.limit = asyncio.timeout(seconds)
        self.is_over = False
        #: Why a person's answer did not reach the server.
        self.lost_answer = ""
        self._left = seconds
        self._pauses = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the timeout."""
        loop = asyncio.get_running_loop()
        if self._pauses == 0 and (end := self.limit.when()) is not None and not self.limit.expired():
            self._left = end - loop.time()
            self.limit.reschedule(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and not self.is_over and not self.lost_answer and not self.limit.expired():
                self.limit.reschedule(loop.time() + self._left)

    def give_up(self, reason: str) -> None:
        """End the call because its server waits in vain for a person's answer."""
        self.lost_answer = reason
        self.limit.reschedule(asyncio.get_running_loop().time())

    def end(self) -> None:
        """Withdraw its questions."""
        self.is_over = True
        for question in self.questions:
            question.cancel()


class RunningCalls:
    """All calls of a connection.

    Parameters
    ----------
    is_shared : bool
        Whether they are of several people. Then a question is asked, and a log message passed on, only if it is known
        to which call it belongs.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self.is_shared = is_shared
        self._calls: list[RunningCall] = []

    @contextmanager
    def running(self, call: RunningCall) -> Iterator[None]:
        """Register a call while it runs."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            call.end()

    def logged(self, message: LogMessage, sent: SentRequest | None) -> None:
        """Pass a log message to its call, or, if it does not say to which one it belongs, to the only running call.

        If the calls are of several people, not even the only one counts: the message may be about one that has ended.

        Parameters
        ----------
        message : LogMessage
            The server's message.
        sent : SentRequest or None
            The call's request, if known.
        """
        possible = self._calls if sent is None and not self.is_shared else self._known(sent)
        if len(possible) == 1 and (listener := possible[0].listener) is not None:
            listener.logged(message)

    def give_up(self, sent: SentRequest | None, reason: str) -> None:
        """End the call that sent a request, because its server waits in vain for a person's answer."""
        for call in self._calls:
            if sent is not None and call.sent is sent and not call.limit.expired():
                call.give_up(reason)

    async def ask(self, question: ServerQuestion, sent: SentRequest | None) -> QuestionAnswer | None:
        """Ask a person a question; return ``None`` if no running call can ask.

        A stdio server does not say to which call its question belongs. With several, the oldest one asks for all of
        them, the question says so, and the timeouts of all are paused. If they are of several people, nobody is asked.

        Parameters
        ----------
        question : ServerQuestion
            The server's question.
        sent : SentRequest or None
            The call's request, if known.
        """
        known = self._known(sent)
        possible = known if known or self.is_shared else self._calls[:]
        for call in possible:
            if call.listener is not None:
                with _all_paused(possible):
                    calls = max(len(possible), question.calls)
                    return await _asked(call, call.listener, replace(question, calls=calls))
        return None

    def _known(self, sent: SentRequest | None) -> list[RunningCall]:
        return [call for call in self._calls if sent is not None and call.sent is sent]


@contextmanager
def _all_paused(calls: list[RunningCall]) -> Iterator[None]:
    with ExitStack() as stack:
        for call in calls:
            stack.enter_context(call.paused())
        yield


async def _asked(call: RunningCall, listener: CallListener, question: ServerQuestion) -> QuestionAnswer:
    """Ask in a task that the end of the call cancels; the server is then told that nobody answered."""
    task = asyncio.ensure_future(listener.ask(question))
    call.questions.add(task)
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        call.questions.discard(task)
    return NOBODY if task.cancelled() else task.result()
