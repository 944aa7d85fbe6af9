"""The program of one sandbox's proxy: a separate process beside the server that ends with the sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from ipaddress import ip_address

import psutil

from jupyter_agentbox.core.egress_domains import Address, DomainRules
from jupyter_agentbox.processes.reaper import PR_SET_PDEATHSIG, prctl

from .proxy import Proxy, system_resolver


def main(settings: str) -> None:
    """Serve until the sandbox, or the server, has ended.

    Parameters
    ----------
    settings : str
        JSON: ``{"parent", "listener", "sandbox", "allowed", "private"}``, where ``listener`` and ``sandbox`` are file
        descriptors of a listening socket and of the process whose end is the proxy's.
    """
    found = json.loads(settings)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == found["parent"]:  # else it ended before this process asked to be told
        rules = DomainRules.of(found["allowed"], found["private"])
        proxy = Proxy(rules, resolve=system_resolver, own=own_addresses, on_refused=say)
        asyncio.run(_serve(proxy, socket.socket(fileno=found["listener"]), found["sandbox"]))


def own_addresses() -> set[Address]:
    """Return the addresses of all network interfaces of this machine."""
    found = (one for addresses in psutil.net_if_addrs().values() for one in addresses)
    families = (socket.AF_INET, socket.AF_INET6)
    return {ip_address(one.address.partition("%")[0]) for one in found if one.family in families}


def say(reason: str) -> None:
    """Report a refusal to the server."""
    sys.stdout.write(reason + "\n")
    sys.stdout.flush()


async def _serve(proxy: Proxy, listener: socket.socket, sandbox: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sandbox, ended.set)
    await asyncio.start_unix_server(proxy.serve, sock=listener, backlog=128)
    await ended.wait()
    os._exit(0)  # without waiting for clients, or for threads that still look up names
