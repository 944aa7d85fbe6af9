"""Protocols for what an agent needs from outside: a kernel to work in, and the tools that code there may call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.core.calls import TurnRef
from jupyter_agentbox.core.ports import CallReviewer
from jupyter_agentbox.core.threads import ApprovalMode, ItemStatus


class PendingApproval(Protocol):
    """A call that waits for a decision."""

    server_name: str
    tool_name: str
    tool_args: dict[str, Any]

    @property
    def id(self) -> str:
        """The request's id in the approval store."""

    async def accept(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Allow the call, with edited arguments if any are given."""

    async def reject(self, reason: str = "") -> None:
        """Reject the call."""

    async def reject_unasked(self, reason: str) -> None:
        """Make the call fail because there is nobody who could decide."""

    async def response(self) -> bool:
        """Wait until the request is decided or ends otherwise; return whether the call may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked:
    """The code, or a tool that it calls, waits for a decision."""

    request: PendingApproval


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallBegan:
    """The code called a tool, and no person is asked, because a rule, the thread's mode or a model has decided."""

    request_id: str
    server: str
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallEnded:
    """A call of the code ended, or was refused; `CallLog` tells from its request which."""

    request_id: str
    status: ItemStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeEnded:
    """The code ended, or was not run.

    Parameters
    ----------
    code : str
        The code that ran, after edits.
    status : ItemStatus
        `ItemStatus.DECLINED` if it was not allowed to run, `ItemStatus.INTERRUPTED` if nobody could decide any more.
    text : str
        Its printed, displayed and returned output, as text.
    error : str
        Why it failed or was declined; ends with the reason that a person gave.
    images : int
        The number of images that it displayed.
    request_id : str or None
        The approval request of the code, if there is one.
    comment : str
        The comment for the model by the person who allowed it.
    """

    code: str
    status: ItemStatus
    text: str = ""
    error: str = ""
    images: int = 0
    request_id: str | None = None
    comment: str = ""


KernelEvent: TypeAlias = ApprovalAsked | ToolCallBegan | ToolCallEnded | CodeEnded


class AgentKernel(Protocol):
    """The kernel in which an agent's code runs."""

    def run(self, code: str, *, turn: TurnRef, analysis: Analysis | None = None) -> AsyncGenerator[KernelEvent]:
        """Ask whether the code may run, and run it. Yield what happens, `CodeEnded` last.

        Closing the iteration withdraws pending requests and interrupts what runs.

        Parameters
        ----------
        code : str
            The code.
        turn : TurnRef
            The turn to which the code and each of its calls belong.
        analysis : Analysis, optional
            The findings in the code. They make the policy stricter, and reviewers see them.
        """

    async def variables(self) -> str:
        """Return the names, types and shapes of the user's variables, one line each; never values."""

    async def catalog(self) -> Catalog:
        """Return the tools that code may call.

        Raises
        ------
        AgentBoxError
            They cannot be loaded.
        """

    async def cells(self) -> str | None:
        """Return the source of the notebook's cells; ``None`` if the person did not allow it, or none exists."""


class ModeKeeper(Protocol):
    """Makes calls be decided by the modes of their threads; `ThreadModes` implements it."""

    def set(self, thread_id: str, mode: ApprovalMode, *, reviewer: CallReviewer | None = None) -> None:
        """Set a thread's mode from now on, and the reviewer of its calls if the mode is ``auto_review``."""


class Catalog(Protocol):
    """The MCP tools that code in the kernel may call."""

    def names(self) -> Sequence[str]:
        """Return the names of the configured servers."""

    async def tools(self, server: str) -> Sequence[ToolLine]:
        """Return the server's tools.

        Raises
        ------
        AgentBoxError
            The server cannot be asked.
        """

    async def documentation(self, server: str, tool: str) -> str:
        """Return how a tool is called from Python: signature and description.

        Raises
        ------
        AgentBoxError
            There is no such tool, or its server cannot be asked.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLine:
    """A tool in one line.

    Parameters
    ----------
    server, name : str
        Their names.
    summary : str
        The first sentence of its description. Untrusted text.
    """

    server: str
    name: str
    summary: str
