"""Edit a call's arguments as JSON: in the person's editor, or on one line of the terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.text import unseen, visible
from jupyter_agentbox.core.unique_keys import with_unique_keys

from .terminal import Terminal

#: What editors take for settings of theirs if it is near the beginning or the end of a file (vim's modelines).
_MODELINE: Final = re.compile(r"\b(vim?|ex)([<=>]?\d*):", re.IGNORECASE)


class EditError(Exception):
    """There are no edited arguments; the message says why."""


class ArgumentEditor:
    """Edits the arguments of one call. Text that is not valid stays, to be corrected in the next edit.

    Parameters
    ----------
    terminal : Terminal
        Where the editor runs.
    arguments : mapping
        The arguments as requested.
    environment : mapping
        Names the editor, in ``VISUAL`` or ``EDITOR``.
    """

    def __init__(
        self, terminal: Terminal, arguments: Mapping[str, Any], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._terminal = terminal
        self._text = as_text(arguments)
        self._command = shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "")

    async def edit(self) -> dict[str, Any]:
        """Let the person edit, and return the arguments.

        Raises
        ------
        EditError
            The text is not an object in JSON, nothing was entered, or the editor does not work.
        """
        text = await self._in_editor() if self._command else await self._on_a_line()
        self._text = text
        try:
            arguments = json.loads(text, object_pairs_hook=with_unique_keys, parse_constant=_refuse)
        except ValueError as error:
            raise EditError(f"This is not valid JSON: {visible(str(error))}.") from None
        if not isinstance(arguments, dict):
            raise EditError("The arguments must be an object in JSON: {…}.")
        return arguments

    async def _in_editor(self) -> str:
        with tempfile.TemporaryDirectory(prefix="jupyter-agentbox-") as directory:  # only this user can read it
            path = Path(directory) / "arguments.json"
            path.write_text(self._text, "utf-8")
            try:
                code = await self._terminal.run([*self._command, str(path)])
                text = path.read_text("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise EditError(f"`{visible(self._command[0])}` cannot be used: {visible(str(error))}") from None
        if code != 0:
            raise EditError(f"`{visible(self._command[0])}` ended with exit code {code}; nothing was changed.")
        return text

    async def _on_a_line(self) -> str:
        line = " ".join(self._text.split("\n"))
        self._terminal.show(f"{line}\nThe arguments as JSON, on one line; an empty line changes nothing: ")
        text = (await self._terminal.read_line()).strip()
        if not text:
            raise EditError("Nothing was changed.")
        return text


def as_text(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON to edit: what is invisible, or could command an editor, is escaped."""
    text = json.dumps(arguments, indent=2, ensure_ascii=False, default=str)
    escapes = {char: json.dumps(char)[1:-1] for _, char in unseen(text)}
    for char, escape in escapes.items():
        text = text.replace(char, escape)
    return _MODELINE.sub(lambda found: f"{found[1]}{found[2]}\\u003a", text) + "\n"


def _refuse(constant: str) -> object:
    raise ValueError(f"`{constant}` is not JSON")
