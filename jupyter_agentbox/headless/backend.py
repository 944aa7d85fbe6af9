"""Decide and run an executor's calls, with services that are loaded on first use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from jupyter_agentbox.core.approvals import Answer, OutcomeState
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import JsonObject, Origin, TurnRef
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.core.tools import Progress
from jupyter_agentbox.exceptions import AgentBoxError, StorageError
from jupyter_agentbox.protocol.messages import COMM_PREFIX

from .backend_settings import BackendSettings
from .reports import Report, progress_of
from .request_queue import RequestQueue
from .requests import ApprovalRequest

if TYPE_CHECKING:
    from jupyter_agentbox.composition import AgentBox

    from .local_services import LocalServices

log = logging.getLogger(__name__)


class CommKernel(Protocol):
    """A kernel that takes comm messages on its control channel."""

    @property
    def id(self) -> str:
        """The kernel's id."""

    @property
    def isolation(self) -> Isolation:
        """The kernel's level of isolation."""

    def send_comm(self, comm_id: str, data: JsonObject) -> None:
        """Send a comm message."""


@dataclass(frozen=True, slots=True)
class _Channel:
    """A `KernelChannel` to a kernel."""

    kernel: CommKernel

    has_own_settings = False  # whoever starts the kernel makes its settings

    @property
    def isolation(self) -> Isolation:
        return self.kernel.isolation

    @property
    def is_lossy(self) -> bool:
        return False

    def send(self, comm_id: str, message: JsonObject) -> None:
        self.kernel.send_comm(comm_id, message)


class LocalBackend:
    """Decides and runs the calls of one executor's kernels.

    Parameters
    ----------
    settings : BackendSettings
        The backend's policy, timeouts and paths.
    on_change : callable
        Called with each new or changed request.
    on_report : callable
        Called with progress and log messages of tools and MCP servers.
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
        #: The agent's turn that is using the kernel, for the record.
        self.turn: TurnRef | None = None
        self._services: LocalServices | None = None
        #: The last reported progress of each running call.
        self._reported: dict[str, Progress] = {}
        self.requests = RequestQueue(self.decide, self.is_locked)

    @property
    def asker(self) -> Asker:
        """The identity of whoever runs the code."""
        return Asker.of(self._settings.reviewer)

    def attach(self, kernel: CommKernel) -> None:
        """Attach a started kernel."""
        self._kernel = kernel
        if self._services is not None:
            self._services.kernels.kernel_started(kernel.id, _Channel(kernel))

    async def detach(self) -> None:
        """Detach the kernel: its pending requests are orphaned, its running calls cancelled."""
        kernel, self._kernel = self._kernel, None
        self._early.clear()
        if self._services is not None and kernel is not None:
            await self._services.kernels.kernel_lost(kernel.id)

    def receive(self, content: Mapping[str, Any]) -> None:
        """Handle a comm message of the kernel."""
        comm_id, data = str(content.get("comm_id")), content.get("data")
        if self._kernel is None or not comm_id.startswith(COMM_PREFIX):
            return
        if self._services is not None:
            self._services.kernels.message_received(self._kernel.id, comm_id, data)
        else:
            self._early.append((self._kernel.id, comm_id, data))
            self.preload()

    def preload(self) -> None:
        """Start loading the services."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())

    def preload_if_configured(self) -> None:
        """Start loading the services if there are MCP servers, so that the first call is quick."""
        if self._has_servers():
            self.preload()

    async def decide(
        self,
        stored: StoredRequest,
        answer: Answer,
        reason: str,
        arguments: Mapping[str, Any] | None,
        *,
        is_anybody_there: bool = True,
    ) -> None:
        """Decide a request; on return, the decision is stored."""
        if self._services is None:
            raise StorageError("the executor was stopped")
        reviewer = self._settings.reviewer
        by = reviewer if is_anybody_there else replace(reviewer, via=Via.NOBODY)
        await self._services.decide(stored, answer, reason, arguments, by=by)

    def is_locked(self, feature: Feature) -> bool:
        """Whether the site has turned a feature off."""
        return self._services is not None and self._services.box.policies.site.is_off(feature)

    async def register(
        self, name: str, configuration: JsonObject, decide: Callable[[ApprovalRequest], Awaitable[None]]
    ) -> list[str]:
        """Add an MCP server if a rule allows it or `decide` accepts the request; return its tools' names."""
        box = await self.box()
        asked: asyncio.Future[StoredRequest] = asyncio.get_running_loop().create_future()
        adding = asyncio.ensure_future(
            box.registrations.register(name, configuration, Origin(askers=(self.asker,)), on_waiting=asked.set_result)
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
                task.cancel()  # a no-op for a finished task
            await asyncio.gather(answering, adding, return_exceptions=True)

    async def box(self) -> AgentBox:
        """Return the services, once they are loaded.

        Raises
        ------
        AgentBoxError
            They cannot be loaded; the log says why.
        """
        self.preload()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._services is None:
            raise AgentBoxError("tool calls can be neither decided nor run; see the log")
        return self._services.box

    async def withdrawn(self) -> None:
        """Wait until requests that the kernel has withdrawn so far can no longer be decided."""
        if self._services is not None and self._kernel is not None:
            await self._services.kernels.withdrawn(self._kernel.id)

    async def stop_servers(self) -> None:
        """Stop the MCP servers; each restarts on its next use."""
        if self._services is not None:
            await self._services.box.tools.stop_all()

    async def aclose(self) -> None:
        """Release all resources."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        await self.detach()
        services, self._services = self._services, None
        if services is not None:
            await services.box.aclose()

    # -- the services' announcer

    def approval_changed(self, request: StoredRequest) -> None:
        """Forward a kernel's new or changed request, or the progress of a running one."""
        if request.call.origin.kernel_id is None:
            return  # a registration, whose caller already knows
        self._on_change(request)
        is_running = request.outcome is not None and request.outcome.state is OutcomeState.RUNNING
        if not is_running:
            self._reported.pop(request.id, None)
        elif self._services is not None:
            activity = self._services.box.running_calls.activity_of(request.id)
            progress = activity.progress if activity is not None else None
            # It is unchanged after a log message, which the server reports.
            if progress is not None and progress is not self._reported.get(request.id):
                self._reported[request.id] = progress
                self._on_report(progress_of(request, progress))

    def servers_changed(self) -> None:
        """Do nothing: nothing displays server status here."""

    def questions_changed(self) -> None:
        """Do nothing: the program is asked directly."""

    def grants_changed(self) -> None:
        """Do nothing: nothing lists grants here."""

    async def _open(self) -> None:
        try:
            services_type = await asyncio.to_thread(_import_services)
            services = services_type.build(
                self._settings,
                announcer=self,
                on_report=self._on_report,
                turn_of=lambda _: self.turn,
            )
            await services.start()
        except Exception:
            # The root of a task. A kernel that asks gets no answer, and says so.
            log.exception("tool calls cannot be decided or run")
            return
        self._services = services
        if self._kernel is not None:
            services.kernels.kernel_started(self._kernel.id, _Channel(self._kernel))
        early, self._early = self._early, []
        for kernel_id, comm_id, data in early:
            services.kernels.message_received(kernel_id, comm_id, data)
        if self._has_servers():
            await services.box.tools.preload()

    def _has_servers(self) -> bool:
        return any(path.exists() for path in self._settings.config_paths())


def _import_services() -> type[LocalServices]:
    # Late: this takes longer than starting a kernel, and most cells call no tool.
    from .local_services import LocalServices  # noqa: PLC0415

    return LocalServices
