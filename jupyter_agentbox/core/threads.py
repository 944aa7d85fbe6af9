"""Threads, turns and items: an agent's conversation, one question with all that follows, one thing in it.

The terms and their behaviour are those of the Codex app server:
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

#: Characters of a prompt that lists show.
LONGEST_PROMPT: Final = 500


class ApprovalMode(str, Enum):
    """Who decides requests that no rule decides. Rules take precedence over every mode."""

    ASK = "ask"
    """A person."""

    DENY_ALL = "deny_all"
    """Nobody: they are refused."""

    AUTO_REVIEW = "auto_review"
    """A second model, where the policy lets a model decide (`Policy.model_may_allow`); else, and in doubt, a person."""


class TurnBackend(str, Enum):
    """How a turn is worked on."""

    LOOP = "loop"
    """The model calls functions, again and again, until it answers."""

    GENERATE = "generate"
    """The model writes one piece of code, and another one if that fails, up to a bound."""


class TurnStatus(str, Enum):
    """Where a turn stands. All but `IN_PROGRESS` are final."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether nothing can change it any more."""
        return self is not TurnStatus.IN_PROGRESS


class Phase(str, Enum):
    """What a message of the agent is: words on the way, or the answer."""

    COMMENTARY = "commentary"
    FINAL_ANSWER = "final_answer"


class ItemStatus(str, Enum):
    """What became of code, or of a tool call, in a turn."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    DECLINED = "declined"
    INTERRUPTED = "interrupted"


class ThreadState(str, Enum):
    """What a thread does now. `DELETED` is in announcements only."""

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
    """What a person, or a program, said to the agent: the question, or a word while it works."""

    type: ClassVar[str] = "user_message"
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """What the agent said. Untrusted text. Without a phase, the model's maker does not tell."""

    type: ClassVar[str] = "agent_message"
    id: str
    text: str
    phase: Phase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """What the model thought, as far as its maker shows it. Untrusted text."""

    type: ClassVar[str] = "reasoning"
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRun:
    """Code that the agent ran, or wanted to run.

    Parameters
    ----------
    id : str
        The item's id.
    code : str
        What ran, after edits; what was asked for, if nothing ran.
    status : ItemStatus
        What became of it.
    request_id : str or None
        The approval request, if one was made.
    text : str
        What the code printed and returned. Untrusted text.
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
    """A tool that the agent's code called.

    Parameters
    ----------
    id : str
        The item's id.
    server, tool : str
        Their names.
    request_id : str
        The approval request; it has the arguments and the decision.
    status : ItemStatus
        What became of it.
    """

    type: ClassVar[str] = "tool_call"
    id: str
    server: str
    tool: str
    request_id: str
    status: ItemStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that this package says of the turn, such as that a limit was reached."""

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
    """What a turn cost: requests to the model, and tokens in and out."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnError:
    """Why a turn failed, in words for a person."""

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
        Where it stands.
    items : tuple of Item
        What was said and done, in order.
    usage : Usage
        What it cost.
    error : TurnError or None
        Why it failed.
    started_at, completed_at : datetime
        When it began and, unless it is in progress, ended; with time zone.
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
        """Return the turn with an item: in the place of the one with its id, or at the end."""
        kept = tuple(item if one.id == item.id else one for one in self.items)
        is_new = all(one.id != item.id for one in self.items)
        return replace(self, items=(*kept, item) if is_new else kept)

    def end(self, status: TurnStatus, *, at: datetime, error: TurnError | None = None) -> Turn:
        """Return the turn, ended. What was still in progress in it was interrupted.

        Raises
        ------
        InvalidTransitionError
            If it has ended before, or the status is none of an end.
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
        When it began, and when it last changed; with time zone.
    name : str
        What a person calls it; empty without a name.
    approval_mode : ApprovalMode
        Who decides requests that no rule decides.
    model : str
        Which model answers, such as ``openai:gpt-5.2``.
    notebook_path : str
        The notebook whose thread it is; empty for a program's.
    is_archived : bool
        Whether lists leave it out.
    forked_from : str or None
        The thread that it began as a copy of.
    current_since : datetime or None
        When it became the current thread of its notebook: of the notebook's threads, the latest is.
    turns : tuple of Turn
        The oldest first; empty unless they were asked for.
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
    """What lists say of a turn.

    Parameters
    ----------
    id : str
        The turn's id.
    status : TurnStatus
        Where it stands.
    prompt : str
        The beginning of what the agent was asked; empty while it is not known yet.
    usage : Usage
        What it cost.
    """

    id: str
    status: TurnStatus
    prompt: str = ""
    usage: Usage = Usage()


def summary_of(turn: Turn) -> TurnSummary:
    """Return what lists say of a turn."""
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
    """Return a thread as JSON, with the turns that it has here."""
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
    """Read what `thread_to_json` gave.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is none.
    """
    return Thread(
        **{
            **data,
            "created_at": datetime.fromisoformat(data["created_at"]),
            "updated_at": datetime.fromisoformat(data["updated_at"]),
            "approval_mode": ApprovalMode(data["approval_mode"]),
            "current_since": _time_from_json(data.get("current_since")),  # threads of before have none
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
    """Read what `turn_to_json` gave.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is none.
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
    """Read what `summary_to_json` gave.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is none.
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
    """Return an item as JSON; ``type`` says which it is."""
    values = {one.name: getattr(item, one.name) for one in fields(item)}
    return {"type": item.type, **{name: one.value if isinstance(one, Enum) else one for name, one in values.items()}}


def item_from_json(data: Mapping[str, Any]) -> Item:
    """Read what `item_to_json` gave.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is none.
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
