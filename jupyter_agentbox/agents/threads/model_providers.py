"""The providers whose APIs an agent supports, and the environment variables with their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: A provider's name in `openai:gpt-5.2` -> the variable that holds its key, as its own library reads it.
KEY_VARIABLES: Final[Mapping[str, str]] = {
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
