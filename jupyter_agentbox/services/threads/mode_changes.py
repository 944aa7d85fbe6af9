"""`ModeChanges`: a person is asked before a kernel's message lets its thread ask less, or another model review calls.

A kernel cannot show that a person typed what it sends: code of an agent can wait until its turn is over.
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
from jupyter_agentbox.services.kernel_connections.news import CallNews

#: From the mode in which nothing is allowed without a rule to the one in which a model may allow it.
_FROM_STRICTEST: Final = (ApprovalMode.DENY_ALL, ApprovalMode.ASK, ApprovalMode.AUTO_REVIEW)
_WHY: Final = "code of an agent could have asked for this: only a person lets a thread ask less"


class ModeChanges:
    """Asks, as what one message of a kernel says needs it.

    Parameters
    ----------
    calls : CallManager
        Asks, and records.
    cell : TurnCell
        Where the message comes from.
    message_id : str
        The id of the message.
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
        """Ask a person if `wanted` is looser than one of the modes until now, or lets another model review calls.

        Returns if nobody has to be asked, or they allow it.

        Parameters
        ----------
        thread : str
            The thread's name, or the beginning of its id.
        wanted : ApprovalMode
            The mode in which the notebook's next turn is to work.
        *before : ApprovalMode
            The modes that a person chose.
        reviewer : str
            The model that reviews calls in the mode ``auto_review``.
        reviewer_before : str, optional
            The one that did until now, in a thread in which one may have.

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
        # No thread, so that none decides about its own mode.
        origin = Origin(
            kernel_id=cell.kernel_id,
            notebook_path=cell.notebook_path,
            cell_id=cell.cell_id,
            isolation=cell.isolation,
            askers=cell.askers,
        )
        arguments = {"thread": one_line(thread, 200), "approval_mode": wanted.value}
        if is_reviewed:
            arguments["reviewing_model"] = one_line(reviewer, 200)
        call = ToolCall(server=NOTEBOOK_SERVER, tool=SET_MODE_TOOL, arguments=arguments, origin=origin)
        rule = Rule.of_tool(call, Effect.ASK, layer=Layer.SESSION, reason=_WHY)
        with CallNews(self._message_id, cell.send, delay=0.0) as news:
            await self._calls.run(
                call,
                on_waiting=news.waiting,
                on_running=news.running,
                own=_SetMode(call),
                floor=Evaluation(effect=Effect.ASK, rule=rule),
            )


def mode_elsewhere(current: Thread | None) -> ApprovalMode:
    """Return the loosest mode of another thread that a notebook may go on with unasked, given its current one.

    A new thread asks a person, so any may that does not ask less.
    """
    is_loose = current is not None and current.approval_mode is ApprovalMode.AUTO_REVIEW
    return ApprovalMode.AUTO_REVIEW if is_loose else ApprovalMode.ASK


class _SetMode:
    """The `ToolCaller` of one change. What was asked is the answer: nothing of it can be edited."""

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
