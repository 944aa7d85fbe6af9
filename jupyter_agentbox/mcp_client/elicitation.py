"""MCP elicitation, a server's question to the user: conversion between the protocol's types and ours."""

from __future__ import annotations

from collections.abc import Callable

import mcp_types
from mcp.client.session import ClientRequestContext, ElicitationFnT

from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, QuestionMode, ServerQuestion

from .running_calls import RunningCalls
from .sent_requests import current


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


def elicitation(calls: RunningCalls, log: Callable[[str], None]) -> ElicitationFnT:
    """Return the SDK's callback for elicitation requests.

    Parameters
    ----------
    calls : RunningCalls
        The connection's running calls.
    log : callable
        Called with a line for each question that was not asked.
    """

    async def answer(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        del context
        try:
            question = question_of(params)
        except ValueError as error:
            log(f"the server asked a question that cannot be shown: {error}")
            return mcp_types.ErrorData(code=mcp_types.INVALID_PARAMS, message=f"the question cannot be shown: {error}")
        found = await calls.ask(question, current())
        if found is None:
            log("the server asked a question, and there was nobody to ask")
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message="there is nobody to ask")
        return result_of(found, question.mode)

    return answer
