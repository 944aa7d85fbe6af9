"""The calls that run on one connection: whom its server's questions go to, and whose time stands still meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.tools import LogMessage

from .deliveries import Delivery


class RunningCall:
    """One call. Its tool has `seconds`, not counting those in which a person is asked.

    Parameters
    ----------
    listener : CallListener or None
        Puts questions to a person.
    seconds : float
        How long the tool may run.
    """

    def __init__(self, listener: CallListener | None, seconds: float) -> None:
        self.listener = listener
        self.delivery: Delivery | None = None
        self.questions: set[asyncio.Task[QuestionAnswer]] = set()
        self.limit = asyncio.timeout(seconds)
        self.is_over = False
        self._left = seconds
        self._pauses = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let its time stand still."""
        loop = asyncio.get_running_loop()
        if self._pauses == 0 and (end := self.limit.when()) is not None and not self.limit.expired():
            self._left = end - loop.time()
            self.limit.reschedule(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and not self.is_over:
                self.limit.reschedule(loop.time() + self._left)

    def end(self) -> None:
        """Take its questions back."""
        self.is_over = True
        for question in self.questions:
            question.cancel()


class RunningCalls:
    """All calls of a connection."""

    def __init__(self) -> None:
        self._calls: list[RunningCall] = []

    @contextmanager
    def running(self, call: RunningCall) -> Iterator[None]:
        """Count a call among those that run."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            call.end()

    def logged(self, message: LogMessage) -> None:
        """Tell the one call that runs what its server logs: with several it is not known which one it is about."""
        if len(self._calls) == 1 and (listener := self._calls[0].listener) is not None:
            listener.logged(message)

    async def ask(self, question: ServerQuestion, delivery: Delivery | None) -> QuestionAnswer | None:
        """Put a question to a person; ``None`` if no call runs that has one.

        A server over standard input and output does not say for which call it asks. With several, the oldest one
        speaks for all of them, the question says so, and the time of all of them stands still.

        Parameters
        ----------
        question : ServerQuestion
            What the server asks.
        delivery : Delivery or None
            Of which call, if that is known.
        """
        known = [call for call in self._calls if delivery is not None and call.delivery is delivery]
        possible = known or self._calls[:]
        for call in possible:
            if call.listener is not None:
                with _all_paused(possible):
                    return await _asked(call, call.listener, replace(question, calls=len(possible)))
        return None


@contextmanager
def _all_paused(calls: list[RunningCall]) -> Iterator[None]:
    if not calls:
        yield
        return
    with calls[0].paused(), _all_paused(calls[1:]):
        yield


async def _asked(call: RunningCall, listener: CallListener, question: ServerQuestion) -> QuestionAnswer:
    """Ask in a task that the end of the call cancels; then the server hears that nobody answered."""
    task = asyncio.ensure_future(listener.ask(question))
    call.questions.add(task)
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        call.questions.discard(task)
    return QuestionAnswer(action=QuestionAction.CANCEL) if task.cancelled() else task.result()
