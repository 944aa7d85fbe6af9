"""Sessions in which code runs: what those in this process and those on a Jupyter server have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.tools import ToolDescription

from .activity import Activity
from .consent import ConsentSource


class SessionError(Exception):
    """Code cannot run, or something cannot be done; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """The result of a cell.

    Parameters
    ----------
    text : str
        Its text, up to its error if there was one.
    bundles : sequence of dict
        Its rich outputs, MIME type to data, up to its error if there was one.
    error : str or None
        Why it did not finish, with the kernel's traceback; ``None`` if it did.
    is_out_of_time : bool
        Whether that is because it took too long.
    """

    text: str = ""
    bundles: Sequence[Mapping[str, Any]] = ()
    error: str | None = None
    is_out_of_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """Code to run, with who is asked about it and who hears of its progress.

    Parameters
    ----------
    code : str
        Python, as in a notebook cell.
    timeout : float or None
        Seconds that it may run. Waiting for other cells and for decisions does not count.
    consents : ConsentSource
        Asked about its calls.
    activity : Activity
        Records what it is doing.
    report : callable
        Called with each line that a tool or an MCP server reports while it runs.
    write : callable, optional
        Gets its text in pieces, as it comes.
    """

    code: str
    timeout: float | None
    consents: ConsentSource
    activity: Activity = field(repr=False)
    report: Callable[[str], None] = field(repr=False)
    write: Callable[[str], None] = field(default=lambda _: None, repr=False)


class CodeSession(Protocol):
    """A kernel, and the MCP servers that its code can call."""

    async def execute(self, cell: CellRequest) -> Executed:
        """Run a cell, after those before it. Cancelling the task interrupts it.

        Raises
        ------
        SessionError
            If there is no kernel to run it, or the kernel is busy for too long.
        """

    async def reset(self) -> None:
        """Start again with a fresh kernel. Cells that run or wait end with an error.

        Raises
        ------
        SessionError
        """

    async def servers(self) -> Sequence[JsonObject]:
        """Return the configured MCP servers: ``name``, ``state``, ``error``.

        Raises
        ------
        SessionError
        """

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return a server's tools; start the server if necessary.

        Raises
        ------
        SessionError
        """

    async def register(self, name: str, configuration: JsonObject, consents: ConsentSource) -> Sequence[str]:
        """Add an MCP server, if a person approves; return the names of its tools.

        Raises
        ------
        SessionError
        """

    async def aclose(self) -> None:
        """End the kernel and what belongs to it."""
