"""What this kernel waits for, and for how long. No thread, no loop, no clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jupyter_agentbox.protocol.messages import (
    AgentCommand,
    Asked,
    Call,
    Failure,
    FromServer,
    GetModule,
    Question,
    Reply,
    Running,
    StartTurn,
    TurnNews,
    Waiting,
)

from .cells import Cell

#: What the server can answer to a request.
ServerAnswer = Waiting | Running | Asked | TurnNews | Reply | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for what, in seconds.

    Parameters
    ----------
    attach : float
        For any answer to a message; after that no server is there.
    alone : float
        For any sign of life of a server, while it is known that none is there.
    repeat : float
        Between repetitions of an unanswered message.
    ping : float
        Between two pings, while anything is waited for.
    lost : float
        For any sign of life of a server that has answered.
    """

    attach: float = 10.0
    alone: float = 0.05
    repeat: float = 1.0
    ping: float = 5.0
    lost: float = 60.0


@dataclass(slots=True, kw_only=True, eq=False)
class PendingRequest:
    """One message that has no final answer yet.

    Parameters
    ----------
    question : Question
        The message.
    deliver : callable
        Hands an answer to the code that waits, from any thread; ``None`` to have it look at how things are.
    cell : Cell
        Whose code waits.
    give_up_at : float or None
        When the code stops waiting whatever the server does, on the link's clock.

    Attributes
    ----------
    begun_at : float
        When the wait began, on the link's clock.
    sent_at : float or None
        When the message was first sent; ``None`` if it was not, for no server is there.
    times_unknown : int
        How often the server said that it does not know the message.
    """

    question: Question
    deliver: Callable[[ServerAnswer | None], None]
    cell: Cell = field(default_factory=Cell)
    give_up_at: float | None = None
    begun_at: float = 0.0
    sent_at: float | None = None
    answered: bool = False
    times_unknown: int = 0
    request_id: str | None = None

    @property
    def what(self) -> str:
        """What is waited for, for people."""
        match self.question:
            case Call(server=server, tool=tool):
                return f"{server}.{tool}"
            case GetModule(server=server):
                return f"tools.{server}"
            case StartTurn():
                return "%%agent"
            case AgentCommand(command=command):
                return f"%agent {command}"
            case _:
                return str(self.question.type)


class PendingRequests:
    """The table of waits. Its own, because a page may close the comm at any time."""

    def __init__(self) -> None:
        self._by_id: dict[str, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ids(self) -> list[str]:
        """The ids of all waits."""
        return list(self._by_id)

    def add(self, pending: PendingRequest) -> None:
        """Begin to wait for one."""
        self._by_id[pending.question.id] = pending

    def remove(self, pending: PendingRequest) -> None:
        """Wait for one no longer; answers that come later are dropped."""
        self._by_id.pop(pending.question.id, None)

    def wake(self) -> None:
        """Have all waits look at how things are."""
        for pending in list(self._by_id.values()):
            pending.deliver(None)

    def of_cell(self, cell: Cell) -> list[PendingRequest]:
        """Return the waits of one cell's code."""
        return [pending for pending in list(self._by_id.values()) if pending.cell.key == cell.key]

    def receive(self, message: FromServer) -> None:
        """Hand an answer to the request that it is for."""
        if isinstance(message, ServerAnswer) and (pending := self._by_id.get(message.id)) is not None:
            pending.answered = True
            pending.deliver(message)

    def forgotten_by_server(self, ids: list[str]) -> list[PendingRequest]:
        """Return the waits among `ids` that were answered once: the server was restarted since."""
        found = [pending for pending in map(self._by_id.get, ids) if pending is not None]
        for pending in found:
            pending.times_unknown += 1
        return [pending for pending in found if pending.answered]
