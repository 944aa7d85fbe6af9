"""What the kernel links need of agents: somebody who works on the turns that cells ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.protocol import messages


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCell:
    """The cell that asked for a turn, or gave a command, as the server knows it.

    Parameters
    ----------
    kernel_id, comm_id : str
        The kernel, and the end of its link.
    cell_id : str or None
        The notebook cell, as the kernel says.
    notebook_path : str or None
        The kernel's notebook or console.
    isolation : Isolation
        How far the kernel is kept from the rest of the machine.
    askers : tuple of Asker
        Who has had code run in that kernel.
    send : callable
        Sends the kernel side a message.
    """

    kernel_id: str
    comm_id: str
    cell_id: str | None
    notebook_path: str | None
    isolation: Isolation
    askers: tuple[Asker, ...] = ()
    send: Callable[[messages.FromServer], None]


class AgentCells(Protocol):
    """Works on the turns that cells ask for."""

    async def run_turn(self, cell: TurnCell, question: messages.StartTurn) -> JsonObject:
        """Work on a turn to its end; return it. Cancelling the task interrupts the turn.

        Raises
        ------
        AgentBoxError
            The turn did not begin.
        """

    def code_ran(self, kernel_id: str, comm_id: str, message: messages.CodeRan) -> None:
        """Take what became of code. Never raises: the kernel may send anything."""

    async def command(self, cell: TurnCell, message: messages.AgentCommand) -> JsonObject:
        """Answer a command of ``%agent``.

        Raises
        ------
        AgentBoxError
            It cannot be done.
        """
