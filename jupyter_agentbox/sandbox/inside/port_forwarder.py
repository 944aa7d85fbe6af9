"""Runs in a sandbox with a network of its own: forwards 127.0.0.1 to the proxy's socket; the proxy decides.

The code in the sandbox controls this process, so the proxy, outside, checks all that it sends. Standard library only.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress

from jupyter_agentbox.sandbox.egress.streams import Stream, close, join

#: Inside, where no one else has a port.
PORT = 3128

_GONE = b"HTTP/1.1 502 The proxy of this sandbox has ended\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def start(proxy: str) -> None:
    """Start a process, not a child of this one, that forwards 127.0.0.1 to the proxy from now on.

    Parameters
    ----------
    proxy : str
        The path of the proxy's socket.
    """
    with socket.create_server(("127.0.0.1", PORT), backlog=128) as listener:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        try:
            os.setsid()  # what interrupts the kernel passes it by
            if os.fork() == 0:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                # What the kernel inherited is not ours to keep open.
                os.closerange(3, listener.fileno())
                os.closerange(listener.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
                asyncio.run(_serve(listener, proxy))
        finally:
            os._exit(0)


async def _serve(listener: socket.socket, proxy: str) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside = Stream(reader, writer)
        with suppress(OSError):
            try:
                outside = Stream(*await asyncio.open_unix_connection(proxy))
            except OSError:
                writer.write(_GONE)
            else:
                try:
                    await join(inside, outside)
                finally:
                    await close(outside)
        await close(inside)

    server = await asyncio.start_server(forward, sock=listener)
    await server.serve_forever()
