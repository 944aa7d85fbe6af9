"""Adds a server to ``mcp.json`` while preserving the rest of the file: comments, other keys, their order."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue, canonical_json
from jupyter_agentbox.core.located_json import LocatedJsonError, Node
from jupyter_agentbox.core.located_json import parse as parse_located
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from jupyter_agentbox.core.text import did_you_mean
from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.private_files import replace_file

from . import jsonc
from .configuration import SERVER_KEYS, UnusableServer, parse_configuration
from .registration import (
    SECRET_KEYS,
    check_name,
    has_secret_in_address,
    object_of,
    written_command_or_address,
)
from .regular_files import read_regular_file
from .secret_names import is_client_secret, is_secret
from .variables import REFERENCE

#: Keys allowed in a new entry; keys of other programs are left out.
ENTRY_KEYS: Final = (
    *("type", "command", "args", "env", "envFile", "cwd", "url", "headers", "timeout", "protocolEra", "disabled"),
    *("oauth", "auth", "headersHelper"),
)
#: Maximum size of the file; below, of a new entry, in bytes.
_LONGEST: Final = 5_000_000
_LONGEST_ENTRY: Final = 50_000
_REDACTION: Final = Redaction()
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """The preview of a new server, for a person.

    Parameters
    ----------
    file : str
        The file.
    revision : str
        Identifies the file's present content; empty if there is no file.
    line : int
        The line of the file, from 1, where the new lines begin.
    text : str
        The new lines.
    starts : str
        The command or address in one line, as it would be written.
    notes : tuple of str
        Remarks for the person.
    """

    file: str
    revision: str
    line: int
    text: str
    starts: str
    notes: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {
            "file": self.file,
            "revision": self.revision,
            "line": self.line,
            "text": self.text,
            "starts": self.starts,
            "notes": [*self.notes],
        }


@dataclass(frozen=True, slots=True)
class _Inserted:
    whole: str
    line: int
    text: str


class ServersFile:
    """The user's MCP configuration file, to which a person can add servers.

    Parameters
    ----------
    path : Path
        The file, which need not exist.
    known : callable
        Returns the names of all existing servers.
    environment : mapping
        The source of servers' variables.
    trust : callable, optional
        Trusts an entry that a person adds, given the file, its name and the entry. Raises `ServerConfigurationError`.
    """

    def __init__(
        self,
        path: Path,
        *,
        known: Callable[[], Collection[str]],
        environment: Mapping[str, str],
        trust: Callable[[Path, str, JsonObject], None] | None = None,
    ) -> None:
        self._trust = trust
        self.path = path
        self._known = known
        self._environment = environment

    def preview(self, name: str, configuration: JsonObject) -> Addition:
        """Return the lines that adding a server would write. Writes nothing.

        Raises
        ------
        ServerConfigurationError
            If it cannot be added.
        """
        self._check(name, configuration)
        content = self._read()
        inserted = self._inserted(content, name, configuration)
        return Addition(
            file=str(self.path),
            revision=_revision(content),
            line=inserted.line,
            text=inserted.text,
            starts=written_command_or_address(configuration),
            notes=self._notes(name, configuration),
        )

    def add(self, name: str, configuration: JsonObject, *, revision: str) -> None:
        """Add a server, atomically. Starts nothing.

        Parameters
        ----------
        name, configuration
            The server.
        revision : str
            The file's revision in the preview.

        Raises
        ------
        ServerConfigurationError
            If it cannot be added, or the file has changed since the preview.
        """
        self._check(name, configuration)
        content = self._read()
        if _revision(content) != revision:
            raise ServerConfigurationError(f"`{self.path}` has changed meanwhile and was left as it is: look again")
        text = self._inserted(content, name, configuration).whole
        if self._trust is not None:
            self._trust(self.path, name, configuration)
        try:
            self._replace((_BOM if content is not None and content.startswith(_BOM) else b"") + text.encode())
        except OSError as error:
            raise ServerConfigurationError(f"`{self.path}` cannot be written: {error.strerror}") from None

    def _check(self, name: str, configuration: JsonObject) -> None:
        check_name(name, self._known())
        for key in configuration:
            if key not in ENTRY_KEYS:
                raise ServerConfigurationError(f"unknown key `{key:.80}` of a server{did_you_mean(key, ENTRY_KEYS)}")
        try:
            if len(canonical_json(configuration).encode("utf-8", "surrogatepass")) > _LONGEST_ENTRY:
                raise ServerConfigurationError(f"the entry has more than {_LONGEST_ENTRY:,} bytes")
            canonical_json(configuration).encode()
        except (TypeError, ValueError) as error:
            raise ServerConfigurationError(f"the entry is not JSON that a file can hold: {error}") from None
        problem = problem_of(self.path, name, configuration)
        if problem:
            raise ServerConfigurationError(f"`{name}` cannot be added: {problem}")
        check_no_secrets(configuration)

    def _notes(self, name: str, configuration: JsonObject) -> tuple[str, ...]:
        text = json.dumps({SERVER_KEYS[0]: {name: configuration}})
        server = parse_configuration(self.path, text, self._environment).servers.get(name)
        return (server.error,) if isinstance(server, UnusableServer) else ()

    def _read(self) -> bytes | None:
        try:
            return read_regular_file(self.path, longest=_LONGEST)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ServerConfigurationError(f"`{self.path}` cannot be read: {reason}") from None

    def _inserted(self, content: bytes | None, name: str, configuration: JsonObject) -> _Inserted:
        try:
            text = "" if content is None else content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ServerConfigurationError(f"`{self.path}` is not UTF-8 text") from None
        try:
            inserted = _insert(text, name, configuration)
        except LocatedJsonError as error:
            line = text.count("\n", 0, error.at) + 1
            column = error.at - text.rfind("\n", 0, error.at)
            raise ServerConfigurationError(f"{self.path}:{line}:{column}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise ServerConfigurationError(f"`{self.path}` cannot be changed here: {error}") from None
        return inserted

    def _replace(self, content: bytes) -> None:
        """Write the whole file; a link remains a link, and permissions are preserved."""
        path = Path(os.path.realpath(self.path))
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        replace_file(path, content, mode=mode, is_synced=True)


def problem_of(path: Path, name: str, configuration: JsonObject) -> str:
    """Return what is wrong with an entry, whatever variables are set; empty if it is valid."""
    read = parse_configuration(path, json.dumps({SERVER_KEYS[0]: {name: configuration}}), {})
    return read.problems[0].message.removeprefix(f"server `{name}`: ") if read.problems else ""


def check_no_secrets(configuration: Mapping[str, JsonValue]) -> None:
    """Reject values whose names indicate secrets: the file gets references to variables instead.

    Raises
    ------
    ServerConfigurationError
        The message contains no value.
    """
    for key in SECRET_KEYS:
        is_named_secret = is_secret if key in ("env", "headers") else is_client_secret
        for name, value in object_of(configuration.get(key)).items():
            if is_named_secret(name) and "${" not in str(value):
                raise ServerConfigurationError(
                    f"the value of `{name:.80}` would stand in the file for everybody who can read it: write"
                    f" `${{NAME}}`, and set that variable for the Jupyter server"
                )
    args = configuration.get("args")
    words = [
        configuration.get("command"),
        configuration.get("headersHelper"),
        *(args if isinstance(args, list) else []),
    ]
    words += [value for key in ("env", "headers") for value in object_of(configuration.get(key)).values()]
    if any(isinstance(word, str) and has_secret(word) for word in words):
        raise ServerConfigurationError(
            "an argument or a value holds a secret: write `${NAME}` in its place, and set that variable for the Jupyter"
            " server"
        )
    url = configuration.get("url")
    if isinstance(url, str) and (has_secret_in_address(url) or has_secret(url)):
        raise ServerConfigurationError(
            "the address holds a secret: write `${NAME}` in its place, and set that variable for the Jupyter server"
        )


def has_secret(text: str) -> bool:
    """Whether a text has an apparent secret besides its references to variables."""
    said = REFERENCE.sub(REDACTED, text)
    return _REDACTION.text(said) != said


def _revision(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _insert(text: str, name: str, configuration: JsonObject) -> _Inserted:
    """Return the text with one more server.

    Raises
    ------
    LocatedJsonError
        If it cannot be read.
    ValueError
        If it has an unexpected structure.
    """
    blank = jsonc.without_trailing_commas(jsonc.without_comments(text))
    if not blank.strip() and not text.strip():
        entry = json.dumps({SERVER_KEYS[0]: {name: configuration}}, indent=2, ensure_ascii=False)
        return _Inserted(whole=f"{entry}\n", line=1, text=entry)
    root = parse_located(blank)
    if not isinstance(root.content, dict):
        raise ValueError("it must be a JSON object")  # an error of the file, not of a caller
    key = next((key for key in SERVER_KEYS if key in root.content), None)
    if key is None:
        inserted = _with_member(text, blank, root, SERVER_KEYS[0], {name: configuration})
    else:
        servers = root.content[key]
        if not isinstance(servers.content, dict):
            raise ValueError(f'"{key}" must be an object')
        if name in servers.content:
            raise ValueError(f"it has a server `{name}` already")
        inserted = _with_member(text, blank, servers, name, configuration)
    _check_result(text, inserted.whole, key or SERVER_KEYS[0], name, configuration)
    return inserted


def _with_member(text: str, blank: str, node: Node, name: str, value: JsonValue) -> _Inserted:
    members = node.content if isinstance(node.content, dict) else {}
    close = _end_of(blank, node.at) - 1
    new_line = "\r\n" if "\r\n" in text else "\n"
    outer = _indentation(text, node.at)
    inner = outer + "  "
    for at in list(node.keys.values())[-1:]:
        if not text[text.rfind("\n", 0, at) + 1 : at].strip():
            inner = _indentation(text, at)
    step = inner[len(outer) :] if inner.startswith(outer) and len(inner) > len(outer) else "  "
    lines = json.dumps({name: value}, indent=step, ensure_ascii=False).split("\n")[1:-1]
    entry = new_line.join(inner + line[len(step) :] for line in lines)
    before, comma_at = text[:close].rstrip(), None
    if members:
        last = _end_of(blank, max(member.at for member in members.values()))
        if "," not in jsonc.without_comments(text)[last:close]:
            comma_at = last
    head = before if comma_at is None else f"{before[:comma_at]},{before[comma_at:]}"
    tail = text[len(before) :] if "\n" in text[len(before) : close] else f"{new_line}{outer}{text[close:]}"
    return _Inserted(
        whole=f"{head}{new_line}{entry}{tail}", line=head.count("\n") + 2, text=entry.replace("\r\n", "\n")
    )


def _end_of(text: str, at: int) -> int:
    return json.JSONDecoder().raw_decode(text, at)[1]


def _indentation(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _check_result(before: str, after: str, key: str, name: str, configuration: JsonObject) -> None:
    """Reject a text that differs from the original in more than the new server."""
    expected = object_of(jsonc.parse(before))
    expected[key] = {**object_of(expected.get(key)), name: configuration}
    found = jsonc.parse(after)
    if json.dumps(found) != json.dumps(expected):
        raise ValueError("it is written in a way that cannot be added to; add the server by hand")
