"""A new MCP server before it is started: whether it can be added, and what of it may be shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from jupyter_agentbox.core.calls import JsonObject, JsonValue, canonical_json
from jupyter_agentbox.core.names import python_names
from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.protocol.shell import SHELL_SERVER

from .configuration import SERVER_KEYS, UnusableServer, parse_configuration
from .logs import Redactor

#: Names that are plain in Python, in rules, and to the eye.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_RESERVED: Final = frozenset({SHELL_SERVER, "agentbox", "reload"})
#: Variables and headers whose values are not shown. What such a value does not do is decide what runs: a variable that
#: names a program (`GIT_ASKPASS`) is shown.
_SECRET_NAME: Final = re.compile(r"TOKEN|KEY|SECRET|PASS|PWD|AUTH|CRED|COOKIE|SESSION", re.IGNORECASE)
_NAMES_A_PROGRAM: Final = re.compile(r"ASKPASS|_(COMMAND|CMD|PATH|FILE|HELPER)\Z", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\$\{[^{}]*\}")
#: What stands for a value that is not shown.
HIDDEN: Final = "***"


def check_name(name: str, known: Collection[str]) -> None:
    """Refuse a name that cannot be used, or that one could take for another.

    Raises
    ------
    ServerConfigurationError
    """
    if not _NAME.fullmatch(name):
        raise ServerConfigurationError(
            "the name of an MCP server must start with a letter and have at most 64 letters, digits, `_` and `-`"
        )
    if _plain(name) in _RESERVED:
        raise ServerConfigurationError(f"the name `{name}` is reserved: choose another one")
    for other in known:
        if _plain(other) == _plain(name):
            raise ServerConfigurationError(
                f"there is an MCP server `{other}` already; it was left as it is. Use it, or choose another name."
            )


def check_configuration(name: str, configuration: Mapping[str, JsonValue]) -> None:
    """Refuse a configuration that cannot be used, with a text that holds none of its secrets.

    Raises
    ------
    ServerConfigurationError
    """
    try:
        canonical_json(configuration)
    except (TypeError, ValueError) as error:
        raise ServerConfigurationError(f"the configuration is not JSON: {error}") from None
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
    """Return what removes the configuration's secrets from a text."""
    secrets = {str(value) for key in ("env", "headers") for value in object_of(configuration.get(key)).values()}
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
    """Return the configuration with ``***`` for the values of secrets; references to variables stay."""
    shown: JsonObject = dict(configuration)
    for key in ("env", "headers"):
        if isinstance(configuration.get(key), Mapping):
            shown[key] = {name: _masked(name, value) for name, value in object_of(configuration[key]).items()}
    url = configuration.get("url")
    if isinstance(url, str):
        shown["url"] = _masked_url(url)
    return shown


def _masked(name: str, value: JsonValue) -> JsonValue:
    if not _SECRET_NAME.search(name) or _NAMES_A_PROGRAM.search(name):
        return value
    references = _REFERENCE.findall(value) if isinstance(value, str) else []
    return " ".join([HIDDEN, *references]) if not references or value != references[0] else value


def _masked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    userinfo = f"{HIDDEN}@" if "@" in parts.netloc else ""
    hidden = urlencode([(name, HIDDEN if _SECRET_NAME.search(name) else value) for name, value in query], safe="*${}:")
    return urlunsplit((parts.scheme, f"{userinfo}{host}", parts.path, hidden, parts.fragment))


def _plain(name: str) -> str:
    return python_names([name], prefix="server")[name].casefold()


def object_of(value: JsonValue) -> JsonObject:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
