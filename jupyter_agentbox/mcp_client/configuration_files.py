"""Configuration files on disk, reloaded when they change."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from jupyter_agentbox.core.tools import ConfigurationProblem

from .configuration import Configuration, HttpServer, ServerConfiguration, parse_configuration

#: The text of a missing file, as given to `parse`: no file has it by chance.
MISSING: Final = "{} // there is no such file"
_Stamp: TypeAlias = tuple[tuple[str, int, int, int] | None, ...]


class ConfigurationFiles:
    """Loads ``mcp.json`` files. A missing file configures nothing.

    While a file is not valid as a whole, for example because it is being edited, its servers stay as they were.

    Parameters
    ----------
    paths : sequence of Path
        The files. The first one that defines a server takes precedence.
    environment : mapping
        The source of variables, read when a file is loaded.
    parse : callable
        Parses a file's text, as `parse_configuration` does; of a missing file, `MISSING`.
    also : sequence of Path
        Other files on which the result depends.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        environment: Mapping[str, str],
        *,
        parse: Callable[[Path, str, Mapping[str, str]], Configuration] = parse_configuration,
        also: Sequence[Path] = (),
    ) -> None:
        self._paths = tuple(paths)
        self._parse = parse
        self._also = tuple(also)
        self._environment = environment
        self._stamp: _Stamp | None = None
        self._watched: tuple[Path, ...] = self._paths
        self._configuration = Configuration()
        #: For each file, its text when it was last valid: what that means can change with other files.
        self._valid: dict[Path, str] = {}

    def load(self) -> Configuration:
        """Return the configuration; the same object as last time if no file changed. Costs one ``stat`` per file."""
        if self._stamp is None or self._stamp != _stamp(self._watched):
            # the stamp is taken first, so that a change during the read is noticed next time
            first = (*self._paths, *self._also)
            stamp = _stamp(first)
            self._configuration = self._read()
            env_files = {
                Path(server.env_file)
                for server in self._configuration.servers.values()
                if not isinstance(server, HttpServer) and server.env_file
            }
            self._watched = (*first, *sorted(env_files))
            self._stamp = (*stamp, *_stamp(self._watched[len(first) :]))
        return self._configuration

    def _read(self) -> Configuration:
        servers: dict[str, ServerConfiguration] = {}
        problems: list[ConfigurationProblem] = []
        for path in self._paths:
            try:
                text = path.read_text("utf-8-sig")
            except FileNotFoundError:
                text = MISSING
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
                problems.append(ConfigurationProblem(path=str(path), message=f"cannot be read: {reason}"))
                continue
            read = self._parse(path, text, self._environment)
            if read.servers or not read.problems:
                self._valid[path] = text
            elif path in self._valid:
                valid = self._parse(path, self._valid[path], self._environment)
                if valid.servers:
                    (problem,) = read.problems
                    stay = "its servers stay as they were until you repair it"
                    problem = replace(problem, message=f"{problem.message}; {stay}")
                    read = Configuration(servers=valid.servers, problems=(problem,))
            servers = {**read.servers, **servers}
            problems += read.problems
        return Configuration(servers=servers, problems=tuple(problems))


def _stamp(paths: Sequence[Path]) -> _Stamp:
    """Return a value that changes with the files. Every call needs it, so it is one loop without function calls."""
    found: list[tuple[str, int, int, int] | None] = []
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:
            found.append(None)
        else:
            found.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
