"""Finds this user's running Jupyter servers on this machine by their files in Jupyter's runtime directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

#: Names of this machine as itself. A token is sent nowhere else without being asked to.
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: What a server that listens everywhere calls its address; its URL names the machine then.
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", "*"})  # noqa: S104  # read, not bound
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A running Jupyter server.

    Parameters
    ----------
    url : str
        Its base URL.
    token : str
        Empty if it has none, or takes a password.
    started_at : float
        When its file was written, in seconds since the epoch.
    """

    url: str
    token: str = field(default="", repr=False)
    started_at: float = 0.0


def running_servers() -> list[RunningServer]:
    """Return the servers, newest first. Only this user can read their files."""
    from jupyter_core.paths import jupyter_runtime_dir  # noqa: PLC0415  # only where a server is looked for

    found = [_read(path) for path in Path(jupyter_runtime_dir()).glob("jpserver-*.json")]
    return sorted((server for server in found if server is not None), key=lambda server: -server.started_at)


def known_token(url: str) -> str:
    """Return the token of this user's server at a URL of this machine; empty if none is known.

    A token never goes to another machine, whatever its port.
    """
    wanted = _place(url)
    if wanted is None:
        return ""
    return next((server.token for server in running_servers() if _place(server.url) == wanted), "")


def _read(path: Path) -> RunningServer | None:
    try:
        info: Any = json.loads(path.read_text("utf-8"))
        written = path.stat().st_mtime
    except (OSError, ValueError):
        return None  # it is being written, or its server has just ended
    if not isinstance(info, Mapping) or not _runs(info.get("pid")):
        return None
    url = info.get("url")
    if info.get("hostname") in _EVERYWHERE:
        url = f"http{'s' if info.get('secure') else ''}://localhost:{info.get('port')}{info.get('base_url') or '/'}"
    if not isinstance(url, str) or _place(url) is None:
        return None  # on a Unix socket, or on another machine that shares this home
    return RunningServer(url=url, token=str(info.get("token") or ""), started_at=written)


def _runs(pid: object) -> bool:
    return isinstance(pid, int) and psutil.pid_exists(pid)


def _place(url: str) -> int | None:
    """Return the port of a URL of this machine; ``None`` for any other URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return port if parts.hostname in _HERE else None
