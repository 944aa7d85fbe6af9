"""`ModelCodeGenerator`: a language model writes the code."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jupyter_agentbox.exceptions import (
    AgentConfigurationError,
    CodeGenerationError,
    CodeGeneratorConfigurationError,
)

from .code_prompts import INSTRUCTIONS, code_in, code_prompt
from .requests import CodeRequest
from .results import AttemptError

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class ModelCodeGenerator:
    """A `CodeGenerator` that asks a language model.

    It requires ``pip install "jupyter-agentbox[agent]"``, which is imported on first use.

    Parameters
    ----------
    model : str
        ``openai:NAME`` (Responses), ``openai-chat:NAME`` (Chat Completions) or ``anthropic:NAME``.
    base_url : str, optional
        Base URL of a server that implements the provider's API.
    api_key : str, optional
        The model's API key; by default it is looked up as for an `Agent`.
    instructions : str
        Instructions in addition to the standard ones, such as which libraries are available.
    timeout : float
        Timeout of one answer, in seconds.

    Raises
    ------
    ValueError
        If `model` is empty.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        instructions: str = "",
        timeout: float = 180.0,
    ) -> None:
        if not model:
            raise ValueError("`model` must name a model, such as `openai:gpt-5.2`")
        self.model = model
        self._base_url = base_url
        self._api_key = api_key
        self._instructions = f"{INSTRUCTIONS}\n{instructions}".strip()
        self._timeout = timeout
        self._client: Model | None = None
        self._metadata: dict[str, Any] = {}

    async def generate_code(self, request: CodeRequest, error_chain: Sequence[AttemptError]) -> str:
        """Return the code that the model writes.

        Raises
        ------
        CodeGeneratorConfigurationError
            The extra is not installed, the model's name or key is missing, or its server does not accept the key.
        CodeGenerationError
            The model could not be reached, or did not answer in time.
        """
        client = await self._ready_client()
        from .model_questions import ask_model  # noqa: PLC0415  # what asks models is an extra, and slow to import

        try:
            async with asyncio.timeout(self._timeout):
                answer = await ask_model(client, code_prompt(request, error_chain), instructions=self._instructions)
        except TimeoutError as error:
            raise CodeGenerationError(f"the model has not answered within {self._timeout:g} seconds") from error
        self._metadata = {"model": self.model, **answer.usage}
        return code_in(answer.text)

    async def _ready_client(self) -> Model:
        if self._client is None:
            try:
                self._client = await asyncio.to_thread(_make_client, self.model, self._base_url, self._api_key)
            except AgentConfigurationError as error:
                raise CodeGeneratorConfigurationError(str(error)) from error
        return self._client

    def get_generation_metadata(self) -> Mapping[str, Any]:
        """Return the model, and the cost of its last answer."""
        return dict(self._metadata)


def _make_client(model: str, base_url: str | None, api_key: str | None) -> Model:
    """Create a model's client. Imports the model libraries, which takes seconds: not for an event loop.

    Raises
    ------
    AgentConfigurationError
    """
    try:
        from .threads.models import ModelSettings, make_model, provider_of  # noqa: PLC0415  # as above
    except ModuleNotFoundError as error:
        raise AgentConfigurationError(
            f'the generator needs a library that is missing: pip install "jupyter-agentbox[agent]" ({error})'
        ) from error
    from .threads.keys import key_of  # noqa: PLC0415  # as above

    key = api_key or key_of(provider_of(model))
    return make_model(ModelSettings(model=model, base_url=base_url, api_key=key))
