"""Runs code in a kernel of a Jupyter server, which decides about its calls: in its panel, with its rules and record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit, urlunsplit

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.headless.client import KernelClient
from jupyter_agentbox.headless.deadline import PausableDeadline
from jupyter_agentbox.headless.discovery import known_token, running_servers
from jupyter_agentbox.headless.reports import LONGEST
from jupyter_agentbox.headless.results import ExecutionError, ExecutionResult
from jupyter_agentbox.headless.server_api import ServerAddress, ServerApi

from .cell_queue import WAS_RESET, CellQueue
from .consent import ConsentSource
from .sessions import CellRequest, Executed, SessionError

log = logging.getLogger(__name__)

_API: Final = "jupyter-agentbox"
#: Seconds that a server that is looked for may take to answer.
_PATIENCE: Final = 10.0
#: Seconds between two looks at what waits for a decision.
_LOOK: Final = 1.0
#: So many requests that wait, the latest, are named.
_MOST_PENDING: Final = 20
#: Of so many rejected calls, the latest, it is looked at who rejected them.
_MOST_REJECTED: Final = 100
#: Of so many calls of the kernel, the latest, it is looked at how far they are.
_MOST_RUNNING: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A request that waits for its decision on a Jupyter server.

    Parameters
    ----------
    id : str
        The request's id.
    call : mapping
        The call, in the form of the server's REST API.
    """

    id: str
    call: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The server and the tool."""
        return f"{self.call['server']}.{self.call['tool']}"


async def find_jupyterlab() -> ServerAddress | None:
    """Return the JupyterLab with agentbox that this user started most recently on this machine."""
    for server in await asyncio.to_thread(running_servers):
        address = ServerAddress(url=server.url, token=server.token)
        api = ServerApi(address)
        try:
            async with asyncio.timeout(_PATIENCE):
                await api.ask("GET", _API, "servers")
                # A kernel gateway has the same API and a runtime file, but no page at which somebody could decide.
                await api.ask("GET", "lab", "api", "workspaces")
        except (ExecutionError, TimeoutError) as error:
            log.info("the Jupyter server at %s is not used: %s", server.url, error)
        else:
            return address
        finally:
            api.close()
    return None


def server_address(url: str, token: str | None) -> ServerAddress:
    """Return the server that an option names by its URL, in the form of the server's log or of a browser's address bar.

    Raises
    ------
    SessionError
        If it is not such a URL.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # raises for a port that is none
    except ValueError as error:
        raise SessionError(f"`--server` is not a URL: {error}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SessionError(
            "`--server` must be a URL such as http://localhost:8888/ or https://hub.example.org/user/ada/"
        )
    in_query = parse_qs(parts.query).get("token", [""])[0]
    base = parts.path
    for page in ("/lab", "/tree"):
        base = base[: base.index(page)] if base.endswith(page) or f"{page}/" in base else base
    plain = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], f"{base.rstrip('/')}/", "", ""))
    return ServerAddress(url=plain, token=token or in_query or known_token(plain))


class JupyterSession:
    """A `CodeSession` in a kernel of its own on a Jupyter server.

    Parameters
    ----------
    address : ServerAddress
        The server.
    working_dir : Path or None
        Where the kernel starts; ``None`` leaves it to the server.
    images_dir : Path
        Where images are written.
    busy_timeout : float
        Seconds that a cell waits for an earlier one.
    """

    def __init__(
        self, address: ServerAddress, *, working_dir: Path | None, images_dir: Path, busy_timeout: float
    ) -> None:
        self._address = address
        self._working_dir = working_dir
        self._images_dir = images_dir
        self._api = ServerApi(address)
        self._client: KernelClient | None = None
        self._cells = CellQueue(busy_timeout)
        self._connecting = asyncio.Lock()

    async def check(self) -> None:
        """Make sure that the server decides about calls.

        Raises
        ------
        SessionError
            If the server does not answer, or has no agentbox.
        """
        await self._ask("GET", "servers")

    async def execute(self, cell: CellRequest) -> Executed:
        """Run a cell."""
        async with self._cells.enter(cell.activity) as queued:
            run = _Run(cell, await self._connected(), self._pending, self._progress)
            done = await run.execute()
        return Executed(text=done.text, error=WAS_RESET) if queued.is_lost else done

    async def has_rejected(self) -> bool:
        """Return whether a person rejected a call of the kernel's code. A rule's denial is an error like others.

        Raises
        ------
        SessionError
        """
        if self._client is None:
            return False
        query = {"status": "rejected", "kernel_id": self._client.kernel_id, "limit": str(_MOST_REJECTED)}
        found = (await self._ask("GET", "approvals", query=query))["approvals"]
        return any(request["decision"] is not None for request in found)

    async def reset(self) -> None:
        """Start again with a fresh kernel."""
        await self._hang_up()
        await self._connected()

    async def servers(self) -> Sequence[JsonObject]:
        """Return the MCP servers of the Jupyter server."""
        found = await self._ask("GET", "servers")
        return [
            {"name": str(status["name"]), "state": str(status["state"]), "error": str(status["error"])}
            for status in found["servers"]
        ]

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return a server's tools."""
        found = await self._ask("POST", "servers", server, "tools")
        return [ToolDescription(**tool) for tool in found["tools"]]

    async def register(self, name: str, configuration: JsonObject, consents: ConsentSource) -> Sequence[str]:  # noqa: ARG002
        """Add an MCP server there, if a person approves in JupyterLab; return the names of its tools."""
        body: JsonObject = {"name": name, "configuration": configuration}
        if self._client is not None:
            body["kernel_id"] = self._client.kernel_id
        request = await self._ask("POST", "registrations", body=body)
        try:
            request = await self._followed(request)
        except asyncio.CancelledError:
            with suppress(SessionError):
                await asyncio.shield(self._ask("DELETE", "registrations", request["id"]))
            raise
        if (why := _why_not(request)) is not None:
            raise SessionError(f"`{name}` was not registered: {why}")
        arguments = request["decision"]["arguments"] or request["call"]["arguments"]
        return [tool.name for tool in await self.list_tools(str(arguments["name"]))]

    async def aclose(self) -> None:
        """End the kernel."""
        await self._hang_up()
        self._api.close()

    async def _connected(self) -> KernelClient:
        async with self._connecting:
            if self._client is None:
                address = self._address
                client = KernelClient(url=address.url, token=address.token, images_dir=self._images_dir)
                try:
                    await client.connect()
                    if self._working_dir is not None:
                        await client.execute(f"import os as _os\n_os.chdir({str(self._working_dir)!r})\ndel _os")
                except (ExecutionError, TimeoutError) as error:
                    await client.disconnect()
                    raise SessionError(f"no kernel could be started at {self._address.url}: {error}") from None
                self._client = client
            return self._client

    async def _hang_up(self) -> None:
        self._cells.lose()
        client, self._client = self._client, None
        if client is not None:
            await client.disconnect()

    async def _pending(self) -> list[Pending]:
        """Return the kernel's requests that wait for decisions, oldest first, and none if that is unknown."""
        if self._client is None:
            return []
        query = {"status": "pending", "kernel_id": self._client.kernel_id, "limit": str(_MOST_PENDING)}
        found = (await self._ask("GET", "approvals", query=query))["approvals"]
        return [Pending(id=request["id"], call=request["call"]) for request in reversed(found)]

    async def _progress(self) -> list[str]:
        """Return the progress that the kernel's running calls report."""
        if self._client is None:
            return []
        query = {"status": "approved", "kernel_id": self._client.kernel_id, "limit": str(_MOST_RUNNING)}
        found = (await self._ask("GET", "approvals", query=query))["approvals"]
        running = [request for request in reversed(found) if request["outcome"] is not None]
        return [_progress_line(request) for request in running if request["outcome"]["progress"] is not None]

    async def _followed(self, request: Any) -> Any:
        """Wait until a registration has ended, and return it."""
        while request["status"] == "pending" or (request["status"] == "approved" and not _has_ended(request)):
            await asyncio.sleep(_LOOK)
            request = await self._ask("GET", "approvals", request["id"])
        return request

    async def _ask(
        self, method: str, *path: str, query: dict[str, str] | None = None, body: JsonObject | None = None
    ) -> Any:
        try:
            return await self._api.ask(method, _API, *path, query=query, body=body)
        except ExecutionError as error:
            raise SessionError(str(error)) from None


def _has_ended(request: Any) -> bool:
    return request["outcome"] is not None and request["outcome"]["state"] != "running"


def _why_not(request: Any) -> str | None:
    """Return why a registration that has ended added nothing; ``None`` if it added the server."""
    if request["status"] == "approved":
        outcome = request["outcome"]
        return None if outcome["state"] == "succeeded" else outcome["error"] or outcome["state"]
    reason = request["decision"]["reason"] if request["decision"] is not None else ""
    return f"in JupyterLab the request was {request['status']}{': ' if reason else ''}{reason}"


def _progress_line(request: Any) -> str:
    call, progress = request["call"], request["outcome"]["progress"]
    total = f" of {progress['total']:g}" if progress["total"] is not None else ""
    message = f": {progress['message']}" if progress["message"] else ""
    return one_line(f"{call['server']}.{call['tool']}: {progress['progress']:g}{total}{message}", LONGEST)


class _Run:
    """One cell that runs."""

    def __init__(
        self,
        cell: CellRequest,
        client: KernelClient,
        pending: Callable[[], Awaitable[list[Pending]]],
        progress: Callable[[], Awaitable[list[str]]],
    ) -> None:
        self._cell = cell
        self._client = client
        self._pending = pending
        self._progress = progress
        self._reported: list[str] = []
        self._budget = PausableDeadline(cell.timeout)
        self._chunks: list[str] = []

    async def execute(self) -> Executed:
        reading = asyncio.ensure_future(self._read())
        watching = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait([reading, watching], return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
        finally:
            for task in (reading, watching):
                task.cancel()
            ended, _ = await asyncio.gather(reading, watching, return_exceptions=True)
        watching.result()  # it ended because the time is over, or with an error
        if isinstance(ended, Executed):  # it ended while it was being interrupted
            return ended
        return Executed(text="".join(self._chunks), error=self._budget.exceeded(), is_out_of_time=True)

    async def _read(self) -> Executed:
        try:
            async for item in self._client.stream(self._cell.code):
                if isinstance(item, ExecutionResult):
                    return Executed(text=item.text or "", bundles=item.mime_bundles)
                self._chunks.append(item)
                self._cell.write(item)
        except ExecutionError as error:
            bundles = error.result.mime_bundles if error.result is not None else ()
            return Executed(text="".join(self._chunks), bundles=bundles, error=str(error))
        except RuntimeError as error:
            return Executed(text="".join(self._chunks), error=str(error))
        raise AssertionError("the result comes last")

    async def _watch(self) -> None:
        """Return when the time is over; the clock stops while a call waits for its decision."""
        while True:
            deadline = self._budget.deadline()
            left = _LOOK if deadline is None else min(_LOOK, deadline - time.monotonic())
            if left <= 0:
                # a call may have begun to wait since the last look
                await self._look()
                if self._budget.deadline() is not None:
                    return
                continue
            await asyncio.sleep(left)
            await self._look()

    async def _look(self) -> None:
        try:
            waiting = {one.id: one for one in await self._pending()}
            progress = await self._progress()
        except SessionError as error:
            log.info("the pending requests could not be read: %s", error)
            return
        activity = self._cell.activity
        for key in activity.decisions():
            if key not in waiting:
                activity.decided(key)
        for one in waiting.values():
            activity.wait_for_decision(one.id, f"{one.name} in JupyterLab")
        if waiting:
            self._budget.pause()
        else:
            self._budget.resume()
        for line in progress:
            if line not in self._reported:
                self._cell.report(line)
        self._reported = progress
