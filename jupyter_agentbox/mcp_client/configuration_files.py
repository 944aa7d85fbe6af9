"""The configuration files on disk, read again when they change."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from jupyter_agentbox.core.tools import ConfigurationProblem

from .configuration import Configuration, HttpServer, ServerConfiguration, parse_configuration

_Stamp: TypeAlias = tuple[tuple[str, int, int, int] | None, ...]


class ConfigurationFiles:
    """Reads ``mcp.json`` files. A file that does not exist configures nothing.

    Parameters
    ----------
    paths : sequence of Path
        The files. A server that several of them name is taken from the first.
    environment : mapping
        Where variables come from; looked at when a file is read.
    """

    def __init__(self, paths: Sequence[Path], environment: Mapping[str, str]) -> None:
        self._paths = tuple(paths)
        self._environment = environment
        self._stamp: _Stamp | None = None
        self._watched: tuple[Path, ...] = self._paths
        self._configuration = Configuration()

    def load(self) -> Configuration:
        """Return the configuration; the same object as last time if no file changed. Costs one ``stat`` a file."""
        if self._stamp is None or self._stamp != _stamp(self._watched):
            # the stamp is taken first: a change while we read is seen next time
            stamp = _stamp(self._paths)
            self._configuration = self._read()
            env_files = {
                Path(server.env_file)
                for server in self._configuration.servers.values()
                if not isinstance(server, HttpServer) and server.env_file
            }
            self._watched = (*self._paths, *sorted(env_files))
            self._stamp = (*stamp, *_stamp(self._watched[len(self._paths) :]))
        return self._configuration

    def _read(self) -> Configuration:
        servers: dict[str, ServerConfiguration] = {}
        problems: list[ConfigurationProblem] = []
        for path in self._paths:
            try:
                text = path.read_text("utf-8-sig")
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
                problems.append(ConfigurationProblem(path=str(path), message=f"cannot be read: {reason}"))
                continue
            read = parse_configuration(path, text, self._environment)
            servers = {**read.servers, **servers}
            problems += read.problems
        return Configuration(servers=servers, problems=tuple(problems))


def _stamp(paths: Sequence[Path]) -> _Stamp:
    """Return what changes with the files. Each call waits for it, so it is one loop without a function in it."""
    found: list[tuple[str, int, int, int] | None] = []
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:
            found.append(None)
        else:
            found.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
