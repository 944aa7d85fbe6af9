"""The kernels in which the agents of threads work."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.core.calls import TurnRef
from jupyter_agentbox.core.threads import Thread

from .ports import AgentKernel, Catalog, KernelEvent


class ThreadKernels(Protocol):
    """Provides the kernels in which agents work."""

    async def kernel(self, thread: Thread) -> AgentKernel:
        """Return the thread's kernel; start it if necessary.

        Raises
        ------
        AgentBoxError
            It cannot be started, or the agent may not use it.
        """


class LazyKernel:
    """The kernel of a thread, started when it is first needed: many turns consist of words only.

    Parameters
    ----------
    kernels : ThreadKernels
        Provides the kernel.
    thread : Thread
        The thread that works there.
    """

    def __init__(self, kernels: ThreadKernels, thread: Thread) -> None:
        self._kernels = kernels
        self._thread = thread

    async def run(self, code: str, *, turn: TurnRef, analysis: Analysis | None = None) -> AsyncGenerator[KernelEvent]:
        """Run code in it, as `AgentKernel.run` does."""
        kernel = await self._kernels.kernel(self._thread)
        async with aclosing(kernel.run(code, turn=turn, analysis=analysis)) as events:
            async for event in events:
                yield event

    async def variables(self) -> str:
        """Return the names, types and shapes of the user's variables."""
        return await (await self._kernels.kernel(self._thread)).variables()

    async def catalog(self) -> Catalog:
        """Return the tools that code may call."""
        return await (await self._kernels.kernel(self._thread)).catalog()

    async def cells(self) -> str | None:
        """Return the source of the notebook's cells; ``None`` if they may not be read, or there is no notebook."""
        return await (await self._kernels.kernel(self._thread)).cells()
