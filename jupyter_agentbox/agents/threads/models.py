"""Creates the client of a language model from its name, its URL and its key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pydantic_ai.models import Model

from jupyter_agentbox.exceptions import AgentConfigurationError

from .model_providers import KEY_VARIABLES
from .request_bodies import send_bodies_as_they_are
from .surrogates import EncodableModel

#: What a server is sent that needs no key: the libraries insist on one.
_NO_KEY: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The model, and how it is reached.

    Parameters
    ----------
    model : str
        ``provider:name``: ``openai:gpt-5.2`` (Responses), ``openai-chat:llama3.3`` (Chat Completions), or
        ``anthropic:claude-sonnet-5``.
    base_url : str or None
        The URL of another server with the provider's API, such as Ollama, vLLM or a gateway.
    api_key : str or None
        The key. A server at `base_url` may need none.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


def provider_of(model: str) -> str:
    """Return the provider in a model's name.

    Raises
    ------
    AgentConfigurationError
        It has none, or an unknown one.
    """
    provider, colon, name = model.partition(":")
    if not colon or not name or provider not in KEY_VARIABLES:
        raise AgentConfigurationError(
            f"`{model}` is not the name of a model: write `openai:NAME`, `openai-chat:NAME` or `anthropic:NAME`"
        )
    return provider


def make_model(settings: ModelSettings) -> Model:
    """Return the client of a model, without sending anything to the model.

    Raises
    ------
    AgentConfigurationError
        The name, the key or the provider's library is missing.
    """
    provider = provider_of(settings.model)
    name = settings.model.partition(":")[2]
    key = settings.api_key or (_NO_KEY if settings.base_url else None)
    if key is None:
        raise AgentConfigurationError(
            f"there is no key for `{settings.model}`: set the environment variable `{KEY_VARIABLES[provider]}`"
        )
    try:
        return EncodableModel(_make(provider, name, key, settings.base_url))
    except ImportError as error:
        raise AgentConfigurationError(
            f'`{settings.model}` needs a library that is missing: pip install "jupyter-agentbox[agent]" ({error})'
        ) from error


def _make(provider: str, name: str, key: str, base_url: str | None) -> Model:
    # Late: each provider's library takes half a second, and one is enough.
    if provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

        # its own library adds the version to the path
        address = base_url.rstrip("/").removesuffix("/v1") if base_url else None
        return AnthropicModel(name, provider=AnthropicProvider(base_url=address, api_key=key))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    openai = OpenAIProvider(base_url=base_url, api_key=key)
    is_chat = provider == "openai-chat"
    send_bodies_as_they_are(openai.client, is_chat=is_chat)
    return OpenAIChatModel(name, provider=openai) if is_chat else OpenAIResponsesModel(name, provider=openai)
