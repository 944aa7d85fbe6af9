"""`CellKernels`: the kernels in which agents work during their `%%agent` cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_agentbox.core.threads import Thread
from jupyter_agentbox.exceptions import ThreadBusyError, ThreadError

if TYPE_CHECKING:
    from jupyter_agentbox.agents.threads.ports import AgentKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    kernel: AgentKernel
    kernel_id: str | None


class CellKernels:
    """A `ThreadKernels`: a thread's agent works in the kernel of its running `%%agent` cell."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def enter(self, thread_id: str, kernel: AgentKernel, *, kernel_id: str | None = None) -> None:
        """Assign a kernel to a thread's agent until `leave`.

        Parameters
        ----------
        thread_id : str
            The thread.
        kernel : AgentKernel
            The kernel for its code.
        kernel_id : str, optional
            Jupyter's id of the kernel.

        Raises
        ------
        ThreadBusyError
            The thread already has a kernel, or another agent has this one.
        """
        if thread_id in self._places:
            raise ThreadBusyError(
                f"a turn is in progress in thread `{thread_id}`: wait for its end, or interrupt it, and try again"
            )
        if kernel_id is not None and (other := self.thread_of(kernel_id)) is not None:
            raise ThreadBusyError(f"the agent of thread `{other}` works in this kernel: wait for the end of its turn")
        self._places[thread_id] = _Place(kernel=kernel, kernel_id=kernel_id)

    def leave(self, thread_id: str) -> None:
        """Undo `enter`. Does nothing if not assigned."""
        self._places.pop(thread_id, None)

    async def kernel(self, thread: Thread) -> AgentKernel:
        """Return the kernel assigned to the thread's agent.

        Raises
        ------
        ThreadError
            None of its cells is running.
        """
        place = self._places.get(thread.id)
        if place is None:
            raise ThreadError("a turn of this notebook's thread can run code only while its `%%agent` cell runs")
        return place.kernel

    def kernel_of(self, thread_id: str) -> str | None:
        """Return Jupyter's id of the kernel assigned to a thread's agent, if any."""
        place = self._places.get(thread_id)
        return place.kernel_id if place is not None else None

    def thread_of(self, kernel_id: str) -> str | None:
        """Return the thread whose agent works in a kernel, if any."""
        return next((thread_id for thread_id, place in self._places.items() if place.kernel_id == kernel_id), None)
