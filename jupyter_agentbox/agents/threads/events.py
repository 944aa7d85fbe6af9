"""The events of a turn. Each is sent only to its turn's stream."""

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
    """An item began: a message, code, or a tool call."""

    type: ClassVar[str] = "item_started"
    turn_id: str
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessageDelta:
    """The next part of an agent's message."""

    type: ClassVar[str] = "agent_message_delta"
    turn_id: str
    item_id: str
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCompleted:
    """An item ended, as its status says."""

    type: ClassVar[str] = "item_completed"
    turn_id: str
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A call waits for a decision: code to be run, or a tool called by code.

    Parameters
    ----------
    turn_id, item_id : str
        The turn, and the code run or tool call concerned.
    request : PendingApproval
        The pending request; `accept` or `reject` it, here or wherever else it is shown.
    """

    type: ClassVar[str] = "approval_requested"
    turn_id: str
    item_id: str
    request: PendingApproval


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageUpdated:
    """The turn's cost so far."""

    type: ClassVar[str] = "usage_updated"
    turn_id: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """The turn ended, as its status says. The last event of a turn."""

    type: ClassVar[str] = "turn_completed"
    turn: Turn


TurnEvent: TypeAlias = (
    TurnStarted | ItemStarted | AgentMessageDelta | ItemCompleted | ApprovalRequested | UsageUpdated | TurnCompleted
)
