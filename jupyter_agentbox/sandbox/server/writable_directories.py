"""The record of the directories in which this user's sandboxed kernels, on all their servers, can write or once could.

It is kept beside the run directories, which no kernel sees, and lasts as long as they do: usually until the machine
restarts or the user's session ends.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jupyter_agentbox.exceptions import SandboxRefusedError

_NAME: Final = "kernels-places"


def recorded(base: Path) -> frozenset[Path]:
    """Return the directories in which kernels could write.

    Parameters
    ----------
    base : Path
        The directory of all run directories.
    """
    try:
        lines = (base / _NAME).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return frozenset()
    return frozenset(Path(path) for path in map(_path_of, lines) if path)


def could_write(directory: Path) -> bool:
    """Return whether a sandboxed kernel of this user can write in a directory, or once could.

    Parameters
    ----------
    directory : Path
        Without links in their paths.
    """
    return not recorded_directories().isdisjoint((directory, *directory.parents))


def recorded_directories() -> frozenset[Path]:
    """Return the directories in which kernels could write, from the record that this process's environment names."""
    if not sys.platform.startswith(("linux", "darwin")):
        return frozenset()
    from .run_directory import base_directory  # noqa: PLC0415  # needs what other platforms have not

    try:
        return recorded(base_directory(os.environ))
    except SandboxRefusedError:  # then no kernel can have been started either
        return frozenset()


def record(base: Path, places: Iterable[Path]) -> None:
    """Add directories in which a kernel will be able to write.

    Parameters
    ----------
    base : Path
        The directory of all run directories.
    places : iterable of Path
        Without links in their paths.
    """
    known = recorded(base)
    new = [place for place in places if place not in known and base not in place.parents]
    if new:
        lines = "".join(f"{json.dumps(str(place))}\n" for place in new)
        file = os.open(base / _NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, lines.encode())  # at once, so that lines of two servers do not mix
        finally:
            os.close(file)


def _path_of(line: str) -> str:
    try:
        found = json.loads(line)
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""
