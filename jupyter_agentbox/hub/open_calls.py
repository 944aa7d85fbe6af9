"""Calls whose callers await the answer, or may come back for it after their connection or the service ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.questions import QuestionAnswer, QuestionMode
from jupyter_agentbox.exceptions import UnknownApprovalError
from jupyter_agentbox.services.calls.manager import FinishedCall

from .caller_messages import CallerMessages
from .callers import Caller
from .client_log_levels import ClientLogLevels

#: In how many parts a call waits for its caller to come back.
_PARTS: Final = 12


@dataclass(eq=False, slots=True, kw_only=True)
class OpenCall:
    """A call whose answer has not been delivered yet.

    Parameters
    ----------
    user : str
        The name of the user who made it.
    session : str
        The id of its MCP session.
    message_id : object
        The id of the message to answer.
    task : asyncio.Task
        The call. Cancelling it withdraws its request or cancels its tool.
    request_id : str
        The id of its request; empty while there is none, and then the caller cannot come back for the answer.
    progress_token : str, int or None
        The caller's token for progress notifications; ``None`` for no notifications.
    modes : frozenset of QuestionMode
        What the caller's client can ask its user.
    news : asyncio.Event
        Set when its request becomes pending, or changes, or there is a message for the caller.
    messages : CallerMessages
        The messages for the caller.
    """

    user: str
    session: str
    message_id: object
    task: asyncio.Task[FinishedCall]
    request_id: str = ""
    progress_token: str | int | None = None
    modes: frozenset[QuestionMode] = frozenset()
    news: asyncio.Event = field(default_factory=asyncio.Event)
    messages: CallerMessages = field(init=False)
    _holder: object = None
    _timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        """Connect the messages."""
        self.messages = CallerMessages(self.news.set)

    def take(self, holder: object) -> None:
        """Make a connection the holder of the call, in place of the previous holder."""
        self._holder = holder
        self._stop_timer()

    def is_held_by(self, holder: object) -> bool:
        """Whether this connection gets the answer."""
        return self._holder is holder

    def drop(self, holder: object, *, patience: float, on_end: Callable[[OpenCall], None]) -> None:
        """Handle a broken connection. Unless another connection takes the call, it ends: at once or after a time."""
        if self._holder is not holder:
            return
        self._holder = None
        if self.request_id:
            self._wait(_PARTS, patience / _PARTS, on_end)
        else:
            on_end(self)

    def _wait(self, parts: int, seconds: float, on_end: Callable[[OpenCall], None]) -> None:
        """Wait in parts: in a service that was stopped, only one of them is over, and callers can come back."""
        loop = asyncio.get_running_loop()
        if parts == 1:
            self._timer = loop.call_later(seconds, on_end, self)
        else:
            self._timer = loop.call_later(seconds, self._wait, parts - 1, seconds, on_end)

    def end(self) -> None:
        """Cancel the call if it is not done."""
        self._stop_timer()
        self.task.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class OpenCalls:
    """All open calls.

    Parameters
    ----------
    patience : float
        Seconds that a call is kept without a connection if it waits or has waited.
    """

    def __init__(self, *, patience: float) -> None:
        self.patience = patience
        self._calls: set[OpenCall] = set()
        self._by_request: dict[str, OpenCall] = {}
        self._running: dict[str, OpenCall] = {}
        self._levels = ClientLogLevels()

    @property
    def retry(self) -> int:
        """Milliseconds after which callers should come back. Known clients try twice."""
        return int(self.patience * 1000 / 6)

    def add(self, call: OpenCall, holder: object) -> None:
        """Add a new call, held by a connection."""
        call.take(holder)
        self._calls.add(call)
        if call.request_id:
            self._by_request[call.request_id] = call

    def waits(self, call: OpenCall, request: ApprovalRequest) -> None:
        """Store the id of a call's request."""
        call.request_id = request.id
        call.news.set()
        self._by_request[request.id] = call

    def runs(self, call: OpenCall, request: ApprovalRequest) -> None:
        """Record that the tool of a call runs, so that its server's questions can be put to the caller."""
        if not call.task.done():
            self._running[request.id] = call
            call.task.add_done_callback(lambda _: self._running.pop(request.id, None))

    def running(self, request_id: str) -> OpenCall | None:
        """Return the call with this request whose tool is running; ``None`` if there is none."""
        return self._running.get(request_id)

    def set_level(self, user: str, session: str, level: object) -> bool:
        """Set the log level of a session; return whether MCP has such a level."""
        return self._levels.set(user, session, level)

    def wants(self, call: OpenCall, level: str) -> bool:
        """Whether the client that made a call is to be sent log messages of a level."""
        return self._levels.wants(call.user, call.session, level)

    def answer(self, user: str, session: str, question_id: object, answer: QuestionAnswer) -> None:
        """Accept an answer to a question, if it comes in the session of the call that the question is about."""
        for call in tuple(self._calls):
            if (call.user, call.session) == (user, session) and call.messages.answer(question_id, answer):
                return

    def find(self, request_id: str, caller: Caller) -> OpenCall | None:
        """Return the caller's call with this request; ``None`` if there is none."""
        call = self._by_request.get(request_id)
        return call if call is not None and call.user == caller.name else None

    def changed(self, request: ApprovalRequest) -> None:
        """Announce a changed request to its call."""
        if (call := self._by_request.get(request.id)) is not None:
            call.news.set()

    def drop(self, call: OpenCall, holder: object) -> None:
        """Handle a broken connection."""
        call.drop(holder, patience=self.patience, on_end=self.remove)

    def remove(self, call: OpenCall) -> None:
        """Remove a call that was answered or that nobody waits for. It is cancelled if it is not done."""
        self._calls.discard(call)
        if self._by_request.get(call.request_id) is call:
            del self._by_request[call.request_id]
        call.end()

    def cancel(self, user: str, session: str, message_id: object) -> None:
        """Cancel the call that a message started."""
        self._cancel(lambda one: one.message_id == message_id, user, session)

    def cancel_session(self, user: str, session: str) -> None:
        """Cancel all calls of a session that has ended."""
        self._levels.forget(user, session)
        self._cancel(lambda _: True, user, session)

    def _cancel(self, is_it: Callable[[OpenCall], bool], user: str, session: str) -> None:
        for call in tuple(self._calls):
            if (call.user, call.session) == (user, session) and is_it(call):
                call.task.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventId:
    """The id of an event, with which a caller can come back to its call.

    Parameters
    ----------
    request_id : str
        The id of the call's request.
    message_id : str or int
        The id of the message to answer.
    progress_token : str, int or None
        The caller's token for progress notifications.
    number : int
        The number of the last message to the caller.
    """

    request_id: str
    message_id: str | int
    progress_token: str | int | None = None
    number: int = 0

    def __str__(self) -> str:
        """Return it as it is sent."""
        parts = [self.message_id, self.progress_token, *([self.number] if self.number else [])]
        return f"{self.request_id}:{json.dumps(parts, separators=(',', ':'))}"


def read_event_id(text: str) -> EventId:
    """Read an event id.

    Raises
    ------
    UnknownApprovalError
        If the text is not an event id.
    """
    request_id, _, message = text.partition(":")
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        found = None
    parts = found if isinstance(found, list) and 2 <= len(found) <= 3 else [found]  # of an older release
    message_id, token, number = (*parts, None, None)[:3]
    message_id = as_id(message_id)
    if not request_id or message_id is None:
        raise UnknownApprovalError("this is not the id of a call's event", request_id="")
    return EventId(
        request_id=request_id,
        message_id=message_id,
        progress_token=as_id(token),
        number=number if isinstance(number, int) else 0,
    )


def as_id(value: object) -> str | int | None:
    """Return an untrusted message id or progress token; ``None`` if it is neither a string nor an integer."""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None
