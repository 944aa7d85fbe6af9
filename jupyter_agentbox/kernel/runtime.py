"""The process's link and cell tracking: the only global state of the kernel's end."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from jupyter_agentbox.trusted_imports import TrustedImports

from .cells import Cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from .link import Link
    from .transport import Transport

_lock = threading.Lock()
_link: Link | None = None
_cells: Cells | None = None
#: The socket to the kernel's owner process, if there is one.
_owner: tuple[int, Callable[[], int]] | None = None


def link() -> Link:
    """Return this kernel's link, creating it on first use.

    Raises
    ------
    NoServerError
        If this process is not a kernel.
    """
    if _link is not None:
        return _link
    shell = _shell()
    attach(shell)
    return _new_link(shell)


def attach(shell: Any) -> None:
    """Track the cells of the kernel of `shell`, once; do nothing if the shell is not a kernel's."""
    global _cells
    kernel: Any = getattr(shell, "kernel", None)
    with _lock:
        if _cells is not None or not hasattr(kernel, "control_handlers"):
            return
        _cells = Cells(lambda: kernel.get_parent("shell"))
        if _is_executing_aloud(kernel):
            _cells.started()
        shell.events.register("pre_run_cell", _before_cell)
        shell.events.register("post_run_cell", _after_cell)
        _follow_clearing(shell.display_pub)


def use(link: Link | None) -> None:
    """Replace the link; with ``None``, the next call creates a new one."""
    global _link
    _link = link


def use_owner_socket(fd: int, texts_sent: Callable[[], int]) -> None:
    """Make a link created later use the socket to the kernel's owner process.

    Parameters
    ----------
    fd : int
        The socket's file descriptor.
    texts_sent : callable
        Returns the number of text messages that the kernel has sent.
    """
    global _owner
    os.set_inheritable(fd, False)
    _owner = fd, texts_sent


def is_asked_by_editor() -> bool:
    """Whether the caller is a completion or inspection rather than a cell, and so must be fast."""
    asked_by = _cells.current().parent.get("header", {}).get("msg_type") if _cells is not None else None
    return asked_by in ("complete_request", "inspect_request")


def _new_link(shell: Any) -> Link:
    global _link
    # Not at the top: loading the kernel's end must not slow down a kernel's start.
    with TrustedImports():
        from .failures import not_in_kernel  # noqa: PLC0415
        from .link import Link  # noqa: PLC0415
        from .server_absence import server_absence  # noqa: PLC0415

    with _lock, TrustedImports():
        if _link is None:
            if _cells is None:
                raise not_in_kernel()
            alone = server_absence(os.environ) if _owner is None else ""
            _link = Link(_new_transport(shell.kernel, _cells), _cells, alone=alone, wake=lambda: _wake(shell.kernel))
        return _link


def _new_transport(kernel: Any, cells: Cells) -> Transport:
    if _owner is not None:
        from .socket_transport import SocketTransport  # noqa: PLC0415

        fd, texts_sent = _owner
        return SocketTransport(kernel, cells, fd=fd, texts_sent=texts_sent)
    from .transport import KernelTransport  # noqa: PLC0415

    return KernelTransport(kernel, cells)


def _wake(kernel: Any) -> None:
    kernel.io_loop.add_callback(lambda: None)


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _is_executing_aloud(kernel: Any) -> bool:
    # Only then does the shell announce the end of the cell.
    parent = kernel.get_parent("shell")
    is_execution = parent.get("header", {}).get("msg_type") == "execute_request"
    return is_execution and not parent.get("content", {}).get("silent")


def _before_cell(_info: Any) -> None:
    if _cells is not None and not _cells.is_within:
        _cells.started()


def _follow_clearing(publisher: Any) -> None:
    """Notify the link when code clears a cell's outputs, which then can no longer be updated."""
    clear = publisher.clear_output

    def clear_output(*arguments: Any, **keywords: Any) -> Any:
        try:
            return clear(*arguments, **keywords)
        finally:
            if _link is not None:
                _link.outputs_cleared()

    publisher.clear_output = clear_output


def _after_cell(result: Any) -> None:
    if _cells is None or _cells.is_within:
        return
    cell = _cells.ended()
    if _link is None:
        return
    error = getattr(result, "error_in_exec", None)
    # By name: asyncio's error, which ends an interrupted async cell, need not be imported for this.
    if type(error).__name__ in ("KeyboardInterrupt", "CancelledError"):
        _link.cell_interrupted(cell)
    _link.cell_ended()
