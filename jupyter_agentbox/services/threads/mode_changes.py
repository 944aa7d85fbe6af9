"""`ModeChanges`: asks a person before a kernel's message loosens its thread's mode, or changes the reviewing model.

A kernel cannot prove that a person typed its message: an agent's code can wait until its turn is over.
"""

from __future__ import annotations

from typing import Final

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.core.threads import ApprovalMode, Thread
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER, SET_MODE_TOOL
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.services.kernel_connections.agent_cells import TurnCell
from jupyter_agentbox.services.kernel_connections.call_status import CallStatusSender

#: From strictest to loosest: from nothing allowed without a rule, to a model that may allow.
_FROM_STRICTEST: Final = (ApprovalMode.DENY_ALL, ApprovalMode.ASK, ApprovalMode.AUTO_REVIEW)
_WHY: Final = "code of an agent could have asked for this: only a person lets a thread ask less"


class ModeChanges:
    """Asks a person about the changes in one message of a kernel.

    Parameters
    ----------
    calls : CallManager
        Asks and records.
    cell : TurnCell
        The sender of the message.
    message_id : str
        The message's id.
    """

    def __init__(self, calls: CallManager, cell: TurnCell, message_id: str) -> None:
        self._calls = calls
        self._cell = cell
        self._message_id = message_id

    async def require(
        self,
        thread: str,
        wanted: ApprovalMode,
        *before: ApprovalMode,
        reviewer: str,
        reviewer_before: str | None = None,
    ) -> None:
        """Ask a person if `wanted` is looser than one of the earlier modes, or lets another model review calls.

        Return if nobody needs to be asked, or they allow it.

        Parameters
        ----------
        thread : str
            The thread's name, or the beginning of its id.
        wanted : ApprovalMode
            The mode of the notebook's next turn.
        *before : ApprovalMode
            The modes that a person chose.
        reviewer : str
            The model that reviews calls in ``auto_review`` mode.
        reviewer_before : str, optional
            The previous one, if the thread allows one.

        Raises
        ------
        AgentBoxError
            It was not allowed.
        """
        is_reviewed = wanted is ApprovalMode.AUTO_REVIEW
        is_looser = _FROM_STRICTEST.index(wanted) > min(map(_FROM_STRICTEST.index, before))
        if not is_looser and not (is_reviewed and reviewer_before not in (None, reviewer)):
            return
        cell = self._cell
        # Without a thread, so that no thread decides about its own mode.
        origin = Origin(
            kernel_id=cell.kernel_id,
            notebook_path=cell.notebook_path,
            cell_id=cell.cell_id,
            isolation=cell.isolation,
            has_own_settings=cell.has_own_settings,
            askers=cell.askers,
        )
        arguments = {"thread": one_line(thread, 200), "approval_mode": wanted.value}
        if is_reviewed:
            arguments["reviewing_model"] = one_line(reviewer, 200)
        call = ToolCall(server=NOTEBOOK_SERVER, tool=SET_MODE_TOOL, arguments=arguments, origin=origin)
        rule = Rule.of_tool(call, Effect.ASK, layer=Layer.SESSION, reason=_WHY)
        with CallStatusSender(self._message_id, cell.send, delay=0.0) as status:
            await self._calls.run(
                call,
                on_waiting=status.waiting,
                on_running=status.running,
                own=_SetMode(call),
                floor=Evaluation(effect=Effect.ASK, rule=rule),
            )


def mode_elsewhere(current: Thread | None) -> ApprovalMode:
    """Return the loosest mode of another thread that a notebook may switch to unasked, given its current one.

    A new thread asks a person, so any mode that is not looser than that is fine.
    """
    is_loose = current is not None and current.approval_mode is ApprovalMode.AUTO_REVIEW
    return ApprovalMode.AUTO_REVIEW if is_loose else ApprovalMode.ASK


class _SetMode:
    """The `ToolCaller` for one change. Its arguments cannot be edited."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    async def describe(self, server: str, tool: str) -> ToolDescription:  # noqa: ARG002  # there is one
        return ToolDescription(
            name=SET_MODE_TOOL,
            description=(
                "Lets the agent of this notebook work in an approval mode that asks less, or with another model that"
                " reviews its calls."
            ),
            input_schema={
                "type": "object",
                "properties": {name: {"const": value} for name, value in self._call.arguments.items()},
                "required": [*self._call.arguments],
                "additionalProperties": False,
            },
        )

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:  # noqa: ARG002
        return ToolResult(content=())
