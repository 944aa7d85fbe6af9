"""Requests for code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRequest:
    """A task for which code is generated and run.

    Parameters
    ----------
    user_query : str
        The person's request, in their words.
    task_objective : str
        What this piece of code must achieve.
    expected_results : mapping
        Expected keys of `results`, each with a type, a type's name (``"float"``), or a description. A value of a type
        other than the named one is an error.
    max_attempts : int
        Maximum number of attempts. One without code, with invalid Python, with an error, or without `results` counts
        like any other.

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
        value: object = self.max_attempts  # whatever an untyped caller passes
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"`max_attempts` must be a whole number of at least 1, not {value!r}")
