"""Where an executor's calls are decided and run: the parts of `composition`, loaded when something needs them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

from jupyter_agentbox import paths
from jupyter_agentbox.core.approvals import Answer, OutcomeState
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.calls import JsonObject, Origin
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.exceptions import AgentBoxError, StorageError
from jupyter_agentbox.protocol.messages import COMM_PREFIX
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER
from jupyter_agentbox.protocol.shell import SHELL_SERVER

from .code_tools import CodeTools
from .reports import Report, log_message_of, progress_of
from .request_queue import RequestQueue
from .requests import ApprovalRequest

if TYPE_CHECKING:
    from jupyter_agentbox.composition import AgentBox
    from jupyter_agentbox.services.kernel_connections.manager import KernelConnectionManager

log = logging.getLogger(__name__)

#: Seconds until a kernel is told that its call waits or runs. Nobody looks at a card, and most calls end before.
_NEWS_DELAY: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """How calls are decided and run.

    Parameters
    ----------
    policy : Policy
        What needs no asking, and what is refused.
    approval_timeout : float or None
        Seconds that a request waits; ``None`` for ever.
    connect_timeout : float
        Seconds that an MCP server may take to start.
    mcp_config_path : Path or None
        The file that names the MCP servers; ``None`` for those that `generate_mcp_sources` was given and those in
        Jupyter's configuration directory.
    database_url : str or None
        SQLAlchemy URL of the approval store; ``None`` for JupyterLab's.
    reviewer : Reviewer
        Who decides, in the record.
    kernel_places : tuple of Path
        The directories in which a sandboxed kernel can write.
    """

    policy: Policy
    approval_timeout: float | None
    connect_timeout: float
    mcp_config_path: Path | None
    database_url: str | None
    reviewer: Reviewer
    kernel_places: tuple[Path, ...] = ()

    def can_kernel_write(self, directory: Path) -> bool:
        """Whether a sandboxed kernel can write in a directory, which is without links."""
        return any(place in (directory, *directory.parents) for place in self.kernel_places)

    def files(self) -> tuple[Path, ...]:
        """Return the files that were named, which no kernel may see; Jupyter's own are known."""
        database = unquote(urlsplit(self.database_url).path[1:]) if self.database_url is not None else ""
        beside = [database + end for end in ("", "-wal", "-shm", "-journal")] if database else []
        named = [self.mcp_config_path, *map(Path, beside)]
        return tuple(path.expanduser().absolute() for path in named if path is not None)


class CommKernel(Protocol):
    """A kernel that takes comm messages on its control channel."""

    @property
    def id(self) -> str:
        """The kernel's id."""

    @property
    def isolation(self) -> Isolation:
        """How far it is kept from what is around it."""

    def send_comm(self, comm_id: str, data: JsonObject) -> None:
        """Send a message."""


@dataclass(frozen=True, slots=True)
class _Channel:
    """A `KernelChannel` to a kernel."""

    kernel: CommKernel

    @property
    def isolation(self) -> Isolation:
        return self.kernel.isolation

    def send(self, comm_id: str, message: JsonObject) -> None:
        self.kernel.send_comm(comm_id, message)


class _NoNotebooks:
    """A `NotebookFinder` where there are no notebooks."""

    async def path_of(self, _kernel_id: str) -> str | None:
        return None


class LocalBackend:
    """Decides and runs the calls of one executor's kernels.

    Parameters
    ----------
    settings : BackendSettings
        How.
    on_change : callable
        Gets each new or changed request.
    on_report : callable
        Gets what tools and MCP servers say while they run.
    """

    def __init__(
        self,
        settings: BackendSettings,
        on_change: Callable[[StoredRequest], None],
        on_report: Callable[[Report], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._on_change = on_change
        self._on_report = on_report
        self._kernel: CommKernel | None = None
        self._opening: asyncio.Task[None] | None = None
        self._early: list[tuple[str, str, Any]] = []
        self.code_tools = CodeTools()
        #: The agent's thread that works in the kernel, for the record.
        self.thread_id: str | None = None
        self._box: AgentBox | None = None
        self.requests = RequestQueue(self.decide)
        self._links: KernelConnectionManager | None = None

    def attach(self, kernel: CommKernel) -> None:
        """Take a kernel that started."""
        self._kernel = kernel
        if self._links is not None:
            self._links.kernel_started(kernel.id, _Channel(kernel))

    async def detach(self) -> None:
        """Let go of the kernel; what it asked for is orphaned, what it runs is cancelled."""
        kernel, self._kernel = self._kernel, None
        self._early.clear()
        if self._links is not None and kernel is not None:
            await self._links.kernel_lost(kernel.id)

    def receive(self, content: Mapping[str, Any]) -> None:
        """Take a comm message of the kernel."""
        comm_id, data = str(content.get("comm_id")), content.get("data")
        if self._kernel is None or not comm_id.startswith(COMM_PREFIX):
            return
        if self._links is not None:
            self._links.message_received(self._kernel.id, comm_id, data)
        else:
            self._early.append((self._kernel.id, comm_id, data))
            self.preload()

    def preload(self) -> None:
        """Begin to load the parts."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())

    def preload_if_configured(self) -> None:
        """Begin to load the parts if there are MCP servers, so that the first call is quick."""
        if self._has_servers():
            self.preload()

    async def decide(
        self, request: StoredRequest, answer: Answer, reason: str, arguments: Mapping[str, Any] | None
    ) -> None:
        """Answer a request; when this returns, the answer is on disk."""
        if self._box is None:
            raise StorageError("the executor was stopped")
        managers = import_module("jupyter_agentbox.services.approvals.manager")
        verdict = managers.Verdict(answer=answer, digest=request.call.digest, reason=reason, arguments=arguments)
        await self._box.approvals.decide(request.id, verdict, reviewer=self._settings.reviewer)

    async def register(
        self, name: str, configuration: JsonObject, decide: Callable[[ApprovalRequest], Awaitable[None]]
    ) -> list[str]:
        """Add an MCP server, if a rule allows it or `decide` accepts the request; return the names of its tools."""
        box = await self.box()
        asked: asyncio.Future[StoredRequest] = asyncio.get_running_loop().create_future()
        adding = asyncio.ensure_future(
            box.registrations.register(name, configuration, Origin(), on_waiting=asked.set_result)
        )

        async def answer() -> None:
            await decide(ApprovalRequest(await asked, self.decide))

        answering = asyncio.ensure_future(answer())
        try:
            await asyncio.wait([adding, answering], return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
            added: Any = (await adding).result.structured
            return [str(tool) for tool in added["tools"]]
        finally:
            for task in (answering, adding):
                task.cancel()  # does nothing to one that has ended
            await asyncio.gather(answering, adding, return_exceptions=True)

    async def box(self) -> AgentBox:
        """Return the parts, once they are loaded.

        Raises
        ------
        AgentBoxError
            If they cannot be; the log says why.
        """
        self.preload()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._box is None:
            raise AgentBoxError("tool calls cannot be decided or run; the log says why")
        return self._box

    async def withdrawn(self) -> None:
        """Wait until what the kernel has withdrawn so far can be decided no more."""
        if self._links is not None and self._kernel is not None:
            await self._links.withdrawn(self._kernel.id)

    async def stop_servers(self) -> None:
        """Stop the MCP servers; each starts anew on its next use."""
        if self._box is not None:
            await self._box.tools.stop_all()

    async def aclose(self) -> None:
        """Let go of everything."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        await self.detach()
        box, self._box, self._links = self._box, None, None
        if box is not None:
            await box.aclose()

    # -- the announcer of the services

    def approval_changed(self, request: StoredRequest) -> None:
        """Pass a new or changed request of a kernel on, or how far a running one is."""
        if request.call.origin.kernel_id is None:
            return  # a registration: whoever began it knows
        self._on_change(request)
        is_running = request.outcome is not None and request.outcome.state is OutcomeState.RUNNING
        progress = self._box.approvals.progress_of(request.id) if is_running and self._box is not None else None
        if progress is not None:
            self._on_report(progress_of(request, progress))

    def servers_changed(self) -> None:
        """Do nothing: no one looks at the servers' states."""

    async def _open(self) -> None:
        try:
            composition, links = await asyncio.to_thread(_import_parts)
            box = self._build(composition)
            try:
                await box.start()
            except StorageError:
                log.exception("the approval store cannot be opened: no call runs until it can")
            self._box = box
            self._links = links.KernelConnectionManager(
                calls=box.calls,
                approvals=box.approvals,
                policies=box.policies,
                catalog=box.tools,
                notebooks=_NoNotebooks(),
                thread_of=lambda _: self.thread_id,
                generate=composition.module_json,
                welcome=_welcome,
                news_delay=_NEWS_DELAY,
            )
        except Exception:
            # The root of a task. A kernel that asks gets no answer, and says so.
            log.exception("tool calls cannot be decided or run")
            return
        if self._kernel is not None:
            self._links.kernel_started(self._kernel.id, _Channel(self._kernel))
        early, self._early = self._early, []
        for kernel_id, comm_id, data in early:
            self._links.message_received(kernel_id, comm_id, data)
        if self._has_servers():
            await box.tools.preload()

    def _build(self, composition: ModuleType) -> AgentBox:
        settings = self._settings
        shell = import_module("jupyter_agentbox.headless.shell_commands")
        url = settings.database_url
        if url is None:
            url = import_module("jupyter_agentbox.storage.approvals").sqlite_url(
                str(paths.data_dir() / "approvals.sqlite")
            )
        limits = import_module("jupyter_agentbox.mcp_client.limits")
        could_write = import_module("jupyter_agentbox.sandbox.server.writable_directories").could_write
        apart = partial(limits.start_apart, lambda place: settings.can_kernel_write(place) or could_write(place))
        return cast(
            "AgentBox",
            composition.build(
                composition.Settings(
                    mcp_config_path=self._config_paths(),
                    database_url=url,
                    added_servers=None if settings.mcp_config_path is not None else paths.registered_servers_path(),
                    approval_timeout=settings.approval_timeout,
                    limits=limits.Limits(start_timeout=settings.connect_timeout, start_in=apart),
                ),
                announcer=self,
                policy=settings.policy,
                own_tools={SHELL_SERVER: shell.ShellTools(), NOTEBOOK_SERVER: self.code_tools},
                on_log=lambda server, message: self._on_report(log_message_of(server, message)),
            ),
        )

    def _has_servers(self) -> bool:
        return any(path.exists() for path in self._config_paths())

    def _config_paths(self) -> tuple[Path, ...]:
        if self._settings.mcp_config_path is not None:
            return (self._settings.mcp_config_path,)
        return (paths.registered_servers_path(), paths.config_dir() / "mcp.json")


def _import_parts() -> tuple[ModuleType, ModuleType]:
    # Late and in a thread: they take longer to import than a kernel to start, and most cells call no tool.
    return import_module("jupyter_agentbox.composition"), import_module(
        "jupyter_agentbox.services.kernel_connections.manager"
    )


def _welcome() -> Any:
    return import_module("jupyter_agentbox.protocol.messages").Welcome()
