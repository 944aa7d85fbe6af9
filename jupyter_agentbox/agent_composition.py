"""Builds the parts that notebooks' agents need. Imported only when an agent is first used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jupyter_agentbox.agents.threads.clients import ModelClients
from jupyter_agentbox.agents.threads.keys import key_of
from jupyter_agentbox.agents.threads.limits import TurnLimits
from jupyter_agentbox.agents.threads.manager import ThreadManager
from jupyter_agentbox.agents.threads.ports import ModeKeeper
from jupyter_agentbox.analysis.analyzer import CodeAnalyzer
from jupyter_agentbox.analysis.findings import AnalysisSettings
from jupyter_agentbox.composition import AgentBox
from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.core.threads import ThreadState
from jupyter_agentbox.exceptions import AgentConfigurationError
from jupyter_agentbox.services.threads.cell_kernel import CellServices
from jupyter_agentbox.services.threads.cell_kernels import CellKernels
from jupyter_agentbox.services.threads.cell_turns import CellTurns, ReadCells
from jupyter_agentbox.services.threads.manager import NotebookThreads
from jupyter_agentbox.services.threads.turn_requests import TurnRequests
from jupyter_agentbox.storage.database import JournalMode
from jupyter_agentbox.storage.thread_retention import ThreadLimits
from jupyter_agentbox.storage.threads import SqlThreadStore
from jupyter_agentbox.system import RandomIds, SystemClock

if TYPE_CHECKING:
    from jupyter_agentbox.agents.threads.models import ModelSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings of agents.

    Parameters
    ----------
    database_url : str
        The SQLAlchemy URL of the approval store, which also keeps the threads.
    journal_mode : str
        SQLite's journal mode.
    tenant : str or None
        The JupyterHub user to whom the database has to belong.
    model : str
        The default model; empty if each thread has to name one.
    base_url : str or None
        The URL of a server to use in place of the provider's.
    review_model : str
        The model that reviews calls in the mode ``auto_review``; empty for the thread's own.
    limits : TurnLimits
        The limits of turns.
    kept : ThreadLimits
        How many threads are kept, and for how long.
    """

    database_url: str
    journal_mode: JournalMode = "wal"
    tenant: str | None = None
    model: str = ""
    base_url: str | None = None
    review_model: str = ""
    limits: TurnLimits = field(default_factory=TurnLimits)
    kept: ThreadLimits = field(default_factory=ThreadLimits)

    def model_settings(self, model: str) -> ModelSettings:
        """Return the settings of a model. Sends nothing to it.

        Raises
        ------
        AgentConfigurationError
            If no model is chosen, or its key cannot be read.
        """
        # Imported here because it takes seconds. This method is called in a thread.
        from jupyter_agentbox.agents.threads.models import ModelSettings, provider_of  # noqa: PLC0415

        name = model or self.model
        if not name:
            raise AgentConfigurationError(
                "no model is chosen: set `AgentBoxApp.agent_model`, or name one as in `%%agent --model openai:NAME`"
            )
        return ModelSettings(model=name, base_url=self.base_url, api_key=key_of(provider_of(name)))


def build_threads(
    settings: AgentSettings,
    *,
    kernels: CellKernels,
    modes: ModeKeeper,
    announce: Callable[[str, ThreadState], None],
    site: Callable[[], SitePolicy] = SitePolicy,
) -> NotebookThreads:
    """Build the threads. Opens and starts nothing.

    Parameters
    ----------
    settings : AgentSettings
        The settings.
    kernels : CellKernels
        The kernels in which agents run code.
    modes : ModeKeeper
        Applies the approval modes of threads to their calls.
    announce : callable
        Called with each thread that has changed.
    site : callable, optional
        Returns the features that the site allows.
    """
    clock = SystemClock()
    store = SqlThreadStore(
        settings.database_url,
        clock=clock,
        journal_mode=settings.journal_mode,
        limits=settings.kept,
        tenant=settings.tenant,
    )
    threads = ThreadManager(
        store=store,
        kernels=kernels,
        clients=ModelClients(settings.model_settings),
        clock=clock,
        ids=RandomIds(),
        limits=settings.limits,
        modes=modes,
        review_model=settings.review_model,
    )
    return NotebookThreads(
        threads=threads,
        store=store,
        kernels=kernels,
        announce=announce,
        clock=clock,
        default_model=settings.model,
        site=site,
        review_model=settings.review_model,
        on_close=store.aclose,
    )


def build_cell_turns(
    box: AgentBox,
    *,
    requests: TurnRequests,
    threads: Callable[[], NotebookThreads],
    interrupt: Callable[[str], Awaitable[None]],
    read_cells: ReadCells,
    context: str,
) -> tuple[CellTurns, CodeAnalyzer]:
    """Build the manager of cells' turns; return it with the code analyzer, which must be closed.

    Parameters
    ----------
    box : AgentBox
        Decides and runs calls.
    requests : TurnRequests
        The announcer that `box` was built with.
    threads : callable
        Returns the notebooks' threads.
    interrupt : callable
        Interrupts a kernel.
    read_cells : callable
        Reads a notebook's cells.
    context : str
        What agents may read of notebooks, unless a cell sets it.
    """
    analyzer = CodeAnalyzer(AnalysisSettings(expects_results=False))
    services = CellServices(
        calls=box.calls,
        approvals=box.approvals,
        decisions=box.decisions,
        requests=requests,
        catalog=box.tools,
        analyzer=analyzer,
        interrupt=interrupt,
    )
    return CellTurns(threads=threads, services=services, read_cells=read_cells, context=context), analyzer
