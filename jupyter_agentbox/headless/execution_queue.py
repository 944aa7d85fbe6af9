"""Runs the cells of one kernel in turn: sends them, follows their messages, and ends them.

An execution is over when the kernel has sent both the reply and the status ``idle`` of its request. They come on two
channels; only then no output of it can follow.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonObject

from .ports import Kernel
from .reports import Report
from .results import OUTPUTS, ExecutionError, ExecutionResult, OutputMessage, Outputs, error_text
from .signing import Message

#: Seconds after which an interrupt that had no effect is sent again, and again.
_INTERRUPTS: Final = (1.0, 2.0, 2.0)
#: Seconds in all that code has to end when it is interrupted.
INTERRUPT_LIMIT: Final = sum(_INTERRUPTS)
#: While so many things wait for a slow reader, what tools and servers say takes the place of what they said before.
MOST_WAITING: Final = 1_000
#: What a consumer that is ended has time for, in turns of the event loop.
_FINALIZING: Final = 4

_RESISTS: Final = (
    f"the code was interrupted but did not end within {INTERRUPT_LIMIT:g} s, so the kernel is "
    "unusable. Call `reset()` to get a fresh one."
)

#: An interrupt that comes between two steps of ipykernel's own, just before the code, ends the request with no reply.
_SWALLOWED: Final = "the code was interrupted before it began"


class Execution:
    """One request to execute code.

    Parameters
    ----------
    id : str
        The request's id.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.consumer: asyncio.Task[Any] | None = None
        self._cancellations = 0
        #: Whether all that was asked for before the cell was ended early is withdrawn.
        self.is_withdrawn = False
        self.ending: asyncio.Task[None] | None = None
        self.has_left = False
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.outputs = Outputs()
        self.reply: dict[str, Any] | None = None
        self.failure: str | None = None
        self.wants_reports = False
        self.wants_calls = False
        self.wants_outputs = False
        self._is_idle = False
        self._items: deque[object] = deque()
        self._news = asyncio.Event()

    def read_by(self, task: asyncio.Task[Any] | None) -> None:
        """Record the task that reads the execution now."""
        self.consumer = task
        self._cancellations = task.cancelling() if task is not None else 0

    @property
    def is_being_withdrawn(self) -> bool:
        """Whether the execution is ended early, or about to be, and what it asked for is not withdrawn yet.

        A task that is cancelled learns of it only when it runs next.
        """
        if self.ending is not None:
            return not self.is_withdrawn
        is_cancelled = self.consumer is not None and self.consumer.cancelling() > self._cancellations
        return is_cancelled and not self.ended.is_set()

    def put(self, item: object) -> None:
        """Queue an item for the reader, in order with the text."""
        self._items.append(item)
        self._news.set()

    def report(self, report: Report) -> None:
        """Queue a report of a tool or server, if wanted. Of those that a slow reader leaves, the latest is kept."""
        if not self.wants_reports or not self.is_read:
            return
        if len(self._items) >= MOST_WAITING and isinstance(self._items[-1], Report):
            self._items.pop()
        self.put(report)

    @property
    def is_read(self) -> bool:
        """Whether anybody reads the items: the execution is running, and is not being ended."""
        return not self.ended.is_set() and self.ending is None

    @property
    def has_items(self) -> bool:
        """Whether `take` would return an item."""
        return bool(self._items)

    def take(self) -> object:
        """Return the next item. Items that are not taken stay, even if the reader leaves."""
        return self._items.popleft()

    def wake(self) -> None:
        """Have the reader check its deadline again."""
        self._news.set()

    async def news(self) -> None:
        """Wait for an item, the end of the execution, or a call of `wake`."""
        if not self.ended.is_set():
            await self._news.wait()
            self._news.clear()

    def receive(self, message: Message) -> None:
        """Handle a message that belongs to this request."""
        if self.wants_outputs and message.kind in OUTPUTS:
            self.put(OutputMessage(message.kind, message.content))
        if message.channel == "shell":
            if message.kind == "execute_reply":
                self.reply = message.content
        elif message.kind == "status":
            self._is_idle = self._is_idle or message.content.get("execution_state") == "idle"
        elif message.kind == "execute_input":
            self.started.set()
        elif (text := self.outputs.add(message.kind, message.content)) is not None:
            self.put(text)
        if self._is_idle and self.reply is not None:
            self._end()

    @property
    def has_lost_its_reply(self) -> bool:
        """Whether the kernel has finished the request, but its reply has not arrived."""
        return self._is_idle and self.reply is None

    def fail(self, reason: str) -> None:
        """End the execution without a reply."""
        if not self.ended.is_set():
            self.failure = reason
            self._end()

    def error(self) -> ExecutionError | None:
        """Return the error that the code ended with."""
        if self.failure is not None:
            return ExecutionError(self.failure)
        reply = self.reply or {}
        if reply.get("status") == "ok":
            return None
        return ExecutionError(error_text(self.outputs.error or {"ename": "Aborted", **reply}))

    def _end(self) -> None:
        self.started.set()
        self.ended.set()
        self._news.set()


class ExecutionQueue:
    """The executions of one kernel, one at a time; the others wait.

    Parameters
    ----------
    kernel : Kernel
        Runs the code.
    images_dir : Path
        Where images are written.
    on_comm : callable
        Gets the content of each ``comm_open`` and ``comm_msg``.
    """

    def __init__(
        self, kernel: Kernel, *, images_dir: Path, on_comm: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> None:
        self._kernel = kernel
        self._images_dir = images_dir
        self._on_comm = on_comm
        self._lock = asyncio.Lock()
        self._failure: str | None = None
        self._stuck = False
        self._endings: set[asyncio.Task[None]] = set()
        self.current: Execution | None = None
        kernel.listen(self._receive, self.lose)

    async def begin(self, code: str) -> Execution:
        """Send code to the kernel once the earlier cells have ended.

        Raises
        ------
        ExecutionError
            If the kernel is gone, or runs code that does not end.
        RuntimeError
            If the calling task itself holds up the cell that runs.
        """
        await self._check_not_nested()
        await self._lock.acquire()
        try:
            if self._stuck:
                raise ExecutionError(_RESISTS)
            if self._failure is not None:
                raise ExecutionError(self._failure)
            request: JsonObject = {
                "code": code,
                "silent": False,
                "store_history": False,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            }
            execution = self.current = Execution(self._kernel.send("execute_request", request))
        except BaseException:
            self._lock.release()
            raise
        execution.read_by(asyncio.current_task())
        return execution

    async def items(self, execution: Execution, deadline: Callable[[], float | None]) -> AsyncIterator[object]:
        """Yield items until the execution has ended.

        Parameters
        ----------
        execution : Execution
            From `begin`.
        deadline : callable
            Returns when to give up, on the clock of `time.monotonic`.

        Raises
        ------
        TimeoutError
            When the deadline has passed; the execution still has to be ended.
        """
        while True:
            while execution.has_items:
                execution.read_by(asyncio.current_task())
                yield execution.take()
            if execution.ended.is_set():
                return
            limit = deadline()
            seconds = None if limit is None else max(0.0, limit - time.monotonic())
            async with asyncio.timeout(seconds):
                await execution.news()

    async def finish(self, execution: Execution) -> ExecutionResult:
        """Return the result of an execution that has ended.

        Raises
        ------
        ExecutionError
            What the code ended with, with what it gave before.
        OSError
            If an image cannot be written.
        """
        error = execution.error()
        if error is None:
            execution.outputs.add_reply(execution.reply or {})
        try:
            if execution.outputs.has_images:
                result = await asyncio.to_thread(execution.outputs.result, self._images_dir)
            else:
                result = execution.outputs.result(self._images_dir)
        except OSError as failure:
            if error is None:
                raise
            raise ExecutionError(f"{error}\nImages from before the error could not be written: {failure}") from None
        if error is not None:
            error.result = result
            raise error
        return result

    def begin_ending(self, execution: Execution) -> asyncio.Task[None]:
        """Interrupt the execution's code, if running, in a separate task that no caller's cancellation stops."""
        if execution.ending is None:
            execution.ending = asyncio.ensure_future(self._end(execution))
            self._endings.add(execution.ending)
            execution.ending.add_done_callback(self._endings.discard)
        return execution.ending

    async def end(self, execution: Execution) -> bool:
        """End the execution, interrupting its code if it is running; return whether it has ended."""
        if execution.ended.is_set() and execution.ending is None:
            self._leave(execution)
        else:
            await asyncio.shield(self.begin_ending(execution))
        return execution.ended.is_set()

    async def settle(self) -> None:
        """Wait until no execution is being ended."""
        while self._endings:
            await asyncio.wait(self._endings)

    @property
    def is_usable(self) -> bool:
        """Whether the kernel is alive and runs no code that ignored an interrupt."""
        return self._failure is None and not self._stuck

    def resists(self) -> str | None:
        """Return why the kernel cannot be used, if its code ignored an interrupt."""
        return _RESISTS if self._stuck else None

    async def _end(self, execution: Execution) -> None:
        try:
            async with asyncio.timeout(INTERRUPT_LIMIT):
                await execution.started.wait()  # before that, the kernel ignores an interrupt
            for seconds in _INTERRUPTS:
                await self._kernel.interrupt()
                try:
                    async with asyncio.timeout(seconds):
                        await execution.ended.wait()
                    return
                except TimeoutError:
                    if execution.has_lost_its_reply:
                        execution.fail(_SWALLOWED)
                        return
        except (TimeoutError, OSError):
            pass  # said below
        finally:
            self._stuck = not execution.ended.is_set()
            self._leave(execution)

    def _leave(self, execution: Execution) -> None:
        if execution.has_left:
            return
        execution.has_left = True
        if self.current is execution and not self._stuck:
            self.current = None
        self._lock.release()

    async def _check_not_nested(self) -> None:
        for _ in range(_FINALIZING):
            if not self._is_nested():
                return
            await asyncio.sleep(0)  # an iterator that was left is ended by the loop, a few turns later
        if self._is_nested():
            raise RuntimeError(
                "this task iterates over the outputs of the cell that runs, so a second cell would wait for ever:"
                " finish or close that iterator first"
            )

    def _is_nested(self) -> bool:
        execution = self.current
        if execution is None or execution.has_left or execution.ending is not None:
            return False
        return execution.consumer is asyncio.current_task()

    def _receive(self, message: Message) -> None:
        execution = self.current
        if message.kind in {"comm_msg", "comm_open"}:
            self._on_comm(message.content)
        elif execution is not None and message.parent_id == execution.id:
            execution.receive(message)
            if self._stuck and execution.ended.is_set():
                self._stuck = False  # it ended after all
                self.current = None

    def lose(self, reason: str) -> None:
        """Fail the running execution and refuse all others, because the kernel is gone."""
        self._failure = reason
        self._stuck = False
        if self.current is not None:
            self.current.fail(reason)
