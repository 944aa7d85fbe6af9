"""Limits on what one turn, and all turns of one hour, may use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """Limits on what agents may use; ``None`` means no limit. A turn that reaches one ends, and can be continued.

    Parameters
    ----------
    steps : int or None
        Maximum number of requests to the model in a turn.
    tokens : int or None
        Maximum number of input and output tokens in a turn.
    seconds : float or None
        Maximum working time of a turn. The clock stops while the turn waits for a decision.
    requests_per_hour : int or None
        Maximum number of requests to models in an hour, in all threads.
    tokens_per_hour : int or None
        Maximum number of tokens in an hour, in all threads.
    answer_characters : int
        Maximum length of one answer of the model, including its reasoning and calls.
    attempts : int
        Maximum number of pieces of code in a turn of the back end ``generate``.
    calls : int
        Maximum number of code's tool calls that a turn lists; the approval store has all of them.
    output_characters : int
        How many characters of code's output the model gets: the beginning and the end.
    """

    steps: int | None = 50
    tokens: int | None = 2_000_000
    seconds: float | None = 1800.0
    requests_per_hour: int | None = 600
    tokens_per_hour: int | None = 20_000_000
    answer_characters: int = 1_000_000
    attempts: int = 3
    calls: int = 1_000
    output_characters: int = 16_000

    def with_steps(self, steps: int | None) -> TurnLimits:
        """Return these limits with fewer steps, if `steps` is less."""
        if steps is None or (self.steps is not None and self.steps <= steps):
            return self
        return replace(self, steps=steps)


class HourlyUse:
    """Counts requests and tokens of the last hour.

    Parameters
    ----------
    limits : TurnLimits
        The limits.
    now : callable
        Returns the time of a monotonic clock, in seconds.
    """

    def __init__(self, limits: TurnLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._requests: deque[float] = deque()
        self._tokens: deque[tuple[float, int]] = deque()

    def add_request(self) -> None:
        """Count a request to a model when it begins."""
        self._requests.append(self._now())

    def add_tokens(self, tokens: int) -> None:
        """Count the tokens of a request."""
        self._tokens.append((self._now(), tokens))

    def exceeded(self) -> str | None:
        """Return the limit that is reached, in words; ``None`` if none is."""
        before = self._now() - _HOUR
        while self._requests and self._requests[0] <= before:
            self._requests.popleft()
        while self._tokens and self._tokens[0][0] <= before:
            self._tokens.popleft()
        requests, tokens = self._limits.requests_per_hour, self._limits.tokens_per_hour
        if requests is not None and len(self._requests) >= requests:
            return f"the limit of {requests:,} model requests per hour is reached"
        if tokens is not None and sum(used for _, used in self._tokens) >= tokens:
            return f"the limit of {tokens:,} tokens per hour is reached"
        return None


def shortened(text: str, most: int) -> str:
    """Return the text with its middle left out if it has more than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
