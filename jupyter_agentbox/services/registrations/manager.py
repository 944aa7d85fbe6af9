"""Registration of a program's or project's MCP servers, as calls with request, decision and record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import JsonObject, Origin, ToolCall
from jupyter_agentbox.core.registration import OWN_SERVER, REGISTER_TOOL
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ServerConfigurationError, UnknownApprovalError
from jupyter_agentbox.services.calls.manager import CallManager, FinishedCall, Notify
from jupyter_agentbox.services.calls.started_calls import StartedCalls

from .tool import RegistrationTool, Registry
from .trust_tool import ReviewableEntries, TrustTool, arguments_of


class RegistrationManager:
    """Requests approval of servers, and adds them.

    Parameters
    ----------
    calls : CallManager
        Asks and records, as for any call. Only a rule that names the tool in full can allow it.
    registry : Registry or None
        Adds the servers; ``None`` if none may be added.
    reviewable : ReviewableEntries or None
        The entries that need trust, of the project or of the user's own files; ``None`` if none do.
    list_tools : callable, optional
        Starts a server by name and lists its tools; required with reviewable entries.
    changing : callable
        Returns a context in which a server is added or trusted.
    """

    def __init__(
        self,
        *,
        calls: CallManager,
        registry: Registry | None,
        reviewable: ReviewableEntries | None = None,
        list_tools: Callable[[str], Awaitable[Sequence[ToolDescription]]] | None = None,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._changing = changing
        self._calls = calls
        self._registry = registry
        self._reviewable = reviewable
        self._list_tools = list_tools
        self._reviews: dict[str, ApprovalRequest] = {}
        self._started = StartedCalls("registration")

    async def register(
        self,
        name: str,
        configuration: JsonObject,
        origin: Origin,
        *,
        on_waiting: Notify,
        on_running: Notify = lambda _request: None,
    ) -> FinishedCall:
        """Add a server if approved. Cancelling the task withdraws the request.

        Parameters
        ----------
        name, configuration
            The server, as in ``mcp.json``.
        origin : Origin
            The kernel that is to use the server, if any.
        on_waiting, on_running : callable
            Called with the request if a person is asked, and when the server starts.

        Raises
        ------
        ServerConfigurationError
            The server cannot be added.
        AgentBoxError
            As for any call.
        """
        if self._registry is None:
            raise ServerConfigurationError(
                "no server can be added: `AgentBoxApp.mcp_config_path`, or `mcp_config_path` of the executor, names the"
                " file of the MCP servers, and only a person adds servers there"
            )
        self._registry.check(name, configuration)
        arguments: JsonObject = {"name": name, "configuration": self._registry.shown(configuration)}
        call = ToolCall(server=OWN_SERVER, tool=REGISTER_TOOL, arguments=arguments, origin=origin)
        tool = RegistrationTool(self._registry, configuration, changing=self._changing)
        return await self._calls.run(call, on_waiting=on_waiting, on_running=on_running, own=tool)

    async def begin(self, name: str, configuration: JsonObject, origin: Origin) -> ApprovalRequest:
        """Request approval and return the request, which records the outcome.

        Raises
        ------
        ServerConfigurationError
            If the server cannot be added; nobody was asked.
        ToolCallRejectedError
            If a rule denies it.
        TooManyRequestsError, StorageError
        """
        return await self._started.begin(partial(self.register, name, configuration, origin))

    async def begin_review(self, name: str, *, askers: tuple[Asker, ...] = ()) -> ApprovalRequest:
        """Request trust in a server, and return the request; once per state of its configuration.

        Raises
        ------
        ServerConfigurationError
            If no file that needs review has an entry of that name.
        ToolCallRejectedError
            If a rule denies it.
        TooManyRequestsError, StorageError
        """
        if self._reviewable is None or self._list_tools is None:
            raise ServerConfigurationError("no servers need trust here")
        server = self._reviewable.find(name)
        asked = self._reviews.get(server.key)
        if asked is not None and asked.id in self._started:
            return asked
        call = ToolCall(
            server=OWN_SERVER, tool=REGISTER_TOOL, arguments=arguments_of(server), origin=Origin(askers=askers)
        )
        tool = TrustTool(self._reviewable, server, self._list_tools, changing=self._changing)
        request = await self._started.begin(partial(self._calls.run, call, own=tool))
        self._reviews = {key: each for key, each in self._reviews.items() if each.id in self._started}
        self._reviews[server.key] = request
        return request

    def distrust(self, name: str) -> None:
        """Withdraw trust in a server.

        Raises
        ------
        UnknownServerError, ServerConfigurationError
        """
        if self._reviewable is None:
            raise ServerConfigurationError("no servers need trust here")
        self._reviewable.distrust(name)

    async def withdraw(self, request_id: str) -> None:
        """Withdraw a registration, or cancel the start of its server.

        Raises
        ------
        UnknownApprovalError
            If no open request has that id.
        """
        if not await self._started.cancel(request_id):
            raise UnknownApprovalError(f"there is no unfinished registration `{request_id}`", request_id=request_id)

    async def aclose(self) -> None:
        """Withdraw all registrations."""
        await self._started.aclose()
