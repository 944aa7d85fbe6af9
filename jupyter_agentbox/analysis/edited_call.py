"""A tool call whose arguments a person edited, and the reason why a cell's code may not be updated with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.core.calls import JsonObject

#: Characters of code that are looked at, and of a value that is written.
LONGEST: Final = 200_000


class NotUpdatableError(Exception):
    """The code is not updated; the text says why, for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedCall:
    """A call whose arguments a person edited.

    Parameters
    ----------
    server, function : str
        The names of the server and the tool in Python.
    names : mapping
        Each parameter's wire name with its name in Python.
    positional : str or None
        Wire name of the parameter that may be given by position; ``None`` if there is none.
    asked, edited : dict
        The arguments as the code gave them, and after the person's edits.
    """

    server: str
    function: str
    names: Mapping[str, str]
    positional: str | None
    asked: JsonObject
    edited: JsonObject
