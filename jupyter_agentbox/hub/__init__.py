"""The Hub service, run beside a JupyterHub: central MCP servers, approval by second persons, and the record of both.

`ScopeAuthorizer` is for users' servers, and imports nothing of the service.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public name -> the module that defines it. Resolved on first access (PEP 562).
_LAZY = {"ScopeAuthorizer": "jupyter_agentbox.hub.scope_authorizer"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
