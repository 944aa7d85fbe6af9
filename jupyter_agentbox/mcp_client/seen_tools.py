"""Tracks which tool definitions a person has seen; those that a server adds or changes are marked until then."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.private_files import replace_file

from .registration import object_of

#: How a tool has changed since a person saw the list of its server's tools.
Mark: TypeAlias = Literal["new", "changed"]
#: Maximum number of servers remembered; below, of tools per server.
_MOST_SERVERS: Final = 500
_MOST_TOOLS: Final = 2_000


class SeenTools:
    """Remembers digests of seen definitions in a file that only this user can read.

    Parameters
    ----------
    path : Path or None
        The file. If unreadable, nothing counts as seen. ``None`` remembers only within this process.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, str]] | None = None

    def marks(self, server: str, tools: Iterable[ToolDescription]) -> dict[str, Mark]:
        """Return the tools that are new or changed since somebody looked; none if nobody ever did."""
        seen = self._read().get(server)
        if seen is None:
            return {}
        return {
            tool.name: "changed" if tool.name in seen else "new" for tool in tools if seen.get(tool.name) != tool.digest
        }

    def look(self, server: str, digests: Mapping[str, str]) -> None:
        """Record that somebody has seen tools.

        Parameters
        ----------
        server : str
            The tools' server.
        digests : mapping
            Digests of the definitions seen, by tool name.

        Raises
        ------
        OSError
            If it cannot be stored.
        """
        with self._lock:
            known = self._read()
            seen = {**known.pop(server, {}), **digests}
            known = {**known, server: dict(list(seen.items())[-_MOST_TOOLS:])}
            self._known = dict(list(known.items())[-_MOST_SERVERS:])
            if self._path is not None:
                replace_file(self._path, json.dumps({"seen": self._known}).encode())

    def _read(self) -> dict[str, dict[str, str]]:
        if self._known is None:
            try:
                found = {} if self._path is None else object_of(json.loads(self._path.read_text("utf-8")))
            except (OSError, ValueError, RecursionError):
                found = {}
            self._known = {
                server: {name: digest for name, digest in object_of(tools).items() if isinstance(digest, str)}
                for server, tools in object_of(found.get("seen")).items()
            }
        return dict(self._known)
