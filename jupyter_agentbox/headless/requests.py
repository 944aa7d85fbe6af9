"""Approval requests for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from jupyter_agentbox.analysis.findings import Finding
from jupyter_agentbox.core.approvals import Answer, Status
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.grants import NEVER_GRANTED
from jupyter_agentbox.core.policy import GrantLimit
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER


class Decide(Protocol):
    """Function that decides a stored request."""

    def __call__(
        self,
        stored: StoredRequest,
        answer: Answer,
        reason: str,
        arguments: Mapping[str, Any] | None,
        *,
        is_anybody_there: bool = True,
    ) -> Awaitable[None]:
        """Give the decision, with its reason and the edited arguments. The code is told the reason, whatever it is.

        If nobody is available, record that nobody could be asked.
        """


class ApprovalRequest:
    """A tool call or shell command that waits for a decision.

    Parameters
    ----------
    stored : jupyter_agentbox.core.approvals.ApprovalRequest
        The request in the approval store.
    decide : callable
        Decides it.
    is_locked : callable
        Whether the site has turned a feature off.

    Attributes
    ----------
    server_name : str
        The MCP server's name; ``"shell"`` for shell commands.
    tool_name : str
        The tool's name, exactly as the server gives it.
    tool_args : dict
        The arguments, under the names in the tool's schema.
    isolation : str
        The level of isolation of the kernel that made the call; ``"none"`` for a plain one.
    """

    def __init__(
        self, stored: StoredRequest, decide: Decide, is_locked: Callable[[Feature], bool] = lambda _: False
    ) -> None:
        self.server_name = stored.call.server
        self.tool_name = stored.call.tool
        self.tool_args: dict[str, Any] = dict(stored.call.arguments)
        self.isolation = stored.call.origin.isolation.value
        self._stored = stored
        self._decide = decide
        self._is_locked = is_locked
        self._decision: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def id(self) -> str:
        """The request's id in the approval store."""
        return self._stored.id

    @property
    def stored(self) -> StoredRequest:
        """The request in its current state in the approval store, with the tool, the evaluation and the decision."""
        return self._stored

    @property
    def can_be_edited(self) -> bool:
        """Whether the site lets people edit arguments."""
        return not self._is_locked(Feature.EDIT)

    @property
    def can_be_granted(self) -> bool:
        """Whether `accept` can be `lasting`: the site lets people grant, and no rule asks about each such call."""
        is_asked = self._stored.evaluation.grants is GrantLimit.NEVER
        is_never = (self.server_name, self.tool_name) in NEVER_GRANTED
        return not (is_asked or is_never or self._is_locked(Feature.GRANTS))

    @property
    def description(self) -> str:
        """The server's description of the tool. Untrusted text."""
        return self._stored.tool.description

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the static analysis found in the code of a request ``notebook.run_code``; empty for other calls."""
        if self.server_name != NOTEBOOK_SERVER:
            return ()
        found = self._stored.tool.annotations.get("findings")
        return (
            tuple(Finding.from_json(each) for each in found if isinstance(each, dict))
            if isinstance(found, list)
            else ()
        )

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.tool_args.items())
        return f"{self.server_name}.{self.tool_name}({arguments})"

    def __repr__(self) -> str:
        return f"<ApprovalRequest {self}>"

    async def accept(
        self, arguments: Mapping[str, Any] | None = None, *, comment: str = "", lasting: bool = False
    ) -> None:
        """Approve the call; on return, the decision is stored, and a moment later it is on disk.

        Parameters
        ----------
        arguments : mapping, optional
            Edited arguments to run with instead. They are checked against the tool's schema and the policy again.
        comment : str, optional
            A comment for the record and for the code.
        lasting : bool
            Whether the answer is a grant, which also allows the kernel's later calls of this tool until it ends. See
            `can_be_granted`: a call that a rule asks about is asked about again.

        Raises
        ------
        InvalidTransitionError
            The request was decided, withdrawn or has expired.
        ToolArgumentsError, ToolCallRejectedError
            The edited arguments are invalid, or a rule denies them.
        LockedError
            The site has turned grants or edits off.
        """
        answer = Answer.ALLOW_ALWAYS if lasting else Answer.ALLOW_ONCE
        await self._decide(self._stored, answer, comment, arguments)
        self._settle(True)

    async def reject(self, reason: str = "") -> None:
        """Reject the call; the code gets an error.

        Parameters
        ----------
        reason : str, optional
            The reason, passed on to the code.

        Raises
        ------
        InvalidTransitionError
            The request was decided, withdrawn or has expired.
        """
        await self._decide(self._stored, Answer.REJECT_ONCE, reason, None)
        self._settle(False)

    async def reject_unasked(self, reason: str) -> None:
        """Fail the call because nobody is available to decide: the code gets a `NobodyToAskError`.

        Parameters
        ----------
        reason : str
            Why nobody is available and what to do, passed on to the code.

        Raises
        ------
        InvalidTransitionError
            The request was decided, withdrawn or has expired.
        """
        await self._decide(self._stored, Answer.REJECT_ONCE, reason, None, is_anybody_there=False)
        self._settle(False)

    async def response(self) -> bool:
        """Wait for the decision and return whether the call was approved; false if it expired or was withdrawn."""
        return await asyncio.shield(self._decision)

    def on_decision(self, callback: Callable[[bool], None]) -> None:
        """Call `callback` once the request is decided, with whether it was accepted."""
        self._decision.add_done_callback(lambda decision: callback(decision.result()))

    def changed(self, stored: StoredRequest) -> None:
        """Update the request's status."""
        self._stored = stored
        if stored.status.is_final:
            self._settle(stored.status is Status.APPROVED)

    def _settle(self, accepted: bool) -> None:
        if not self._decision.done():
            self._decision.set_result(accepted)
