"""The MCP servers in a project's ``.mcp.json``, which are untrusted: anyone who can write to the project can change it.

A server is not started, and nothing its entry refers to is read, before a person has seen and trusted the entry. Trust
is for exactly that entry: a changed one requires trust again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue, canonical_json
from jupyter_agentbox.core.tools import ConfigurationProblem
from jupyter_agentbox.exceptions import ServerConfigurationError, UnknownServerError
from jupyter_agentbox.private_files import replace_file

from .configuration import (
    Configuration,
    ConfigurationSource,
    ServerConfiguration,
    UnusableServer,
    check_entry,
    parse_configuration,
    transport_of,
)
from .registration import check_name, masked, object_of, without_look_alikes
from .regular_files import read_regular_text
from .secret_names import is_secret_header, may_hide_variable

#: The file's name, as in other programs.
FILE_NAME: Final = ".mcp.json"
#: Maximum size of the file, in bytes.
_LONGEST: Final = 1_000_000
#: Keys that affect neither what is started nor what it is sent.
_WITHOUT_EFFECT: Final = frozenset({"timeout", "disabled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedEntry:
    """A server's entry in a file, as shown to a person before it is trusted.

    Parameters
    ----------
    name : str
        Its name.
    path : str
        The file.
    key : str
        The key of the entry: SHA-256 of the file's path and the entry without secret values.
    configuration : dict
        The entry as written, without secret values.
    trusted_before : dict or None
        The previously trusted entry of that name, if different.
    is_of_project : bool
        Whether the file is a project's, not the user's own.
    """

    name: str
    path: str
    key: str
    configuration: JsonObject
    trusted_before: JsonObject | None = None
    is_of_project: bool = True

    def is_trusted_as(self, kept: Mapping[str, JsonValue]) -> bool:
        """Whether this is the entry of which that is kept."""
        return kept.get("key") == self.key

    def to_keep(self) -> JsonObject:
        """Return what is kept of the entry once it is trusted."""
        return {"key": self.key, "configuration": self.configuration}


def entry_key(path: Path, name: str, entry: Mapping[str, JsonValue]) -> str:
    """Return the key of an entry, to which trust in it is bound.

    It includes the values of variables, except those whose name indicates a secret and that no known program
    interprets, and of headers, except those whose name indicates a secret. So a new token requires no new trust.
    """
    shown: JsonObject = {key: value for key, value in entry.items() if key not in _WITHOUT_EFFECT}
    for key, may_hide in (("env", may_hide_variable), ("headers", is_secret_header)):
        values = object_of(entry.get(key))
        # a reference to one of the user's variables is not a secret, but determines which one is sent
        shown[key] = {
            inner: None if may_hide(inner) and "${" not in str(value) else value for inner, value in values.items()
        }
    text = canonical_json({"path": str(path), "name": name, "entry": shown})
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class TrustedServers:
    """The entries of servers that a person has trusted, in a file that only this user can read.

    Parameters
    ----------
    path : Path
        The file. If it cannot be read, nothing is trusted.
    own : sequence of Path
        The user's own files, of which it must stay known that they are not new.
    """

    def __init__(self, path: Path, *, own: Sequence[Path] = ()) -> None:
        self.path = path
        self._own = tuple(own)
        self._lock = threading.Lock()

    def stamp(self) -> object:
        """Return a value that changes with the file."""
        return _stamp(self.path)

    def read(self, file: Path) -> dict[str, JsonObject]:
        """Return the trusted servers in a file: ``key`` and ``configuration`` by name."""
        found = object_of((self._read() or {}).get(str(file)))
        return {name: entry for name, entry in found.items() if isinstance(entry, dict)}

    def is_new(self, file: Path) -> bool:
        """Whether nothing is known of a file: neither what is trusted in it, nor that nothing is."""
        known = self._read()
        return known is not None and str(file) not in known

    def adopt(self, file: Path, entries: Mapping[str, JsonObject]) -> None:
        """Trust all entries of a new file, which may have none.

        Raises
        ------
        OSError
            If that cannot be stored.
        """
        with self._lock:
            self._write({**self._known(), str(file): dict(entries)})

    def trust(self, entry: ProposedEntry, key: str) -> None:
        """Trust an entry that a person has seen, by its key.

        Raises
        ------
        ServerConfigurationError
            If it has changed since, or trust cannot be stored.
        """
        if entry.key != key:
            raise ServerConfigurationError(
                f"`{entry.path}` says something else about `{entry.name}` than what was shown: look at it again"
            )
        self.keep(Path(entry.path), entry.name, entry.to_keep())

    def keep(self, file: Path, name: str, entry: JsonObject | None) -> None:
        """Keep what is trusted under a name, or with ``None`` nothing.

        Raises
        ------
        ServerConfigurationError
            If that cannot be stored.
        """
        with self._lock:
            known = self._known()
            servers = {key: value for key, value in object_of(known.get(str(file))).items() if key != name}
            if entry is not None:
                servers[name] = entry
            try:
                self._write({**known, str(file): servers})
            except OSError as error:
                raise ServerConfigurationError(
                    f"what you answered about `{name}` could not be saved: {error}"
                ) from None

    def forget(self, file: Path, names: Collection[str]) -> None:
        """Withdraw trust in servers that a file no longer has.

        Raises
        ------
        OSError
            If that cannot be stored.
        """
        with self._lock:
            known = self._read()
            if known is not None:
                servers = object_of(known.get(str(file)))
                self._write({**known, str(file): {key: one for key, one in servers.items() if key not in names}})

    def _write(self, trusted: JsonObject) -> None:
        replace_file(self.path, json.dumps({"trusted": trusted}, indent=2).encode(), is_synced=True)

    def _known(self) -> JsonObject:
        """Return what is trusted by file. What replaces an unreadable file must not make the user's files new."""
        known = self._read()
        return {str(file): {} for file in self._own} if known is None else known

    def _read(self) -> JsonObject | None:
        """Return what is trusted by file; ``None`` if it cannot be read."""
        try:
            content = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError):
            return None
        trusted = object_of(content).get("trusted")
        return trusted if isinstance(trusted, dict) else None


class ProjectServers:
    """The servers in one project's ``.mcp.json``. Implements `ConfigurationSource`.

    Parameters
    ----------
    directory : Path
        The project's directory.
    environment : mapping
        The source of trusted servers' variables.
    trusted : TrustedServers
        The servers that a person has trusted.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str], trusted: TrustedServers) -> None:
        self.path = directory.resolve() / FILE_NAME
        self._environment = environment
        self._trusted = trusted
        self._stamp: object = None
        self._configuration = Configuration()
        self._known: dict[str, ProposedEntry] = {}

    def load(self) -> Configuration:
        """Return the configuration; the same object as last time if nothing changed. Costs two ``stat``."""
        stamp = (_stamp(self.path), self._trusted.stamp())
        if self._stamp != stamp:
            self._configuration = self._read()
            self._stamp = stamp
        return self._configuration

    def find(self, name: str) -> ProposedEntry:
        """Return a server as currently in the file, trusted or not.

        Raises
        ------
        ServerConfigurationError
            If there is none of that name.
        """
        self.load()
        try:
            return self._known[name]
        except KeyError:
            raise ServerConfigurationError(f"`{self.path}` names no MCP server `{name}`") from None

    def trust(self, name: str, key: str) -> None:
        """Trust a server that a person has seen, by the key of its entry.

        Raises
        ------
        ServerConfigurationError
            If the file has changed since, or trust cannot be stored.
        """
        self._trusted.trust(self.find(name), key)

    def distrust(self, name: str) -> None:
        """Withdraw trust in a server.

        Raises
        ------
        UnknownServerError
            If there is no such server in the project, and none was trusted.
        ServerConfigurationError
            If that cannot be stored.
        """
        if name not in self.load().servers and name not in self._trusted.read(self.path):
            raise UnknownServerError(f"`{self.path}` names no MCP server `{name}`, and none of that name is trusted")
        self._trusted.keep(self.path, name, None)

    def _read(self) -> Configuration:
        self._known = {}
        try:
            text = read_regular_text(self.path, longest=_LONGEST)
        except FileNotFoundError:
            return Configuration()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problem = ConfigurationProblem(path=str(self.path), message=f"cannot be read: {reason}")
            return Configuration(problems=(problem,))
        withheld = partial(self._withheld, self._trusted.read(self.path))
        read = parse_configuration(self.path, text, self._environment, withheld=withheld)
        servers = {
            name: server if isinstance(server, UnusableServer) else replace(server, is_of_project=True, is_trusted=True)
            for name, server in read.servers.items()
        }
        return replace(read, servers=servers)

    def _withheld(self, trusted: Mapping[str, JsonObject], name: str, entry: JsonValue) -> ServerConfiguration | None:
        """Return the replacement of an untrusted entry; ``None`` if it is trusted.

        Raises
        ------
        ValueError
            If it is malformed.
        """
        if not isinstance(entry, dict):
            return None
        transport = transport_of(entry)
        if "envFile" in entry:
            message = f'"envFile" is not read for a server of {FILE_NAME}: write the variables in its "env"'
            return UnusableServer(name=name, transport=transport, error=message)
        try:
            check_name(name, ())
            key = entry_key(self.path, name, entry)
        except (ServerConfigurationError, TypeError, ValueError) as error:
            return UnusableServer(name=name, transport=transport, error=f"malformed: {error}")
        check_entry(name, entry)
        before = trusted.get(name, {})
        proposed = ProposedEntry(name=name, path=str(self.path), key=key, configuration=masked(entry))
        is_trusted = proposed.is_trusted_as(before)
        shown_before = None if is_trusted else object_of(before.get("configuration")) or None
        self._known[name] = replace(proposed, trusted_before=shown_before)
        if is_trusted:
            return None
        changed = "has changed since it was trusted" if before else "is not trusted yet"
        message = (
            f"the MCP server `{name}` of this project's {FILE_NAME} {changed}, so it was not started: press “Review…”"
            " beside its name in JupyterLab's side panel, tab “Servers”"
        )
        return UnusableServer(name=name, transport=transport, error=message, needs_trust=True, is_of_project=True)


class LayeredConfiguration:
    """Several sources as one; the first that defines a server takes precedence. A `ConfigurationSource`.

    Parameters
    ----------
    first : ConfigurationSource
        The user's own files.
    project : ProjectServers
        The project's servers.
    """

    def __init__(self, first: ConfigurationSource, project: ProjectServers) -> None:
        self._first = first
        self._project = project
        self._loaded: tuple[Configuration, Configuration] | None = None
        self._configuration = Configuration()

    def load(self) -> Configuration:
        """Return the configuration; the same object as last time if nothing changed."""
        first, project = self._first.load(), self._project.load()
        if self._loaded is None or self._loaded[0] is not first or self._loaded[1] is not project:
            self._loaded = (first, project)
            servers, problems = without_look_alikes(project.servers, first.servers, self._project.path)
            self._configuration = Configuration(
                servers={**first.servers, **servers}, problems=(*first.problems, *project.problems, *problems)
            )
        return self._configuration


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev
