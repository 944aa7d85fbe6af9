"""Central servers' questions (MCP elicitation): relayed to the client of the user whose call it is, and to nobody else.

The user's Jupyter server shows them like those of the user's own servers. A client that cannot show them gets a notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.questions import (
    CALLS_KEY,
    NOBODY,
    OpenQuestion,
    QuestionAnswer,
    QuestionMode,
    answer_from_json,
)
from jupyter_agentbox.core.reviewers import Reviewer

from .open_calls import OpenCalls

#: What a question of each kind asks for.
_WANTS: Final = {
    QuestionMode.FORM: "for values in a form (form elicitation)",
    QuestionMode.URL: "to open a page (URL elicitation)",
}


class QuestionRelay:
    """Asks the caller of a call what its server asks; an `Answerer`.

    Parameters
    ----------
    open_calls : OpenCalls
        The calls, with the connections of their callers.
    """

    def __init__(self, open_calls: OpenCalls) -> None:
        self._open_calls = open_calls

    async def __call__(self, asked: OpenQuestion) -> QuestionAnswer:
        """Return the answer; ``cancel`` if the caller cannot be asked or does not answer in time."""
        call = self._open_calls.running(asked.request_id)
        if call is None:
            return NOBODY
        if asked.question.mode not in call.modes:
            text = (
                f"`{asked.server}` asked {_WANTS[asked.question.mode]} while `{asked.tool}` ran. It was told that"
                " nobody answers, because this MCP client does not say that it can ask its user"
            )
            call.messages.notify(text, is_sent=self._open_calls.wants(call, "warning"))
            return NOBODY
        # The user's server has a limit of its own. This one is for a client whose answer is lost.
        seconds = None if asked.expires_at is None else (asked.expires_at - asked.asked_at).total_seconds()
        try:
            async with asyncio.timeout(seconds):
                return await call.messages.ask(asked.id, _params_of(asked))
        except TimeoutError:
            return NOBODY


def modes_of(params: Mapping[str, Any]) -> frozenset[QuestionMode]:
    """Return what a client that initializes a session says that it can ask its user."""
    capabilities = params.get("capabilities")
    declared = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    if not isinstance(declared, dict):
        return frozenset()
    found = frozenset(mode for mode in QuestionMode if isinstance(declared.get(mode.value), dict))
    return found or frozenset({QuestionMode.FORM})  # so says MCP, whose older versions have no other


def answer_of(message: Mapping[str, Any], reviewer: Reviewer) -> QuestionAnswer:
    """Read a client's answer; ``cancel`` if it is an error, or no answer to a question."""
    result = message.get("result")
    if not isinstance(result, dict):
        return NOBODY
    action = result.get("action")
    try:
        given, content = answer_from_json(
            {"action": action, "content": result.get("content") if action == "accept" else None}
        )
    except ValueError:
        return NOBODY
    return QuestionAnswer(action=given, content=content, reviewer=reviewer)


def _params_of(asked: OpenQuestion) -> JsonObject:
    """Return a question as parameters of MCP's `elicitation/create`."""
    question = asked.question
    meta: JsonObject = {"_meta": {CALLS_KEY: question.calls}} if question.calls > 1 else {}
    if question.mode is QuestionMode.URL:
        return {"mode": "url", "message": question.message, "url": question.url, "elicitationId": asked.id, **meta}
    schema = {key: value for key, value in question.schema.items() if key != "additionalProperties"}
    return {"message": question.message, "requestedSchema": schema, **meta}  # older versions have no `mode`
