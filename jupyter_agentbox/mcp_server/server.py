"""The MCP server: receives the clients' requests, chooses where code runs and who is asked, and answers.

It supports the versions of MCP that begin with a handshake, as every client does. In version 2026-07-28 a server cannot
ask anything while a call runs: each question would end the call, which the client would send again with the answer, and
common clients do that at most ten times. A cell may ask any number of times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    ListToolsResult,
    PaginatedRequestParams,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from jupyter_agentbox import __version__
from jupyter_agentbox.background import in_background
from jupyter_agentbox.headless.server_api import ServerAddress
from jupyter_agentbox.processes.directories import PrivateDirectory

from . import results, tools
from .consent import FORM, Consent, ConsentSource, Question, Refuser, read_consent
from .jupyter import JupyterSession, find_jupyterlab, server_address
from .listing import list_tools
from .local import open_local_session
from .progress_reporter import ProgressReporter
from .sessions import CellRequest, CodeSession, SessionError
from .settings import Approver, CodeServerSettings

log = logging.getLogger(__name__)

_ENDING: Final = "jupyter agentbox mcp is shutting down and runs nothing more"
_INTERRUPTED: Final = "the request was interrupted: jupyter agentbox mcp got SIGINT (Ctrl-C)"
_MODERN: Final = "io.modelcontextprotocol/protocolVersion"

_NO_ELICITATION: Final = "this MCP client cannot ask its user (it did not declare form elicitation)"
_WHAT_TO_DO: Final = "start JupyterLab with agentbox, name one with --server, or allow the call in a file of --rules"


class CodeServer:
    """Serves one client.

    Parameters
    ----------
    settings : CodeServerSettings
        How code runs, and who is asked.
    open_local : callable
        Creates the session in which code runs here, from the settings and the directory for images.
    """

    def __init__(
        self,
        settings: CodeServerSettings,
        *,
        open_local: Callable[[CodeServerSettings, Path], CodeSession] = open_local_session,
    ) -> None:
        self._settings = settings
        self._open_local = open_local
        self._session: CodeSession | None = None
        self._refusal: str | None = None
        self._opening = asyncio.Lock()
        self._asking = asyncio.Lock()
        # The requests that have no answer yet, in the order in which they came.
        self._tasks: dict[asyncio.Task[CallToolResult], None] = {}
        self._closing: asyncio.Future[None] | None = None
        self._images: PrivateDirectory | None = None

    @property
    def _is_ending(self) -> bool:
        return self._closing is not None

    def _cancelled(self) -> CallToolResult:
        return results.failed(_ENDING if self._is_ending else _INTERRUPTED)

    def build(self) -> Server[Any]:
        """Return the server as an object of the SDK."""
        server: Server[Any] = Server(
            "jupyter-agentbox",
            version=__version__,
            title="Python with approvals",
            instructions="Runs Python code. Calls to MCP tools in the code wait for a person's decision.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        server.middleware.append(_refuse_modern)
        return server

    async def aclose(self) -> None:
        """Interrupt what runs, and end the kernel and the MCP servers. Later requests are refused."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        # What ends our caller, a client that breaks off, does not end this.
        await asyncio.shield(self._closing)

    def interrupt(self) -> bool:
        """Cancel the running request, the first one without an answer; return whether there is one.

        One that is being cancelled counts: where Ctrl-C also reaches the client, its cancellation may arrive first.
        """
        first = next((task for task in self._tasks if not task.cancelling()), None)
        if first is not None:
            first.cancel()
        return bool(self._tasks)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.aclose()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._images is not None:
            self._images.remove()

    async def _list_tools(
        self, _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=tools.offered())

    async def _call_tool(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        try:
            arguments = tools.read_arguments(params.name, dict(params.arguments or {}))
        except SessionError as error:
            return results.failed(str(error))
        if arguments is None:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no tool `{params.name}`")
        if self._is_ending:
            return results.failed(_ENDING)
        # In a task of its own: the SDK cancels a handler over and over, and a cell is interrupted with care.
        reporter = ProgressReporter(context.session)
        task = asyncio.create_task(self._answer(arguments, context, reporter))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        beating = in_background(reporter.run(), what="reporting progress to the MCP client")
        try:
            await asyncio.wait([task])
            reporter.finish()
            await asyncio.wait([beating])  # what a tool said comes before its answer
            if task.cancelled():  # not by the client, which would not be answered
                return self._cancelled()
            return task.result()
        finally:
            beating.cancel()
            if not task.done():  # the client cancelled, or left
                task.cancel()

    async def _answer(
        self, arguments: tools.Arguments, context: ServerRequestContext[Any], reporter: ProgressReporter
    ) -> CallToolResult:
        can_elicit = _can_elicit(context.session.client_capabilities)
        try:
            if isinstance(arguments, tools.Reset):
                await self._reset(can_elicit)
                return results.told("The kernel is fresh.")
            session = await self._opened(can_elicit)
            consents = self._consent_source(context)
            match arguments:
                case tools.ExecuteCode(code=code, timeout=timeout):
                    seconds = timeout if timeout is not None else self._settings.timeout
                    cell = CellRequest(
                        code=code,
                        timeout=seconds,
                        consents=consents,
                        activity=reporter.activity,
                        report=reporter.report,
                    )
                    return results.executed(await session.execute(cell))
                case tools.RegisterMcpServer(name=name, configuration=configuration):
                    reporter.activity.wait_for_decision(name, "the new server")
                    names = await session.register(name, configuration, consents)
                    return results.told(f"`{name}` was registered. Its tools: {', '.join(names) or 'none'}")
                case tools.ListTools(server=server):
                    return results.structured(await list_tools(session, server))
        except SessionError as error:
            return results.failed(str(error))
        except Exception:
            # A boundary: the client gets an answer, whatever is wrong here.
            log.exception("a request failed")
            return results.failed("jupyter agentbox mcp failed; see its log on standard error")

    async def _opened(self, can_elicit: bool) -> CodeSession:
        async with self._opening:
            self._check_not_ending()
            if self._session is None:
                self._session = await self._open(can_elicit)
            return self._session

    async def _reset(self, can_elicit: bool) -> None:
        # What comes after this request waits until there is a fresh kernel.
        async with self._opening:
            session = self._session
            if session is not None and not isinstance(session, JupyterSession) and not await self._can_move():
                await session.reset()
                return
            # Another Jupyter server may run by now, or the same one at another address.
            self._session = None
            if session is not None:
                await session.aclose()
            self._check_not_ending()
            self._session = await self._open(can_elicit)

    def _check_not_ending(self) -> None:
        if self._is_ending:
            raise SessionError(_ENDING)

    async def _can_move(self) -> bool:
        """Whether there was nobody to ask so far, and there is a JupyterLab now."""
        if self._refusal is None or self._settings.approver is not Approver.AUTO or self._settings.only_local():
            return False
        return await find_jupyterlab() is not None

    async def _open(self, can_elicit: bool) -> CodeSession:
        settings = self._settings
        self._refusal = None
        match settings.approver:
            case Approver.JUPYTERLAB:
                return await self._open_jupyterlab()
            case Approver.CLIENT:
                self._refusal = None if can_elicit else f"{_NO_ELICITATION}; {_WHAT_TO_DO}"
            case Approver.NOBODY:
                self._refusal = "nobody is asked (`--ask nobody`), and no rule allows the call: see --rules"
            case Approver.AUTO if settings.server_url is not None:
                return await self._open_jupyterlab()
            case Approver.AUTO if not can_elicit:
                return await self._open_found()
        return self._open_here()

    async def _open_found(self) -> CodeSession:
        """Return a session in a running JupyterLab; if none runs, one here with nobody to ask."""
        if given := self._settings.only_local():
            why = f"JupyterLab is not asked, because of {', '.join(given)}"
        elif (address := await find_jupyterlab()) is not None:
            log.warning("code runs, and its calls are decided, in the JupyterLab at %s", address.url)
            return self._session_at(address)
        else:
            why = "no JupyterLab with agentbox runs on this machine"
        self._refusal = f"nobody could be asked: {_NO_ELICITATION}, and {why}; {_WHAT_TO_DO}"
        return self._open_here()

    async def _open_jupyterlab(self) -> CodeSession:
        settings = self._settings
        if given := settings.only_local():
            raise SessionError(
                f"{', '.join(given)} cannot be combined with JupyterLab, which has its own rules and "
                "servers: leave it out, or use `--ask client` or `--ask nobody`"
            )
        if settings.server_url is not None:
            address = server_address(settings.server_url, settings.token)
        elif (found := await find_jupyterlab()) is not None:
            address = found
        else:
            raise SessionError("no JupyterLab with agentbox runs on this machine: start one, or name it with --server")
        session = self._session_at(address)
        await session.check()
        return session

    def _session_at(self, address: ServerAddress) -> JupyterSession:
        return JupyterSession(
            address,
            working_dir=self._working_dir(),
            images_dir=self._images_dir(),
            busy_timeout=self._settings.busy_timeout,
        )

    def _open_here(self) -> CodeSession:
        return self._open_local(self._settings, self._images_dir())

    def _consent_source(self, context: ServerRequestContext[Any]) -> ConsentSource:
        if self._refusal is not None:
            return Refuser(self._refusal)
        return _Elicitor(context.session, context.request_id, self._asking)

    def _working_dir(self) -> Path | None:
        return self._settings.working_dir.resolve() if self._settings.working_dir is not None else None

    def _images_dir(self) -> Path:
        """Return the directory for images; without the option, one that is removed with this server."""
        if self._settings.images_dir is not None:
            return self._settings.images_dir
        if self._images is None:
            self._images = PrivateDirectory("images-")
        return self._images.path


class _Elicitor:
    """A `ConsentSource` that asks the client's user.

    Parameters
    ----------
    session : ServerSession
        Sends the question.
    request_id : str, int or None
        The request to which it belongs.
    one : asyncio.Lock
        Held while a question is open: a person answers one at a time.
    """

    def __init__(self, session: ServerSession, request_id: RequestId | None, one: asyncio.Lock) -> None:
        self._session = session
        self._request_id = request_id
        self._one = one

    async def ask(self, question: Question) -> Consent:
        """Ask the question."""
        async with self._one:
            try:
                result = await self._session.elicit_form(question.text, dict(FORM), self._request_id)
            except (MCPError, ValidationError) as error:
                log.warning("the MCP client could not ask: %s", type(error).__name__)
                what = error.error.message if isinstance(error, MCPError) else "its answer is not valid MCP"
                return Consent(allowed=False, reason=f"the MCP client could not ask its user: {what}"[:1000])
        return read_consent(result.action, result.content)


def _can_elicit(capabilities: ClientCapabilities | None) -> bool:
    elicitation = capabilities.elicitation if capabilities is not None else None
    # Before there were modes, an empty object meant forms.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def _refuse_modern(ctx: ServerRequestContext[Any], call_next: CallNext) -> Any:
    """Tell a client of version 2026-07-28 the supported versions; it chooses one, or says why it cannot."""
    meta = (ctx.params or {}).get("_meta")
    if isinstance(meta, Mapping) and _MODERN in meta and ctx.method != "initialize":
        supported = list(HANDSHAKE_PROTOCOL_VERSIONS)
        raise MCPError(
            code=UNSUPPORTED_PROTOCOL_VERSION,
            message=f"this server supports MCP {supported[-1]} and older versions, which begin with `initialize`",
            data={"supported": supported, "requested": str(meta[_MODERN])},
        )
    return await call_next(ctx)
