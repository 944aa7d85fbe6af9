"""The interface between kernel links and agents, which work on turns that cells start."""

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
    """The cell that started a turn or gave a command, as known to the server.

    Parameters
    ----------
    kernel_id, comm_id : str
        The kernel, and its end of the link.
    cell_id : str or None
        The notebook cell, as reported by the kernel.
    notebook_path : str or None
        The kernel's notebook or console.
    isolation : Isolation
        The kernel's level of isolation.
    has_own_settings : bool
        Whether the kernel's sandbox has settings that its user chose.
    askers : tuple of Asker
        Who has run code in that kernel.
    send : callable
        Sends a message to the kernel.
    """

    kernel_id: str
    comm_id: str
    cell_id: str | None
    notebook_path: str | None
    isolation: Isolation
    has_own_settings: bool = False
    askers: tuple[Asker, ...] = ()
    send: Callable[[messages.FromServer], None]


class AgentCells(Protocol):
    """Works on turns that cells start."""

    async def run_turn(self, cell: TurnCell, question: messages.StartTurn) -> JsonObject:
        """Work on a turn to its end and return it. Cancelling the task interrupts the turn.

        Raises
        ------
        AgentBoxError
            The turn did not start.
        """

    def code_ran(self, kernel_id: str, comm_id: str, message: messages.CodeRan) -> None:
        """Handle the outcome of code. Never raises: the kernel may send anything."""

    async def command(self, cell: TurnCell, message: messages.AgentCommand) -> JsonObject:
        """Answer a command of ``%agent``.

        Raises
        ------
        AgentBoxError
            The command failed.
        """
