"""The fate of a request, as observed by the transports, not as reported by a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Final

from jupyter_agentbox.core.server_reviews import ServerReview


class Fate(Enum):
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
class Delivery:
    """The delivery of a request."""

    fate: Fate | None = None
    reason: str = ""
    is_answered: bool = False
    #: The server began to respond: whatever happens later, the tool may have run.
    is_taken: bool = False
    #: Whom the server asks before it runs the tool, from the last progress notification.
    review: ServerReview | None = None

    def fail(self, fate: Fate, reason: str) -> None:
        """Set the fate; the first call counts."""
        if self.fate is None:
            did_nothing = fate in (Fate.NOT_SENT, Fate.SESSION_LOST, Fate.REFUSED)
            self.fate = Fate.INTERRUPTED if did_nothing and self.is_taken else fate
            self.reason = reason


_CURRENT: Final[ContextVar[Delivery | None]] = ContextVar("jupyter_agentbox_delivery", default=None)


@contextmanager
def following() -> Iterator[Delivery]:
    """Track the request sent in this context. The SDK propagates the context to its sending tasks."""
    delivery = Delivery()
    token = _CURRENT.set(delivery)
    try:
        yield delivery
    finally:
        _CURRENT.reset(token)


def current() -> Delivery | None:
    """Return the request tracked in this context."""
    return _CURRENT.get()
