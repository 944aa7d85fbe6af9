"""The agents of this server's notebooks, created when one is first used: most servers never need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import ensure_async

from jupyter_agentbox.composition import AgentBox
from jupyter_agentbox.events import EventAnnouncer
from jupyter_agentbox.exceptions import ThreadError
from jupyter_agentbox.services.threads.cell_kernels import CellKernels
from jupyter_agentbox.services.threads.notebook_cells import NotebookCells
from jupyter_agentbox.services.threads.turn_requests import TurnRequests

if TYPE_CHECKING:
    from jupyter_agentbox.agent_composition import AgentSettings
    from jupyter_agentbox.analysis.analyzer import CodeAnalyzer
    from jupyter_agentbox.core.calls import TurnRef
    from jupyter_agentbox.services.threads.cell_turns import CellTurns
    from jupyter_agentbox.services.threads.manager import NotebookThreads


class NotebookAgents:
    """Agents in the cells of notebooks.

    Parameters
    ----------
    server : ServerApp
        The server with the kernels and the notebooks.
    box : AgentBox
        The parts of this server.
    requests : TurnRequests
        The requests of agents' turns.
    announcer : EventAnnouncer
        Tells pages of threads that changed.
    settings : callable
        Returns the settings of agents. Called at the first use.
    context : str
        How much of a notebook agents may read.
    """

    def __init__(
        self,
        *,
        server: ServerApp,
        box: AgentBox,
        requests: TurnRequests,
        announcer: EventAnnouncer,
        settings: Callable[[], AgentSettings],
        context: str,
    ) -> None:
        self._server = server
        self._box = box
        self._requests = requests
        self._announcer = announcer
        self._settings = settings
        self._context = context
        self._kernels = CellKernels()
        self._threads: NotebookThreads | None = None
        self._cell_turns: tuple[CellTurns, CodeAnalyzer] | None = None
        self._is_stopping = False

    def threads(self) -> NotebookThreads:
        """Return the agents' threads.

        Raises
        ------
        ThreadError
            The server is stopping, and they were not used before.
        """
        from jupyter_agentbox import agent_composition  # noqa: PLC0415  # a server that uses no agent pays nothing

        if self._threads is None:
            if self._is_stopping:
                raise ThreadError("the server is being stopped")
            self._threads = agent_composition.build_threads(
                self._settings(),
                kernels=self._kernels,
                modes=self._box.modes,
                announce=self._announcer.thread_changed,
                site=lambda: self._box.policies.site,
            )
        return self._threads

    def cell_turns(self) -> CellTurns:
        """Return the manager of cells' turns."""
        from jupyter_agentbox import agent_composition  # noqa: PLC0415  # as above

        if self._cell_turns is None:
            self._cell_turns = agent_composition.build_cell_turns(
                self._box,
                requests=self._requests,
                threads=self.threads,
                interrupt=self._interrupt_kernel,
                read_cells=NotebookCells(self._server.contents_manager).read,
                context=self._context,
            )
        return self._cell_turns[0]

    def turn_of(self, kernel_id: str) -> TurnRef | None:
        """Return the turn on which an agent is working in a kernel; ``None`` if there is none."""
        return self._cell_turns[0].turn_of(kernel_id) if self._cell_turns is not None else None

    async def follow_rename(self, old_path: str, new_path: str) -> None:
        """Note that a notebook was renamed; threads of earlier servers move with it, too."""
        if not self._is_stopping:
            await self.threads().follow_rename(old_path, new_path)

    async def stop(self) -> None:
        """Interrupt the turns; withdraw and record what they wait for. No further turn begins."""
        self._is_stopping = True
        if self._threads is not None:
            await self._threads.aclose()

    def close(self) -> None:
        """End the analysis of code, once nothing needs it any more."""
        if self._cell_turns is not None:
            self._cell_turns[1].close()

    async def _interrupt_kernel(self, kernel_id: str) -> None:
        kernels: Any = self._server.kernel_manager
        if kernel_id in kernels:
            await ensure_async(kernels.interrupt_kernel(kernel_id))
