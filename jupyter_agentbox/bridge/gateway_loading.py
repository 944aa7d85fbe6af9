"""Loads the kernel's end of the link in a kernel behind a gateway, whose environment is not this server's."""

from __future__ import annotations

import logging
from typing import Any, Final

from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_server.gateway.managers import GatewayKernelManager
from jupyter_server.utils import ensure_async
from tornado import web

from jupyter_agentbox import __version__
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.trusted_imports import in_kernel

from .gateway_channel import GatewayKernelChannel

log = logging.getLogger(__name__)

_MISSING: Final = (
    "`jupyter_agentbox` is not installed in this kernel's environment, which is behind a gateway. Ask whoever runs the"
    f" gateway to install it there: `pip install jupyter-agentbox=={__version__}`."
)
#: Where the package is missing, importing it says what to do; where it is installed later, it is found first.
_EXPLAIN: Final = f"""
class AgentBoxIsMissing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "jupyter_agentbox":
            raise ModuleNotFoundError({_MISSING!r}, name=name)

import sys
sys.meta_path.append(AgentBoxIsMissing)
"""
_TRY: Final = """
try:
    exec(load)
except ModuleNotFoundError as error:
    if error.name == "jupyter_agentbox":
        exec(explain, {})
except Exception:
    pass
"""
_LOAD: Final = in_kernel("import jupyter_agentbox\njupyter_agentbox.load_ipython_extension(get_ipython())")
#: In one expression, so that it leaves no name in the user's namespace.
_CODE: Final = f'exec({_TRY!r}, {{"load": {_LOAD!r}, "explain": {_EXPLAIN!r}, "get_ipython": get_ipython}})'
#: Maximum number of attempts, each queued behind the cell that is running.
_MOST_TRIES: Final = 10
_IS_LOADED: Final = '"jupyter_agentbox" in __import__("sys").modules'


async def load_kernel_side(
    kernels: MultiKernelManager, manager: GatewayKernelManager, channel: GatewayKernelChannel
) -> None:
    """Load ``%agentbox`` in a Python kernel; log what to do if the package is missing."""
    if not await _is_python(kernels, manager):
        return
    answer: JsonObject = {}
    for _ in range(_MOST_TRIES):
        answer = await channel.execute_silently(_CODE, {"loaded": _IS_LOADED})
        if answer.get("status") != "aborted":  # like everything queued behind a failing cell
            break
    if _value(answer, "loaded") == "False":
        log.warning(
            "kernel %s behind the gateway has no jupyter_agentbox: its code cannot call tools. Install jupyter-agentbox"
            " %s in the environment that its kernelspec at the gateway starts.",
            *(manager.kernel_id, __version__),
        )


async def _is_python(kernels: Any, manager: GatewayKernelManager) -> bool:
    name = (manager.kernel or {}).get("name")
    try:
        found = await ensure_async(kernels.kernel_spec_manager.get_kernel_spec(name))
        return str(found["spec"]["language"]).lower() == "python"
    except (KeyError, TypeError, OSError, web.HTTPError) as error:
        log.warning(
            "the kernelspec of kernel %s is not known, so nothing is loaded there: %s", manager.kernel_id, error
        )
        return False


def _value(answer: Any, name: str) -> object:
    """Return an expression's value as text. The kernel runs any code, and may have answered anything."""
    for key in ("user_expressions", name, "data", "text/plain"):
        answer = answer.get(key) if isinstance(answer, dict) else None
    return answer
