"""What the caller of a running call is told before the answer: servers' questions, log messages, progress, notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.questions import QuestionAnswer
from jupyter_agentbox.core.tools import Progress

#: Seconds between two times at which progress and log messages are sent; a question is sent at once.
PAUSE: Final = 0.25
#: How many of a server's log messages are kept to be sent: of more within a pause, the oldest are left out.
MOST_LOGGED: Final = 10
#: The largest number of characters of a log message, and of the text of progress.
LONGEST_TEXT: Final = 2_000
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerMessage:
    """A message on the stream of a call.

    Parameters
    ----------
    number : int
        Its place in the order of the call's messages, from 1.
    message : dict
        The JSON-RPC request or notification.
    is_logged : bool
        Whether it is a log message of the tool's server.
    """

    number: int
    message: JsonObject
    is_logged: bool = False

    @property
    def is_question(self) -> bool:
        """Whether it is a request, which the caller answers."""
        return "id" in self.message


class CallerMessages:
    """The messages to the caller of one call, kept for a connection that takes the place of a broken one.

    A question is kept until it is answered or withdrawn. Of a server's log messages only the last are kept, and of its
    progress only the latest, and both are sent at intervals: a tool that reports without end slows down nobody.

    Parameters
    ----------
    on_new : callable
        Called when there is another message.
    """

    def __init__(self, on_new: Callable[[], None]) -> None:
        self._on_new = on_new
        self._count = 0
        self._kept: list[CallerMessage] = []
        self._open: dict[str, asyncio.Future[QuestionAnswer]] = {}
        self._notices: list[str] = []
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        #: How often the tool reported progress; below, the latest notification of it.
        self.reports = 0
        self.latest_progress: JsonObject = {}

    @property
    def notices(self) -> Sequence[str]:
        """The texts of the notices."""
        return tuple(self._notices)

    def after(self, number: int) -> Sequence[CallerMessage]:
        """Return the messages after the one with this number."""
        return tuple(one for one in self._kept if one.number > number)

    def notify(self, text: str, *, is_sent: bool = True) -> None:
        """Tell the caller something, as a warning in the log of the server, or only in the result of a failed call."""
        self._notices.append(text)
        if is_sent:
            self._add({"method": "notifications/message", "params": {"level": "warning", "data": text}})
            self._on_new()

    def log(self, level: str, logger: str, text: str) -> None:
        """Pass on a log message of the tool's server."""
        logged = [one for one in self._kept if one.is_logged]
        if len(logged) >= MOST_LOGGED:
            self._kept.remove(logged[0])
        params: JsonObject = {"level": level, "data": _cut(text, LONGEST_TEXT)}
        if logger:
            params["logger"] = _cut(logger, _LONGEST_NAME)
        self._add({"method": "notifications/message", "params": params}, is_logged=True)
        self._announce_in_time()

    def progress(self, token: str | int, progress: Progress) -> None:
        """Pass on the progress that the tool reports. Whatever it says of approvers is left out."""
        params: JsonObject = {"progressToken": token}
        for key, value in progress.to_json().items():
            if value is not None and value != "":
                params[key] = _cut(value, LONGEST_TEXT) if isinstance(value, str) else value
        self.reports += 1
        self.latest_progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        self._announce_in_time()

    async def ask(self, id: str, params: JsonObject) -> QuestionAnswer:
        """Ask the caller, and wait for the answer. Cancelling the task withdraws the question.

        Parameters
        ----------
        id : str
            The unguessable id of the question, which is that of the message.
        params : dict
            The parameters of MCP's `elicitation/create`.
        """
        answer: asyncio.Future[QuestionAnswer] = asyncio.get_running_loop().create_future()
        self._open[id] = answer
        asked = self._add({"id": id, "method": "elicitation/create", "params": params})
        self._on_new()
        try:
            return await answer
        finally:
            del self._open[id]
            self._kept.remove(asked)
            if answer.cancelled() or not answer.done():
                self._add({"method": "notifications/cancelled", "params": {"requestId": id}})
                self._on_new()

    def answer(self, id: object, answer: QuestionAnswer) -> bool:
        """Accept the caller's answer; return whether the question is one of this call and still open."""
        waiting = self._open.get(id) if isinstance(id, str) else None
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True

    def _add(self, message: JsonObject, *, is_logged: bool = False) -> CallerMessage:
        self._count += 1
        added = CallerMessage(number=self._count, message={"jsonrpc": "2.0", **message}, is_logged=is_logged)
        self._kept.append(added)
        return added

    def _announce_in_time(self) -> None:
        """Announce what was added: at once, or when the pause after the last time is over."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            return
        if loop.time() >= self._next:
            self._announce()
        else:
            self._timer = loop.call_at(self._next, self._announce)

    def _announce(self) -> None:
        self._timer = None
        self._next = asyncio.get_running_loop().time() + PAUSE
        self._on_new()


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
