"""The MCP servers configured in ``mcp.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, Final, Protocol, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.tools import ConfigurationProblem

from . import jsonc
from .env_file import parse_env_file
from .regular_files import read_regular_text
from .variables import TO_SET, Expander, UnsetVariableError

#: Top-level keys for servers: the common one, and VS Code's.
SERVER_KEYS: Final = ("mcpServers", "servers")
STDIO_TYPES: Final = ("stdio", "local")
HTTP_TYPES: Final = ("http", "streamable-http", "streamableHttp", "streamable_http", "remote")
#: Valid names of the Hub service's servers.
_CENTRAL_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
#: Maximum size of an ``envFile``, in bytes. It is read before anybody trusts its entry.
_LONGEST_ENV_FILE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A server that runs as a local process. Values that may be secret are not in its ``repr``.

    Parameters
    ----------
    name : str
        Its name in the configuration.
    command : str
        The program, looked up in the ``PATH`` of the server's environment.
    args : tuple of str
        Its arguments.
    env : mapping
        Variables set in the configuration, including those of ``envFile``; ``env`` takes precedence.
    cwd : str or None
        Its working directory; ``None`` for the Jupyter server's.
    timeout : float or None
        Timeout of a tool call, in seconds, not counting waits for a person; ``None`` for the default.
    protocol_era : str
        ``"auto"``, ``"legacy"`` or a protocol version.
    secrets : tuple of str
        Values that must not appear in logs or messages.
    env_file : str or None
        Path of the ``envFile``, if any.
    of_env_file : mapping
        Those of its variables that come from the ``envFile``.
    is_of_project : bool
        Whether it is a server of the project's ``.mcp.json``, which a person has trusted.
    is_trusted : bool
        Whether it can be started because its entry is trusted, so that a person can stop trusting it.
    place : str
        Path and line of its entry; empty if unknown. An entry that only moves is the same configuration.
    """

    name: str
    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    timeout: float | None = None
    protocol_era: str = "auto"
    secrets: tuple[str, ...] = field(default=(), repr=False)
    is_of_project: bool = False
    is_trusted: bool = False
    env_file: str | None = None
    of_env_file: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    place: str = field(default="", compare=False)

    transport: ClassVar[str] = "stdio"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """OAuth client settings for signing in to a server.

    Parameters
    ----------
    client_id : str or None
        Client id at the provider; ``None`` to register at the first sign-in.
    client_secret : str or None
        Client secret, if the provider issued one.
    scopes : tuple of str
        Requested scopes; empty for the server's default.
    """

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """A server reached over streamable HTTP. Values that may be secret are not in its ``repr``.

    Parameters
    ----------
    name, timeout, protocol_era, secrets, is_of_project, is_trusted, place
        As in `StdioServer`.
    url : str
        The endpoint's URL.
    headers : mapping
        Headers sent with every request to that origin only.
    oauth : OAuthClient
        OAuth client settings, if the server requires sign-in.
    headers_helper : tuple of str
        The program that prints more headers, with its arguments; empty for none.
    """

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: OAuthClient = field(default_factory=OAuthClient)
    headers_helper: tuple[str, ...] = field(default=(), repr=False)
    timeout: float | None = None
    protocol_era: str = "auto"
    secrets: tuple[str, ...] = field(default=(), repr=False)
    is_of_project: bool = False
    is_trusted: bool = False
    place: str = field(default="", compare=False)

    transport: ClassVar[str] = "http"

    @property
    def has_authorization(self) -> bool:
        """Whether its headers contain credentials, so that nobody needs to sign in."""
        return any(name.lower() == "authorization" for name in self.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableServer:
    """A server whose configuration cannot be used.

    Parameters
    ----------
    name : str
        Its name in the configuration.
    transport : str
        ``"stdio"`` or ``"http"``, as far as known.
    error : str
        What is missing or wrong, and what to do.
    is_disabled : bool
        Whether the user disabled it; then there is no error.
    needs_trust : bool
        Whether a person must trust it first.
    is_of_project : bool
        Whether it is a server of the project's ``.mcp.json`` that a person must trust first.
    env_file : str or None
        Path of the ``envFile`` that could not be read, or that an entry names which a person must trust first.
    """

    name: str
    transport: str
    error: str
    is_disabled: bool = False
    needs_trust: bool = False
    is_of_project: bool = False
    env_file: str | None = None


#: The path of a key, its offset, and whether it stands there again.
_LocatedKey: TypeAlias = tuple[tuple[str, ...], int, bool]

StartableServer: TypeAlias = StdioServer | HttpServer
ServerConfiguration: TypeAlias = StartableServer | UnusableServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All configured servers, by name in file order, and the problems in the files."""

    servers: Mapping[str, ServerConfiguration] = field(default_factory=dict)
    problems: tuple[ConfigurationProblem, ...] = ()


class ConfigurationSource(Protocol):
    """Source of the configuration."""

    def load(self) -> Configuration:
        """Return the configuration; the same object as last time if nothing changed."""


class _EntryError(ValueError):
    """A server's entry is malformed."""


class Withheld(Protocol):
    """Replaces entries that must not be read."""

    def __call__(self, name: str, entry: JsonValue) -> ServerConfiguration | None:
        """Return the replacement of an entry; ``None`` if it may be read."""


def parse_configuration(
    path: Path,
    text: str,
    environment: Mapping[str, str],
    *,
    withheld: Withheld = lambda name, entry: None,  # noqa: ARG005  # called by these names
    of_others: frozenset[str] = frozenset(),
    to_set: str = TO_SET,
) -> Configuration:
    """Parse the text of a file.

    Parameters
    ----------
    path : Path
        The file, for messages and as the base of relative ``envFile`` and ``cwd`` paths.
    text : str
        JSON; comments and trailing commas are allowed.
    environment : mapping
        The source of variables.
    withheld : callable, optional
        Replaces entries of which nothing, no variable and no file, may be read. Raises `ValueError` if the entry is
        malformed.
    of_others : frozenset of str
        The variables whose values other people choose: in a URL, these are escaped.
    to_set : str
        How to set a variable, for messages.
    """
    try:
        value = jsonc.parse(text)
    except json.JSONDecodeError as error:
        problem = ConfigurationProblem(
            path=str(path), message=f"not valid JSON: {error.msg}", line=error.lineno, column=error.colno
        )
        return Configuration(problems=(problem,))
    except RecursionError:
        return Configuration(problems=(ConfigurationProblem(path=str(path), message="nested too deeply"),))
    except ValueError:  # an invalid file of somebody else's must not lose the rest
        message = "not valid JSON: a number has too many digits"
        return Configuration(problems=(ConfigurationProblem(path=str(path), message=message),))
    found = [value[key] for key in SERVER_KEYS if key in value] if isinstance(value, dict) else [None]
    if isinstance(value, dict) and value and not found:
        message = f'has no "mcpServers": write {{"mcpServers": {{{json.dumps(next(iter(value)))}: ...}}}}'
        return Configuration(problems=(ConfigurationProblem(path=str(path), message=message, line=1, column=1),))
    entries: JsonObject = {}
    for part in reversed(found):
        if isinstance(part, dict):
            entries = {**entries, **part}
    if not all(isinstance(part, dict) for part in found):
        message = 'must be an object with an object under "mcpServers"'
        return Configuration(problems=(ConfigurationProblem(path=str(path), message=message, line=1, column=1),))

    def read(name: str, entry: JsonValue) -> ServerConfiguration:
        expander = Expander(environment, of_others=of_others, to_set=to_set)
        return withheld(name, entry) or _read_entry(name, entry, path.parent, expander)

    return _read_servers(path, text, entries, read)


def _read_servers(
    path: Path, text: str, entries: JsonObject, read: Callable[[str, JsonValue], ServerConfiguration]
) -> Configuration:
    keys = tuple(jsonc.located_keys(text))
    lines = _lines_of(text, keys)
    repeated = _repeated_keys(path, text, keys)
    if None in repeated:
        return Configuration(problems=(repeated[None][0],))
    servers: dict[str, ServerConfiguration] = {}
    problems = [problem for of_server in repeated.values() for problem in of_server]
    for name, entry in entries.items():
        if name in repeated:
            reason = str(repeated[name][0])
            servers[name] = UnusableServer(name=name, transport=transport_of(entry), error=reason)
            continue
        try:
            server = read(name, entry)
            place = f"{path}:{lines[name]}" if name in lines else ""
            servers[name] = server if isinstance(server, UnusableServer) else replace(server, place=place)
        except ValueError as error:
            servers[name] = UnusableServer(name=name, transport=transport_of(entry), error=f"malformed: {error}")
            problems.append(_problem(path, text, name, error))
    return Configuration(servers=servers, problems=tuple(problems))


def _lines_of(text: str, keys: Iterable[_LocatedKey]) -> dict[str, int]:
    """Return the line of each server's entry."""
    found: dict[str, int] = {}
    known = sorted((path for path in keys if len(path[0]) == 2 and path[0][0] in SERVER_KEYS), key=_precedence)
    for (_, name), at, _ in known:
        found.setdefault(name, text.count("\n", 0, at) + 1)
    return found


def _precedence(key: _LocatedKey) -> int:
    return SERVER_KEYS.index(key[0][0])


def _repeated_keys(
    path: Path, text: str, located: Iterable[_LocatedKey]
) -> dict[str | None, list[ConfigurationProblem]]:
    """Return the problems of keys that occur twice, by server; those of the whole file under ``None``.

    Programs differ in which of two they use, so neither counts.
    """
    found: dict[str | None, list[ConfigurationProblem]] = {}
    for keys, at, is_repeated in located:
        if not is_repeated or keys[0] not in SERVER_KEYS:  # others are other programs' keys
            continue
        where = f"server `{keys[1]:.80}`: " if len(keys) > 2 else ""
        advice = "; remove one of the two" if len(keys) != 2 else "; the server cannot be used until you remove one"
        problem = ConfigurationProblem(
            path=str(path),
            message=f"{where}the key `{keys[-1]:.80}` stands here twice{advice}",
            line=text.count("\n", 0, at) + 1,
            column=at - text.rfind("\n", 0, at),
        )
        found.setdefault(keys[1] if len(keys) > 1 else None, []).append(problem)
    return found


def _problem(path: Path, text: str, name: str, error: ValueError) -> ConfigurationProblem:
    """Return the problem in a server's entry, with the position of its name or of the key concerned."""
    start = _find(text, name, 0)
    if start < 0:
        return ConfigurationProblem(path=str(path), message=f"server `{name}`: {error}")
    line = text.count("\n", 0, start) + 1
    told = []
    for key, message in getattr(error, "problems", {"": str(error)}).items():
        place = start + len(name)
        for part in key.split("."):
            place = _find(text, part, place) if part and not part.isdecimal() and place >= 0 else place
        below = text.count("\n", 0, place) + 1 if place >= 0 else line
        told.append(f"{message} (line {below})" if below != line else message)
    return ConfigurationProblem(
        path=str(path),
        message=f"server `{name}`: {'; '.join(told)}",
        line=line,
        column=start - text.rfind("\n", 0, start),
    )


def _find(text: str, key: str, start: int) -> int:
    """Return the first position of a key, approximately."""
    places = [text.find(json.dumps(key, ensure_ascii=plain), start) for plain in (True, False)]
    return min((place for place in places if place >= 0), default=-1)


def is_central(server: ServerConfiguration, hub_service: str) -> bool:
    """Whether a server is a central one, which the Hub service runs.

    Parameters
    ----------
    server : ServerConfiguration
        The server.
    hub_service : str
        The Hub service's URL; empty for none.
    """
    if not hub_service or not isinstance(server, HttpServer):
        return False
    place, name = f"{hub_service.rstrip('/')}/mcp/", server.url.rpartition("/")[2]
    return server.url == f"{place}{name}" and _CENTRAL_NAME.fullmatch(name) is not None


def transport_of(entry: JsonValue) -> str:
    """Return ``stdio`` or ``http``, as far as an entry tells."""
    if not isinstance(entry, dict):
        return "stdio"
    return "http" if entry.get("type") in HTTP_TYPES or ("url" in entry and "command" not in entry) else "stdio"


def check_entry(name: str, entry: JsonValue) -> None:
    """Check a server's entry, without a look at variables or files.

    Raises
    ------
    ValueError
        If it is malformed, whatever variables are set.
    """
    _read_entry(name, entry, Path(), Expander({}))


def _read_entry(name: str, entry: JsonValue, base: Path, expander: Expander) -> ServerConfiguration:
    if not isinstance(entry, dict):
        raise _EntryError("must be an object")
    if not name.strip():
        raise _EntryError("the name is empty")
    transport = transport_of(entry)
    kind = entry.get("type")
    if kind is not None and kind not in (*STDIO_TYPES, *HTTP_TYPES):
        raise _EntryError(f'"type" {kind!r:.40} is not supported: only "stdio" and "http" (streamable HTTP) are')
    if entry.get("disabled") is True:
        error = "disabled in its configuration"
        return UnusableServer(name=name, transport=transport, error=error, is_disabled=True)
    try:
        if transport == "http":
            return _read_http(name, entry, expander)
        return _read_stdio(name, entry, base, expander)
    except UnsetVariableError as error:
        return UnusableServer(name=name, transport=transport, error=str(error))


def _read_stdio(name: str, entry: JsonObject, base: Path, expander: Expander) -> ServerConfiguration:
    # Late: pydantic is slow to import, and users without MCP servers should not wait for it.
    from .configuration_entries import read_stdio  # noqa: PLC0415

    read = read_stdio(entry, expander)
    if not read.command:
        meant = [key for key in entry if get_close_matches(key, ("command", "url"), 1)]
        hint = f' (is "{meant[0]:.40}" a typo?)' if meant else ""
        raise _EntryError(f'needs a "command", or a "url"{hint}')
    env, env_file, of_env_file = dict(read.env), None, {}
    if read.envFile is not None:
        env_file = str(base / _home("envFile", read.envFile))
        try:
            found = parse_env_file(read_regular_text(Path(env_file), longest=_LONGEST_ENV_FILE))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"cannot read its envFile `{env_file}`: {reason}"
            return UnusableServer(name=name, transport="stdio", error=message, env_file=env_file)
        of_env_file = {variable: value for variable, value in found.items() if variable not in env}
        env = {**of_env_file, **env}
    return StdioServer(
        name=name,
        command=_home("command", read.command),
        args=tuple(read.args),
        env=env,
        cwd=str(base / _home("cwd", read.cwd)) if read.cwd else None,
        timeout=read.timeout,
        protocol_era=read.protocolEra or "auto",
        secrets=tuple(sorted({*env.values(), *expander.secrets})),
        env_file=env_file,
        of_env_file=of_env_file,
    )


def _read_http(name: str, entry: JsonObject, expander: Expander) -> ServerConfiguration:
    from .configuration_entries import read_http  # noqa: PLC0415  # as above

    read = read_http(entry, expander)
    parts = urlsplit(read.url)
    secrets = {*secrets_in(read.headers), *expander.secrets, *(value for _, value in parse_qsl(parts.query))}
    oauth = OAuthClient(
        client_id=read.client.clientId, client_secret=read.client.clientSecret, scopes=tuple(read.client.scopes)
    )
    secrets |= {parts.password or "", oauth.client_secret or ""}
    return HttpServer(
        name=name,
        url=read.url,
        headers=dict(read.headers),
        oauth=oauth,
        headers_helper=_with_home(read.headersHelper or ()),
        timeout=read.timeout,
        protocol_era=read.protocolEra or "auto",
        secrets=tuple(sorted(secrets)),
    )


def secrets_in(headers: Mapping[str, str]) -> frozenset[str]:
    """Return what may be secret in headers: their values, and each word: who logs `Bearer abc` may log `abc`."""
    words = {word for value in headers.values() for word in value.split()}
    return frozenset(headers.values()) | (words - {"Bearer", "Basic"})


def where_to_look(server: StartableServer, *, has_panel: bool) -> str:
    """Return a sentence that says where people find more about a server that fails; empty if nowhere.

    Parameters
    ----------
    server : StdioServer or HttpServer
        The server.
    has_panel : bool
        Whether JupyterLab's side panel shows it.
    """
    places = [f"its entry is at {server.place}"] if server.place else []
    if has_panel:
        places.append("its log is in JupyterLab's side panel, tab “Servers”")
    text = "; ".join(places)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _with_home(words: Sequence[str]) -> tuple[str, ...]:
    return (_home("headersHelper", words[0]), *words[1:]) if words else ()


def _home(key: str, path: str) -> str:
    """Return a path with the home directory in place of ``~``."""
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError:
        raise _EntryError(f'"{key}" begins with the home directory of a user who does not exist') from None
