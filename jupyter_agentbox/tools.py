"""The MCP servers of this Jupyter server, as modules.

::

    from jupyter_agentbox import tools

    tools.shop.list_orders(status="open")          # waits for a person's decision and the result
    await tools.shop.list_orders.aio(status="open")  # the same, without blocking the event loop
    tools.shop.list_orders.raw(status="open")      # the whole result, with all content blocks
    tools["my-server"]                             # by its name in the configuration
    tools.reload()                                 # reads the lists again, which happens whenever servers say so
"""

import sys as _sys
from importlib import import_module as _import_module
from importlib import reload as _reload
from types import ModuleType as _ModuleType
from typing import Any as _Any

from jupyter_agentbox.core.names import OWN_NAMES as _OWN_NAMES
from jupyter_agentbox.exceptions import UnknownServerError as _UnknownServerError
from jupyter_agentbox.kernel.modules import MissingNameError as _MissingNameError
from jupyter_agentbox.kernel.modules import Servers as _Servers
from jupyter_agentbox.kernel.modules import install as _install

#: Python looks for submodules only in packages. There is no directory: the finder creates the submodules.
__path__: list[str] = []

_servers = _Servers(reserved=_OWN_NAMES)
_install(_servers)


def reload() -> None:
    """Read the list of servers and the tools of all loaded servers again."""
    _servers.refresh()
    for identifier in _servers.known:
        module = _sys.modules.get(f"{__name__}.{identifier}")
        if module is not None:
            _reload(module)


class _Tools(_ModuleType):
    """The module's type, for ``tools["my-server"]``."""

    def __getitem__(self, server: str) -> _ModuleType:
        try:
            return _import_module(f"{__name__}.{_servers.identifier(server)}")
        except _UnknownServerError as error:
            raise KeyError(str(error)) from None

    def __repr__(self) -> str:
        names = ", ".join(f"tools.{identifier}" for identifier in _servers.completion_names())
        return f"The MCP servers of this Jupyter server: {names or 'none is configured'}"

    def _repr_html_(self) -> str:
        return _servers.html()

    def __iter__(self) -> _Any:
        return iter(_servers.refresh().values())

    def _ipython_key_completions_(self) -> list[str]:
        return list(_servers.completion_names().values())


def __getattr__(name: str) -> _ModuleType:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        identifier = _servers.identifier(name)
    except _UnknownServerError as error:
        raise _MissingNameError(str(error), name=name, obj=_sys.modules[__name__]) from None
    if identifier != name:
        raise _MissingNameError(f"the MCP server `{name}` is `tools.{identifier}` in Python", name=name)
    return _import_module(f"{__name__}.{identifier}")


def __dir__() -> list[str]:
    return sorted({"reload", *_servers.completion_names()})


_sys.modules[__name__].__class__ = _Tools
