"""What one turn, and the turns of one hour, may use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """What agents may use; ``None`` is no limit. A turn that reaches one ends with a notice, and can be gone on with.

    Parameters
    ----------
    steps : int or None
        How often the model is asked in a turn.
    tokens : int or None
        Tokens of a turn, in and out.
    seconds : float or None
        Time that a turn works. While it waits for a decision, the time stands still.
    requests_per_hour : int or None
        How often models are asked in an hour, in all threads.
    tokens_per_hour : int or None
        Tokens in an hour, in all threads.
    answer_characters : int
        How long one answer of the model may be, with its thoughts and calls.
    attempts : int
        How many pieces of code are written at most in a turn of the back end ``generate``.
    calls : int
        How many tool calls of code a turn lists; the approval store has all.
    output_characters : int
        How much of what code prints is sent to the model: the beginning and the end.
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
        What may be used.
    now : callable
        A clock that only goes forward, in seconds.
    """

    def __init__(self, limits: TurnLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._requests: deque[float] = deque()
        self._tokens: deque[tuple[float, int]] = deque()

    def add_request(self) -> None:
        """Count one request to a model, as it begins."""
        self._requests.append(self._now())

    def add_tokens(self, tokens: int) -> None:
        """Count what a request has cost."""
        self._tokens.append((self._now(), tokens))

    def exceeded(self) -> str | None:
        """Return which limit is reached, in words; ``None`` if none is."""
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
