"""One configured MCP server: the task that owns its connection, and the backoff between starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from types import ModuleType
from typing import TYPE_CHECKING, Final

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.text import counted
from jupyter_agentbox.core.tools import LogMessage, ServerState, ServerStatus, ToolDescription, ToolResult
from jupyter_agentbox.exceptions import ServerConfigurationError, SignInRequiredError, ToolServerError

from .configuration import ServerConfiguration, StartableServer, StdioServer, UnusableServer
from .limits import ServerLimits
from .logs import LogRing, Redactor
from .process_slots import ProcessSlots
from .sign_ins import SignInStore
from .trust_keys import trust_key_of

if TYPE_CHECKING:
    from .sessions import Session

_log = logging.getLogger(__name__)

#: A connection that lasted this many seconds was healthy; its end does not delay the next start.
HEALTHY: Final = 30.0
#: Maximum length of an unexpected error's message, in characters.
_LONGEST_ERROR: Final = 4000
#: Maximum delay between two starts, in seconds.
LONGEST_BACKOFF: Final = 60.0


def backoff(failures: int) -> float:
    """Return the delay in seconds after this many consecutive failures: 0 after the first, then 1, 2, 4, … 60."""
    return 0.0 if failures < 2 else min(LONGEST_BACKOFF, 2.0 ** min(failures - 2, 10))


def _state_of(server: UnusableServer) -> ServerState:
    if server.is_disabled:
        return ServerState.STOPPED
    return ServerState.NEEDS_TRUST if server.needs_trust else ServerState.NEEDS_CONFIGURATION


class ManagedServer:
    """A configured server. It starts on first use, and restarts on the next use after its connection ended.

    While a start must wait (`backoff`) a use fails at once and says for how long: a cell that hangs without a word is
    worse than an error that can be tried again. `restart` waits for nothing. No call is ever repeated.

    Parameters
    ----------
    configuration : ServerConfiguration
        The configuration. A changed one needs a new `ManagedServer`.
    limits : ServerLimits
        Resource limits.
    clock : callable
        Monotonic clock, in seconds.
    on_change : callable
        Called when the status changed.
    on_log_message : callable
        Called with the server's log notifications, without the configuration's secrets.
    sign_ins : SignInStore or None
        People's sign-ins; ``None`` if sign-in is not available.
    slots : ProcessSlots, optional
        Limits the number of running programs; unlimited by default.
    hub_service : str
        The address of the Hub service, whose word on who approved a call counts; empty for none.
    is_shared : bool
        Whether several people use it, so that it must be known whose call a question belongs to.
    where_to_look : callable, optional
        Returns a sentence that says where people find more about the server if it fails at its start.

    Attributes
    ----------
    trust_key : str
        Trust key of its command or address.
    used_at : float
        Time of the last use, by the clock.
    """

    def __init__(
        self,
        configuration: ServerConfiguration,
        *,
        limits: ServerLimits,
        clock: Callable[[], float],
        on_change: Callable[[], None],
        on_log_message: Callable[[LogMessage], None] = lambda _: None,
        sign_ins: SignInStore | None = None,
        slots: ProcessSlots | None = None,
        hub_service: str = "",
        is_shared: bool = False,
        where_to_look: Callable[[StartableServer], str] = lambda _: "",
    ) -> None:
        self.configuration = configuration
        self.trust_key = trust_key_of(configuration)
        self._limits = limits
        self._clock = clock
        self._on_change = on_change
        self._on_log_message = on_log_message
        self._sign_ins = sign_ins
        self._slots = slots or ProcessSlots(None)
        self._hub_service = hub_service
        self._is_shared = is_shared
        self._where_to_look = where_to_look
        self.used_at = clock()
        self._is_signed_in = False
        self._refusal: SignInRequiredError | None = None
        self._running = 0
        self._users = 0
        secrets = () if isinstance(configuration, UnusableServer) else configuration.secrets
        self._redact = Redactor(secrets)
        self._log = LogRing(limits.log_lines, self._redact)
        self._state = ServerState.STOPPED
        self._error = ""
        self._protocol_version = ""
        self._known: Mapping[str, ToolDescription] | None = None
        self._calls = 0
        self._last_error = ""
        if isinstance(configuration, UnusableServer):
            self._error = configuration.error
            self._state = _state_of(configuration)
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Session] | None = None
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._is_refreshing = False
        self._is_retired = False
        self._failures = 0
        self._not_before = 0.0

    @property
    def status(self) -> ServerStatus:
        """The server's status."""
        return ServerStatus(
            name=self.configuration.name,
            state=self._state,
            transport=self.configuration.transport,
            error=self._error,
            protocol_version=self._protocol_version,
            tool_count=None if self._known is None else len(self._known),
            log=self._log.lines(),
            calls=self._calls,
            last_error=self._last_error,
            is_signed_in=self._is_signed_in,
            is_of_project=self.configuration.is_of_project,
            is_trusted=not isinstance(self.configuration, UnusableServer) and self.configuration.is_trusted,
            sign_in_url="" if self._refusal is None else self._refusal.url,
            trust_key=self.trust_key,
        )

    @property
    def known_tools(self) -> Mapping[str, ToolDescription] | None:
        """Its tools by wire name, as last listed; ``None`` if not listed yet."""
        return self._known

    @property
    def is_active(self) -> bool:
        """Whether it is running, starting or stopping."""
        return self._task is not None

    @property
    def is_idle(self) -> bool:
        """Whether it is running and unused."""
        return self._state is ServerState.RUNNING and not self._users

    async def stop_if_idle(self, seconds: float) -> None:
        """Stop a program that was unused for this many seconds; its next use restarts it."""
        if isinstance(self.configuration, StdioServer) and self.is_idle and self.used_at <= self._clock() - seconds:
            _log.info("MCP server %s was not used for %g s and is stopped", self.configuration.name, seconds)
            await self.stop()

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """Mark the server as used within the context, so that it is not stopped as idle."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self.used_at = self._clock()

    async def tools(self) -> Mapping[str, ToolDescription]:
        """Return its tools by wire name, starting it if necessary.

        Raises
        ------
        ServerConfigurationError, ToolServerError
        """
        with self._use():
            session = await self._session()
            tools = await session.tools()
        self._known = tools
        return tools

    async def call_tool(self, call: ToolCall, listener: CallListener | None) -> ToolResult:
        """Run a call, starting the server if necessary.

        Raises
        ------
        ServerConfigurationError, UnknownToolError, ToolServerError, ToolCallInterruptedError
        """
        with self._use():
            return await self._call_used(call, listener)

    async def _call_used(self, call: ToolCall, listener: CallListener | None) -> ToolResult:
        session = await self._session()
        self._calls += 1
        self._running += 1
        try:
            return await self._call(session, call, listener)
        except SignInRequiredError as error:
            self._refuse(error)
            raise
        except ToolServerError as error:
            self._last_error = self._redact(str(error))
            raise
        finally:
            self._running -= 1
            if self._is_refused:
                self._wake.set()  # concurrent calls may still succeed; the next use looks for a new sign-in

    async def _call(self, session: Session, call: ToolCall, listener: CallListener | None) -> ToolResult:
        timeout = None if isinstance(self.configuration, UnusableServer) else self.configuration.timeout
        seconds = timeout or self._limits.call_timeout
        try:
            result = await session.call_tool(call, seconds=seconds, listener=listener)
        except ToolServerError as error:
            # a restarted server: it did nothing, so the approved call need not fail
            if not session.is_lost_with(error):
                raise
            renewed = await self._session()
            if not await renewed.has_same(session, call.tool):
                raise ToolServerError(
                    f"{error}, and its description of `{call.tool}` has changed: call it again"
                ) from None
            result = await renewed.call_tool(call, seconds=seconds, listener=listener)
        self._failures = 0
        return result

    async def restart(self) -> None:
        """Stop and start the server now, regardless of earlier failures. See `status` for the result."""
        await self.stop()
        await self.start()

    async def start(self) -> None:
        """Start the server now, unless it is running, regardless of earlier failures. See `status` for the result."""
        self._failures = 0
        self._not_before = 0.0
        with contextlib.suppress(ToolServerError):
            await self._session()

    def signed_out(self) -> None:
        """Record that its sign-in was forgotten; the connection has already ended."""
        self._is_signed_in = False
        self._on_change()

    async def stop(self, *, for_good: bool = False) -> None:
        """Close the connection and stop the process. Running calls are interrupted.

        Parameters
        ----------
        for_good : bool
            Whether to prevent any further start.
        """
        self._is_retired = self._is_retired or for_good
        task = self._task
        if task is None:
            return
        self._is_stopping = True
        if self._state is ServerState.STARTING or self._is_refreshing:
            task.cancel()
        self._wake.set()
        await asyncio.wait([task])

    async def _session(self) -> Session:
        while True:
            if self._task is not None and (self._is_refused or self._is_stopping):
                await asyncio.wait([self._task])
            if self._task is None or self._ready is None:
                self._task, self._ready = self._begin()
            task, ready = self._task, self._ready
            # shielded: this waiter may be cancelled while others still need the server
            session = await asyncio.shield(ready)
            if not session.closed.is_set():
                return session
            await asyncio.wait([task])  # its owner is about to notice, too

    def _begin(self) -> tuple[asyncio.Task[None], asyncio.Future[Session]]:
        name = self.configuration.name
        if isinstance(self.configuration, UnusableServer):
            raise ServerConfigurationError(f"the server `{name}` cannot be started: {self._error}")
        if self._is_retired:
            raise ToolServerError(
                f"the server `{name}` was stopped: its configuration changed, or Jupyter is shutting down"
            )
        wait = self._not_before - self._clock()
        if wait > 0:
            times = counted(self._failures, "time")
            raise ToolServerError(
                f"the server `{name}` failed {times} in a row and is not started again for {wait:.0f} s;"
                f" restart it in the side panel to try now. The last error: {self._error}"
            )
        self._is_stopping = False
        self._refusal = None
        self._wake.clear()
        ready: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        ready.add_done_callback(_look_at_exception)
        self._set_state(ServerState.STARTING)
        task = asyncio.create_task(self._own(ready), name=f"MCP server {name}")
        task.add_done_callback(lambda ended: self._ended(ended, ready))
        return task, ready

    def _ended(self, task: asyncio.Task[None], ready: asyncio.Future[Session]) -> None:
        """Fail the waiters for a task that was cancelled before its first step."""
        if self._task is task:
            self._end(ServerState.STOPPED, "")
        _reject(ready, ToolServerError(f"the server `{self.configuration.name}` was stopped"))

    async def _own(self, ready: asyncio.Future[Session]) -> None:
        """Open the connection, keep it, close it: all in this one task."""
        try:
            await self._run(ready)
            self._end(ServerState.STOPPED, "")
        except asyncio.CancelledError:
            self._end(ServerState.STOPPED, "")  # only `stop` cancels this task
        except ServerConfigurationError as error:
            self._end(ServerState.NEEDS_CONFIGURATION, str(error))
            _reject(ready, error)
        except SignInRequiredError as error:
            self._want_sign_in(error)
            _reject(ready, error)
        except ToolServerError as error:
            self._fail(error)
            _reject(ready, error)
        except Exception as error:  # noqa: BLE001
            # boundary: the root of a task; whatever the SDK raises must become this server's status
            failure = self._failure(error)
            if isinstance(failure, SignInRequiredError):
                self._want_sign_in(failure)
            else:
                self._fail(failure)
            _reject(ready, failure)
        finally:
            _reject(ready, ToolServerError(f"the server `{self.configuration.name}` was stopped"))

    def _failure(self, error: Exception) -> ToolServerError:
        """Return the error; the SDK's task groups raise a group even for a single one of ours."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ToolServerError):
            return error
        _log.error("MCP server %s failed", self.configuration.name, exc_info=error)
        text = self._redact.head(f"{type(error).__name__}: {error}", _LONGEST_ERROR)
        return ToolServerError(f"`{self.configuration.name}` failed: {text}")

    async def _run(self, ready: asyncio.Future[Session]) -> None:
        connections = await asyncio.to_thread(import_connections)
        async with AsyncExitStack() as stack:
            if isinstance(self.configuration, StdioServer):
                await stack.enter_async_context(self._slots.hold(self))
            session = await self._open(stack, connections)
            started = self._clock()
            self._protocol_version = session.protocol_version
            self._error = ""
            self._is_signed_in = session.is_signed_in
            ready.set_result(session)
            self._set_state(ServerState.RUNNING)
            await self._keep(session)
            await session.let_go()
        if self._refusal is not None and not self._is_stopping:
            raise self._refusal
        if not self._is_stopping:
            if self._clock() - started >= HEALTHY:
                self._failures = 0
            # after closing the connection, when the process's last output and exit status are known
            last_words = "" if self._is_shared else self._log.tail()  # of a shared one, it may be about others' calls
            raise ToolServerError(f"`{self.configuration.name}`: {session.describe_end()}{last_words}")

    async def _open(self, stack: AsyncExitStack, connections: ModuleType) -> Session:
        name, seconds = self.configuration.name, self._limits.start_timeout
        self._log.begin()
        try:
            async with asyncio.timeout(seconds):
                session: Session = await stack.enter_async_context(
                    connections.open_session(
                        self.configuration,
                        limits=self._limits,
                        log=self._log,
                        redact=self._redact,
                        on_tools_changed=self._tools_changed,
                        on_log_message=self._on_log_message,
                        sign_ins=self._sign_ins,
                        hub_service=self._hub_service,
                        is_shared=self._is_shared,
                    )
                )
                self._known = await session.tools()
                return session
        except TimeoutError:
            raise self._start_error(f"`{name}` did not start within {seconds:g} s") from None
        except (ServerConfigurationError, SignInRequiredError):
            raise
        except ToolServerError as error:
            raise self._start_error(str(error)) from None

    def _start_error(self, message: str) -> ToolServerError:
        """Return an error with the server's last words and where to look."""
        known = self.configuration
        where = "" if isinstance(known, UnusableServer) else self._where_to_look(known)
        return ToolServerError(f"{message}{self._log.tail()}" + (f"\n{where}" if where else ""))

    async def _keep(self, session: Session) -> None:
        """Wait until the connection ends or must be closed; meanwhile update the list of tools."""
        closed = asyncio.create_task(session.closed.wait())
        try:
            while True:
                woken = asyncio.create_task(self._wake.wait())
                try:
                    await asyncio.wait([closed, woken], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    woken.cancel()
                self._wake.clear()
                if self._is_stopping or closed.done() or self._is_refused:
                    return
                await self._refresh(session)
        finally:
            closed.cancel()

    async def _refresh(self, session: Session) -> None:
        self._is_refreshing = True
        try:
            async with asyncio.timeout(self._limits.start_timeout):
                self._known = await session.tools()
        except (ToolServerError, TimeoutError) as error:
            self._log.add(f"the changed list of tools could not be read: {error}")
        finally:
            self._is_refreshing = False
        self._on_change()

    def _tools_changed(self) -> None:
        self._wake.set()

    def _fail(self, error: ToolServerError) -> None:
        self._failures += 1
        self._not_before = self._clock() + backoff(self._failures)
        self._last_error = self._redact(str(error))
        self._end(ServerState.FAILED, str(error))

    @property
    def _is_refused(self) -> bool:
        """Whether the connection is useless: the client is refused, and no call is running."""
        return self._refusal is not None and not self._running

    def _refuse(self, error: SignInRequiredError) -> None:
        """Wait for a person without blocking callers: each use retries, and fails at once.

        This is a state of the server, not an error: it leaves no trace once somebody has signed in.
        """
        self._refusal = error
        self._is_signed_in = error.lacks_rights
        self._error = self._redact(str(error))
        self._set_state(ServerState.NEEDS_SIGN_IN)

    def _want_sign_in(self, error: SignInRequiredError) -> None:
        self._task = None
        self._refuse(error)

    def _end(self, state: ServerState, text: str) -> None:
        self._task = None
        self._error = self._redact(text)
        self._set_state(state)

    def _set_state(self, state: ServerState) -> None:
        self._state = state
        self._on_change()


def _reject(ready: asyncio.Future[Session], error: ToolServerError) -> None:
    if not ready.done():
        ready.set_exception(error)


def _look_at_exception(ready: asyncio.Future[Session]) -> None:
    # nobody may be waiting; asyncio would then report an unretrieved exception
    if not ready.cancelled():
        ready.exception()


def import_connections() -> ModuleType:
    """Import the module that uses the SDK."""
    # The late import: the SDK takes a second, and a Jupyter server that calls no tool should not pay for it. It runs in
    # a thread, so that the pages of a running Jupyter do not stall meanwhile.
    from . import connections  # noqa: PLC0415

    return connections
