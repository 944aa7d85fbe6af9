"""Paths of the configuration and the records, which executors and JupyterLab share by default."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.rule_text import FILE_NAME
from jupyter_agentbox.private_files import replace_file

_SERVERS: Final = "mcpServers"


def config_dir() -> Path:
    """Return Jupyter's configuration directory (the output of ``jupyter --config-dir``)."""
    from jupyter_core.paths import jupyter_config_dir  # noqa: PLC0415  # not needed where nothing calls a tool

    return Path(jupyter_config_dir())


def data_dir() -> Path:
    """Return this package's directory in Jupyter's data directory."""
    from jupyter_core.paths import jupyter_data_dir  # noqa: PLC0415  # see above

    return Path(jupyter_data_dir()) / "agentbox"


def registered_servers_path() -> Path:
    """Return the file of the servers that `generate_mcp_sources` registered. Only this user can read it."""
    return data_dir() / "registered-servers.json"


def added_servers_path() -> Path:
    """Return the file of the servers that programs added with a person's approval. Only this user can read it."""
    return data_dir() / "added-servers.json"


def trusted_servers_path() -> Path:
    """Return the file of the projects' servers that a person trusts. Only this user can read it."""
    return data_dir() / "trusted-servers.json"


def seen_tools_path() -> Path:
    """Return the file of the tool definitions that a person has seen. Only this user can read it."""
    return data_dir() / "seen-tools.json"


def sign_ins_path() -> Path:
    """Return the file of sign-ins to MCP servers, used without a keyring. Only this user can read it."""
    return data_dir() / "sign-ins.json"


def hub_policy_path() -> Path:
    """Return the file with the last good policy of a Hub service. Only this user can read it."""
    return data_dir() / "hub-policy.json"


def audit_spool_path() -> Path:
    """Return the directory of records that wait for their audit sinks. Only this user can read it."""
    return data_dir() / "audit-spool"


def user_rules_path() -> Path:
    """Return the user's rules file."""
    return config_dir() / FILE_NAME


def site_rules_paths() -> Sequence[tuple[Path, bool]]:
    """Return the possible paths of the site's rules files, each with whether it is in a Python environment.

    `JUPYTER_CONFIG_PATH` is not used, because users can set it.
    """
    from jupyter_core.paths import ENV_CONFIG_PATH, SYSTEM_CONFIG_PATH  # noqa: PLC0415  # see above

    system = [(Path(one) / FILE_NAME, False) for one in SYSTEM_CONFIG_PATH]
    environment = [(Path(one) / FILE_NAME, True) for one in ENV_CONFIG_PATH]
    known = {path for path, _ in system}
    return [*system, *(place for place in environment if place[0] not in known)]


def register_server(name: str, parameters: Mapping[str, Any]) -> None:
    """Store an MCP server's parameters, so that this user's executors know the server by its name.

    Parameters
    ----------
    name : str
        The server's name in generated sources, rules and requests. An older entry with that name is replaced.
    parameters : mapping
        An entry as in ``mcp.json``. Prefer ``${NAME}`` to a secret: variables are resolved when the server starts.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    keep_server(registered_servers_path(), name, parameters)


def keep_server(path: Path, name: str, parameters: Mapping[str, Any]) -> None:
    """Write an MCP server to a file that only this user can read, replacing an older entry with that name.

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
