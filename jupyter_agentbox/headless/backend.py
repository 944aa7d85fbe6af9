"""Where an executor's calls are decided and run, by services that are loaded when something needs them."""

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
        Policy, timeouts and paths of the backend.
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
        #: The turn of an agent that works in the kernel, for the record.
        self.turn: TurnRef | None = None
        self._services: LocalServices | None = None
        #: How far each running call said last that it is.
        self._reported: dict[str, Progress] = {}
        self.requests = RequestQueue(self.decide)

    @property
    def asker(self) -> Asker:
        """Who runs the code."""
        return Asker.of(self._settings.reviewer)

    def attach(self, kernel: CommKernel) -> None:
        """Take a kernel that started."""
        self._kernel = kernel
        if self._services is not None:
            self._services.kernels.kernel_started(kernel.id, _Channel(kernel))

    async def detach(self) -> None:
        """Let go of the kernel; what it asked for is orphaned, what it runs is cancelled."""
        kernel, self._kernel = self._kernel, None
        self._early.clear()
        if self._services is not None and kernel is not None:
            await self._services.kernels.kernel_lost(kernel.id)

    def receive(self, content: Mapping[str, Any]) -> None:
        """Take a comm message of the kernel."""
        comm_id, data = str(content.get("comm_id")), content.get("data")
        if self._kernel is None or not comm_id.startswith(COMM_PREFIX):
            return
        if self._services is not None:
            self._services.kernels.message_received(self._kernel.id, comm_id, data)
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
        self,
        stored: StoredRequest,
        answer: Answer,
        reason: str,
        arguments: Mapping[str, Any] | None,
        *,
        is_anybody_there: bool = True,
    ) -> None:
        """Answer a request; when this returns, the answer is on disk."""
        if self._services is None:
            raise StorageError("the executor was stopped")
        reviewer = self._settings.reviewer
        by = reviewer if is_anybody_there else replace(reviewer, via=Via.NOBODY)
        await self._services.decide(stored, answer, reason, arguments, by=by)

    async def register(
        self, name: str, configuration: JsonObject, decide: Callable[[ApprovalRequest], Awaitable[None]]
    ) -> list[str]:
        """Add an MCP server, if a rule allows it or `decide` accepts the request; return the names of its tools."""
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
        if self._services is None:
            raise AgentBoxError("tool calls can be neither decided nor run; see the log")
        return self._services.box

    async def withdrawn(self) -> None:
        """Wait until what the kernel has withdrawn so far can be decided no more."""
        if self._services is not None and self._kernel is not None:
            await self._services.kernels.withdrawn(self._kernel.id)

    async def stop_servers(self) -> None:
        """Stop the MCP servers; each starts anew on its next use."""
        if self._services is not None:
            await self._services.box.tools.stop_all()

    async def aclose(self) -> None:
        """Let go of everything."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        await self.detach()
        services, self._services = self._services, None
        if services is not None:
            await services.box.aclose()

    # -- the announcer of the services

    def approval_changed(self, request: StoredRequest) -> None:
        """Pass a new or changed request of a kernel on, or how far a running one is."""
        if request.call.origin.kernel_id is None:
            return  # a registration: whoever began it knows
        self._on_change(request)
        is_running = request.outcome is not None and request.outcome.state is OutcomeState.RUNNING
        if not is_running:
            self._reported.pop(request.id, None)
        elif self._services is not None:
            activity = self._services.box.running_calls.activity_of(request.id)
            progress = activity.progress if activity is not None else None
            # It is the same after a log message, which is reported by the server.
            if progress is not None and progress is not self._reported.get(request.id):
                self._reported[request.id] = progress
                self._on_report(progress_of(request, progress))

    def servers_changed(self) -> None:
        """Do nothing: no one looks at the servers' states."""

    def questions_changed(self) -> None:
        """Do nothing: the program is asked itself."""

    def grants_changed(self) -> None:
        """Do nothing: no one lists grants."""

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
    # The only late import: it takes longer than starting a kernel, and most cells call no tool.
    from .local_services import LocalServices  # noqa: PLC0415

    return LocalServices
