"""Where an executor's configuration and records are, by default the same places as JupyterLab's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.rule_text import FILE_NAME
from jupyter_agentbox.private_files import replace_file

_SERVERS: Final = "mcpServers"


def config_dir() -> Path:
    """Return Jupyter's configuration directory (the same answer as ``jupyter --config-dir``)."""
    from jupyter_core.paths import jupyter_config_dir  # noqa: PLC0415  # not needed where nothing calls a tool

    return Path(jupyter_config_dir())


def data_dir() -> Path:
    """Return this package's directory in Jupyter's data directory."""
    from jupyter_core.paths import jupyter_data_dir  # noqa: PLC0415  # see above

    return Path(jupyter_data_dir()) / "agentbox"


def registered_servers_path() -> Path:
    """Return the file of the servers that `generate_mcp_sources` was given. Only this user can read it."""
    return data_dir() / "registered-servers.json"


def added_servers_path() -> Path:
    """Return the file of the servers that a person let a program add in JupyterLab. Only this user can read it."""
    return data_dir() / "added-servers.json"


def trusted_servers_path() -> Path:
    """Return the file of the servers of projects that a person trusted. Only this user can read it."""
    return data_dir() / "trusted-servers.json"


def seen_tools_path() -> Path:
    """Return the file that says which definitions of tools a person has looked at. Only this user can read it."""
    return data_dir() / "seen-tools.json"


def sign_ins_path() -> Path:
    """Return the file of people's sign-ins to MCP servers, where there is no keyring. Only this user can read it."""
    return data_dir() / "sign-ins.json"


def hub_policy_path() -> Path:
    """Return the file that keeps the last good policy of a Hub service. Only this user can read it."""
    return data_dir() / "hub-policy.json"


def audit_spool_path() -> Path:
    """Return the directory in which records for an audit wait for their places. Only this user can read it."""
    return data_dir() / "audit-spool"


def user_rules_path() -> Path:
    """Return the file of the user's rules."""
    return config_dir() / FILE_NAME


def site_rules_paths() -> Sequence[tuple[Path, bool]]:
    """Return where the site's files of rules may be, and whether that is in a Python environment.

    `JUPYTER_CONFIG_PATH` is none of these places: a user sets it.
    """
    from jupyter_core.paths import ENV_CONFIG_PATH, SYSTEM_CONFIG_PATH  # noqa: PLC0415  # see above

    system = [(Path(one) / FILE_NAME, False) for one in SYSTEM_CONFIG_PATH]
    environment = [(Path(one) / FILE_NAME, True) for one in ENV_CONFIG_PATH]
    known = {path for path, _ in system}
    return [*system, *(place for place in environment if place[0] not in known)]


def register_server(name: str, parameters: Mapping[str, Any]) -> None:
    """Keep an MCP server's parameters, so that executors of this user know the server by its name.

    Parameters
    ----------
    name : str
        What generated sources, rules and requests call it. An older entry of that name is replaced.
    parameters : mapping
        An entry as in ``mcp.json``. Prefer ``${NAME}`` to a secret: variables are looked up when the server starts.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    keep_server(registered_servers_path(), name, parameters)


def keep_server(path: Path, name: str, parameters: Mapping[str, Any]) -> None:
    """Write an MCP server to a file that only this user can read; an older entry of that name is replaced.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    try:
        known = json.loads(path.read_text("utf-8")).get(_SERVERS, {})
    except (OSError, ValueError, AttributeError):
        known = {}
    if known.get(name) == parameters:
        return
    text = json.dumps({_SERVERS: {**known, name: dict(parameters)}}, indent=2)
    replace_file(path, text.encode())
