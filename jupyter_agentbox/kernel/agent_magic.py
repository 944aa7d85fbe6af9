"""The magics ``%%agent``, which asks an agent, and ``%agent``, which manages this notebook's threads.

Other modules for agents are imported on first use.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError

from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.trusted_imports import TrustedImports

from . import runtime

if TYPE_CHECKING:
    from jupyter_agentbox.core.calls import JsonObject

#: The subcommands of `%agent`.
COMMANDS: Final = (
    *("threads", "show", "new", "resume", "fork", "name", "archive", "unarchive", "delete"),
    *("mode", "model", "usage", "stop", "help"),
)
#: Those that take the name of a thread.
_OF_THREADS: Final = frozenset({"show", "resume", "fork", "archive", "unarchive", "delete"})
#: Those that may have to ask a person.
_MAY_ASK: Final = frozenset({"resume", "fork", "archive", "unarchive", "delete", "mode"})
_MODES: Final = ("ask", "deny_all", "auto_review")
#: The options of `%%agent` -> their possible values, if limited.
OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "--thread": (),
    "--new": (),
    "--mode": _MODES,
    "--model": (),
    "--backend": ("loop", "generate"),
    "--steps": (),
    "--context": ("none", "cells", "outputs"),
}
#: Timeout of a command or a completion, in seconds.
_WITHIN: Final = 30.0
_COMPLETE_WITHIN: Final = 1.0

_HELP: Final = """\
%agent                    this notebook's thread
%agent threads            the threads of this notebook; --archived for those that were archived
%agent show [thread]      what was said and done in a thread
%agent new [name]         the next %%agent begins a new thread
%agent resume thread      the next %%agent goes on with this thread
%agent fork [thread]      a copy of a thread, which the next %%agent goes on with
%agent name name          a name for this thread
%agent archive [thread]   take a thread off the list; `unarchive` brings it back
%agent delete thread      remove a thread and all that was said in it
%agent mode [mode]        who decides what no rule decides: ask, deny_all or auto_review
%agent model [model]      which model answers, such as openai:gpt-5.2
%agent usage              what the thread has cost
%agent stop               end the turn that is in progress
%agent help               this text

A thread is named by its name or the beginning of its id. To ask:

%%agent [--thread NAME | --new] [--mode MODE] [--model MODEL] [--backend loop|generate] [--steps N]
        [--context none|cells|outputs]   (all on the first line)
What the agent should do, in any number of lines."""

_FIRST_LINE: Final = re.compile(r"%%agent(?:[ \t](.*))?")


class _Parser(argparse.ArgumentParser):
    """Reports errors on one line."""

    def error(self, message: str) -> Any:
        """Raise the exception type of magics."""
        raise _usage_error(f"%%agent: {one_line(message)}. `%agent help` lists the options.")


class AgentMagic:
    """Ask an agent that works in this kernel: ``%%agent``, followed by the task. See also ``%agent help``.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str | None = None) -> None:
        """Run a ``%agent`` command."""
        if cell is not None:
            raise _usage_error("`%%agent` must be the first line of a cell, in a kernel with `%autoawait asyncio`.")
        words = _words(line) or ["show"]
        command, arguments = words[0], words[1:]
        if command not in COMMANDS:
            raise _usage_error(f"%agent has no command `{one_line(command)}`; it has {', '.join(COMMANDS)}.")
        if command == "help":
            print(_HELP)  # noqa: T201  # a magic prints
            return
        try:
            # A person may be asked whether to loosen a thread's mode.
            print(_ask(command, arguments, None if command in _MAY_ASK else _WITHIN))  # noqa: T201
        except AgentBoxError as error:
            print(f"{type(error).__name__}: {error}")  # noqa: T201

    async def run(self, line: str, cell: str) -> None:
        """Run a ``%%agent`` cell."""
        options, prompt = read_options(line)
        prompt = "\n".join(filter(None, [prompt, cell.strip()]))
        if not prompt:
            raise _usage_error("%%agent: write below the first line what the agent should do.")
        # Not at the top: loading the magic must not slow down a kernel's start.
        with TrustedImports():
            from .agent_cell import run_turn  # noqa: PLC0415
        try:
            await run_turn(self._shell, runtime.link(), prompt, options)
        except AgentBoxError as error:
            _show_no_lines_of(error)
            raise

    def transform(self, lines: list[str]) -> list[str]:
        """Rewrite a ``%%agent`` cell as one with a top-level ``await``, which the kernel runs in its event loop.

        A cell magic itself blocks the loop, so that code with ``await`` could not run.
        """
        found = _FIRST_LINE.fullmatch(lines[0].rstrip()) if lines else None
        if found is None or not self._shell.autoawait:
            return lines
        line, body = found[1] or "", "".join(lines[1:])
        return [f"await get_ipython().find_cell_magic('agent').run({line!r}, {body!r})\n"]


def _show_no_lines_of(error: AgentBoxError) -> None:
    """Hide the cell's line, which `AgentMagic.transform` wrote, from the error; ``%tb`` shows it."""
    whole = error._render_traceback_
    error.__dict__["_render_traceback_"] = lambda: whole()[-1 if sys.exc_info()[1] is error else 0 :]


def complete(_shell: Any, event: Any) -> list[str]:
    """Complete ``%agent``: subcommands, threads and modes."""
    words = event.line.split()
    is_new_word = event.line.endswith(" ")
    if len(words) < 2 or (len(words) == 2 and not is_new_word):
        return list(COMMANDS)
    if words[1] == "mode":
        return list(_MODES)
    return _thread_names() if words[1] in _OF_THREADS else []


def complete_options(_shell: Any, event: Any) -> list[str]:
    """Complete the options of ``%%agent`` and their values."""
    words = event.line.split()
    before = words[-1] if event.line.endswith(" ") else words[-2] if len(words) > 1 else ""
    if before == "--thread":
        return _thread_names()
    return list(OPTIONS.get(before) or OPTIONS)


def read_options(line: str) -> tuple[JsonObject, str]:
    """Parse a ``%%agent`` line into options and remaining words.

    Raises
    ------
    UsageError
        An option is unknown or invalid.
    """
    found, others = _parser().parse_known_args(_words(line))
    unknown = next((word for word in others if word.startswith("--")), None)
    if unknown is not None:
        raise _usage_error(f"%%agent has no option `{one_line(unknown)}`; it has {', '.join(OPTIONS)}.")
    # 0 is a value, though it equals `False`: the server reports that it is invalid.
    options = {name: value for name, value in vars(found).items() if value is not None and value is not False}
    return options, " ".join(others)


def _parser() -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--thread")
    which.add_argument("--new", action="store_true")
    for name in ("--mode", "--model", "--backend", "--context"):
        parser.add_argument(name)
    parser.add_argument("--steps", type=int)
    return parser


def _words(line: str) -> list[str]:
    """Split a line at spaces outside quotes. An apostrophe within a word is not a quote."""
    return [
        double or single or plain for double, single, plain in re.findall(r"\"([^\"]*)\"|'([^']*)'(?!\S)|(\S+)", line)
    ]


def _ask(command: str, arguments: Sequence[str], within: float | None) -> str:
    with TrustedImports():
        from uuid import uuid4  # noqa: PLC0415  # as above

        from jupyter_agentbox.protocol.messages import AgentCommand  # noqa: PLC0415

    question = AgentCommand(id=uuid4().hex, command=command, arguments=list(arguments))
    return str(runtime.link().ask(question, within=within).content.get("text", ""))


def _thread_names() -> list[str]:
    try:
        return _ask("names", [], _COMPLETE_WITHIN).splitlines()
    except AgentBoxError:
        return []


def _usage_error(text: str) -> Exception:
    error: Exception = UsageError(text)
    return error
