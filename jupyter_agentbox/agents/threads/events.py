"""What happens in a turn, as it happens. Each event goes to its turn's stream only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from jupyter_agentbox.core.threads import Item, Turn, Usage

from .ports import PendingApproval


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """The turn began."""

    type: ClassVar[str] = "turn_started"
    turn: Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStarted:
    """Something began: a message, code, a tool call."""

    type: ClassVar[str] = "item_started"
    turn_id: str
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessageDelta:
    """The next piece of a message of the agent."""

    type: ClassVar[str] = "agent_message_delta"
    turn_id: str
    item_id: str
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCompleted:
    """Something ended, well or not; the item says how."""

    type: ClassVar[str] = "item_completed"
    turn_id: str
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A call waits for a decision: code that is to run, or a tool that code calls.

    Parameters
    ----------
    turn_id, item_id : str
        The turn, and the code run or tool call that waits.
    request : PendingApproval
        What waits; `accept` or `reject` it, here or where else it is shown.
    """

    type: ClassVar[str] = "approval_requested"
    turn_id: str
    item_id: str
    request: PendingApproval


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageUpdated:
    """What the turn cost until now."""

    type: ClassVar[str] = "usage_updated"
    turn_id: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """The turn ended; it says how. The last event of a turn."""

    type: ClassVar[str] = "turn_completed"
    turn: Turn


TurnEvent: TypeAlias = (
    TurnStarted | ItemStarted | AgentMessageDelta | ItemCompleted | ApprovalRequested | UsageUpdated | TurnCompleted
)
