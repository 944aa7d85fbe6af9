"""MCP elicitation, a server's question to the user: conversion between the protocol's types and ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import mcp_types
from mcp.client.session import ClientRequestContext, ElicitationFnT

from jupyter_agentbox.core.questions import CALLS_KEY, QuestionAction, QuestionAnswer, QuestionMode, ServerQuestion

from .running_calls import RunningCalls
from .sent_requests import current

#: The largest number of calls, to any of which a question may belong, that is believed and shown.
_MOST_CALLS: Final = 1_000
#: Sent to a server that several people share, and logged, if it asks a question outside the stream of a call.
_WHOSE: Final = (
    "nobody can be asked: several people share this server, and it does not say whose call the question belongs to."
    " Servers over HTTP and servers with MCP 2026-07-28 say it; a server that runs for each user need not"
)


def question_of(params: mcp_types.ElicitRequestParams) -> ServerQuestion:
    """Convert a server's elicitation request to a question.

    Raises
    ------
    ValueError
        It cannot be displayed.
    """
    if isinstance(params, mcp_types.ElicitRequestURLParams):
        return ServerQuestion.of_url(params.message, params.url)
    return ServerQuestion.of_form(params.message, params.requested_schema)


def result_of(answer: QuestionAnswer, mode: QuestionMode) -> mcp_types.ElicitResult:
    """Convert an answer to the protocol's result."""
    has_content = answer.action is QuestionAction.ACCEPT and mode is QuestionMode.FORM
    content = dict(answer.content) if has_content else None
    return mcp_types.ElicitResult.model_validate({"action": answer.action.value, "content": content})


def elicitation(calls: RunningCalls, log: Callable[[str], None], *, is_central: bool = False) -> ElicitationFnT:
    """Return the SDK's callback for elicitation requests.

    Parameters
    ----------
    calls : RunningCalls
        The connection's running calls.
    log : callable
        Called with a line for each question that was not asked.
    is_central : bool
        Whether the server belongs to the Hub service, which says how many calls a question may belong to.
    """

    async def answer(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        del context
        try:
            question = question_of(params)
            if is_central:
                question = replace(question, calls=_calls_in(params))
        except ValueError as error:
            log(f"the server asked a question that cannot be shown: {error}")
            return mcp_types.ErrorData(code=mcp_types.INVALID_PARAMS, message=f"the question cannot be shown: {error}")
        found = await calls.ask(question, current())
        if found is None:
            why = _WHOSE if calls.is_shared else "there is nobody to ask"
            log(f"the server asked a question, but {why}")
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=why)
        return result_of(found, question.mode)

    return answer


def _calls_in(params: mcp_types.ElicitRequestParams) -> int:
    """Return how many calls a question may belong to, according to the Hub service."""
    said = (params.meta or {}).get(CALLS_KEY)
    return said if isinstance(said, int) and 1 <= said <= _MOST_CALLS else 1
