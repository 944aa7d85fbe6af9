"""The paths of the files that decide what a sandbox is, what is allowed and what starts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from jupyter_core.paths import jupyter_config_dir, jupyter_path

#: What SQLite and we keep beside a database.
_BESIDE_DATABASE: Final = ("-wal", "-shm", "-journal")
#: The settings of a sandbox that name a file or a program.
_NAMING: Final = ("sandbox_config", "bubblewrap", "srt")
#: What ``mcp.json`` calls the servers.
_SERVERS: Final = ("mcpServers", "servers")


def files_of(settings: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files that a sandbox's settings name, and the files that those name in turn.

    Parameters
    ----------
    settings : mapping
        As written in a kernelspec, in the server's configuration or in a file; not checked.
    """
    for name in _NAMING:
        value = settings.get(name)
        if isinstance(value, str) and value:
            program = None if name == "sandbox_config" else shutil.which(value)
            yield Path(program or value).expanduser().absolute()
    named = settings.get("sandbox_config")
    if isinstance(named, str) and named:
        found = _json(Path(named).expanduser())
        yield from files_of({name: found.get(name) for name in ("bubblewrap", "srt")})


def files_of_kernelspecs() -> Iterator[Path]:
    """Yield the directories in which Jupyter looks for kernelspecs, and the files that sandboxed kernelspecs name."""
    for directory in map(Path, jupyter_path()):
        yield directory
        for spec in sorted(directory.glob("kernels/*/kernel.json")):
            provisioner = _part(_part(_json(spec), "metadata"), "kernel_provisioner")
            yield from files_of(_part(provisioner, "config"))


def files_of_servers(path: Path) -> Iterator[Path]:
    """Yield the files with variables (``envFile``) that a file of MCP servers names.

    Parameters
    ----------
    path : Path
        An ``mcp.json``, which may be missing.
    """
    found = _json(path)
    for server in (server for key in _SERVERS for server in _part(found, key).values()):
        name = server.get("envFile") if isinstance(server, Mapping) else None
        if isinstance(name, str) and name:
            yield path.parent / Path(os.path.expandvars(name)).expanduser()


def files_of_database(name: str) -> Iterator[Path]:
    """Yield a database's file and the files that are kept beside it.

    Parameters
    ----------
    name : str
        A path, ``sqlite:////absolute`` or ``sqlite:///relative``.
    """
    path = file_of(name)
    if path is not None:
        yield path
        yield from (path.with_name(path.name + end) for end in _BESIDE_DATABASE)
        yield path.parent / "owners"


def default_servers_file() -> Path:
    """Return the path of the file that names the MCP servers if no setting names one."""
    return Path(jupyter_config_dir(), "mcp.json")


def file_of(name: str) -> Path | None:
    """Return the file that a path or a database's URL names, if it names one.

    Parameters
    ----------
    name : str
        A path, ``sqlite:////absolute`` or ``sqlite:///relative``.
    """
    if "://" in name and not name.startswith("sqlite"):
        return None
    path = unquote(urlsplit(name).path[1:]) if "://" in name else name
    return Path(path).expanduser().absolute() if path else None


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = found.get(name)
    return part if isinstance(part, Mapping) else {}
