"""Credentials in the server's environment, which kernels do not get."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from .model_keys import without_model_keys

#: Variables that let their holder act as the server, or as its user at a JupyterHub.
_SERVER_TOKEN: Final = re.compile(
    r"JUPYTER_TOKEN|CONFIGPROXY_AUTH_TOKEN|(JUPYTERHUB_|JPY_).*(TOKEN|SECRET|CRYPT_KEY).*", re.IGNORECASE
)


def is_server_token(name: str) -> bool:
    """Whether a variable holds a token or secret of the Jupyter server or of its Hub."""
    return _SERVER_TOKEN.fullmatch(name) is not None


def without_credentials(
    environment: Mapping[str, str],
    *,
    of_mcp_servers: Collection[str] = (),
    kept: Collection[str] = (),
    keeps_model_keys: bool = False,
) -> dict[str, str]:
    """Return an environment without the server's tokens, MCP servers' credentials and language models' keys.

    Parameters
    ----------
    environment : mapping
        The server's environment.
    of_mcp_servers : collection of str
        Variables that MCP servers get as credentials.
    kept : collection of str
        Variables to keep, whatever their value.
    keeps_model_keys : bool
        Whether to keep the keys of language models.
    """
    passed = {
        name: value
        for name, value in environment.items()
        if name in kept or not (is_server_token(name) or name in of_mcp_servers)
    }
    if keeps_model_keys:
        return passed
    return {**without_model_keys(passed), **{name: passed[name] for name in kept if name in passed}}
