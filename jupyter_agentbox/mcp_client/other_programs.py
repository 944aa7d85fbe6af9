"""MCP servers configured in other programs, translated to the format of ``mcp.json`` without their secrets."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from jupyter_agentbox.core.text import one_line

from . import jsonc
from .configuration import SERVER_KEYS
from .registration import SECRET_KEYS, has_secret_in_address, object_of
from .regular_files import read_regular_text
from .secret_names import is_secret
from .servers_file import ENTRY_KEYS, has_secret, problem_of
from .variables import REFERENCE

#: Maximum size of a file, in bytes: Claude Code stores its history there, too.
_LONGEST: Final = 20_000_000
#: Maximum number of servers listed per file.
_MOST: Final = 200
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?::-.*)?", re.DOTALL)
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
#: A name and its value, in the notation of ``env`` and ``docker -e``, or of a header.
_ASSIGNED: Final = re.compile(r"((?:--env=|-e)?[A-Za-z_][A-Za-z0-9_-]*)(?:(=)(\S+)|( *: *)(.+))", re.DOTALL)
#: A value after an option that looks like an option itself.
_LONG_VALUE: Final = re.compile(r"-(?=[^-])[^=]{8,}")
_WORD: Final = re.compile(r"[A-Za-z0-9]")
_REDACTION: Final = Redaction()
_SCHEME: Final = re.compile(r"(?i)(bearer|basic|token) +")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A server configured in another program.

    Parameters
    ----------
    program : str
        The program.
    file : str
        The file with its configuration.
    name : str
        The server's name there, adapted to be valid here.
    configuration : dict or None
        An entry for ``mcp.json``, if it can be translated.
    notes : tuple of str
        Differences from the original.
    refused : str
        Why it cannot be imported; empty if it can.
    """

    program: str
    file: str
    name: str
    configuration: JsonObject | None
    notes: tuple[str, ...] = ()
    refused: str = ""

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {
            "program": self.program,
            "file": self.file,
            "name": self.name,
            "configuration": self.configuration,
            "notes": [*self.notes],
            "refused": self.refused,
        }


def find_servers(*, project: Path, home: Path) -> list[FoundServer]:
    """Return the servers in other programs' files, in the order of `files_of`, and one entry per unreadable file.

    Parameters
    ----------
    project : Path
        The directory of project files.
    home : Path
        The user's home directory.
    """
    found: list[FoundServer] = []
    for program, path in files_of(project=project, home=home):
        try:
            value = jsonc.parse(read_regular_text(path, longest=_LONGEST))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error) or "it is nested too deeply"
            refused = f"`{path}` cannot be read: {reason}"
            found.append(FoundServer(program=program, file=str(path), name="", configuration=None, refused=refused))
            continue
        for name, entry in _entries(object_of(value), project):
            found.append(_Translation(program=program, path=path, project=project, home=home).of(name, entry))
    return found


def files_of(*, project: Path, home: Path) -> list[tuple[str, Path]]:
    """Return the MCP configuration files of other programs, each with the program's name."""
    settings = home / ("Library/Application Support" if sys.platform == "darwin" else ".config")
    return [
        ("VS Code", project / ".vscode" / "mcp.json"),
        ("VS Code", settings / "Code" / "User" / "mcp.json"),
        ("Cursor", project / ".cursor" / "mcp.json"),
        ("Cursor", home / ".cursor" / "mcp.json"),
        ("Claude Code", project / ".mcp.json"),
        ("Claude Code", home / ".claude.json"),
        ("Claude Desktop", settings / "Claude" / "claude_desktop_config.json"),
    ]


def _entries(value: JsonObject, project: Path) -> Iterator[tuple[str, JsonValue]]:
    """Yield the servers in a file: those for all projects, and Claude Code's for this one."""
    here = object_of(object_of(value.get("projects")).get(str(project)))
    parts = [object_of(each.get(key)) for each in (value, here) for key in SERVER_KEYS]
    servers = {name: entry for part in reversed(parts) for name, entry in part.items()}
    yield from list(servers.items())[:_MOST]


class _CannotTranslateError(ValueError):
    """An entry cannot be translated."""


@dataclass(slots=True, kw_only=True)
class _Translation:
    """Translates an entry of another program to the format of ``mcp.json``."""

    program: str
    path: Path
    project: Path
    home: Path
    notes: list[str] = field(default_factory=list)
    prefix: str = ""

    def of(self, name: str, entry: JsonValue) -> FoundServer:
        usable = _NOT_A_NAME.sub("-", name).strip("-_")[:64]
        usable = usable if usable[:1].isalpha() else f"server-{usable}"[:64].rstrip("-")
        self.prefix = _variable_name(usable)
        refused, configuration = "", None
        try:
            configuration = self._entry(entry)
        except _CannotTranslateError as error:
            refused = str(error)
        if configuration is not None:
            refused = problem_of(self.path, usable, configuration)
        return FoundServer(
            program=self.program,
            file=str(self.path),
            name=usable,
            configuration=None if refused else configuration,
            notes=tuple(dict.fromkeys(self.notes)),
            refused=refused,
        )

    def _entry(self, entry: JsonValue) -> JsonObject:
        if not isinstance(entry, dict):
            raise _CannotTranslateError("its entry is not a JSON object")
        dropped = [key for key in entry if key not in ENTRY_KEYS]
        if dropped:
            names = ", ".join(f"`{one_line(key, 40)}`" for key in dropped[:5])
            self.notes.append(f"left out, because nothing here reads it: {names}")
        known = {key: value for key, value in entry.items() if key in ENTRY_KEYS}
        whole: JsonObject = {key: self._value(value) for key, value in known.items() if key not in SECRET_KEYS}
        for key in SECRET_KEYS:
            if isinstance(values := known.get(key), dict):
                whole[key] = {name: self._secret(key, name, self._value(value, name)) for name, value in values.items()}
        self._replace_in_commands(whole)
        for key in ("cwd", "envFile"):
            if isinstance(place := whole.get(key), str) and not place.startswith(("/", "~", "${")):
                whole[key] = str(self.path.parent / place)
        url = whole.get("url")
        if isinstance(url, str) and (has_secret_in_address(url) or has_secret(url)):
            raise _CannotTranslateError("its address holds a secret: add it by hand, with `${NAME}` in its place")
        return whole

    def _value(self, value: JsonValue, name: str = "") -> JsonValue:
        """Return a value with this package's placeholders."""
        if isinstance(value, list):
            return [self._value(inner) for inner in value]
        if not isinstance(value, str):
            return value
        return REFERENCE.sub(lambda found: self._placeholder(found, name), value)

    def _placeholder(self, found: re.Match[str], name: str) -> str:
        text = found[1]
        kind, _, rest = text.partition(":")
        fixed = {
            "workspaceFolder": str(self.project),
            "workspaceFolderBasename": self.project.name,
            "userHome": str(self.home),
            "pathSeparator": "/",
            "/": "/",
        }
        if text in fixed:
            return fixed[text]
        if kind == "env" and _VARIABLE.fullmatch(rest):
            return self._variable(rest, name)
        if kind == "input" and rest:
            variable = name if _VARIABLE.fullmatch(name) else _variable_name(rest)
            self.notes.append(
                f"{self.program} asks for `{one_line(rest, 60)}`; here, set the environment variable `{variable}` for"
                " the Jupyter server"
            )
            return f"${{{variable}}}"
        if self.program.startswith("Claude") and _VARIABLE.fullmatch(text):
            return self._variable(text, name)
        raise _CannotTranslateError(f"nothing here stands for `{one_line(found[0], 60)}`: add the server by hand")

    def _variable(self, text: str, name: str) -> str:
        """Return a variable reference without a default that is a secret."""
        variable, sign, default = text.partition(":-")
        if default and (is_secret(variable) or is_secret(name) or has_secret(default)):
            return self._reference(variable, variable)
        return f"${{{variable}{sign}{default}}}"

    def _secret(self, key: str, name: str, value: JsonValue) -> JsonValue:
        """Return a variable reference that replaces a secret."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return value
        value = str(value)
        if not is_secret(name):
            return self._text(value)
        if not _has_value(value):
            return value
        scheme = _SCHEME.match(value) if key == "headers" else None
        is_plain = key == "env" and _VARIABLE.fullmatch(name)
        variable = name if is_plain else f"{self.prefix}_{_variable_name(name)}"
        return (scheme[0] if scheme else "") + self._reference(name, variable)

    def _arguments(self, args: list[JsonValue]) -> list[JsonValue]:
        """Return the arguments, with the values of ``--token`` and similar options replaced by references."""
        shown: list[JsonValue] = []
        option = ""
        for arg in args:
            text = arg if isinstance(arg, str) else ""
            name, sign, value = text.partition("=")
            is_option = text.startswith("-")
            is_value = not is_option or _LONG_VALUE.fullmatch(text) is not None
            if option and is_value and "${" not in text:
                shown.append(self._reference(option, f"{self.prefix}_{_variable_name(option)}"))
            elif is_option and sign and value and is_secret(name) and "${" not in value:
                shown.append(f"{name}={self._reference(name, f'{self.prefix}_{_variable_name(name)}')}")
            else:
                shown.append(arg)
            option = text if is_option and not sign and is_secret(text) else ""
        return [self._text(arg) if isinstance(arg, str) else arg for arg in shown]

    def _replace_in_commands(self, entry: JsonObject) -> None:
        """Replace secrets in what an entry starts by references."""
        if isinstance(args := entry.get("args"), list):
            entry["args"] = self._arguments(args)
        if isinstance(command := entry.get("command"), str):
            entry["command"] = self._text(command)
        if isinstance(helper := entry.get("headersHelper"), str):
            entry["headersHelper"] = self._command_line(helper)

    def _command_line(self, text: str) -> str:
        """Return a command line, with secrets in its arguments replaced by references."""
        try:
            words: list[JsonValue] = [*shlex.split(text)]
        except ValueError:
            raise _CannotTranslateError("its `headersHelper` is not a command line") from None
        shown = self._arguments(words)
        return text if shown == words else shlex.join(map(str, shown))

    def _text(self, text: str) -> str:
        """Return a text, with apparent secrets replaced by references."""
        if assigned := _ASSIGNED.fullmatch(text):
            name, sign, value = assigned[1], assigned[2] or assigned[4], assigned[3] or assigned[5]
            if is_secret(name) and _has_value(value):
                scheme = _SCHEME.match(value)
                return f"{name}{sign}{scheme[0] if scheme else ''}{self._reference(name, _variable_name(name))}"
        if not has_secret(text):
            return text
        return _REDACTION.text(text).replace(REDACTED, self._reference("a part of it", f"{self.prefix}_SECRET"))

    def _reference(self, name: str, variable: str) -> str:
        self.notes.append(
            f"the value of `{one_line(name, 60)}` is not copied, because it looks like a secret: set the environment"
            f" variable `{variable}` for the Jupyter server"
        )
        return f"${{{variable}}}"


def _has_value(text: str) -> bool:
    """Whether a text contains anything besides references."""
    return _WORD.search(REFERENCE.sub("", _SCHEME.sub("", text))) is not None


def _variable_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()[:60]
    return name if name[:1].isalpha() else f"MCP_{name}".rstrip("_")
