"""Asks the Hub service for the approval of calls of this user's own tools, over MCP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.local_calls import APPROVE_TOOL, LOCAL_CALLS, at_hub, question_about
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.site_policy import HubPolicySource
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import ToolServerError

from .configuration import Configuration, HttpServer
from .limits import ServerLimits
from .servers import McpServers

#: Timeout of a question, in seconds. The service ends it much earlier, when the request expires.
_PATIENCE: Final = 30 * 86_400.0


class HubApprovals:
    """Asks the service that signed the policy, with the token that the Hub gave this server.

    The service decides whom to ask. Its answer counts only if it says that the call was approved.

    Parameters
    ----------
    source : callable
        Returns where the policy comes from; ``None`` if no file of the site names a Hub service.
    token : callable
        Returns the server's token; empty if it belongs to no Hub.
    limits : ServerLimits
        Limits of the connection.
    command_or_address_of : callable
        Returns the command or address of a server of the user, without secrets.
    """

    def __init__(
        self,
        *,
        source: Callable[[], HubPolicySource | None],
        token: Callable[[], str],
        limits: ServerLimits,
        command_or_address_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._source = source
        self._command_or_address_of = command_or_address_of
        self._token = token
        self._limits = limits
        self._entry: HttpServer | None = None
        self._servers: McpServers | None = None

    async def ask(self, call: ToolCall, tool: ToolDescription, *, listener: CallListener) -> ToolResult:
        """Ask for a call's approval, and wait for the decision.

        Parameters
        ----------
        call : ToolCall
            The call, exactly as it would run.
        tool : ToolDescription
            Its tool.
        listener : CallListener
            Receives whom the service asks, as the review of progress.

        Returns
        -------
        ToolResult
            With the `review` at the service. If the call was not approved, it is an error that says why.

        Raises
        ------
        ToolServerError
            The service could not be asked, or did not say that the call was approved. The call did not run.
        """
        name = call.qualified_name
        servers = await self._connected(name)
        arguments = question_about(call, tool, runs=self._command_or_address_of(call.server))
        question = replace(call, server=LOCAL_CALLS, tool=APPROVE_TOOL, arguments=arguments)
        try:
            answer = await servers.call_tool(question, listener=listener)
        except ToolServerError as error:
            raise ToolServerError(f"`{name}` did not run: the Hub service could not be asked: {error}") from error
        if answer.review is not None and answer.review.is_refusal:
            return _as_here(answer, call)
        if answer.is_error or answer.review is None or answer.review.status != Status.APPROVED.value:
            why = _as_here(answer, call).text if answer.is_error else "its answer is not an approval"
            raise ToolServerError(f"`{name}` did not run: the Hub service was asked: {why}")
        return answer

    async def aclose(self) -> None:
        """Close the connection."""
        if self._servers is not None:
            await self._servers.aclose()

    async def _connected(self, name: str) -> McpServers:
        source, token = self._source(), self._token()
        if source is None or not token:
            missing = "this server belongs to no JupyterHub" if not token else "no file of the site names a Hub service"
            raise ToolServerError(f"`{name}` did not run: its approvers are asked by the Hub service, but {missing}")
        service = source.url.removesuffix("api/policy")
        entry = HttpServer(
            name=LOCAL_CALLS,
            url=f"{service}mcp/{LOCAL_CALLS}",
            headers={"Authorization": f"Bearer {token}"},
            secrets=(token,),
            timeout=_PATIENCE,
        )
        if self._servers is None or entry != self._entry:
            before, self._entry = self._servers, entry
            self._servers = McpServers(source=_OneServer(entry), limits=self._limits, hub_service=service)
            if before is not None:
                await before.aclose()
        return self._servers


class _OneServer:
    """A `ConfigurationSource` with one entry."""

    def __init__(self, entry: HttpServer) -> None:
        self._configuration = Configuration(servers={entry.name: entry})

    def load(self) -> Configuration:
        return self._configuration


def _as_here(answer: ToolResult, call: ToolCall) -> ToolResult:
    """Return an answer in which the server has the name by which this server knows it."""
    blocks = (
        {**block, "text": str(block["text"]).replace(f"`{at_hub(call.server)}.", f"`{call.server}.")}
        if "text" in block
        else block
        for block in answer.content
    )
    return replace(answer, content=tuple(blocks))
