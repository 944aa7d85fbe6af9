"""Finds the files and directories of the server and its user that a sandboxed kernel must not see or change."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_config_path, jupyter_data_dir, jupyter_runtime_dir

from jupyter_agentbox.core.rule_text import FILE_NAME as RULES

from .configuration_files import (
    default_servers_file,
    files_of,
    files_of_database,
    files_of_kernelspecs,
    files_of_servers,
)
from .protected_paths import SECRETS, Protected

#: Traits of the server that name a file or a directory.
_SERVER_TRAITS = ("runtime_dir", "config_dir", "data_dir", "config_file", "certfile", "keyfile", "cookie_secret_file")


def find_protected(
    manager: Any,
    *,
    base: Path,
    prefixes: Sequence[Path],
    hidden: Iterable[Path],
    read_only: Iterable[Path] = (),
    own: Iterable[Path] = (),
) -> Protected:
    """Return what a kernel must not see or change.

    Parameters
    ----------
    manager : KernelManager
        The kernel's manager; the server above it says where its files are.
    base : Path
        The directory of all run directories.
    prefixes : sequence of Path
        The directories of the kernel's interpreter.
    hidden, read_only : iterable of Path
        The paths that settings name.
    own : iterable of Path
        Files that were given to the kernel's owner, and that no kernel may see.
    """
    package = Path(__file__).parents[2]
    places = [base, Path(jupyter_runtime_dir()), Path(jupyter_data_dir()), *map(Path, jupyter_config_path()), *own]
    places += _named_by_server(manager)
    servers = [path for path in (*places, default_servers_file()) if path.suffix == ".json"]
    covered = [*_loaded_by_server(manager), *(file for path in servers for file in files_of_servers(path))]
    rules = [Path(directory) / RULES for directory in jupyter_config_path()]  # each may be a link to somewhere else
    configuration = [*places, *rules, *covered, *read_only, *files_of_kernelspecs(), *_named_by_kernelspec(manager)]
    places += hidden
    home = Path.home()
    account = _home_of_account()
    if account is not None and account != home:
        places += [account / name for name in SECRETS]
    kept = [*prefixes, Path(sys.prefix), Path(sys.base_prefix), package]
    return Protected(
        home=home,
        hidden=tuple(dict.fromkeys(places)),
        read_only=tuple(dict.fromkeys(path for path in kept if path != Path("/"))),
        configuration=tuple(dict.fromkeys(configuration)),
        covered=tuple(dict.fromkeys(covered)),
    )


def _home_of_account() -> Path | None:
    """Return the home directory of this user's account; ``None`` if the system has no account for the user id."""
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
    settings = _config_of(manager, "AgentBoxApp")
    rules_path = settings.get("rules_path")
    if isinstance(rules_path, str) and rules_path:
        yield Path(rules_path).expanduser().absolute()
    servers, database = settings.get("mcp_config_path"), settings.get("database_url")
    if isinstance(servers, str) and servers:
        yield Path(servers).expanduser().absolute()
    if isinstance(database, str):
        yield from files_of_database(database)


def _loaded_by_server(manager: Any) -> Iterator[Path]:
    above = manager
    while above is not None:
        yield from (Path(name).absolute() for name in getattr(above, "loaded_config_files", ()))
        above = getattr(above, "parent", None)


def _named_by_kernelspec(manager: Any) -> Iterator[Path]:
    yield from files_of(_config_of(manager, "SandboxProvisioner"))
    spec = getattr(manager, "kernel_spec", None)
    if spec is not None:
        if spec.resource_dir:
            yield Path(spec.resource_dir).absolute()
        yield from files_of(spec.metadata.get("kernel_provisioner", {}).get("config", {}))


def _config_of(manager: Any, name: str) -> Mapping[str, Any]:
    config = getattr(manager, "config", {})
    return config.get(name, {}) if hasattr(config, "get") else {}
