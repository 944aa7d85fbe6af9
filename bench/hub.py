"""``python -m bench.hub load`` and ``… kill``: the Hub service with many users, and while it is killed at random.

The service is a process of its own, on a PostgreSQL of its own; a table of names stands where JupyterHub would be
asked. Clients speak MCP over HTTP as users' servers do, and an approver logs in as a browser does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tornado.httpclient import AsyncHTTPClient

from tests.postgresql import PostgreSQL

from .hub_kill import kill
from .hub_load import load
from .hub_service import Service


async def run_load(arguments: argparse.Namespace) -> int:
    """Start the service and its database, and let users call."""
    AsyncHTTPClient.configure(None, max_clients=5000)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        database = None if arguments.database else PostgreSQL()
        try:
            if database is not None:
                database.start()
            service = Service(Path(directory), "" if arguments.database == "sqlite" else _url(arguments, database))
            try:
                service.profile = arguments.profile
                await service.start()
                assert service.process is not None
                print(f"the service is process {service.process.pid}", flush=True)
                return await load(service, arguments, None if database is None else database.pid)
            finally:
                service.end()
        finally:
            if database is not None:
                database.stop()
                database.remove()


def _url(arguments: argparse.Namespace, database: PostgreSQL | None) -> str:
    return str(arguments.database) if database is None else database.make_database()


def main() -> int:
    """Run one of the two, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.hub", description=__doc__)
    subparsers = parser.add_subparsers(dest="what", required=True)
    loading = subparsers.add_parser("load", help="users call, one floods the service, and requests wait")
    loading.add_argument(
        "--database", default="", help="`sqlite`, or the URL of an empty database; by default a PostgreSQL of its own"
    )
    loading.add_argument("--profile", type=Path, default=None, help="write a profile by processor time to this file")
    loading.add_argument("--users", type=int, default=200)
    loading.add_argument("--rate", type=float, default=50.0, help="calls a second")
    loading.add_argument("--seconds", type=float, default=60.0)
    loading.add_argument("--spans", type=int, default=6, help="spans with a flood, and as many without")
    loading.add_argument("--span", type=float, default=5.0, help="seconds of each")
    loading.add_argument("--waiting", type=int, default=2000, help="requests that wait")
    killing = subparsers.add_parser("kill", help="the service, its database and the proxy are killed at random")
    killing.add_argument("--kills", type=int, default=100, help="how often something is killed")
    killing.add_argument("--users", type=int, default=20)
    killing.add_argument("--replicas", type=int, default=2, help="one answers, the others stand by")
    killing.add_argument("--pause", type=float, default=1.0, help="the most seconds from an answer to a kill")
    killing.add_argument("--seed", type=int, default=None, help="for the same order of kills")
    killing.add_argument("--minutes", type=float, default=60.0, help="it ends after so long, whatever is left")
    arguments = parser.parse_args()
    return asyncio.run(run_load(arguments) if arguments.what == "load" else kill(arguments))


if __name__ == "__main__":
    sys.exit(main())
