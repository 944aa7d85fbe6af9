"""Validation of a new MCP server before it is started, and how servers are shown: without secrets, in one line."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from jupyter_agentbox.core.calls import JsonObject, JsonValue, canonical_json
from jupyter_agentbox.core.names import python_names
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.core.registration import OWN_SERVER
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.core.tools import ConfigurationProblem
from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER
from jupyter_agentbox.protocol.shell import SHELL_SERVER

from .configuration import (
    SERVER_KEYS,
    HttpServer,
    ServerConfiguration,
    StdioServer,
    UnusableServer,
    parse_configuration,
    transport_of,
)
from .logs import Redactor
from .secret_names import is_client_secret, is_secret, is_secret_header, may_hide_variable
from .variables import REFERENCE

#: Names that are unambiguous in Python, in rules and to readers.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_RESERVED: Final = frozenset({SHELL_SERVER, NOTEBOOK_SERVER, OWN_SERVER, "reload"})
#: Placeholder for a hidden value, followed by the value's length.
HIDDEN: Final = "***"
#: Keys of an entry with an object whose values may be secrets; whether one is hidden depends on its name.
_MAY_HIDE: Final = {
    "env": may_hide_variable,
    "headers": is_secret_header,
    "oauth": is_client_secret,
    "auth": is_client_secret,
}
SECRET_KEYS: Final = tuple(_MAY_HIDE)
#: Maximum number of characters of a line about a server.
_LONGEST_LINE: Final = 2000


def check_name(name: str, known: Collection[str]) -> None:
    """Reject a name that is invalid, or easily mistaken for another.

    Raises
    ------
    ServerConfigurationError
    """
    if not _NAME.fullmatch(name):
        raise ServerConfigurationError(
            "the name of an MCP server must start with a letter and have at most 64 letters, digits, `_` and `-`"
        )
    if plain_name(name) in _RESERVED:
        raise ServerConfigurationError(f"the name `{name}` is reserved: choose another one")
    for other in known:
        if plain_name(other) == plain_name(name):
            raise ServerConfigurationError(
                f"there is already an MCP server `{other}`, which was not changed. Use it, or choose another name."
            )


def check_configuration(name: str, configuration: Mapping[str, JsonValue]) -> None:
    """Reject an invalid configuration, with a message that contains none of its secrets.

    Raises
    ------
    ServerConfigurationError
    """
    try:
        canonical_json(configuration)
    except (TypeError, ValueError) as error:
        raise ServerConfigurationError(f"the configuration is not valid JSON: {error}") from None
    for key in ("cwd", "envFile"):
        path = configuration.get(key)
        if isinstance(path, str) and not path.startswith(("/", "~", "${")) and not Path(path).is_absolute():
            raise ServerConfigurationError(f"`{name}` was not registered: its `{key}` must be an absolute path")
    text = json.dumps({SERVER_KEYS[0]: {name: configuration}})
    server = parse_configuration(Path("mcp.json").absolute(), text, os.environ).servers.get(name)
    if server is None or isinstance(server, UnusableServer):
        problem = server.error if server is not None else "it cannot be read"
        raise ServerConfigurationError(f"`{name}` was not registered: {redactor(configuration)(problem)}")


def redactor(configuration: Mapping[str, JsonValue]) -> Redactor:
    """Return a redactor for the configuration's secrets."""
    secrets = {str(value) for key in ("env", "headers") for value in object_of(configuration.get(key)).values()}
    clients = [object_of(configuration.get(key)) for key in ("oauth", "auth")]
    secrets |= {str(value) for client in clients for name, value in client.items() if is_client_secret(name)}
    secrets |= {word for secret in secrets for word in secret.split()}
    url = configuration.get("url")
    if isinstance(url, str):
        try:
            parts = urlsplit(url)
            secrets |= {parts.password or "", *(value for _, value in parse_qsl(parts.query))}
        except ValueError:
            secrets.add(url)
    return Redactor(secrets)


def masked(configuration: Mapping[str, JsonValue]) -> JsonObject:
    """Return the configuration with ``***`` and a length for secret values; references to variables remain.

    Whatever determines what runs is shown: only those variables are hidden that no known program interprets.
    """
    shown: JsonObject = dict(configuration)
    for key, may_hide in _MAY_HIDE.items():
        if isinstance(configuration.get(key), Mapping):
            values = object_of(configuration[key])
            shown[key] = {name: _masked(value) if may_hide(name) else value for name, value in values.items()}
    url = configuration.get("url")
    if isinstance(url, str):
        shown["url"] = _masked_url(url)
    return shown


def command_or_address(server: ServerConfiguration) -> str:
    """Return a server's command or address in one line, without secrets; empty if it is unusable."""
    match server:
        case StdioServer():
            return _masked_command_line((server.command, *server.args), _hider(server.secrets))
        case HttpServer():
            hide = _hider(server.secrets)
            return _address_line(hide(_masked_url(server.url)), _masked_command_line(server.headers_helper, hide))
        case _:
            return ""


def entry_text(server: ServerConfiguration) -> str:
    """Return what a server's trust key covers, a line each, without secrets; empty if it is unusable."""
    match server:
        case StdioServer():
            lines = [f"cwd: {server.cwd}"] if server.cwd else []
            lines += [f"env: {name}" for name in sorted(server.env)]
        case HttpServer():
            lines = [f"header: {name}" for name in sorted(server.headers, key=str.lower)]
        case _:
            return ""
    hide = _hider(server.secrets)
    return "\n".join([command_or_address(server), *(one_line(hide(line), _LONGEST_LINE) for line in lines)])


def _hider(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return what removes these secrets, and what looks like one, from a text."""
    redaction, redactor = Redaction(), Redactor(secrets)
    return lambda text: redaction.text(redactor(text))


def written_command_or_address(configuration: Mapping[str, JsonValue]) -> str:
    """Return a server's command or address in one line, exactly as its entry has it, which must hold no secrets."""
    if transport_of(dict(configuration)) == "http":
        return _address_line(str(configuration.get("url", "")), str(configuration.get("headersHelper") or ""))
    args = configuration.get("args")
    return shlex.join([str(configuration.get("command", "")), *map(str, args if isinstance(args, list) else [])])


def _address_line(url: str, headers_helper: str) -> str:
    # The command line comes last, without quotation marks that it could close.
    return f"{url}, with headers from: {headers_helper}" if headers_helper else url


def _masked_command_line(words: Sequence[str], hide: Callable[[str], str]) -> str:
    """Return a command line without the secrets that are hidden, and those that names of options tell."""
    plain, quoted = [], []
    is_value_secret = False
    for word in words:
        name, equals, _ = word.partition("=")
        is_option = word.startswith("-")
        if is_option and equals and is_secret(name):
            plain.append(f"{name}={HIDDEN}")
            quoted.append(f"{shlex.quote(name)}={HIDDEN}")
        elif is_value_secret and not is_option:
            plain.append(HIDDEN)
            quoted.append(HIDDEN)
        else:
            plain.append(hide(word))  # within quotation marks of a shell it would not be found
            quoted.append(HIDDEN if plain[-1] == HIDDEN else shlex.quote(plain[-1]))
        is_value_secret = is_option and not equals and is_secret(name)
    line = " ".join(plain)
    shown = hide(line)  # such as one after `Bearer`, in a word of its own
    return " ".join(quoted) if shown == line else shown


def _masked(value: JsonValue) -> JsonValue:
    text = value if isinstance(value, str) else json.dumps(value)
    references = [found[0] for found in REFERENCE.finditer(text)]
    if references and text == references[0]:
        return value
    return " ".join([f"{HIDDEN} (hidden, {len(text)} characters)", *references])


def _masked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return HIDDEN
    user, at, host = parts.netloc.rpartition("@")
    shown = [(name, _hidden_part(value) if is_secret(name) else value) for name, value in query]
    userinfo = f"{_hidden_part(user)}@" if at else ""
    return urlunsplit((parts.scheme, f"{userinfo}{host}", parts.path, urlencode(shown, safe="*${}:"), parts.fragment))


def has_secret_in_address(url: str) -> bool:
    """Whether an address has a secret besides its references to variables: a user, or a parameter named like one."""
    try:
        parts = urlsplit(REFERENCE.sub("", url))
        parameters = parse_qsl(parts.query)
    except ValueError:
        return True
    user = parts.netloc.rpartition("@")[0]
    return bool(user.strip(":")) or any(is_secret(name) for name, _ in parameters)


def _hidden_part(value: str) -> str:
    return f"{HIDDEN}{len(value)}-characters"


def plain_name(name: str) -> str:
    """Return a name that is the same for servers that code cannot tell apart, such as ``git-hub`` and ``Git_Hub``."""
    return python_names([name], prefix="server")[name].casefold()


def object_of(value: JsonValue) -> JsonObject:
    """Return a value if it is an object, or else an empty object."""
    return value if isinstance(value, dict) else {}


def without_look_alikes(
    servers: Mapping[str, ServerConfiguration], first: Collection[str], path: Path
) -> tuple[dict[str, ServerConfiguration], tuple[ConfigurationProblem, ...]]:
    """Leave out servers that are named like one that takes precedence, or that code would call like one.

    Otherwise ``git_hub`` of another file would be called by code that was written for the server ``git-hub``.

    Parameters
    ----------
    servers : mapping
        The servers, by name.
    first : collection of str
        The names of servers that take precedence.
    path : Path
        The file of `servers`, for problems.

    Returns
    -------
    dict, tuple
        The remaining servers, and a problem for each that is called like another one; a server with the same name is
        left out without one.
    """
    taken = {plain_name(name): name for name in first}
    kept: dict[str, ServerConfiguration] = {}
    problems: list[ConfigurationProblem] = []
    for name, server in servers.items():
        other = taken.get(plain_name(name))
        if other is None:
            kept[name] = server
        elif name not in first:
            message = (
                f"`{name}` is left out, because code would call it by the name of the server `{other}`:"
                " rename one of them"
            )
            problems.append(ConfigurationProblem(path=str(path), message=message))
    return kept, tuple(problems)
