"""The agents of this server's notebooks, put together when one is first used: most servers never need them."""

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
        Has the kernels and the notebooks.
    box : AgentBox
        The parts of this server.
    requests : TurnRequests
        What agents' turns asked for.
    announcer : EventAnnouncer
        Tells pages of threads that changed.
    settings : callable
        Returns what was set of agents. Called at the first use.
    context : str
        What agents may read of a notebook.
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
            The server is being stopped, and they were not used before.
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
        """Return what works on the turns of cells."""
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
        """Return the turn that an agent works on in a kernel; ``None`` if none does."""
        return self._cell_turns[0].turn_of(kernel_id) if self._cell_turns is not None else None

    async def follow_rename(self, old_path: str, new_path: str) -> None:
        """Note that a notebook has another name: threads of earlier servers belong to it, too."""
        if not self._is_stopping:
            await self.threads().follow_rename(old_path, new_path)

    async def stop(self) -> None:
        """Interrupt the turns: what they wait for is withdrawn, and recorded. None begins any more."""
        self._is_stopping = True
        if self._threads is not None:
            await self._threads.aclose()

    def close(self) -> None:
        """End what looks at code, when nothing asks it any more."""
        if self._cell_turns is not None:
            self._cell_turns[1].close()

    async def _interrupt_kernel(self, kernel_id: str) -> None:
        kernels: Any = self._server.kernel_manager
        if kernel_id in kernels:
            await ensure_async(kernels.interrupt_kernel(kernel_id))
