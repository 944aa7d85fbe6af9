"""`CellTurns`: runs the turns that `%%agent` cells start, one at a time in each kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import JsonObject, TurnRef
from jupyter_agentbox.core.threads import ApprovalMode, Thread, turn_to_json
from jupyter_agentbox.exceptions import ThreadBusyError, ThreadError, UnknownThreadError
from jupyter_agentbox.protocol.messages import AgentCommand, CodeRan, StartTurn
from jupyter_agentbox.services.kernel_connections.agent_cells import TurnCell

from .cell_commands import ALLOWED_IN_TURN, CellCommands, label_of
from .cell_kernel import CellKernel, CellServices
from .manager import NotebookThreads
from .mode_changes import ModeChanges, mode_elsewhere
from .turn_options import TurnOptions, read_options
from .turn_relay import TurnRelay

#: Maximum length of a question, in characters.
MOST_PROMPT: Final = 1_000_000

#: Returns a notebook's cells as text, given its path and whether to include outputs.
ReadCells = Callable[[str, bool], Awaitable[str]]


@dataclass(eq=False)
class _CellTurn:
    """The turn in one kernel."""

    message_id: str
    comm_id: str
    kernel: CellKernel | None = None
    ref: TurnRef | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_left(self) -> bool:
        """Whether its cell has ended."""
        return self.kernel is not None and self.kernel.has_left


class CellTurns:
    """Handles kernels' messages about agents: an `AgentCells`.

    Parameters
    ----------
    threads : callable
        Returns the notebooks' threads.
    services : CellServices
        The services that cells' kernels use.
    read_cells : callable
        Reads a notebook.
    context : str
        What an agent may read of the notebook by default: ``none``, ``cells`` or ``outputs``.
    """

    def __init__(
        self, *, threads: Callable[[], NotebookThreads], services: CellServices, read_cells: ReadCells, context: str
    ) -> None:
        self._threads = threads
        self._services = services
        self._read_cells = read_cells
        self._context = context
        self._turns: dict[str, _CellTurn] = {}
        self._preloading: asyncio.Task[None] | None = None

    def turn_of(self, kernel_id: str) -> TurnRef | None:
        """Return the turn in progress in a kernel, if any."""
        turn = self._turns.get(kernel_id)
        return turn.ref if turn is not None else None

    async def run_turn(self, cell: TurnCell, question: StartTurn) -> JsonObject:
        """Run a turn to its end and return it. Cancelling the task interrupts the turn.

        Raises
        ------
        AgentBoxError
            The turn did not start.
        """
        options = read_options(question.options)
        path = _path(cell.notebook_path)
        if not question.prompt.strip() or len(question.prompt) > MOST_PROMPT:
            raise ThreadError(f"a question must have 1 to {MOST_PROMPT:,} characters")
        turn = await self._enter(cell, question)
        if self._preloading is None:  # during the model's first request: it takes half a second
            self._preloading = in_background(self._services.analyzer.preload(), what="loading the static analysis")
        try:
            return await self._work(turn, cell, question, path, options)
        finally:
            del self._turns[cell.kernel_id]
            turn.ended.set()

    def code_ran(self, kernel_id: str, comm_id: str, message: CodeRan) -> None:
        """Handle the outcome of code; unexpected reports are dropped."""
        turn = self._turns.get(kernel_id)
        if turn is not None and turn.kernel is not None and (turn.comm_id, turn.message_id) == (comm_id, message.id):
            turn.kernel.code_ran(message)

    async def command(self, cell: TurnCell, message: AgentCommand) -> JsonObject:
        """Answer a command of ``%agent``.

        Raises
        ------
        AgentBoxError
            The command failed.
        """
        if cell.kernel_id in self._turns and message.command not in ALLOWED_IN_TURN:
            raise ThreadBusyError(
                f"`%agent {message.command}` was refused: a turn is in progress in this kernel, and code of an agent"
                " cannot change threads"
            )
        changes = ModeChanges(self._services.calls, cell, message.id)
        commands = CellCommands(self._threads(), _path(cell.notebook_path), changes)
        return {"text": await commands.answer(message.command, message.arguments)}

    async def _enter(self, cell: TurnCell, question: StartTurn) -> _CellTurn:
        """Reserve the kernel for a turn, once a turn abandoned by its cell has ended."""
        while (other := self._turns.get(cell.kernel_id)) is not None:
            if not other.is_left:
                raise ThreadBusyError(
                    "a turn is in progress in this kernel: code that an agent runs cannot start another one"
                )
            await other.ended.wait()
        turn = self._turns[cell.kernel_id] = _CellTurn(message_id=question.id, comm_id=cell.comm_id)
        return turn

    async def _work(
        self, turn: _CellTurn, cell: TurnCell, question: StartTurn, path: str, options: TurnOptions
    ) -> JsonObject:
        threads = self._threads()
        sent: asyncio.Future[TurnRelay] = asyncio.get_running_loop().create_future()

        async def send_first() -> None:
            await (await asyncio.shield(sent)).send_new()

        turn.kernel = CellKernel(
            cell,
            question.id,
            services=self._services,
            read_cells=partial(self._cells, path, options.context or self._context),
            before_run=send_first,
        )
        try:
            changes = ModeChanges(self._services.calls, cell, question.id)
            thread = await self._thread(threads, path, options, changes)
            running = await threads.begin(
                thread.id,
                question.prompt,
                kernel=turn.kernel,
                kernel_id=cell.kernel_id,
                mode=options.mode,
                model=options.model,
                backend=options.backend,
                steps=options.steps,
            )
            turn.ref = TurnRef(thread_id=running.thread_id, turn_id=running.id)
            relay = TurnRelay(cell, question.id, running.stream)
            sent.set_result(relay)
            try:
                await relay.run()
            except asyncio.CancelledError:
                turn.kernel.leave()
                await asyncio.shield(running.interrupt())
                raise
            return {"turn": turn_to_json(replace(running.turn, items=()))}
        finally:
            turn.kernel.leave()
            sent.cancel()

    async def _thread(self, threads: NotebookThreads, path: str, options: TurnOptions, changes: ModeChanges) -> Thread:
        """Return the cell's thread, starting one if necessary."""
        current = await threads.current(path)

        async def require(label: str, one: Thread | None, *before: ApprovalMode) -> None:
            model = options.model or (one.model if one is not None else "")
            await changes.require(
                label,
                options.mode or (one.approval_mode if one is not None else ApprovalMode.ASK),
                *before,
                reviewer=threads.reviewing_model(model),
                reviewer_before=threads.reviewing_model(one.model) if one is not None else None,
            )

        if options.thread is not None:
            with suppress(UnknownThreadError):
                found = (await CellCommands(threads, path, changes).find(options.thread)).thread
                await require(label_of(found), found, mode_elsewhere(current), found.approval_mode)
                return await threads.resume(found.id, path)
        elif current is not None and not options.is_new:
            await require(label_of(current), current, current.approval_mode)
            return current
        mode, name = options.mode or ApprovalMode.ASK, options.thread or ""
        await require(name or "a new one", None, ApprovalMode.ASK)
        return await threads.start(path, name=name, mode=mode, model=options.model)

    async def _cells(self, path: str, context: str) -> str | None:
        return None if context == "none" else await self._read_cells(path, context == "outputs")


def _path(notebook_path: str | None) -> str:
    if not notebook_path:
        raise ThreadError("this kernel belongs to no notebook and no console, so it has no thread")
    return notebook_path
