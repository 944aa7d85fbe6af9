"""Runs the MCP server on this process's standard input and output."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import Final, NoReturn

from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server

from .server import CodeServer
from .settings import CodeServerSettings

log = logging.getLogger(__name__)

#: Seconds that the kernel and the MCP servers have to end after a signal. What is left then ends with this process.
GRACE: Final = 15.0
_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def main(settings: CodeServerSettings) -> int:
    """Serve until the client closes standard input, and return the exit code.

    Nothing but the protocol is written to standard output: while the server runs, the SDK leads all else to standard
    error.
    """
    logging.basicConfig(stream=sys.stderr, level=settings.log_level, format="%(levelname)s %(name)s: %(message)s")
    if sys.stdin.isatty():
        log.warning("this serves an MCP client, which starts it by itself; Ctrl-C ends it")
    return asyncio.run(_serve(settings))


async def _serve(settings: CodeServerSettings) -> int:
    code_server = CodeServer(settings)
    received: list[int] = []
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        received.append(number)
        stop.set()

    for number in _SIGNALS:
        with suppress(NotImplementedError):  # on Windows
            asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    try:
        async with stdio_server() as (incoming, outgoing):
            serving = asyncio.ensure_future(serve_loop(code_server.build(), incoming, outgoing, lifespan_state={}))
            stopping = asyncio.ensure_future(stop.wait())
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            if received:
                await _end(code_server, received[0])
            stopping.cancel()
            await serving
    finally:
        if received:  # also where the client broke off meanwhile
            await _end(code_server, received[0])
        await code_server.aclose()
    return 0


async def _end(code_server: CodeServer, number: int) -> NoReturn:
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await code_server.aclose()
    logging.shutdown()
    # A thread reads standard input, and nothing but its end would end that.
    os._exit(128 + number)
