"""What became of a request on its way: written by the transports, as they saw it, and by no server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Final

from jupyter_agentbox.core.server_reviews import ServerReview


class Fate(Enum):
    """What a transport knows of a request that has no usable answer."""

    #: It never reached the tool.
    NOT_SENT = "not sent"
    #: The server does not know the session any more, so it did nothing. On a new one the request can be sent again.
    SESSION_LOST = "session lost"
    #: The server refused who asks, so it did nothing.
    REFUSED = "refused"
    #: The connection ended before an answer; what the request did is not known.
    INTERRUPTED = "interrupted"
    #: The connection ended in the middle of the answer.
    CUT_OFF = "cut off"
    #: The answer is whole and cannot be used.
    UNUSABLE = "unusable"


@dataclass(slots=True)
class Delivery:
    """One request on its way."""

    fate: Fate | None = None
    reason: str = ""
    is_answered: bool = False
    #: The server began to answer: whatever is asked of it later about this request, the tool may have run.
    is_taken: bool = False
    #: Whom its server asks before it runs the tool, as the last progress notification says.
    review: ServerReview | None = None

    def fail(self, fate: Fate, reason: str) -> None:
        """Note what became of it; the first note counts."""
        if self.fate is None:
            did_nothing = fate in (Fate.NOT_SENT, Fate.SESSION_LOST, Fate.REFUSED)
            self.fate = Fate.INTERRUPTED if did_nothing and self.is_taken else fate
            self.reason = reason


_CURRENT: Final[ContextVar[Delivery | None]] = ContextVar("jupyter_agentbox_delivery", default=None)


@contextmanager
def following() -> Iterator[Delivery]:
    """Follow the request that is sent inside. The SDK carries the context along to the tasks that send it."""
    delivery = Delivery()
    token = _CURRENT.set(delivery)
    try:
        yield delivery
    finally:
        _CURRENT.reset(token)


def current() -> Delivery | None:
    """Return the request that is followed in this context."""
    return _CURRENT.get()
