"""The kernel's end of the link: sends requests, waits for answers, and detects that nobody answers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from typing import Any, Final
from uuid import uuid4

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.exceptions import AgentBoxError, ToolArgumentsError, ToolCallRejectedError, ToolError
from jupyter_agentbox.protocol.messages import (
    MAX_MESSAGE,
    Asked,
    Call,
    Cancel,
    CodeRan,
    Failure,
    FromKernel,
    GetModule,
    Hello,
    ListPending,
    ListServers,
    MessageError,
    Ping,
    Pong,
    Question,
    Reply,
    StartTurn,
    ToolsChanged,
    TurnNews,
    Unfinished,
    Waiting,
    Welcome,
    from_server,
    to_json,
)

from .arguments import plain_arguments
from .call_outputs import CallOutputs
from .cells import Cell, Cells
from .decision_lines import comment_line, decision_line
from .display import Card, attempt, say
from .failures import (
    error_of,
    explain_interrupt,
    no_answer,
    no_server,
    not_in_kernel,
    not_taken,
    server_lost,
    server_restarted,
    turn_cut_off,
    turn_lost,
)
from .pending_requests import Patience, PendingRequest, PendingRequests, ServerAnswer
from .results import CallResult, result_of
from .transport import Transport
from .withdrawals import Withdrawals

log = logging.getLogger(__name__)

#: Failure code -> a card's final line; an approved call that failed has none.
_ENDINGS: Final = {
    "rejected": "did not run",
    "expired": "expired: nobody decided in time, did not run",
    "cancelled": "cancelled",
    "interrupted": "cut off; it may have had an effect",
}


#: Maximum size of arguments in bytes; the rest of a message is names and ids.
_MOST_BYTES: Final = MAX_MESSAGE - 100_000
#: How often the server must report a message as unknown: a single report may have crossed with the message.
_UNKNOWN_TWICE: Final = 2

#: Carries out the server's requests for a turn.
Act = Callable[[TurnNews], Awaitable[None]]


class Link:
    """Calls tools, from any thread and any event loop.

    Parameters
    ----------
    transport : Transport
        The transport of messages.
    cells : Cells
        Tracks the cell of the calling code.
    patience : Patience
        Timeouts.
    alone : str
        Why there is known to be no server; this holds until a server answers.
    wake : callable
        Wakes the kernel's event loop, from any thread. ipykernel handles an interrupt of an async cell in the loop,
        which a signal alone does not wake.
    clock : callable
        Monotonic clock, in seconds.
    """

    def __init__(
        self,
        transport: Transport,
        cells: Cells,
        *,
        patience: Patience | None = None,
        alone: str = "",
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.patience = patience or Patience()
        self.welcome: Welcome | None = None
        #: Problems in the MCP servers' configuration, as last listed.
        self.problems: list[str] = []
        #: The path of the file that lists the MCP servers, as the server last told it; empty if it did not.
        self.servers_file = ""
        self.transport = transport
        self.cells = cells
        self._clock = clock
        self._wake = wake
        self._outputs = CallOutputs(transport)
        self._pending = PendingRequests()
        self._withdrawals = Withdrawals(self._send)
        self._heard_at = self._pinged_at = clock()
        self._unanswered_ping: float | None = None
        self._process = os.getpid()
        self._problem = ""
        self._tools_listeners: dict[str, Callable[[], None]] = {}
        self._alone = alone
        transport.listen(self.receive)

    def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool and wait, in the calling thread.

        Parameters
        ----------
        server, tool : str
            Wire names.
        arguments : mapping
            By wire name; exactly these are sent.

        Raises
        ------
        AgentBoxError
            Any error in `jupyter_agentbox.exceptions`.
        """
        __tracebackhide__ = True  # tracebacks end at the cell
        cell = self.cells.current()
        return _outcome(f"{server}.{tool}", self.ask(_call(server, tool, arguments, cell), cell=cell))

    async def call_async(self, server: str, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool without blocking the event loop. Cancelling the task withdraws the call."""
        __tracebackhide__ = True
        cell = self.cells.current()
        return _outcome(f"{server}.{tool}", await self._ask_async(_call(server, tool, arguments, cell), cell))

    async def run_turn(self, question: StartTurn, act: Act) -> Reply:
        """Start an agent's turn, and carry out its requests until it ends. Cancelling the task interrupts it.

        Parameters
        ----------
        question : StartTurn
            The question to the agent.
        act : callable
            Shows events and runs code; awaited before the turn's next message is handled.

        Raises
        ------
        AgentBoxError
            The turn did not start, or is no longer known to the server.
        """
        __tracebackhide__ = True
        return await self._ask_async(question, self.cells.current(), act)

    def tell(self, message: CodeRan) -> None:
        """Send a report on code."""
        self._send(message)

    async def _ask_async(self, question: Question, cell: Cell, act: Act | None = None) -> Reply:
        __tracebackhide__ = True
        inbox: asyncio.Queue[ServerAnswer | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def deliver(answer: ServerAnswer | None) -> None:
            with suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(inbox.put_nowait, answer)

        pending = PendingRequest(question=question, deliver=deliver, cell=cell)
        with closing(self._exchange(pending)) as steps:
            try:
                seconds = next(steps)
                while True:
                    answer: ServerAnswer | None = None
                    with suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            answer = await inbox.get()
                    if act is not None and isinstance(answer, TurnNews):
                        await act(answer)
                    seconds = steps.send(answer)
            except StopIteration as end:
                reply: Reply = end.value
                return reply
            except asyncio.CancelledError as interrupt:
                explain_interrupt(interrupt, pending.what, has_begun=pending.has_begun)
                raise

    def list_servers(self, *, within: float | None = None) -> list[Any]:
        """Return the configured MCP servers as JSON; give up after `within` seconds."""
        reply = self.ask(ListServers(id=uuid4().hex), within=within)
        self.problems = [_problem(found) for found in _list(reply, "problems") if isinstance(found, dict)]
        file = reply.content.get("file")  # not sent by older servers
        self.servers_file = file if isinstance(file, str) else ""
        return _list(reply, "servers")

    def list_pending(self, *, within: float | None = None) -> list[Any]:
        """Return this kernel's pending requests as JSON; give up after `within` seconds."""
        return _list(self.ask(ListPending(id=uuid4().hex), within=within), "approvals")

    def get_module(self, server: str, *, within: float | None = None) -> JsonObject:
        """Return the source of a server's module, and its tools, starting the server if necessary."""
        return self.ask(GetModule(id=uuid4().hex, server=server), within=within).content

    def set_tools_listener(self, server: str, on_change: Callable[[], None]) -> None:
        """Call a function, in any thread, when a server's tools have changed; it replaces the server's former one."""
        self._tools_listeners[server] = on_change

    def ask(self, question: Question, *, cell: Cell | None = None, within: float | None = None) -> Reply:
        """Send a question and wait for its reply, in the calling thread."""
        __tracebackhide__ = True
        inbox: SimpleQueue[ServerAnswer | None] = SimpleQueue()
        pending = PendingRequest(question=question, deliver=inbox.put, cell=cell or self.cells.current())
        pending.give_up_at = None if within is None else self._clock() + within
        with closing(self._exchange(pending)) as steps:
            try:
                seconds = next(steps)
                while True:
                    seconds = steps.send(self._next(inbox, seconds))
            except StopIteration as end:
                reply: Reply = end.value
                return reply
            except KeyboardInterrupt as interrupt:
                explain_interrupt(interrupt, pending.what, has_begun=pending.has_begun)
                raise

    def _next(self, inbox: SimpleQueue[ServerAnswer | None], seconds: float) -> ServerAnswer | None:
        """Return the next answer, or ``None`` after `seconds`: the loop then looks whether its cell was interrupted."""
        with suppress(Empty):
            return inbox.get(timeout=seconds)
        if threading.current_thread() is not threading.main_thread():
            self._wake()
        return None

    def receive(self, data: Any) -> None:
        """Handle a message of the server, in any thread."""
        try:
            message = from_server(data)
        except MessageError as problem:
            log.warning("dropped a message from the agentbox server: %s", problem)
            self._problem = str(problem)
            return
        self._heard_at, self._unanswered_ping = self._clock(), None
        if self._alone:
            self._alone = ""
            self._pending.wake()
        if isinstance(message, Welcome):
            self.welcome = message
        elif isinstance(message, Pong):
            self._forgotten(message.unknown)
        elif isinstance(message, Unfinished):
            self._withdraw_unknown(message.ids)
        elif isinstance(message, ToolsChanged):
            self._tools_listeners.get(message.server, lambda: None)()
        else:
            self._pending.receive(message)

    def outputs_cleared(self) -> None:
        """Record that code cleared the outputs of its cell, including those of its calls."""
        self._outputs.forget()

    def cell_ended(self) -> None:
        """Publish the final state of a cell's calls, before the kernel becomes idle."""
        self._withdrawals.tell()
        attempt(self._outputs.publish)

    def cell_interrupted(self, cell: Cell) -> None:
        """End the waits of a cell's other threads and tasks, which the interrupt also applies to."""
        withdrawn = self._pending.of_cell(cell)
        for pending in withdrawn:
            message = f"the request for `{pending.what}` was withdrawn because its cell was interrupted"
            pending.deliver(_local_failure(pending, "cancelled", message))
        self._withdrawals.add(pending.question.id for pending in withdrawn)

    def _exchange(self, pending: PendingRequest) -> Generator[float, ServerAnswer | None, Reply]:
        """Run a request from its first message to its last, for any way of waiting.

        Yields how many seconds to wait for an answer; receives the answer, or ``None`` if there is none.
        """
        __tracebackhide__ = True
        if os.getpid() != self._process:
            raise not_in_kernel()
        card: Card | None = None
        ending = ""
        record: object = None
        has_run = False
        try:
            self._begin(pending)
            while True:
                answer = yield self._seconds(pending)
                match answer:
                    case None:
                        self._tend(pending)
                    case Waiting() | Asked() if card is None:
                        # Registered before it is shown: an interrupt may come while it is.
                        card = self._card(pending, answer.request_id)
                        self._show(card, answer)
                    case Reply():
                        has_run = not answer.content.get("is_error")
                        ending, record = "done" if has_run else "the tool failed", answer.content.get("record")
                        return answer
                    case Failure():
                        error = error_of(answer)
                        ending, record = _ending(answer.code, error), answer.details.get("record")
                        raise error
        finally:
            self._pending.remove(pending)
            if not ending and pending.sent_at is not None:
                self._withdrawals.add([pending.question.id])
            if card is not None:
                asked = pending.question.arguments if isinstance(pending.question, Call) else {}
                outcome = ending or "withdrawn"
                attempt(lambda: card.finish_with(decision_line(pending.what, asked, record, outcome, has_run=has_run)))
            if comment := comment_line(pending.what, record):
                attempt(say, self.transport, comment, pending.cell)

    def _card(self, pending: PendingRequest, request_id: str) -> Card:
        pending.request_id = request_id
        # The outputs of an agent's code appear in the order in which they occur.
        output = (self._outputs.alone if self.cells.is_within else self._outputs.of)(pending.cell)
        return Card(output, what=pending.what, request_id=request_id, cell=pending.cell)

    def _show(self, card: Card, answer: Waiting | Asked) -> None:
        """Show the card of a pending request, or of a call whose server asks something."""
        show = card.show if isinstance(answer, Waiting) else card.show_question
        attempt(show, self.welcome.url if self.welcome else "")

    def _begin(self, pending: PendingRequest) -> None:
        if self.welcome is None or self._alone:
            self._send(Hello())
        self._pending.add(pending)
        pending.begun_at = self._clock()
        if not self._alone:
            self._send_first(pending)

    def _send_first(self, pending: PendingRequest) -> None:
        pending.sent_at = self._clock()
        self._send(pending.question)

    def _seconds(self, pending: PendingRequest) -> float:
        if pending.sent_at is None:
            seconds = self.patience.alone
        else:
            seconds = self.patience.ping if pending.answered else self.patience.repeat
        return seconds if pending.give_up_at is None else max(0.0, min(seconds, pending.give_up_at - self._clock()))

    def _tend(self, pending: PendingRequest) -> None:
        """React to silence: give up, repeat, or ping."""
        if pending.sent_at is None:
            self._send_unless_alone(pending)
            return
        now = self._clock()
        silence = self._silence(pending.sent_at, now)
        limit = self.patience.lost if pending.answered else self.patience.attach
        if pending.give_up_at is not None and now >= pending.give_up_at:
            raise no_answer(now - pending.begun_at, self._problem)
        if silence >= limit:
            if pending.answered:
                raise _lost(pending, limit)
            self._alone = f"none has answered this kernel for {limit:g} s"
            raise no_answer(limit, self._problem)
        if not pending.answered:
            if pending.times_unknown >= _UNKNOWN_TWICE and now - pending.sent_at >= limit:
                raise not_taken(pending.what)
            if self.welcome is None:
                self._send(Hello())
            self._send(pending.question)
        if now - self._pinged_at >= self.patience.ping:
            self._pinged_at = now
            if self._unanswered_ping is None:
                self._unanswered_ping = now
            self._send(Ping(ids=self._pending.ids))

    def _send_unless_alone(self, pending: PendingRequest) -> None:
        if self._alone:
            # A server that appears later would run a call for which nobody waits: never send it.
            raise no_server(self._alone, self._problem)
        self._send_first(pending)

    def _silence(self, sent_at: float, now: float) -> float:
        """Return how many seconds the server has not answered.

        A server that was not pinged is not silent: while this process was stopped, or a cell blocked the waiting loop,
        no pings were sent.
        """
        asked_at = sent_at if sent_at >= self._heard_at else self._unanswered_ping
        return 0.0 if asked_at is None else now - asked_at

    def _forgotten(self, ids: list[str]) -> None:
        for pending in self._pending.forgotten_by_server(ids):
            self.welcome = None
            pending.deliver(_local_failure(pending, "interrupted", str(_restarted(pending))))

    def _withdraw_unknown(self, ids: list[str]) -> None:
        """Repeat the withdrawal of requests for which nobody waits: the server missed it."""
        waiting = set(self._pending.ids)
        unknown = [id for id in ids if id not in waiting]
        if unknown:
            self._send(Cancel(ids=unknown))

    def _send(self, message: FromKernel) -> None:
        self.transport.send(to_json(message))


def _call(server: str, tool: str, arguments: Mapping[str, Any], cell: Cell) -> Call:
    plain = plain_arguments(f"{server}.{tool}", arguments)
    size = len(json.dumps(plain, ensure_ascii=False).encode())
    if size > _MOST_BYTES:
        raise ToolArgumentsError(
            f"`{server}.{tool}`: the arguments have {size:,} bytes; at most {_MOST_BYTES:,} are allowed"
            ": pass large data by file name or in parts"
        )
    return Call(id=uuid4().hex, server=server, tool=tool, arguments=plain, cell_id=cell.cell_id)


def _outcome(what: str, reply: Reply) -> CallResult:
    __tracebackhide__ = True
    result = result_of(reply.content, reply.request_id)
    if result.is_error:
        message = result.text or f"`{what}` failed and gave no reason"
        raise ToolError(message, request_id=reply.request_id, result=result)
    return result


def _lost(pending: PendingRequest, seconds: float) -> AgentBoxError:
    is_turn = isinstance(pending.question, StartTurn)
    return turn_lost(seconds) if is_turn else server_lost(pending.what, seconds)


def _restarted(pending: PendingRequest) -> AgentBoxError:
    is_turn = isinstance(pending.question, StartTurn)
    return turn_cut_off() if is_turn else server_restarted(pending.what)


def _ending(code: str, error: AgentBoxError) -> str:
    ending = _ENDINGS.get(code, "failed")
    if isinstance(error, ToolCallRejectedError) and error.reason:
        return f"{one_line(error.reason, 400)}; {ending}"
    return ending


def _local_failure(pending: PendingRequest, code: str, message: str) -> Failure:
    return Failure(id=pending.question.id, code=code, message=message, request_id=pending.request_id)


def _problem(found: JsonObject) -> str:
    """Return a problem in a configuration file, with its position in the format of compilers."""
    place = [str(found[key]) for key in ("path", "line", "column") if found.get(key) is not None]
    return one_line(f"{':'.join(place)}: {found.get('message', '')}", 1000)


def _list(reply: Reply, key: str) -> list[Any]:
    # The server's version of this package may differ from the kernel's.
    found = reply.content.get(key)
    return found if isinstance(found, list) else []
