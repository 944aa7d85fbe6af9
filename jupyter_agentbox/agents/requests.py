"""What code is wanted for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRequest:
    """A task for which code is to be made and run.

    Parameters
    ----------
    user_query : str
        What the person asked for, in their words.
    task_objective : str
        What this piece of code has to achieve.
    expected_results : mapping
        Keys that `results` should have, each with what it should be: a type, the name of one (``"float"``), or a
        description. A value of another type than the one that is named is an error.
    max_attempts : int
        How many pieces of code are made at most. One that cannot be made, is no Python, fails, or gives no `results`
        counts like any other.

    Raises
    ------
    ValueError
        If `max_attempts` is not at least 1.
    """

    user_query: str
    task_objective: str
    expected_results: Mapping[str, Any] = field(default_factory=dict)
    max_attempts: int = 3

    def __post_init__(self) -> None:
        value: object = self.max_attempts  # whatever a caller without types gives
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"`max_attempts` must be a whole number of at least 1, not {value!r}")
