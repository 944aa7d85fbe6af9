"""A tool call whose arguments a person edited, and why a cell's code may not take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.core.calls import JsonObject

#: Characters of code that are looked at, and of a value that is written.
LONGEST: Final = 200_000


class NotUpdatableError(Exception):
    """Why the code is left alone, as a sentence for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedCall:
    """A call whose arguments a person edited.

    Parameters
    ----------
    server, function : str
        What server and tool are called in Python.
    names : mapping
        Wire name of each parameter to its name in Python.
    positional : str or None
        Wire name of the parameter that may be given by position; ``None`` if there is none.
    asked, edited : dict
        The arguments as the code gave them, and as the person left them.
    """

    server: str
    function: str
    names: Mapping[str, str]
    positional: str | None
    asked: JsonObject
    edited: JsonObject
