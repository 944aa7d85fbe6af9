"""Threads, turns and items: an agent's conversation, one question with all that follows, one thing in it.

The terms and their behavior are those of the Codex app server:
https://developers.openai.com/codex/app-server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias

from jupyter_agentbox.exceptions import InvalidTransitionError

from .calls import JsonObject

#: Maximum length of a prompt in lists, in characters.
LONGEST_PROMPT: Final = 500


class ApprovalMode(str, Enum):
    """Who decides requests that no rule decides. Rules take precedence over every mode."""

    ASK = "ask"
    """A person."""

    DENY_ALL = "deny_all"
    """Nobody: they are rejected."""

    AUTO_REVIEW = "auto_review"
    """A second model, where the policy allows it (`Policy.model_may_allow`); otherwise, or if in doubt, a person."""


class TurnBackend(str, Enum):
    """The method of a turn."""

    LOOP = "loop"
    """The model calls functions repeatedly, until it answers."""

    GENERATE = "generate"
    """The model writes code and, if it fails, rewrites it, up to a limit."""


class TurnStatus(str, Enum):
    """The status of a turn. All but `IN_PROGRESS` are final."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether the status can no longer change."""
        return self is not TurnStatus.IN_PROGRESS


class Phase(str, Enum):
    """The role of an agent's message: commentary, or the answer."""

    COMMENTARY = "commentary"
    FINAL_ANSWER = "final_answer"


class ItemStatus(str, Enum):
    """The status of code or of a tool call in a turn."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    DECLINED = "declined"
    INTERRUPTED = "interrupted"


class ThreadState(str, Enum):
    """The state of a thread. `DELETED` occurs in announcements only."""

    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting"
    FAILED = "failed"
    DELETED = "deleted"


class TurnErrorCode(str, Enum):
    """Why a turn failed."""

    KERNEL = "kernel"
    LIMIT = "limit"
    MODEL = "model"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """A message from a person or program to the agent: the question, or guidance while it works."""

    type: ClassVar[str] = "user_message"
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """A message from the agent. Untrusted text. Without a phase, the provider does not distinguish."""

    type: ClassVar[str] = "agent_message"
    id: str
    text: str
    phase: Phase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """The model's reasoning, as far as its provider shows it. Untrusted text."""

    type: ClassVar[str] = "reasoning"
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRun:
    """Code that the agent ran or tried to run.

    Parameters
    ----------
    id : str
        The item's id.
    code : str
        The code that ran, after edits; if nothing ran, the requested code.
    status : ItemStatus
        The code's status.
    request_id : str or None
        The approval request, if there was one.
    text : str
        The code's output and result. Untrusted text.
    error : str
        Why it failed or was declined.
    """

    type: ClassVar[str] = "code_run"
    id: str
    code: str
    status: ItemStatus
    request_id: str | None = None
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallItem:
    """A tool call made by the agent's code.

    Parameters
    ----------
    id : str
        The item's id.
    server, tool : str
        The server's and the tool's name.
    request_id : str
        The approval request, with the arguments and the decision.
    status : ItemStatus
        The call's status.
    """

    type: ClassVar[str] = "tool_call"
    id: str
    server: str
    tool: str
    request_id: str
    status: ItemStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice from this package about the turn, such as that a limit was reached."""

    type: ClassVar[str] = "notice"
    id: str
    code: str
    text: str


Item: TypeAlias = UserMessage | AgentMessage | Reasoning | CodeRun | ToolCallItem | Notice

_ITEM_TYPES: Final[Mapping[str, type[Item]]] = {
    one.type: one for one in (UserMessage, AgentMessage, Reasoning, CodeRun, ToolCallItem, Notice)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The cost of a turn: requests to the model, and input and output tokens."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnError:
    """Why a turn failed, for people."""

    code: TurnErrorCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question to the agent, and all that followed.

    Parameters
    ----------
    id, thread_id : str
        The turn's and its thread's id.
    status : TurnStatus
        The turn's status.
    items : tuple of Item
        Messages, code and calls, in order.
    usage : Usage
        The turn's cost.
    error : TurnError or None
        Why it failed, if it did.
    started_at, completed_at : datetime
        Start time and, unless in progress, end time; with time zone.
    """

    id: str
    thread_id: str
    started_at: datetime
    status: TurnStatus = TurnStatus.IN_PROGRESS
    items: tuple[Item, ...] = ()
    usage: Usage = Usage()
    error: TurnError | None = None
    completed_at: datetime | None = None

    @property
    def final_response(self) -> str | None:
        """The agent's answer; see `final_response`."""
        return final_response(self.items)

    def with_item(self, item: Item) -> Turn:
        """Return the turn with an item added, or replaced if there is one with its id."""
        kept = tuple(item if one.id == item.id else one for one in self.items)
        is_new = all(one.id != item.id for one in self.items)
        return replace(self, items=(*kept, item) if is_new else kept)

    def end(self, status: TurnStatus, *, at: datetime, error: TurnError | None = None) -> Turn:
        """Return the turn, ended. Items still in progress are interrupted.

        Raises
        ------
        InvalidTransitionError
            If it has already ended, or the status is not final.
        """
        if self.status.is_final or not status.is_final:
            raise InvalidTransitionError(f"turn `{self.id}` is {self.status.value} and cannot become {status.value}")
        items = tuple(_stopped(item) for item in self.items)
        return replace(self, status=status, completed_at=at, error=error, items=items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """An agent's conversation.

    Parameters
    ----------
    id : str
        The thread's id.
    created_at, updated_at : datetime
        Times of creation and of the last change, with time zone.
    name : str
        Display name; empty if there is none.
    approval_mode : ApprovalMode
        Who decides requests that no rule decides.
    model : str
        The model, such as ``openai:gpt-5.2``.
    notebook_path : str
        The thread's notebook; empty for a program's.
    is_archived : bool
        Whether lists omit it.
    forked_from : str or None
        The thread of which it began as a copy.
    current_since : datetime or None
        When it became its notebook's current thread: the one with the latest time is current.
    turns : tuple of Turn
        Oldest first; empty unless requested.
    """

    id: str
    created_at: datetime
    updated_at: datetime
    name: str = ""
    approval_mode: ApprovalMode = ApprovalMode.ASK
    model: str = ""
    notebook_path: str = ""
    is_archived: bool = False
    forked_from: str | None = None
    current_since: datetime | None = None
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSummary:
    """A turn in a list.

    Parameters
    ----------
    id : str
        The turn's id.
    status : TurnStatus
        The turn's status.
    prompt : str
        The beginning of the prompt; empty while unknown.
    usage : Usage
        The turn's cost.
    """

    id: str
    status: TurnStatus
    prompt: str = ""
    usage: Usage = Usage()


def summary_of(turn: Turn) -> TurnSummary:
    """Return the summary of a turn."""
    prompt = next((item.text for item in turn.items if isinstance(item, UserMessage)), "")
    return TurnSummary(id=turn.id, status=turn.status, prompt=prompt[:LONGEST_PROMPT], usage=turn.usage)


def final_response(items: Sequence[Item]) -> str | None:
    """Return the last message that is the final answer, else the last one without a phase, else ``None``."""
    messages = [item for item in reversed(items) if isinstance(item, AgentMessage)]
    for phase in (Phase.FINAL_ANSWER, None):
        found = next((message.text for message in messages if message.phase is phase), None)
        if found is not None:
            return found
    return None


def thread_to_json(thread: Thread) -> JsonObject:
    """Return a thread as JSON, including any loaded turns."""
    return {
        "id": thread.id,
        "created_at": thread.created_at.isoformat(),
        "updated_at": thread.updated_at.isoformat(),
        "name": thread.name,
        "approval_mode": thread.approval_mode.value,
        "model": thread.model,
        "notebook_path": thread.notebook_path,
        "is_archived": thread.is_archived,
        "forked_from": thread.forked_from,
        "current_since": _time_to_json(thread.current_since),
        "turns": [turn_to_json(turn) for turn in thread.turns],
    }


def thread_from_json(data: Mapping[str, Any]) -> Thread:
    """Read the result of `thread_to_json`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is invalid.
    """
    return Thread(
        **{
            **data,
            "created_at": datetime.fromisoformat(data["created_at"]),
            "updated_at": datetime.fromisoformat(data["updated_at"]),
            "approval_mode": ApprovalMode(data["approval_mode"]),
            "current_since": _time_from_json(data.get("current_since")),  # older threads have none
            "turns": tuple(turn_from_json(turn) for turn in data["turns"]),
        }
    )


def turn_to_json(turn: Turn) -> JsonObject:
    """Return a turn as JSON."""
    error = turn.error
    return {
        "id": turn.id,
        "thread_id": turn.thread_id,
        "status": turn.status.value,
        "started_at": turn.started_at.isoformat(),
        "completed_at": _time_to_json(turn.completed_at),
        "items": [item_to_json(item) for item in turn.items],
        "usage": usage_to_json(turn.usage),
        "error": {"code": error.code.value, "message": error.message} if error is not None else None,
    }


def turn_from_json(data: Mapping[str, Any]) -> Turn:
    """Read the result of `turn_to_json`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is invalid.
    """
    error = data["error"]
    return Turn(
        **{
            **data,
            "status": TurnStatus(data["status"]),
            "started_at": datetime.fromisoformat(data["started_at"]),
            "completed_at": _time_from_json(data["completed_at"]),
            "items": tuple(item_from_json(item) for item in data["items"]),
            "usage": Usage(**data["usage"]),
            "error": TurnError(code=TurnErrorCode(error["code"]), message=error["message"]) if error else None,
        }
    )


def summary_to_json(summary: TurnSummary) -> JsonObject:
    """Return a summary as JSON."""
    return {
        "id": summary.id,
        "status": summary.status.value,
        "prompt": summary.prompt,
        "usage": usage_to_json(summary.usage),
    }


def summary_from_json(data: Mapping[str, Any]) -> TurnSummary:
    """Read the result of `summary_to_json`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is invalid.
    """
    return TurnSummary(**{**data, "status": TurnStatus(data["status"]), "usage": Usage(**data["usage"])})


def usage_to_json(usage: Usage) -> JsonObject:
    """Return a usage as JSON."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }


def item_to_json(item: Item) -> JsonObject:
    """Return an item as JSON, with its kind in ``type``."""
    values = {one.name: getattr(item, one.name) for one in fields(item)}
    return {"type": item.type, **{name: one.value if isinstance(one, Enum) else one for name, one in values.items()}}


def item_from_json(data: Mapping[str, Any]) -> Item:
    """Read the result of `item_to_json`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is invalid.
    """
    values = {name: value for name, value in data.items() if name != "type"}
    if "status" in values:
        values["status"] = ItemStatus(values["status"])
    if values.get("phase") is not None:
        values["phase"] = Phase(values["phase"])
    return _ITEM_TYPES[data["type"]](**values)


def _stopped(item: Item) -> Item:
    if isinstance(item, CodeRun | ToolCallItem) and item.status is ItemStatus.IN_PROGRESS:
        return replace(item, status=ItemStatus.INTERRUPTED)
    return item


def _time_to_json(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None


def _time_from_json(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None
