"""Describes errors of models in words for a person."""

from __future__ import annotations

import re
from typing import Final

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelRateLimitError,
    UnexpectedModelBehavior,
)
from pydantic_ai.models import Model

from .limits import shortened

#: Characters of a provider's error that a person is shown.
_MOST: Final = 2000

#: How servers that the library does not know say that a conversation is too long: Anthropic, llama.cpp, LM Studio.
_TOO_LONG: Final = re.compile(
    r"prompt is too long|context (window|length|size|limit)|too many (input )?tokens", re.IGNORECASE
)
#: The statuses with which a server refuses a request for what is in it.
_REFUSED: Final = {400, 413, 422}


def is_too_long(error: AgentRunError) -> bool:
    """Whether a server says that the conversation is too long for its model."""
    if isinstance(error, ModelContextWindowExceededError):
        return True
    return isinstance(error, ModelHTTPError) and error.status_code in _REFUSED and bool(_TOO_LONG.search(str(error)))


def text_of(error: AgentRunError, model: Model) -> str:
    """Return a description of an error, without the model's key, which a gateway may repeat in its errors.

    Parameters
    ----------
    error : AgentRunError
        The error that the library for models raised.
    model : Model
        The client of the model.
    """
    key = str(getattr(getattr(model, "client", None), "api_key", None) or "")
    text = shortened(str(error).replace(key, "***") if key else str(error), _MOST)
    if isinstance(error, ModelAuthenticationError):
        return f"the model's server did not accept the key: {text}"
    if isinstance(error, ModelRateLimitError):
        when = f"; it says to try again in {error.retry_after:g} seconds" if error.retry_after else ""
        return f"the model's server has had too many requests{when}: {text}"
    if isinstance(error, ModelAPIError):
        return f"the model's server failed: {text}"
    if isinstance(error, UnexpectedModelBehavior):
        return f"the model's answer cannot be used: {text}"
    return text
