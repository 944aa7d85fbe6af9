"""Starts a headless ipykernel: quickly, without losing outputs, and prepared before its first cell.

Run as ``python launcher.py CONNECTION_FILE PREPARATION``; the latter is JSON. In a sandbox, its guard runs the
`application`.
"""

from __future__ import annotations

import asyncio
import io
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve()

# Without a front end, there is no debugging, and the debugger takes a fifth of a kernel's start.
sys.modules["debugpy"] = None  # type: ignore[assignment]  # makes its import fail

import ipykernel.debugger  # noqa: E402  # looks for debugpy now, once
import ipykernel.kernelapp  # noqa: E402
import zmq  # noqa: E402
from ipykernel.iostream import IOPubThread  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402
from jupyter_client.jsonutil import json_clean, json_default  # noqa: E402

del sys.modules["debugpy"]

#: The directories of installed packages.
_INSTALLED = ("site-packages", "dist-packages")


class EagerThread(IOPubThread):
    """The thread that sends outputs. It is woken once for everything scheduled before it wakes."""

    _is_woken = False

    def schedule(self, f: Callable[[], None]) -> None:
        """Schedule a call of `f` in the thread."""
        if self._is_woken and self.thread.is_alive():
            self._events.append(f)
            if self._still_has_to_wake():
                return
            f = _nothing  # it woke at this moment and may have missed it
        self._is_woken = True
        super().schedule(f)

    def _still_has_to_wake(self) -> bool:
        return self._is_woken

    def _handle_event(self, msg: list[bytes]) -> None:
        self._is_woken = False  # first: whatever is scheduled from now on must wake it again
        super()._handle_event(msg)


def _nothing() -> None:
    pass


class HeadlessKernelApp(IPKernelApp):
    """The kernel's application."""

    preparation: dict[str, Any]

    def init_path(self) -> None:
        """Let code import from its working directory, as in any notebook.

        IPython does that itself, but not with ``-P``, which keeps the launcher's directory out of the path.
        """
        if "" not in sys.path:
            installed = (place for place, path in enumerate(sys.path) if Path(path).name in _INSTALLED)
            sys.path.insert(next(installed, 0), "")  # after the standard library

    def log_connection_info(self) -> None:
        """Print nothing about Ctrl-C and other clients: it would appear among the last words of a kernel that dies."""
        printed = sys.__stdout__
        sys.__stdout__ = io.TextIOWrapper(io.BytesIO())  # type: ignore[misc]  # as ipykernel does where it is not wanted
        try:
            super().log_connection_info()
        finally:
            sys.__stdout__ = printed  # type: ignore[misc]

    def init_iopub(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        """Open the output channel, without the limit above which ZeroMQ drops messages."""
        context.setsockopt(zmq.SNDHWM, 0)
        self.session.pack = _pack  # the default one fails at lone surrogates, and the cell never ends
        ipykernel.kernelapp.IOPubThread = EagerThread  # type: ignore[attr-defined]  # there is no setting for it
        super().init_iopub(context)

    def init_kernel(self) -> None:
        """Create the kernel and prepare it."""
        super().init_kernel()
        from jupyter_agentbox.kernel_app.streams import drain  # noqa: PLC0415  # only now they are on the path
        from jupyter_agentbox.kernel_app.workspace import import_installed, prepare  # noqa: PLC0415

        shell = self.kernel.shell
        prepare(shell, **self.preparation)
        self.kernel._process_children = import_installed(self.kernel._process_children)
        shell.events.register("pre_execute", _let_signals_wake_the_loop)
        shell.events.register("post_execute", drain)


#: Created once: `json.dumps` would create one for each of the four parts of a message.
_encode = json.JSONEncoder(default=json_default, allow_nan=False).encode


def _pack(value: Any) -> bytes:
    if isinstance(value, dict) and not value:
        return b"{}"  # the metadata of most messages
    try:
        return _encode(value).encode()
    except (TypeError, ValueError):
        return _encode(json_clean(value)).encode()


def _let_signals_wake_the_loop() -> None:
    """Let SIGINT reach a cell that awaits something.

    ipykernel's handler schedules the cell's end with `call_soon`, which does not wake a waiting loop. A loop with a
    signal handler is woken by every signal.
    """
    loop = asyncio.get_running_loop()
    if loop not in _woken:
        _woken.append(loop)
        loop.add_signal_handler(signal.SIGURG, lambda: None)


_woken: list[asyncio.AbstractEventLoop] = []


def application(arguments: list[str]) -> tuple[HeadlessKernelApp, list[str]]:
    """Return the uninitialized kernel application, and the arguments for its initialization.

    Parameters
    ----------
    arguments : list of str
        The connection file and the preparation.
    """
    connection, preparation = arguments
    try:
        import jupyter_agentbox  # noqa: F401, PLC0415  # may be run from its sources
    except ImportError:
        sys.path.append(str(_HERE.parent.parent.parent))
    app = HeadlessKernelApp.instance(outstream_class="jupyter_agentbox.kernel_app.streams.WatchedStream", quiet=True)
    app.preparation = json.loads(preparation)
    return app, [f"--f={connection}", "--HistoryManager.enabled=False", "--InteractiveShell.colors=nocolor"]


def main() -> None:
    """Run the kernel."""
    app, arguments = application(sys.argv[1:])
    app.initialize(arguments)
    app.start()


if __name__ == "__main__":
    main()
