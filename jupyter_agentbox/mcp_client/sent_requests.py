"""Requests that were sent, and how they failed as the transports saw it, whatever the server says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from jupyter_agentbox.core.hub_reviews import HubReview


class RequestFailure(Enum):
    """What a transport knows about a request without a usable response."""

    #: It never reached the tool.
    NOT_SENT = "not sent"
    #: The server no longer knows the session, so it did nothing. The request can be resent in a new one.
    SESSION_LOST = "session lost"
    #: The server refused the client, so it did nothing.
    REFUSED = "refused"
    #: The connection ended before a response; the effect of the request is unknown.
    INTERRUPTED = "interrupted"
    #: The connection ended in the middle of the response.
    CUT_OFF = "cut off"
    #: The response is complete but unusable.
    UNUSABLE = "unusable"


@dataclass(slots=True)
class SentRequest:
    """A request that was sent, and what is known of its response."""

    failure: RequestFailure | None = None
    reason: str = ""
    is_answered: bool = False
    #: The response is an error. If the call fails although it is none, the connection ended before the call had it.
    is_refused: bool = False
    #: The server began to respond: whatever happens later, the tool may have run.
    is_taken: bool = False
    #: Whom the server asks before it runs the tool, from the last progress notification.
    review: HubReview | None = None
    #: The content blocks of a result with so many that parsing all of them at once would block the event loop.
    long_content: Sequence[Any] = ()

    def fail(self, failure: RequestFailure, reason: str) -> None:
        """Set the failure; the first call counts."""
        if self.failure is None:
            did_nothing = failure in (RequestFailure.NOT_SENT, RequestFailure.SESSION_LOST, RequestFailure.REFUSED)
            self.failure = RequestFailure.INTERRUPTED if did_nothing and self.is_taken else failure
            self.reason = reason


_CURRENT: Final[ContextVar[SentRequest | None]] = ContextVar("jupyter_agentbox_sent_request", default=None)


@contextmanager
def following() -> Iterator[SentRequest]:
    """Track the request sent in this context. The SDK propagates the context to its sending tasks."""
    sent = SentRequest()
    token = _CURRENT.set(sent)
    try:
        yield sent
    finally:
        _CURRENT.reset(token)


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """An answer to a question of the server.

    Parameters
    ----------
    asked_by : SentRequest or None
        The call during which it asked, if known.
    """

    asked_by: SentRequest | None


_ANSWER: Final[ContextVar[SentAnswer | None]] = ContextVar("jupyter_agentbox_sent_answer", default=None)


@contextmanager
def answering() -> Iterator[None]:
    """Track what is sent in this context as an answer, not as part of the call: it says nothing about the result."""
    answer, request = _ANSWER.set(SentAnswer(current())), _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(request)
        _ANSWER.reset(answer)


def current_answer() -> SentAnswer | None:
    """Return the answer that is sent in this context."""
    return _ANSWER.get()


def current() -> SentRequest | None:
    """Return the request tracked in this context."""
    return _CURRENT.get()


def sent_in(context: Context | None) -> SentRequest | None:
    """Return the request tracked in another context; ``None`` if there is none."""
    return None if context is None else context.get(_CURRENT)
