"""The MCP servers in a user's own files, of which new and changed entries are started only after a person trusted them.

A tool that writes files, or code in a kernel, can change such a file as well as its owner can. What a file had when it
was first read here is trusted, and so is what a person adds in the panel or allows a program to add. If it was broken
then, nothing in it is.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue, canonical_json
from jupyter_agentbox.exceptions import ServerConfigurationError, UnknownServerError

from .configuration import Configuration, ServerConfiguration, StdioServer, UnusableServer, parse_configuration
from .configuration_files import MISSING, ConfigurationFiles
from .project_servers import ProjectServers, ProposedEntry, TrustedServers, entry_key
from .registration import masked, object_of
from .secret_names import may_hide_variable

#: The key under which an entry's variables of its ``envFile`` are shown.
OF_ENV_FILE: Final = "envFile variables"
_UNSAVED: Final = "jupyter_agentbox: which MCP servers are trusted could not be saved: %s"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Read:
    """One file's entries, as last read."""

    entries: Mapping[str, ProposedEntry]
    names: frozenset[str]


class OwnServers:
    """A user's own files of MCP servers. Implements `ConfigurationSource`.

    Parameters
    ----------
    paths : sequence of Path
        The files, as for `ConfigurationFiles`.
    environment : mapping
        The source of variables.
    trusted : TrustedServers
        The entries that a person has trusted.
    is_protected : callable
        Whether the user of this process cannot change a file. Its entries need no trust, but for those with an
        ``envFile`` that the user can change.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        environment: Mapping[str, str],
        trusted: TrustedServers,
        *,
        is_protected: Callable[[Path], bool] = lambda _path: False,
    ) -> None:
        self._paths = tuple(paths)
        self._environment = environment
        self._trusted = trusted
        self._is_protected = is_protected
        self._read: dict[Path, _Read] = {}
        #: The names that each file had in this process.
        self._seen: dict[Path, frozenset[str]] = {}
        self._is_loaded = False
        self._files = ConfigurationFiles(paths, environment, parse=self._parse, also=(trusted.path,))

    def load(self) -> Configuration:
        """Return the configuration; the same object as last time if nothing changed."""
        configuration = self._files.load()
        if not self._is_loaded:
            self._is_loaded = True
            for path in self._paths:
                # A file that is broken now must not be trusted as a whole once it is repaired.
                if path not in self._read and self._trusted.is_new(path):
                    self._adopt(path, {})
        return configuration

    def find(self, name: str) -> ProposedEntry:
        """Return an entry as currently in the files, trusted or not.

        Raises
        ------
        ServerConfigurationError
            If there is none of that name.
        """
        self.load()
        for path in self._paths:
            read = self._read.get(path)
            if read is not None and name in read.entries:
                return read.entries[name]
            if read is not None and name in read.names:
                break  # it cannot be used, and hides those of the next file
        raise ServerConfigurationError(f"`{self._paths[0]}` names no MCP server `{name}`")

    def trust(self, name: str, key: str) -> None:
        """Trust an entry that a person has seen, by its key.

        Raises
        ------
        ServerConfigurationError
            If it has changed since, or trust cannot be stored.
        """
        self._trusted.trust(self.find(name), key)

    def distrust(self, name: str) -> None:
        """Withdraw trust in an entry.

        Raises
        ------
        UnknownServerError
            If there is no such entry.
        ServerConfigurationError
            If that cannot be stored.
        """
        try:
            entry = self.find(name)
        except ServerConfigurationError as error:
            raise UnknownServerError(str(error)) from None
        self._trusted.keep(Path(entry.path), name, {})  # so that it is known not to be new

    def trust_new(self, path: Path, name: str, configuration: Mapping[str, JsonValue]) -> None:
        """Trust an entry that a person is about to add.

        Raises
        ------
        ServerConfigurationError
            If trust cannot be stored.
        """
        self.load()  # what the file has at first is trusted, too
        entry = dict(configuration)
        read = parse_configuration(path, canonical_json({"mcpServers": {name: entry}}), self._environment)
        self._trusted.keep(path, name, _proposed(path, name, entry, read.servers[name]).to_keep())

    def _parse(self, path: Path, text: str, environment: Mapping[str, str]) -> Configuration:
        written: dict[str, JsonObject] = {}

        def note(name: str, entry: JsonValue) -> None:
            if isinstance(entry, dict):
                written[name] = entry

        read = parse_configuration(path, text, environment, withheld=note)
        if read.problems and not read.servers:
            return read
        is_protected = self._is_protected(path)
        servers = dict(read.servers)
        entries = _entries_of(path, written, servers)
        trusted = self._trusted_in(path, entries)
        if text != MISSING:
            self._forget_removed(path, frozenset(servers), trusted.keys())
        if is_protected:
            entries = {name: one for name, one in entries.items() if self._has_writable_env_file(servers[name])}
        for name, entry in entries.items():
            server, known = servers[name], trusted.get(name)
            if isinstance(server, UnusableServer):
                continue
            if known is not None and entry.is_trusted_as(known):
                servers[name] = replace(server, is_trusted=True)
            else:
                before = object_of((known or {}).get("configuration"))
                entries[name] = replace(entry, trusted_before=before or None)
                why = "is not trusted" if known == {} else "is new or has changed since it was trusted"
                servers[name] = _withheld(path, server, why)
        self._read[path] = _Read(entries=entries, names=frozenset(servers))
        return replace(read, servers=servers)

    def _has_writable_env_file(self, server: ServerConfiguration) -> bool:
        env_file = server.env_file if isinstance(server, StdioServer) else None
        return env_file is not None and not self._is_protected(Path(env_file))

    def _trusted_in(self, path: Path, entries: Mapping[str, ProposedEntry]) -> Mapping[str, JsonObject]:
        """Return what is trusted in a file. All that it has when it is read for the first time is."""
        if not self._is_loaded and self._trusted.is_new(path):
            self._adopt(path, {name: one.to_keep() for name, one in entries.items()})
        return self._trusted.read(path)

    def _forget_removed(self, path: Path, names: frozenset[str], trusted: Collection[str]) -> None:
        """Withdraw trust in removed entries, so that it takes a person to have them back."""
        seen = self._seen.get(path)
        self._seen[path] = names.union(seen or ())
        removed = frozenset(trusted) - names
        if seen is not None:
            removed &= seen  # what was never there is about to be added in the panel
        if removed:
            try:
                self._trusted.forget(path, removed)
            except OSError as error:
                _LOG.warning(_UNSAVED, error)

    def _adopt(self, path: Path, entries: Mapping[str, JsonObject]) -> None:
        try:
            self._trusted.adopt(path, entries)
        except OSError as error:
            _LOG.warning(_UNSAVED, error)


class ReviewableServers:
    """The entries that a person can review: those of a user's own files, and those of a project.

    Parameters
    ----------
    own : OwnServers
        The user's own, whose names take precedence.
    project : ProjectServers or None
        The project's.
    """

    def __init__(self, own: OwnServers, project: ProjectServers | None) -> None:
        self._own = own
        self._project = project

    def find(self, name: str) -> ProposedEntry:
        """Return an entry as currently in the files, trusted or not.

        Raises
        ------
        ServerConfigurationError
            If there is none of that name.
        """
        return self._source_of(name).find(name)

    def trust(self, name: str, key: str) -> None:
        """Trust an entry that a person has seen, by its key.

        Raises
        ------
        ServerConfigurationError
            If it has changed since, or trust cannot be stored.
        """
        self._source_of(name).trust(name, key)

    def distrust(self, name: str) -> None:
        """Withdraw trust in an entry.

        Raises
        ------
        UnknownServerError
            If there is no such entry, and none was trusted.
        ServerConfigurationError
            If that cannot be stored.
        """
        self._source_of(name).distrust(name)

    def _source_of(self, name: str) -> OwnServers | ProjectServers:
        if self._project is None or name in self._own.load().servers:
            return self._own
        return self._project


def _entries_of(
    path: Path, written: Mapping[str, JsonObject], servers: dict[str, ServerConfiguration]
) -> dict[str, ProposedEntry]:
    """Return the entries as a person is shown them. A server whose entry cannot be shown is made unusable."""
    entries: dict[str, ProposedEntry] = {}
    for name, entry in written.items():
        try:
            entries[name] = _proposed(path, name, entry, servers[name])
        except (TypeError, ValueError) as error:
            transport = servers[name].transport
            servers[name] = UnusableServer(name=name, transport=transport, error=f"malformed: {error}")
    return entries


def _proposed(path: Path, name: str, entry: JsonObject, server: ServerConfiguration) -> ProposedEntry:
    """Return an entry as a person is shown it.

    It includes the variables of its ``envFile``, of which some determine what runs, without secret values.
    """
    key, shown = entry_key(path, name, entry), masked(entry)
    if isinstance(server, StdioServer) and server.env_file is not None:
        of_file: JsonObject = {**server.of_env_file}
        variables: JsonObject = {one: None if may_hide_variable(one) else value for one, value in of_file.items()}
        key = hashlib.sha256(canonical_json([key, variables]).encode("utf-8", "surrogatepass")).hexdigest()
        shown[OF_ENV_FILE] = masked({"env": of_file})["env"]
    return ProposedEntry(name=name, path=str(path), key=key, configuration=shown, is_of_project=False)


def _withheld(path: Path, server: ServerConfiguration, why: str) -> UnusableServer:
    message = (
        f"the entry of the MCP server `{server.name}` in `{path}` {why}, so the server was"
        " not started: press “Review…” beside its name in JupyterLab's side panel, tab “Servers”"
    )
    env_file = server.env_file if isinstance(server, StdioServer) else None
    return UnusableServer(
        name=server.name, transport=server.transport, error=message, needs_trust=True, env_file=env_file
    )
