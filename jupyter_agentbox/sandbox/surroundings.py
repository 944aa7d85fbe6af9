"""What a kernel's server and its user have around it that must be kept from the kernel."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from jupyter_core.paths import jupyter_config_path, jupyter_data_dir, jupyter_runtime_dir

from .places import SECRETS, Protected

#: Traits of the server, and of the extension, that name a file or a directory.
_SERVER_TRAITS = ("runtime_dir", "config_dir", "data_dir", "config_file", "certfile", "keyfile", "cookie_secret_file")
_EXTENSION_TRAITS = ("mcp_config_path", "database_url")


def protected_by(manager: Any, *, base: Path, prefixes: Sequence[Path], hidden: Iterable[Path]) -> Protected:
    """Return what is to be kept from a kernel.

    Parameters
    ----------
    manager : KernelManager
        The kernel's manager; the server above it says where its files are.
    base : Path
        Where the run directories are.
    prefixes : sequence of Path
        The interpreter's of the kernel.
    hidden : iterable of Path
        What settings name.
    """
    package = Path(__file__).parents[1]
    places = [base, Path(jupyter_runtime_dir()), Path(jupyter_data_dir()), *map(Path, jupyter_config_path()), *hidden]
    places += _named_by_server(manager)
    home = Path.home()
    account = _home_of_account()
    if account is not None and account != home:
        places += [account / name for name in SECRETS]
    read_only = [*prefixes, Path(sys.prefix), Path(sys.base_prefix), package]
    return Protected(
        home=home,
        hidden=tuple(dict.fromkeys(places)),
        read_only=tuple(dict.fromkeys(path for path in read_only if path != Path("/"))),
    )


def _home_of_account() -> Path | None:
    """Return the home directory that the system knows; ``None`` for a user id that it does not know."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def _named_by_server(manager: Any) -> Iterator[Path]:
    above = manager
    while above is not None:
        if type(above).__name__ == "LabApp" or hasattr(above, "cookie_secret_file"):
            for name in _SERVER_TRAITS:
                value = getattr(above, name, None)
                if isinstance(value, str) and Path(value).is_absolute():
                    yield Path(value)
        above = getattr(above, "parent", None)
    config = getattr(manager, "config", {})
    settings = config.get("AgentBoxApp", {}) if hasattr(config, "get") else {}
    for name in _EXTENSION_TRAITS:
        value = settings.get(name)
        if isinstance(value, str) and (file := file_of(value)) is not None:
            yield file


def file_of(name: str) -> Path | None:
    """Return the file that a path or a database's URL names, if it names one.

    Parameters
    ----------
    name : str
        A path, ``sqlite:////absolute`` or ``sqlite:///relative``.
    """
    path = unquote(urlsplit(name).path[1:]) if "://" in name else name
    return Path(path).expanduser().absolute() if path else None
