"""Exceptions for the server's failures, with messages that say what to do."""

from __future__ import annotations

from typing import Any, Final

from jupyter_agentbox.core.text import encodable
from jupyter_agentbox.exceptions import (
    ERRORS_BY_CODE,
    AgentBoxError,
    NoServerError,
    ToolArgumentsError,
    ToolCallInterruptedError,
    ToolCallRejectedError,
    short_traceback,
)
from jupyter_agentbox.protocol.messages import Failure

_NO_KERNEL: Final = (
    "tools can only be called in a Jupyter kernel, and this process is not one. Run the code in a "
    "notebook or console of a JupyterLab that has jupyter-agentbox."
)
_NO_ANSWER: Final = (
    "no agentbox server answered within {seconds:g} s, so nobody could approve and nothing ran. Open this notebook in a"
    " JupyterLab that has jupyter-agentbox (`jupyter server extension list` must show it as enabled), then run the cell"
    " again. If the kernel is behind a gateway (`--gateway-url`), that JupyterLab's log says why it is not reached."
    "{problem}"
)
_NO_SERVER: Final = (
    "no agentbox server is there ({why}), so nobody could approve and nothing ran. Where tools are needed, run the"
    " notebook in a JupyterLab that has jupyter-agentbox; a call is tried again as soon as a server answers.{problem}"
)
_LOST: Final = (
    "the agentbox server has not answered for {seconds:g} s while `{what}` was waiting. Before you "
    "repeat the call, check that the Jupyter server is still running and look at its approval "
    "requests: the call may have run."
)
_RESTARTED: Final = (
    "`{what}` was cut off because the Jupyter server was restarted, or had lost this kernel. It may have had an effect:"
    " check before you repeat it."
)
_TURN_CUT_OFF: Final = (
    "the agent's turn was cut off: {why}. What ran, ran: `%agent show` says how far it came, and the next `%%agent`"
    " goes on with the thread."
)
_NOT_TAKEN: Final = (
    "`{what}` was sent repeatedly, but the agentbox server, which answers, does not know of it. Perhaps"
    " its arguments are too large. It may have had an effect: check before you repeat it."
)


_WITHDRAWN: Final = "the request for `{what}` was withdrawn"
_STOPPED: Final = (
    "`{what}` was running and was told to stop. It may have had an effect: check before you repeat the call."
)


def explain_interrupt(interrupt: BaseException, what: str, *, has_begun: bool) -> None:
    """Say in an interrupt what it ended, and let IPython show it as it shows this package's errors: in a few lines.

    Parameters
    ----------
    interrupt : BaseException
        The `KeyboardInterrupt` or `asyncio.CancelledError` that ended the wait for a call.
    what : str
        ``server.tool``.
    has_begun : bool
        Whether the server said that the tool runs.
    """
    if not interrupt.args:
        interrupt.args = ((_STOPPED if has_begun else _WITHDRAWN).format(what=what),)
    interrupt.__dict__["_render_traceback_"] = lambda: short_traceback(interrupt)


def not_in_kernel() -> NoServerError:
    """Return the error for a process that is not a kernel."""
    return NoServerError(_NO_KERNEL)


def no_answer(seconds: float, problem: str = "") -> NoServerError:
    """Return the error for a kernel without an answering server, with any problem in messages that did arrive."""
    return NoServerError(_NO_ANSWER.format(seconds=seconds, problem=_version_hint(problem)))


def no_server(why: str, problem: str = "") -> NoServerError:
    """Return the error for a kernel that is known to have no server, with the reason."""
    return NoServerError(_NO_SERVER.format(why=why, problem=_version_hint(problem)))


def _version_hint(problem: str) -> str:
    return (
        f" This kernel cannot read a message that arrived ({problem}): install the same version of "
        "jupyter-agentbox in the kernel and in the server."
        if problem
        else ""
    )


def server_lost(what: str, seconds: float) -> NoServerError:
    """Return the error for a request whose server fell silent."""
    return NoServerError(_LOST.format(what=what, seconds=seconds))


def server_restarted(what: str) -> ToolCallInterruptedError:
    """Return the error for a request that the server no longer knows."""
    return ToolCallInterruptedError(_RESTARTED.format(what=what))


def turn_lost(seconds: float) -> NoServerError:
    """Return the error for an agent's turn whose server fell silent."""
    why = f"the agentbox server has not answered for {seconds:g} s"
    return NoServerError(_TURN_CUT_OFF.format(why=why))


def turn_cut_off() -> ToolCallInterruptedError:
    """Return the error for an agent's turn that the server no longer knows."""
    return ToolCallInterruptedError(_TURN_CUT_OFF.format(why="the Jupyter server was restarted"))


def not_taken(what: str) -> ToolCallInterruptedError:
    """Return the error for a message that a responding server does not accept."""
    return ToolCallInterruptedError(_NOT_TAKEN.format(what=what))


def error_of(failure: Failure) -> AgentBoxError:
    """Rebuild the server's exception; an unknown code becomes an `AgentBoxError`.

    IPython cannot send a message with half of a surrogate pair: the cell would end without a word.
    """
    cls = ERRORS_BY_CODE.get(failure.code, AgentBoxError)
    keywords: dict[str, Any] = {"request_id": failure.request_id}
    details = failure.details
    if issubclass(cls, ToolCallRejectedError):
        keywords["reason"] = encodable(str(details.get("reason") or ""))
    if issubclass(cls, ToolArgumentsError):
        parameter = details.get("parameter")
        keywords["parameter"] = parameter if isinstance(parameter, str) else None
    return cls(encodable(failure.message), **keywords)
