"""What the service says to the caller of a running call before the answer: servers' questions, and notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.questions import QuestionAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerMessage:
    """A message on the stream of a call.

    Parameters
    ----------
    number : int
        Its place in the order of the call's messages, from 1.
    message : dict
        The JSON-RPC request or notification.
    """

    number: int
    message: JsonObject

    @property
    def is_question(self) -> bool:
        """Whether it is a request, which the caller answers."""
        return "id" in self.message


class CallerMessages:
    """The messages to the caller of one call, kept for a connection that takes the place of a broken one.

    A question is kept until it is answered or withdrawn.

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

    @property
    def notices(self) -> Sequence[str]:
        """The texts of the notices."""
        return tuple(self._notices)

    def after(self, number: int) -> Sequence[CallerMessage]:
        """Return the messages after the one with this number."""
        return tuple(one for one in self._kept if one.number > number)

    def notify(self, text: str) -> None:
        """Tell the caller something, as a warning in the log of the server."""
        self._notices.append(text)
        self._add({"method": "notifications/message", "params": {"level": "warning", "data": text}})

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
        try:
            return await answer
        finally:
            del self._open[id]
            self._kept.remove(asked)
            if answer.cancelled() or not answer.done():
                self._add({"method": "notifications/cancelled", "params": {"requestId": id}})

    def answer(self, id: object, answer: QuestionAnswer) -> bool:
        """Accept the caller's answer; return whether the question is one of this call and still open."""
        waiting = self._open.get(id) if isinstance(id, str) else None
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True

    def _add(self, message: JsonObject) -> CallerMessage:
        self._count += 1
        added = CallerMessage(number=self._count, message={"jsonrpc": "2.0", **message})
        self._kept.append(added)
        self._on_new()
        return added
