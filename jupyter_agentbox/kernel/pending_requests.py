"""The kernel's pending messages and their timeouts, without thread, loop or clock."""

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

#: A server's answer to a message.
ServerAnswer = Waiting | Running | Asked | TurnNews | Reply | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeouts, in seconds.

    Parameters
    ----------
    attach : float
        For the first answer to a message, after which there is considered to be no server.
    alone : float
        The same, if there is known to be no server.
    repeat : float
        Between repetitions of an unanswered message.
    ping : float
        Between pings, while waiting.
    lost : float
        For any sign of life from a server that has answered before.
    """

    attach: float = 10.0
    alone: float = 0.05
    repeat: float = 1.0
    ping: float = 5.0
    lost: float = 60.0


@dataclass(slots=True, kw_only=True, eq=False)
class PendingRequest:
    """A message without a final answer.

    Parameters
    ----------
    question : Question
        The message.
    deliver : callable
        Passes an answer to the waiting code, from any thread; ``None`` makes it check its state.
    cell : Cell
        The cell of the waiting code.
    give_up_at : float or None
        When the code stops waiting in any case, by the link's clock.

    Attributes
    ----------
    begun_at : float
        When the wait began, by the link's clock.
    sent_at : float or None
        When the message was first sent; ``None`` if not yet, because there is no server.
    times_unknown : int
        How often the server reported the message as unknown.
    has_begun : bool
        Whether the server said that the tool runs.
    """

    question: Question
    deliver: Callable[[ServerAnswer | None], None]
    cell: Cell = field(default_factory=Cell)
    give_up_at: float | None = None
    begun_at: float = 0.0
    sent_at: float | None = None
    answered: bool = False
    times_unknown: int = 0
    has_begun: bool = False
    request_id: str | None = None

    @property
    def what(self) -> str:
        """Description of what is pending, for people."""
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
    """The table of pending messages. Independent of the comm, which a page may close at any time."""

    def __init__(self) -> None:
        self._by_id: dict[str, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ids(self) -> list[str]:
        """The ids of all pending messages."""
        return list(self._by_id)

    def add(self, pending: PendingRequest) -> None:
        """Start waiting for an answer."""
        self._by_id[pending.question.id] = pending

    def remove(self, pending: PendingRequest) -> None:
        """Stop waiting; later answers are dropped."""
        self._by_id.pop(pending.question.id, None)

    def wake(self) -> None:
        """Make all waits check their state."""
        for pending in list(self._by_id.values()):
            pending.deliver(None)

    def of_cell(self, cell: Cell) -> list[PendingRequest]:
        """Return the pending messages of a cell's code."""
        return [pending for pending in list(self._by_id.values()) if pending.cell.key == cell.key]

    def receive(self, message: FromServer) -> None:
        """Pass an answer to its pending message."""
        if isinstance(message, ServerAnswer) and (pending := self._by_id.get(message.id)) is not None:
            pending.answered = True
            pending.has_begun = pending.has_begun or isinstance(message, Running)
            pending.deliver(message)

    def forgotten_by_server(self, ids: list[str]) -> list[PendingRequest]:
        """Return those among `ids` that were answered before: the server has restarted since."""
        found = [pending for pending in map(self._by_id.get, ids) if pending is not None]
        for pending in found:
            pending.times_unknown += 1
        return [pending for pending in found if pending.answered]
