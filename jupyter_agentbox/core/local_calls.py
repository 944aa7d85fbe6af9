"""Calls of users' own tools that other people must approve: how a user's server asks the Hub service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from jupyter_agentbox.exceptions import ToolArgumentsError

from .calls import JsonObject, ToolCall, check_arguments, is_long
from .isolation import Isolation
from .policy import Effect, Evaluation
from .reported_origins import ReportedOrigin
from .tools import ToolDescription

#: The service's endpoint for these calls, beside those of central servers.
LOCAL_CALLS: Final = "local-calls"
#: Its only tool. It does nothing: when it runs, the call was approved.
APPROVE_TOOL: Final = "approve_call"
#: Precedes the name of a user's own server in the service's requests. No central server's name contains a slash.
_PREFIX: Final = "local/"
#: Maximum length of a name and of the texts, in characters, and of all but the call's arguments, in bytes.
_LONGEST_NAME: Final = 1000
_LONGEST_TEXTS: Final = {"title": 1000, "description": 20_000, "runs": 1000}
_MOST_BYTES: Final = 200_000


def is_local(call: ToolCall) -> bool:
    """Whether a call in a request of the Hub service is of a user's own tool, which runs on that user's server."""
    return call.server.startswith(_PREFIX)


def at_hub(server: str) -> str:
    """Return the name of a user's own server in the Hub service's requests."""
    return f"{_PREFIX}{server}"


def as_on_users_server(call: ToolCall) -> ToolCall:
    """Return a call of a request of the Hub service with the name of the server as the user's server knows it."""
    return replace(call, server=call.server.removeprefix(_PREFIX))


def left_to_hub(evaluation: Evaluation) -> Evaluation:
    """Return what a user's server does about a call: if approvers are asked at the Hub, it asks nobody itself."""
    return replace(evaluation, effect=Effect.ALLOW) if needs_approvers(evaluation) else evaluation


def needs_approvers(evaluation: Evaluation) -> bool:
    """Whether a rule that asks other people gave the effect."""
    rule = evaluation.rule
    return rule is not None and rule.effect is Effect.ASK and rule.approvers is not None


def question_about(call: ToolCall, tool: ToolDescription, *, runs: str = "") -> JsonObject:
    """Return the arguments with which a user's server calls `APPROVE_TOOL`.

    Parameters
    ----------
    call : ToolCall
        The call, exactly as it would run.
    tool : ToolDescription
        Its tool. Rules also read the defaults of arguments.
    runs : str
        The command or address of its server, without secrets.
    """
    return {
        "server": call.server,
        "tool": call.tool,
        "arguments": dict(call.arguments),
        "title": tool.title[: _LONGEST_TEXTS["title"]],
        "description": tool.description[: _LONGEST_TEXTS["description"]],
        "runs": runs[: _LONGEST_TEXTS["runs"]],
        "annotations": tool.annotations,
        "defaults": tool.defaults,
    }


def read_question(question: Mapping[str, Any], asking: ToolCall) -> tuple[ToolCall, ToolDescription]:
    """Return the call that a user's server asks about, and its tool, from untrusted arguments of `APPROVE_TOOL`.

    Parameters
    ----------
    question : mapping
        The arguments.
    asking : ToolCall
        The call of `APPROVE_TOOL`. Its origin says whose call it is, and has the notebook and the isolation, on which
        rules may depend, as reported: the user's server can report anything.

    Raises
    ------
    ToolArgumentsError
        If they are not what `question_about` returns.
    """
    _check_question(question)
    texts = {name: question.get(name, "") for name in _LONGEST_TEXTS}
    properties: JsonObject = {name: {"default": value} for name, value in question.get("defaults", {}).items()}
    tool = ToolDescription(
        name=question["tool"],
        input_schema={"type": "object", "properties": properties},
        annotations=question.get("annotations", {}),
        title=texts["title"],
        description=texts["description"],
    )
    reported = asking.origin.reported
    origin = replace(
        asking.origin,
        reported=None if reported is None else replace(reported, runs=texts["runs"]),
        notebook_path=None if reported is None else reported.notebook_path,
        isolation=_isolation(reported),
        has_own_settings=reported is not None and reported.has_own_settings,
    )
    call = ToolCall(
        server=at_hub(question["server"]),
        tool=question["tool"],
        arguments=question.get("arguments", {}),
        origin=origin,
    )
    return call, tool


def _check_question(question: Mapping[str, Any]) -> None:
    for name in ("server", "tool"):
        text = question.get(name)
        if not isinstance(text, str) or not 0 < len(text) <= _LONGEST_NAME:
            raise ToolArgumentsError(f"`{name}` must be a string of 1 to {_LONGEST_NAME:,} characters", parameter=name)
    for name in ("arguments", "annotations", "defaults"):
        if not isinstance(question.get(name, {}), dict):
            raise ToolArgumentsError(f"`{name}` must be an object", parameter=name)
    for name, longest in _LONGEST_TEXTS.items():
        text = question.get(name, "")
        if not isinstance(text, str) or len(text) > longest:
            raise ToolArgumentsError(f"`{name}` must be a string of at most {longest:,} characters", parameter=name)
    rest = {name: value for name, value in question.items() if name != "arguments"}
    if is_long(rest, limit=_MOST_BYTES):
        raise ToolArgumentsError(f"all but `arguments` must be smaller than {_MOST_BYTES:,} bytes")
    check_arguments(rest)


def _isolation(reported: ReportedOrigin | None) -> Isolation:
    try:
        return Isolation.NONE if reported is None else Isolation(reported.isolation)
    except ValueError:
        return Isolation.NONE
