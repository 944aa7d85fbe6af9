"""Which environment variables hold the keys of language models: kernels do not get them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

#: A maker's name in `openai:gpt-5.2` -> the variable that holds its key, as its own library reads it.
KEY_VARIABLES: Final[Mapping[str, str]] = {
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}

#: Variables that are known to hold a model's key, or to lead to one.
SECRET_VARIABLES: Final = frozenset(
    {
        *KEY_VARIABLES.values(),
        *("ANTHROPIC_AUTH_TOKEN", "AZURE_OPENAI_API_KEY", "AZURE_API_KEY", "CEREBRAS_API_KEY", "CO_API_KEY"),
        *("CODEX_API_KEY", "COHERE_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY"),
        *("GOOGLE_API_KEY", "GROQ_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "LITELLM_API_KEY"),
        *("MISTRAL_API_KEY", "MOONSHOTAI_API_KEY", "NVIDIA_API_KEY", "OPENAI_ADMIN_KEY", "OPENROUTER_API_KEY"),
        *("PERPLEXITY_API_KEY", "PYDANTIC_AI_GATEWAY_API_KEY", "TOGETHER_API_KEY", "VERCEL_AI_GATEWAY_API_KEY"),
        *("VOYAGE_API_KEY", "XAI_API_KEY", "ZAI_API_KEY"),
    }
)


def without_keys(environment: Mapping[str, str], kept: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment without the variables that hold models' keys, except those that are `kept`."""
    removed = SECRET_VARIABLES - set(kept)
    return {name: value for name, value in environment.items() if name not in removed}
