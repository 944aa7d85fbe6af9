"""Ports for programs that tests start."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: An option of Jupyter servers. A kernel whose port another process took starts again on other ports, which Jupyter's
#: cache of ports prevents.
FRESH_PORTS = "--KernelManager.cache_ports=False"


@contextmanager
def kept_port() -> Iterator[int]:
    """Keep a port of 127.0.0.1 for a program that will listen there; until it does, connections are refused.

    On Linux a socket that is bound and does not listen keeps off all but those that ask for just this port.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = int(holder.getsockname()[1])
        if not sys.platform.startswith("linux"):
            holder.close()
        yield port
