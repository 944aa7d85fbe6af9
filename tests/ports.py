"""Ports for kernels, and for programs that tests start."""

from __future__ import annotations

import socket
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from jupyter_client.connect import LocalPortCache

#: An option of Jupyter servers. A kernel whose port another process took starts again on other ports, which Jupyter's
#: cache of ports prevents.
FRESH_PORTS = "--KernelManager.cache_ports=False"

#: The same in the configuration file of a server.
KEEP_KERNEL_PORTS = "from tests.ports import keep_kernel_ports\n\nkeep_kernel_ports()\n"

#: Ports that no system gives to a connection or to a program that asks for any port, and how many a process takes.
_PORTS, _BLOCK = range(10_240, 32_768), 256


class _KernelPorts:
    """Ports for the kernels of this process, in blocks that it claims until it ends."""

    def __init__(self) -> None:
        self._claims: list[socket.socket] = []
        self._ports: deque[int] = deque()

    def find(self, ip: str, used: set[int]) -> int:
        """Return a free port, the one that was used longest ago: clients of its last kernel may still look for it."""
        while True:
            for _ in range(len(self._ports)):
                port = self._ports.popleft()
                self._ports.append(port)
                if port not in used and (probe := _bound(ip, port)):
                    probe.close()
                    used.add(port)
                    return port
            self._claim_block()

    def _claim_block(self) -> None:
        for first in _PORTS[::_BLOCK]:
            if claim := _bound("127.0.0.1", first):
                self._claims.append(claim)
                self._ports.extend(range(first + 1, first + _BLOCK))
                return
        raise RuntimeError("no port is left for a kernel")


def _bound(ip: str, port: int) -> socket.socket | None:
    """Return a socket that has the port, if nobody else has it."""
    one = socket.socket()
    try:
        one.bind((ip, port))
    except OSError:
        one.close()
        return None
    return one


def keep_kernel_ports() -> None:
    """Choose the ports of this process's kernels where no other process gets its own.

    Jupyter looks for ports that are free and starts a kernel, which takes them a second later; at a restart it is to
    take them again. With many kernels and connections, another process sometimes has one of them by then, and the
    kernel ends.
    """
    ports = _KernelPorts()

    def find_available_port(cache: LocalPortCache, ip: str) -> int:
        return ports.find(ip, cache.currently_used_ports)

    LocalPortCache.find_available_port = find_available_port  # type: ignore[method-assign]


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
