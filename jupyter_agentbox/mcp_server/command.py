"""Runs the MCP server on this process's standard input and output, and obeys signals."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server

from jupyter_agentbox.log_levels import set_log_level

from .server import CodeServer
from .settings import CodeServerSettings

log = logging.getLogger(__name__)

#: Seconds that the kernel and the MCP servers have to end after a signal. What is left then ends with this process.
GRACE: Final = 15.0
#: Seconds within which a second SIGINT means more than the first.
TWICE: Final = 1.0
_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def main(settings: CodeServerSettings) -> int:
    """Serve until the client closes standard input, and return the exit code.

    Only the protocol is written to standard output: while the server runs, the SDK redirects everything else to
    standard error.
    """
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    set_log_level(settings.log_level)
    if sys.stdin.isatty():
        log.warning(
            "this program serves an MCP client, which starts it by itself; press Ctrl-C to end it while it is idle"
        )
    return asyncio.run(_serve(settings))


class _Signals:
    """Handles signals: a first SIGINT cancels the running request; a second, and any other signal, ends the server.

    In a terminal, Ctrl-C reaches both the client and this server, which the client started. Whoever presses it wants to
    stop what runs, and not to lose a kernel with all its variables.

    Parameters
    ----------
    interrupt : callable
        Cancels a request; returns whether there was one.
    """

    def __init__(self, interrupt: Callable[[], bool]) -> None:
        self._interrupt = interrupt
        self._interrupted_at: float | None = None
        self._ended = asyncio.Event()
        self.ended_by: int | None = None

    def listen(self) -> None:
        """Handle signals from now on."""
        for number in _SIGNALS:
            with suppress(NotImplementedError):  # on Windows
                asyncio.get_running_loop().add_signal_handler(number, self._receive, number)

    async def wait(self) -> None:
        """Wait for a signal that ends the server."""
        await self._ended.wait()

    def _receive(self, number: int) -> None:
        if self.ended_by is not None or (number == signal.SIGINT and self._cancels_request()):
            return
        self.ended_by = number
        self._ended.set()

    def _cancels_request(self) -> bool:
        now, before = time.monotonic(), self._interrupted_at
        if (before is not None and now - before <= TWICE) or not self._interrupt():
            return False
        self._interrupted_at = now
        log.warning("SIGINT: cancelling the running request; a second SIGINT within %g s ends the program", TWICE)
        return True


async def _serve(settings: CodeServerSettings) -> int:
    code_server = CodeServer(settings)
    signals = _Signals(code_server.interrupt)
    signals.listen()
    try:
        async with stdio_server() as (incoming, outgoing):
            serving = asyncio.ensure_future(serve_loop(code_server.build(), incoming, outgoing, lifespan_state={}))
            stopping = asyncio.ensure_future(signals.wait())
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            if signals.ended_by is not None:
                await _end(code_server, signals.ended_by)
            stopping.cancel()
            await serving
    finally:
        if signals.ended_by is not None:  # also where the client broke off meanwhile
            await _end(code_server, signals.ended_by)
        await code_server.aclose()
    return 0


async def _end(code_server: CodeServer, number: int) -> NoReturn:
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await code_server.aclose()
    logging.shutdown()
    # A thread reads standard input, and nothing but its end would end that.
    os._exit(128 + number)
