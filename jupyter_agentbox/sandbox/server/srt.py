"""The command line and the settings of ``srt``, Anthropic's sandbox runtime, for one sandboxed kernel."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.srt_settings import is_pattern, path_of, taken
from jupyter_agentbox.exceptions import SandboxRefusedError

from .settings import Domains, ExtraPaths
from .view import Access, View

#: What programs need of macOS.
_MACOS: Final = (
    *("/System", "/Library/Apple", "/Library/Developer", "/Library/Fonts", "/Library/Frameworks", "/opt/homebrew"),
    *("/dev", "/private/etc/localtime", "/private/etc/ssl", "/private/var/db/dyld", "/private/var/db/timezone"),
)
#: Addresses that are not on the internet; ``srt`` itself refuses those of the machine and of its link.
_PRIVATE: Final = (
    *("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "fc00::/7", "fec0::/10"),
)
_PORTS: Final = (443, 80)


def find_srt(named: str = "") -> str | None:
    """Return the path of ``srt``.

    Parameters
    ----------
    named : str
        The path from the settings; empty to look on the system's path.
    """
    return shutil.which(named or "srt")


def srt_command(program: str, settings: Path, command: Sequence[str], *, env: Mapping[str, str]) -> list[str]:
    """Return the command that runs another in the sandbox.

    Parameters
    ----------
    program : str
        The path of ``srt``.
    settings : Path
        The file with what `srt_settings` returns.
    command : sequence of str
        The command to run.
    env : mapping
        Environment variables that differ inside from those of ``srt`` itself. A list of processes shows them.
    """
    inside = ["/usr/bin/env", *(f"{name}={value}" for name, value in env.items()), *command]
    return [program, "--settings", str(settings), "--", *inside]


def srt_settings(
    view: View, *, sockets: Path, given: Mapping[str, Any], domains: Domains, platform: str = sys.platform
) -> dict[str, Any]:
    """Return the settings for ``srt``: those of every sandboxed kernel, and what the user's settings add.

    Parameters
    ----------
    view : View
        What can be seen inside; nothing else can, as at every level.
    sockets : Path
        Where the kernel creates its sockets.
    given : mapping
        What settings add, in the form of ``srt``'s own file.
    domains : Domains
        The domains that can be reached besides those of `given`.
    platform : str
        A value of `sys.platform`.

    Raises
    ------
    SandboxRefusedError
        If ``srt`` has no setting for it.
    """
    if domains.private:
        raise SandboxRefusedError(
            "`private_domains` need bubblewrap: srt does not tell apart which name may lead where;"
            " use `network.allowedDomains` of srt's own settings"
        )
    seen = [mount for mount in view.mounts if mount.access in (Access.READ, Access.WRITE) and _exists(mount.place)]
    writable = [mount.place for mount in seen if mount.access is Access.WRITE]
    kept = [mount.place for mount in seen if mount.access is Access.READ and _is_below_any(mount.place, writable)]
    hidden = [mount.place for mount in view.mounts if mount.access is Access.HIDDEN and _exists(mount.place)]
    system = [Path(one) for one in _MACOS] if platform == "darwin" else []
    files, network = taken(given, "filesystem"), taken(given, "network")
    return {
        **({"ignoreViolations": given["ignoreViolations"]} if "ignoreViolations" in given else {}),
        "network": {
            **network,
            "allowedDomains": [*network.get("allowedDomains", ()), *_domains(domains.allowed)],
            "deniedDomains": [*network.get("deniedDomains", ())],
            "deniedResolvedAddresses": [*network.get("deniedResolvedAddresses", ()), *_denied(domains)],
            # On Linux a filter of system calls cannot tell sockets apart; there the view holds none of others.
            **({"allowUnixSockets": [str(sockets)]} if platform == "darwin" else {"allowAllUnixSockets": True}),
        },
        "filesystem": {
            "denyRead": [_literal(Path("/")), *map(_literal, hidden), *_entries(files.get("denyRead", ()), view)],
            "allowRead": [_literal(mount.place) for mount in seen] + [_literal(one) for one in system],
            "allowWrite": [_literal(one) for one in writable],
            "denyWrite": [*map(_literal, kept), *map(_literal, hidden), *_entries(files.get("denyWrite", ()), view)],
        },
    }


def srt_extra_paths(extra: ExtraPaths, given: Mapping[str, Any], *, work: Path, home: Path) -> ExtraPaths:
    """Return the extra paths of settings with those that ``srt``'s own settings name.

    Parameters
    ----------
    extra : ExtraPaths
        What the package's own settings add.
    given : mapping
        What settings add, in the form of ``srt``'s own file.
    work, home : Path
        The directories that ``.`` and ``~`` stand for.
    """
    files = taken(given, "filesystem")
    readable, writable = (
        tuple(_absolute(path_of(one), work, home) for one in files.get(key, ())) for key in ("allowRead", "allowWrite")
    )
    # What is the work directory anyway is not named once more.
    return ExtraPaths(
        readable=(*extra.readable, *(one for one in readable if one.resolve() != work)),
        writable=(*extra.writable, *(one for one in writable if one.resolve() != work)),
        hidden=extra.hidden,
        read_only=extra.read_only,
        unprotected=extra.unprotected,
    )


def _absolute(text: str, work: Path, home: Path) -> Path:
    return Path(os.path.normpath(work / _from_home(text, home)))


def _from_home(text: str, home: Path) -> str:
    """Return a path or pattern with ``~`` written out, because ``srt`` itself has another home directory."""
    return str(home) + text[1:] if text == "~" or text.startswith("~/") else text


def _entries(given: Iterable[Any], view: View) -> list[Any]:
    """Return entries that only forbid, as absolute paths; they may be patterns."""
    found: list[Any] = []
    for one in given:
        is_marked = isinstance(one, Mapping)
        text = _from_home(str(one.get("path", "") if is_marked else one), view.home)
        path = os.path.normpath(view.work / text)
        if is_marked or not is_pattern(text):
            found.append(_literal(Path(path)))
        elif is_pattern(str(view.work)) and not text.startswith("/"):
            raise SandboxRefusedError(
                f"srt would take the work directory `{view.work}` for a part of the pattern `{text}`; write it from the"
                " root on, or choose another directory"
            )
        else:
            found.append(path)
    return found


def _domains(allowed: Iterable[str]) -> list[str]:
    """Return domains with their ports: without one, ``srt`` allows every port."""
    found = []
    for text in allowed:
        has_port = ":" in text.rpartition("]")[2]
        found += [text] if has_port else [f"{text}:{port}" for port in _PORTS]
    return found


def _denied(domains: Domains) -> tuple[str, ...]:
    return _PRIVATE if domains.allowed else ()


def _literal(path: Path) -> dict[str, Any]:
    return {"path": str(path), "literal": True}


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _is_below_any(path: Path, places: Iterable[Path]) -> bool:
    return any(place in path.parents for place in places)
