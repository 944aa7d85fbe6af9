"""The MCP servers that a user configured in ``mcp.json``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.tools import ConfigurationProblem

from . import jsonc
from .environment import parse_env_file
from .variables import Expander, UnsetVariableError

#: Where a file may keep its servers: everyone's key, and VS Code's.
SERVER_KEYS: Final = ("mcpServers", "servers")
STDIO_TYPES: Final = ("stdio", "local")
HTTP_TYPES: Final = ("http", "streamable-http", "streamableHttp", "streamable_http", "remote")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A server that is a process of ours. Values that may be secret are not in its ``repr``.

    Parameters
    ----------
    name : str
        Its name in the configuration.
    command : str
        The program, looked up in the ``PATH`` of the process's environment.
    args : tuple of str
        Its arguments.
    env : mapping
        Variables that the configuration sets, ``envFile`` included; ``env`` wins.
    cwd : str or None
        Its working directory; ``None`` is the Jupyter server's.
    timeout : float or None
        Seconds that a tool may run; ``None`` is the default. Waiting for a person does not count.
    protocol_era : str
        ``"auto"``, ``"legacy"`` or a protocol version.
    secrets : tuple of str
        Values that no log or message may show.
    env_file : str or None
        The ``envFile`` that was read.
    """

    name: str
    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    timeout: float | None = None
    protocol_era: str = "auto"
    secrets: tuple[str, ...] = field(default=(), repr=False)
    env_file: str | None = None

    transport: ClassVar[str] = "stdio"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """A server that is reached over streamable HTTP. Values that may be secret are not in its ``repr``.

    Parameters
    ----------
    name, timeout, protocol_era, secrets
        As in `StdioServer`.
    url : str
        The endpoint.
    headers : mapping
        Sent with every request to that origin, and to no other.
    """

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None
    protocol_era: str = "auto"
    secrets: tuple[str, ...] = field(default=(), repr=False)

    transport: ClassVar[str] = "http"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableServer:
    """A server that cannot be started as it is configured.

    Parameters
    ----------
    name : str
        Its name in the configuration.
    transport : str
        ``"stdio"`` or ``"http"``, as far as one can tell.
    error : str
        What is missing or wrong, and what to do.
    is_disabled : bool
        Whether the user turned it off; then nothing is wrong.
    env_file : str or None
        The ``envFile`` that could not be read.
    """

    name: str
    transport: str
    error: str
    is_disabled: bool = False
    env_file: str | None = None


ServerConfiguration: TypeAlias = StdioServer | HttpServer | UnusableServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All configured servers, by name in the order of the files, and what is wrong with the files."""

    servers: Mapping[str, ServerConfiguration] = field(default_factory=dict)
    problems: tuple[ConfigurationProblem, ...] = ()


class _EntryError(ValueError):
    """A server's entry is malformed."""


def parse_configuration(path: Path, text: str, environment: Mapping[str, str]) -> Configuration:
    """Read one file's text.

    Parameters
    ----------
    path : Path
        The file, for messages and as the base of relative ``envFile`` and ``cwd`` paths.
    text : str
        JSON; comments and trailing commas are allowed.
    environment : mapping
        Where variables come from.
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
    servers: dict[str, ServerConfiguration] = {}
    problems: list[ConfigurationProblem] = []
    for name, entry in entries.items():
        try:
            servers[name] = _read_entry(name, entry, path.parent, environment)
        except _EntryError as error:
            servers[name] = UnusableServer(name=name, transport=_transport(entry), error=f"malformed: {error}")
            line, column = _place(text, name)
            problems.append(
                ConfigurationProblem(path=str(path), message=f"server `{name}`: {error}", line=line, column=column)
            )
    return Configuration(servers=servers, problems=tuple(problems))


def _place(text: str, name: str) -> tuple[int | None, int | None]:
    """Return where the server's name first stands as a key, near enough to find it."""
    for written in (json.dumps(name), json.dumps(name, ensure_ascii=False)):
        start = text.find(written)
        if start >= 0:
            return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return None, None


def _transport(entry: JsonValue) -> str:
    if not isinstance(entry, dict):
        return "stdio"
    return "http" if entry.get("type") in HTTP_TYPES or ("url" in entry and "command" not in entry) else "stdio"


def _read_entry(name: str, entry: JsonValue, base: Path, environment: Mapping[str, str]) -> ServerConfiguration:
    if not isinstance(entry, dict):
        raise _EntryError("must be an object")
    if not name.strip():
        raise _EntryError("the name is empty")
    transport = _transport(entry)
    kind = entry.get("type")
    if kind is not None and kind not in (*STDIO_TYPES, *HTTP_TYPES):
        raise _EntryError(f'"type" {kind!r:.40} is not supported: only "stdio" and "http" (streamable HTTP) are')
    if entry.get("disabled") is True:
        error = "disabled in its configuration"
        return UnusableServer(name=name, transport=transport, error=error, is_disabled=True)
    expander = Expander(environment)
    try:
        if transport == "http":
            return _read_http(name, entry, expander)
        return _read_stdio(name, entry, base, expander)
    except UnsetVariableError as error:
        return UnusableServer(name=name, transport=transport, error=str(error))


def _read_stdio(name: str, entry: JsonObject, base: Path, expander: Expander) -> ServerConfiguration:
    command = expander.expand(_string(entry, "command") or "")
    if not command:
        meant = [key for key in entry if get_close_matches(key, ("command", "url"), 1)]
        hint = f' (is "{meant[0]:.40}" a typing error?)' if meant else ""
        raise _EntryError(f'needs a "command", or a "url"{hint}')
    args = entry.get("args", [])
    if not isinstance(args, list):
        raise _EntryError('"args" must be a list of strings')
    env = {key: expander.expand(value) for key, value in _strings(entry, "env").items()}
    env_file = _string(entry, "envFile")
    if env_file is not None:
        env_file = str(base / Path(expander.expand(env_file)).expanduser())
        try:
            env = {**parse_env_file(Path(env_file).read_text("utf-8-sig")), **env}
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"cannot read its envFile `{env_file}`: {reason}"
            return UnusableServer(name=name, transport="stdio", error=message, env_file=env_file)
    cwd = _string(entry, "cwd")
    return StdioServer(
        name=name,
        command=_home(command),
        args=tuple(expander.expand(_argument(value)) for value in args),
        env=env,
        cwd=str(base / Path(expander.expand(cwd)).expanduser()) if cwd else None,
        timeout=_timeout(entry),
        protocol_era=_protocol_era(entry),
        secrets=tuple(sorted({*env.values(), *expander.secrets})),
        env_file=env_file,
    )


def _read_http(name: str, entry: JsonObject, expander: Expander) -> ServerConfiguration:
    url = expander.expand(_string(entry, "url") or "")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # raises for a port that is none
    except ValueError as error:
        raise _EntryError(f'"url" is not a URL: {error}') from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _EntryError('"url" must start with http:// or https:// and name a host')
    headers = {key: expander.expand(value) for key, value in _strings(entry, "headers").items()}
    for key, value in headers.items():
        if not _HEADER_NAME.fullmatch(key) or not value.isascii() or any(c in value for c in "\r\n\0"):
            raise _EntryError(f"the header {key!r:.40} cannot be sent: it has a character that HTTP forbids")
    secrets = {*headers.values(), *expander.secrets, *(value for _, value in parse_qsl(parts.query))}
    # `Bearer abc`: a server that logs its token logs `abc`
    secrets |= {word for value in headers.values() for word in value.split() if word not in ("Bearer", "Basic")}
    secrets |= {parts.password or ""}
    return HttpServer(
        name=name,
        url=url,
        headers=headers,
        timeout=_timeout(entry),
        protocol_era=_protocol_era(entry),
        secrets=tuple(sorted(secrets)),
    )


def _string(entry: JsonObject, key: str) -> str | None:
    value = entry.get(key)
    if value is not None and (not isinstance(value, str) or "\0" in value):
        raise _EntryError(f'"{key}" must be a string')
    return value


def _strings(entry: JsonObject, key: str) -> dict[str, str]:
    value = entry.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _EntryError(f'"{key}" must be an object of strings')
    return {inner: _argument(content, f'"{key}.{inner}"') for inner, content in value.items() if content is not None}


def _argument(value: JsonValue, where: str = '"args"') -> str:
    """Return a string for what people write as one: ``8080`` or ``true`` without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, str) or "\0" in value:
        raise _EntryError(f"{where} must be a string")
    return value


def _timeout(entry: JsonObject) -> float | None:
    value = entry.get("timeout")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise _EntryError('"timeout" must be a number of seconds greater than 0')
    return float(value)


def _protocol_era(entry: JsonObject) -> str:
    value = _string(entry, "protocolEra")
    return value or "auto"


def _home(command: str) -> str:
    return str(Path(command).expanduser()) if command.startswith("~") else command
