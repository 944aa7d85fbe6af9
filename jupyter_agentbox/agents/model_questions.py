"""A single question to a model, without functions or conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError, ModelAuthenticationError
from pydantic_ai.models import Model

from jupyter_agentbox.exceptions import CodeGenerationError, CodeGeneratorConfigurationError

from .threads.model_errors import text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A model's answer.

    Parameters
    ----------
    text : str
        The text of the answer.
    usage : mapping
        ``requests``, ``input_tokens`` and ``output_tokens``.
    """

    text: str
    usage: Mapping[str, int]


async def ask_model(model: Model, question: str, *, instructions: str) -> ModelAnswer:
    """Ask a model.

    Raises
    ------
    CodeGeneratorConfigurationError
        Its server rejects the key.
    CodeGenerationError
        It could not be reached, or its answer is empty.
    """
    agent = Agent(model, instructions=instructions, output_type=str)
    try:
        async with model:  # its connections end with the question
            answer = await agent.run(question)
    except ModelAuthenticationError as error:
        raise CodeGeneratorConfigurationError(text_of(error, model)) from None
    except AgentRunError as error:
        raise CodeGenerationError(text_of(error, model)) from None
    used = answer.usage
    usage = {"requests": used.requests, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    return ModelAnswer(text=answer.output, usage=usage)
