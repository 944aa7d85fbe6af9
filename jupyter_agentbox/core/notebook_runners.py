"""Recognize programs that run notebooks without a Jupyter server by their command lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

#: Variable with which a site, or whatever started a kernel, declares that the kernel has no Jupyter server.
NO_SERVER: Final = "JUPYTER_AGENTBOX_NO_SERVER"

#: Script and module names, without `jupyter-`. None is a server or starts one in its own process.
_RUNNERS: Final = frozenset(
    {"console", "execute", "jupytext", "nbconvert", "nbgrader", "papermill", "qtconsole", "run"}
)
#: Those that are ordinary words and count only with `jupyter-` before them.
_WORDS: Final = frozenset({"console", "execute", "run"})

_INTERPRETER: Final = re.compile(r"(python|pypy)[0-9.]*w?(\.exe)?", re.IGNORECASE)
_LAUNCHER: Final = re.compile(r"(-script)?\.(py|exe)$", re.IGNORECASE)
#: Interpreter options with their value in a separate argument.
_WITH_VALUE: Final = ("-W", "-X")


def notebook_runner(command: Sequence[str]) -> str | None:
    """Return the name of the program if a command line is that of one that runs notebooks without a server.

    Parameters
    ----------
    command : sequence of str
        A process's program and arguments.
    """
    program = _program(command)
    name = program.removeprefix("jupyter-")
    return program if name in _RUNNERS and (name != program or name not in _WORDS) else None


def _program(command: Sequence[str]) -> str:
    """Return the name of the script or module that a process runs; empty for code on the command line."""
    if not command or not _INTERPRETER.fullmatch(_last_part(command[0])):
        return _name(command[0]) if command else ""
    arguments = iter(command[1:])
    for argument in arguments:
        if argument == "-m":
            return next(arguments, "").partition(".")[0]
        if argument == "-c":
            return ""
        if argument in _WITH_VALUE:
            next(arguments, "")
        elif not argument.startswith("-"):
            return _name(argument)
    return ""


def _name(path: str) -> str:
    return _LAUNCHER.sub("", _last_part(path))


def _last_part(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
