"""MCP servers as Python modules: ``jupyter_agentbox.tools.<identifier>``, from source that the server generates.

The modules are real: they are in ``sys.modules``, found by a finder on ``sys.meta_path``, and loaded and reloaded by a
loader, with source that `linecache` and `inspect` can find.
"""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib.machinery import ModuleSpec
from threading import Event, RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from jupyter_agentbox.core.names import server_names
from jupyter_agentbox.core.rates import Rate
from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.exceptions import AgentBoxError, NoServerError, UnknownServerError, short_traceback
from jupyter_agentbox.trusted_imports import TrustedImports

from . import runtime
from .configuration_hints import file_in_words, how_to_begin
from .tables import html_table

if TYPE_CHECKING:
    from importlib.abc import Loader

PACKAGE: Final = "jupyter_agentbox.tools"

#: Timeout of a completion or display, in seconds.
COMPLETION_WAIT: Final = 1.0
#: How long a list of servers, or a failure to get one, is cached, in seconds.
_FRESH: Final = 5.0
#: How often a module is loaded again in a while because its server says that its tools have changed; below, the while
#: in seconds. A server may say so all the time.
_MOST_RELOADS: Final = 20
_WHILE: Final = 10.0


class MissingNameError(AttributeError):
    """No server or tool has this name. IPython shows a short traceback, as for the package's other errors."""

    def _render_traceback_(self) -> list[str]:
        return short_traceback(self)


class Servers:
    """The servers available to this kernel, by Python name.

    Parameters
    ----------
    reserved : collection of str
        Names that no server's module may have.
    clock : callable
        Monotonic clock, in seconds.
    """

    def __init__(self, reserved: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._reserved = frozenset(reserved)
        self._clock = clock
        self._identifiers: dict[str, str] = {}
        self._asked_at: float | None = None

    @property
    def known(self) -> dict[str, str]:
        """Identifier to server name, as last listed."""
        return {identifier: name for name, identifier in self._identifiers.items()}

    def refresh(self, *, within: float | None = None) -> dict[str, str]:
        """Update the list; return identifier to server name.

        Raises
        ------
        NoServerError
            If no server answers.
        """
        self._asked_at = self._clock()
        found = runtime.link().list_servers(within=within or _within())
        names = [entry["name"] for entry in found if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        self._identifiers = server_names(names, reserved=self._reserved)
        return self.known

    def completion_names(self) -> dict[str, str]:
        """Return identifier to server name for completion: with a short timeout, without raising."""
        if self._asked_at is None or self._clock() - self._asked_at > _FRESH:
            try:
                return self.refresh(within=COMPLETION_WAIT)
            except AgentBoxError:
                self._asked_at = self._clock()
        return self.known

    def html(self) -> str:
        """Return the servers as an HTML table: with a short timeout, without raising."""
        self.completion_names()
        try:
            found = runtime.link().list_servers(within=COMPLETION_WAIT)
        except AgentBoxError as error:
            return html_table(("MCP servers",), [], note=str(error))
        rows = [
            (
                f"tools.{self._identifiers.get(str(entry.get('name')), '?')}",
                entry.get("state", ""),
                entry.get("tool_count"),
                entry.get("error", ""),
            )
            for entry in found
            if isinstance(entry, dict)
        ]
        return html_table(("server", "state", "tools", "problem"), rows)

    def identifier(self, name: str) -> str:
        """Return the Python name of a server given by either name.

        Raises
        ------
        UnknownServerError
            If there is no such server; the message lists the available ones.
        """
        for known in (self.known, None):
            servers = self.refresh() if known is None else known
            if name in servers.values():
                return self._identifiers[name]
            if name in servers:
                return name
        file = runtime.link().servers_file
        problems = "".join(f" Not read: {problem}." for problem in runtime.link().problems)
        listed = ", ".join(f"`{identifier}`" for identifier in sorted(servers))
        beginning = "" if listed or problems else f" {how_to_begin(file)}"
        listed = listed or ("none could be read" if problems else "none is configured")
        raise UnknownServerError(
            f"there is no MCP server `{one_line(name)}`.{_meant(name, servers)} Servers: {listed}. They are"
            f" configured in {file_in_words(file)}; `%agentbox servers` shows them.{problems}{beginning}"
        )

    def name(self, identifier: str) -> str:
        """Return the server name for an identifier.

        Raises
        ------
        UnknownServerError
            If there is no such server.
        """
        found = self.identifier(identifier)  # may update the list
        return self.known[found]


class ServerModule(ModuleType):
    """The type of server modules, whose representation lists the tools."""

    def __repr__(self) -> str:
        rows = [(f"{function}(...)", text) for function, _, text in describe(tools_of(self))]
        width = max((len(call) for call, _ in rows), default=0)
        title = f"Tools of the MCP server `{_server_of(self)}`" + (":" if rows else ": none")
        return "\n".join([title, *(f"  {call.ljust(width)}  {text}".rstrip() for call, text in rows)])

    def _repr_html_(self) -> str:
        tools = tools_of(self)
        hints = [hints_of(tool) for tool in tools if isinstance(tool, dict)]
        rows = [(function, text, hint) for (function, _, text), hint in zip(describe(tools), hints, strict=True)]
        note = f"tools.{self.__name__.rpartition('.')[2]}: `?` after a tool shows how it is called"
        return html_table(("tool", "what it does", "its server says"), rows, note=note)


class ToolsFinder:
    """Finder of the servers' modules.

    Parameters
    ----------
    servers : Servers
        The available servers.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a server's module; ``None`` for other modules and for unknown servers."""
        package, _, identifier = fullname.rpartition(".")
        if package != PACKAGE or identifier.startswith("_"):
            return None
        try:
            server = self._servers.name(identifier)
        except UnknownServerError as error:
            raise ModuleNotFoundError(str(error), name=fullname) from None
        if identifier not in self._servers.known:  # the server's original name, which is not a module's
            return None
        return ModuleSpec(fullname, cast("Loader", ToolsLoader(server)), origin=f"<agentbox {identifier}>")


class ToolsLoader:
    """Loads and reloads the module of one server.

    When the server says that its tools have changed, their functions are removed, and the next look at the module loads
    it again. If that fails, the functions are as they were.

    Parameters
    ----------
    server : str
        The server's name in the configuration.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self._source = ""
        self._lock = RLock()
        self._asked_at = 0.0
        self._news = Event()
        self._reloads = Rate(_MOST_RELOADS, _WHILE)
        self._former: dict[str, Any] = {}

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fetch and execute the source, and remove the definitions of an older list of tools."""
        with self._lock:
            self._asked_at = time.monotonic()
            self._news.clear()  # first: the list may change once more meanwhile
            runtime.link().set_tools_listener(self.server, partial(self._note_change, module))
            self._load(module)
            self._former = {}
            if self._news.is_set():
                self._remove_functions(module)

    def update(self, module: ModuleType) -> None:
        """Load the module again if the server's tools have changed."""
        with self._lock:
            if self._news.is_set() or self._former:
                self._try_to_load(module)

    def find(self, module: ModuleType, name: str) -> Any:
        """Return the object that a server's new list of tools has under a name, if any.

        The message that the list has changed may be on its way, or lost: the server is asked every few seconds at most.
        """
        with self._lock:
            if name not in vars(module):
                self._try_to_load(module)
            return vars(module).get(name, self._former.get(name))

    def _try_to_load(self, module: ModuleType) -> None:
        now = time.monotonic()
        if (self._news.is_set() and self._reloads.allows(now)) or now - self._asked_at > _FRESH:
            with suppress(AgentBoxError):
                self.exec_module(module)

    def _note_change(self, module: ModuleType) -> None:
        """Have the next look at the module load it. In any thread, so without the lock, which waits for a server."""
        self._news.set()
        self._remove_functions(module)

    def _remove_functions(self, module: ModuleType) -> None:
        # With `__all__`, so that an import of `*` also asks. What is looked up directly starts no request.
        for name in ("__all__", *vars(module).get("__all__", ())):
            if (former := vars(module).pop(name, None)) is not None:
                self._former[name] = former

    def _load(self, module: ModuleType) -> None:
        content = runtime.link().get_module(self.server, within=_within())
        source, tools = content.get("source"), content.get("tools")
        if not isinstance(source, str) or not isinstance(tools, list):
            raise NoServerError(
                f"the agentbox server sent no module for `{self.server}`: check that "
                "the server and this kernel have the same version of jupyter-agentbox"
            )
        self._source = source
        filename = f"<agentbox {module.__name__.rpartition('.')[2]}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        for name in [name for name in list(vars(module)) if not name.startswith("__")]:
            vars(module).pop(name, None)
        functions = [entry["function"] for entry in tools if isinstance(entry, dict)]
        vars(module).update(
            __file__=filename,
            __all__=functions,
            __dir__=lambda: _names(module, self),
            __getattr__=lambda name: _late(module, self, name),
        )
        code = compile(source, filename, "exec", dont_inherit=True)
        with TrustedImports():
            exec(code, vars(module))  # noqa: S102  # this is how a module comes to be; the server wrote the source
        module.__tools__ = tools  # type: ignore[attr-defined]  # for `%agentbox tools`
        module.__class__ = ServerModule

    def get_source(self, _fullname: str) -> str:
        """Return the generated source."""
        return self._source


def install(servers: Servers) -> None:
    """Let Python find the servers' modules."""
    if not any(isinstance(finder, ToolsFinder) for finder in sys.meta_path):
        sys.meta_path.append(ToolsFinder(servers))


def tools_of(module: ModuleType) -> Sequence[Any]:
    """Return the tools of a server's module as JSON, asking its server if they have changed."""
    loader = getattr(module.__spec__, "loader", None)
    if isinstance(loader, ToolsLoader):
        loader.update(module)
    tools: Sequence[Any] = module.__tools__
    return tools


def hints_of(tool: dict[str, Any]) -> str:
    """Return the server's claims about a tool, unverified, in a word; of two that contradict, the graver one."""
    annotations = tool.get("annotations")
    claims = annotations if isinstance(annotations, dict) else {}
    if claims.get("destructiveHint") is True:
        return "destructive"
    if claims.get("readOnlyHint") is True:
        return "read-only"
    return "adds or changes data" if claims.get("destructiveHint") is False else "does not say"


def describe(tools: Iterable[Any]) -> list[tuple[str, str, str]]:
    """Return the function, wire name and one-line description of each tool of a module."""
    return [
        (str(tool["function"]), one_line(str(tool["name"])), one_line(_first_line(tool), 100))
        for tool in tools
        if isinstance(tool, dict)
    ]


def _within() -> float | None:
    return COMPLETION_WAIT if runtime.is_asked_by_editor() else None


def _first_line(tool: dict[str, Any]) -> str:
    text = visible(str(tool.get("title") or tool.get("description") or ""))
    return text.strip().split("\n")[0]


def _meant(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), 1)
    return f" Did you mean `{close[0]}`?" if close else ""


def _server_of(module: ModuleType) -> str:
    loader = getattr(module.__spec__, "loader", None)
    return one_line(loader.server) if isinstance(loader, ToolsLoader) else module.__name__


def _names(module: ModuleType, loader: ToolsLoader) -> list[str]:
    loader.update(module)
    return list(module.__all__)


def _late(module: ModuleType, loader: ToolsLoader, name: str) -> Any:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    found = loader.find(module, name)
    if found is None:
        _raise_missing(module, loader.server, name)
    return found


def _raise_missing(module: ModuleType, server: str, name: str) -> NoReturn:
    listed = ", ".join(f"`{each}`" for each in sorted(module.__all__)) or "none"
    raise MissingNameError(
        f"the MCP server `{one_line(server)}` has no tool `{name}`.{_meant(name, module.__all__)} Tools: {listed}."
        " If it is new, `tools.reload()` reads the list again.",
        name=name,
        obj=module,
    )
