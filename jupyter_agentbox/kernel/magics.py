"""``%agentbox``: shows servers, tools and pending requests as the kernel sees them, in plain text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from IPython.core.error import UsageError

from jupyter_agentbox import __version__
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.exceptions import AgentBoxError, NoServerError
from jupyter_agentbox.trusted_imports import TrustedImports

from . import runtime
from .configuration_hints import how_to_begin

#: Timeout of a request to the server, in seconds.
_WITHIN: Final = 3.0

_HELP: Final = """\
%agentbox                   the connection to the server, and how many requests wait
%agentbox servers           the MCP servers
%agentbox tools [server]    the tools of one server, or of all loaded ones
%agentbox pending           this kernel's requests that wait for a person
%agentbox help              this text

In code: `from jupyter_agentbox import tools`, then `tools.<server>.<tool>(...)`; `?` after a tool shows how."""


def agentbox(line: str) -> None:
    """Show the state of tool calls in this kernel; ``%agentbox help`` lists the subcommands."""
    words = line.split()
    command, arguments = (words[0], words[1:]) if words else ("status", [])
    show = _COMMANDS.get(command)
    if show is None:
        raise _usage_error(f"%agentbox has no subcommand `{one_line(command)}`; it has {', '.join(_COMMANDS)}.")
    try:
        print(show(arguments))  # noqa: T201  # a magic prints
    except AgentBoxError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201


def complete(_shell: Any, event: Any) -> list[str]:
    """Complete the subcommands of ``%agentbox``, and the servers of ``%agentbox tools``."""
    words = event.line.split()
    if len(words) > 1 and words[1] == "tools" and (len(words) > 2 or event.line.endswith(" ")):
        return list(_servers().completion_names())
    return list(_COMMANDS)


def _status(_arguments: Sequence[str]) -> str:
    link = runtime.link()
    try:
        servers = link.list_servers(within=_WITHIN)
    except NoServerError as error:
        return f"jupyter-agentbox {__version__}: not connected. {error}"
    pending = link.list_pending(within=_WITHIN)
    welcome = link.welcome
    rows = [
        ("kernel side", f"jupyter-agentbox {__version__}"),
        ("server", f"jupyter-agentbox {welcome.server_version}" if welcome else "connected"),
        ("decide at", welcome.url if welcome else ""),
        ("MCP servers", str(len(servers))),
        ("pending", str(len(pending))),
    ]
    return _table(row for row in rows if row[1])


def _show_servers(_arguments: Sequence[str]) -> str:
    found = _servers().refresh(within=_WITHIN)
    identifiers = {name: identifier for identifier, name in found.items()}
    rows = [
        (
            f"tools.{identifiers.get(entry['name'], '?')}",
            entry["name"],
            str(entry.get("state", "")).replace("_", " "),
            "" if entry.get("tool_count") is None else f"{entry['tool_count']} tools",
            *_why_and_where(str(entry.get("error", ""))),
        )
        for entry in runtime.link().list_servers(within=_WITHIN)
    ]
    problems = [f"Not read: {problem}" for problem in runtime.link().problems]
    if not rows and not problems:
        return f"No MCP server is configured. {how_to_begin(runtime.link().servers_file)}"
    return "\n".join(filter(None, [_table(rows), *problems]))


def _why_and_where(error: str) -> tuple[str, str]:
    """Return an error and its last line, which says where to look and must not be cut off."""
    why, _, where = error.rpartition("\n")
    return (why, where) if why else (where, "")


def _show_tools(arguments: Sequence[str]) -> str:
    tools = _tools_module()
    names = arguments or [name for name in _servers().completion_names() if f"{tools.__name__}.{name}" in sys.modules]
    if not names:
        return "Which server? `%agentbox tools <server>`; `%agentbox servers` lists them."
    return "\n\n".join(_tools_of(name) for name in names)


def _tools_of(name: str) -> str:
    from .modules import describe, tools_of  # noqa: PLC0415  # see `_tools_module`

    try:
        module = _tools_module()[name]
    except KeyError as error:
        raise _usage_error(error.args[0]) from None
    identifier = module.__name__.rpartition(".")[2]
    rows = [(f"tools.{identifier}.{function}", text) for function, _, text in describe(tools_of(module))]
    return _table(rows) or f"tools.{identifier} has no tools."


def _show_pending(_arguments: Sequence[str]) -> str:
    rows = [
        (
            f"{entry.get('server', '')}.{entry.get('tool', '')}",
            f"since {entry.get('created_at', '')}",
            f"expires {entry['expires_at']}" if entry.get("expires_at") else "",
            entry.get("id", ""),
        )
        for entry in runtime.link().list_pending(within=_WITHIN)
    ]
    return _table(rows) or "No requests are waiting for approval."


def _show_help(_arguments: Sequence[str]) -> str:
    return _HELP


def _table(rows: Iterable[Sequence[Any]]) -> str:
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return "\n".join(padded)


def _usage_error(text: str) -> Exception:
    error: Exception = UsageError(text)
    return error


def _tools_module() -> Any:
    # Not at the top: loading the magic must not slow down a kernel's start.
    with TrustedImports():  # also imported by completion
        from jupyter_agentbox import tools  # noqa: PLC0415

    return tools


def _servers() -> Any:
    return _tools_module()._servers


_COMMANDS: Final = {
    "status": _status,
    "servers": _show_servers,
    "tools": _show_tools,
    "pending": _show_pending,
    "help": _show_help,
}
