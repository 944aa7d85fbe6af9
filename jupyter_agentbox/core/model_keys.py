"""The environment variables of language models' API keys, as read by the providers' libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: None has another use: whoever finds one can spend its owner's money, and nothing else needs it.
MODEL_KEYS: Final = frozenset(
    {
        "AI_GATEWAY_API_KEY",
        "ALIBABA_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AZURE_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_KEY",
        "CEREBRAS_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CODESTRAL_API_KEY",
        "CODEX_API_KEY",
        "COHERE_API_KEY",
        "CO_API_KEY",
        "DASHSCOPE_API_KEY",
        "DEEPSEEK_API_KEY",
        "FIREWORKS_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GROK_API_KEY",
        "GROQ_API_KEY",
        "LITELLM_API_KEY",
        "MISTRAL_API_KEY",
        "MOONSHOTAI_API_KEY",
        "MOONSHOT_API_KEY",
        "NVIDIA_API_KEY",
        "OLLAMA_API_KEY",
        "OPENAI_ADMIN_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "PERPLEXITY_API_KEY",
        "TOGETHERAI_API_KEY",
        "TOGETHER_API_KEY",
        "VOYAGE_API_KEY",
        "XAI_API_KEY",
        "ZAI_API_KEY",
    }
)


def without_model_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the API keys of language models."""
    return {name: value for name, value in environment.items() if name.upper() not in MODEL_KEYS}
