"""Makes an interrupt stop a Jupyter server cleanly if the server has no terminal.

Jupyter Server handles SIGINT only if it can ask "Shut down this server?". Otherwise Python's own handler aborts the
event loop: extensions are not stopped, and the next start finds requests and calls that were left open. JupyterHub
stops its users' servers with SIGINT.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def stop_on_interrupt(server: ServerApp) -> None:
    """Stop the server on SIGINT as on SIGTERM, unless somebody handles SIGINT already.

    A second SIGINT aborts what the first one began.

    Parameters
    ----------
    server : ServerApp
        The server. Nothing changes if it does not handle the signals of this process.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set a handler
    is_free = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_free and getattr(signal.getsignal(signal.SIGTERM), "__self__", None) is server:

        def stop(number: int, _frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            server.log.critical("received signal %s, stopping", number)
            server.stop(from_signal=True)

        signal.signal(signal.SIGINT, stop)
