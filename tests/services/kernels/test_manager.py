"""How kernels ended, kept and announced."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jupyter_agentbox.core.kernel_exits import KernelExit
from jupyter_agentbox.services.kernels.manager import MOST_KEPT, KernelExitManager, RecordedExit
from jupyter_agentbox.testing import FakeClock, FakeIds, FakeNotebookFinder

END = KernelExit(reason="it needed more than 512 MiB of memory", limit="memory_limit", most=512 << 20)


@pytest.fixture
def announced() -> list[str]:
    """The kernels of which pages were told."""
    return []


@pytest.fixture
def manage(announced: list[str]) -> Callable[..., KernelExitManager]:
    """Make a manager that knows some notebooks."""
    return lambda notebooks: KernelExitManager(
        notebooks=notebooks, announce=announced.append, clock=FakeClock(), ids=FakeIds()
    )


async def test_an_end_is_kept_and_then_announced(
    manage: Callable[..., KernelExitManager], announced: list[str]
) -> None:
    kernel_exits = manage(FakeNotebookFinder({"k1": "a.ipynb"}))
    await kernel_exits.kernel_ended("k1", END)

    assert kernel_exits.last_of("k1") == RecordedExit(id="r1", at=FakeClock().now(), end=END, notebook_path="a.ipynb")
    assert announced == ["k1"]
    assert kernel_exits.last_of("k2") is None


async def test_the_last_end_is_the_one_that_counts_and_keeps_the_notebook(
    manage: Callable[..., KernelExitManager],
) -> None:
    notebooks = FakeNotebookFinder({"k1": "a.ipynb"})
    kernel_exits = manage(notebooks)
    await kernel_exits.kernel_ended("k1", END)
    notebooks.paths.clear()
    crash = KernelExit(reason="its process was killed by SIGSEGV", signal="SIGSEGV")
    await kernel_exits.kernel_ended("k1", crash)

    assert kernel_exits.last_of("k1") == RecordedExit(id="r2", at=FakeClock().now(), end=crash, notebook_path="a.ipynb")


async def test_the_rest_api_says_all_of_it(manage: Callable[..., KernelExitManager]) -> None:
    kernel_exits = manage(FakeNotebookFinder())
    await kernel_exits.kernel_ended("k1", END)
    found = kernel_exits.last_of("k1")

    assert found is not None
    assert found.to_json() == {
        "id": "r1",
        "at": "2026-05-01T12:00:00.000Z",
        "reason": "it needed more than 512 MiB of memory",
        "limit": "memory_limit",
        "most": 512 << 20,
        "signal": None,
        "status": None,
        "notebook_path": None,
    }


async def test_what_is_kept_is_bounded(manage: Callable[..., KernelExitManager]) -> None:
    kernel_exits = manage(FakeNotebookFinder())
    for number in range(MOST_KEPT + 1):
        await kernel_exits.kernel_ended(f"k{number}", END)

    assert kernel_exits.last_of("k0") is None
    assert kernel_exits.last_of("k1") is not None
