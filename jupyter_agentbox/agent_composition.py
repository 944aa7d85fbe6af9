"""Puts the parts together that agents of notebooks need. Imported when an agent is first used, and not before."""

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
    """What a person or an administrator may set of agents.

    Parameters
    ----------
    database_url : str
        SQLAlchemy URL of the approval store, which has the threads, too.
    journal_mode : str
        SQLite's journal mode.
    tenant : str or None
        The user of a JupyterHub whose database it has to be.
    model : str
        The model where none is named; empty if one must be.
    base_url : str or None
        The address of another server than the provider's.
    review_model : str
        The model that reviews calls in the mode ``auto_review``; empty for the thread's own.
    limits : TurnLimits
        What turns may use.
    kept : ThreadLimits
        Which threads are kept.
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
        """Return how a model is reached. Asks it nothing.

        Raises
        ------
        AgentConfigurationError
            No model is named, or its key cannot be read.
        """
        # Late: what asks models takes seconds to import. This is called in a thread.
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
    """Put the parts together. Opens and starts nothing.

    Parameters
    ----------
    settings : AgentSettings
        What was set.
    kernels : CellKernels
        Where agents work.
    modes : ModeKeeper
        Has calls decided as the modes of their threads say.
    announce : callable
        Told of a thread that changed.
    site : callable, optional
        Returns what the site lets its users do.
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
    """Put together what works on the turns of cells; return it with what it looks at code with, to be closed.

    Parameters
    ----------
    box : AgentBox
        Decides about calls, and runs them.
    requests : TurnRequests
        The announcer that `box` was built with.
    threads : callable
        Returns the notebooks' threads.
    interrupt : callable
        Interrupts a kernel.
    read_cells : callable
        Reads a notebook.
    context : str
        What agents may read of notebooks unless a cell says otherwise.
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
