from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.events import EventManager, available_events

from jupyter_agentbox.exceptions import NoServerError
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.cells import Cell

from .test_transport import Kernel


class Interruptions:
    """A link that only notes which cells were interrupted, and how many ended."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.ended = 0
        self.cleared: list[str] = []

    def outputs_cleared(self) -> None:
        self.cleared.append("link")

    def cell_interrupted(self, cell: Cell) -> None:
        self.cells.append(cell)

    def cell_ended(self) -> None:
        self.ended += 1


class Shell:
    """As much of IPython's shell as the runtime touches."""

    def __init__(self, parent: dict[str, Any]) -> None:
        self.kernel = Kernel()
        self.kernel.get_parent = lambda _channel: parent  # type: ignore[attr-defined]
        self.events = EventManager(self, available_events)
        self.cleared: list[bool] = []
        self.display_pub = SimpleNamespace(clear_output=self.cleared.append)


@pytest.fixture
def shell(parent: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    made = Shell(parent)
    monkeypatch.setattr(runtime, "_cells", None)
    monkeypatch.setattr(runtime, "_shell", lambda: made)
    runtime.use(None)
    yield made
    runtime.use(None)


def test_link_of_a_kernel_is_made_once(shell: Shell) -> None:
    assert runtime.link() is runtime.link()
    assert "comm_msg" in shell.kernel.control_handlers


def test_attaching_twice_follows_the_cells_once(shell: Shell) -> None:
    runtime.attach(shell)
    runtime.attach(shell)

    assert len(shell.events.callbacks["pre_run_cell"]) == 1
    assert shell.kernel.control_handlers == {}


@pytest.mark.parametrize("without", [None, SimpleNamespace(), SimpleNamespace(kernel=SimpleNamespace())])
def test_shell_without_a_fitting_kernel_has_no_link(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, without: Any
) -> None:
    monkeypatch.setattr(runtime, "_shell", lambda: without)

    with pytest.raises(NoServerError):
        runtime.link()


@pytest.mark.parametrize(("error", "interrupted"), [("KeyboardInterrupt", 1), ("CancelledError", 1), ("ValueError", 0)])
def test_interrupted_cell_is_reported_to_the_link(shell: Shell, error: str, interrupted: int) -> None:
    link = Interruptions()
    runtime.use(link)  # type: ignore[arg-type]  # only this is used
    runtime.attach(shell)

    shell.events.trigger("pre_run_cell", None)
    shell.events.trigger("post_run_cell", SimpleNamespace(error_in_exec=type(error, (Exception,), {})()))

    assert [cell.cell_id for cell in link.cells] == ["cell-1"] * interrupted
    assert link.ended == 1


@pytest.mark.parametrize(
    ("kind", "asked"), [("complete_request", True), ("inspect_request", True), ("execute_request", False)]
)
def test_editor_is_told_from_a_cell(shell: Shell, parent: dict[str, Any], kind: str, asked: bool) -> None:
    parent["content"]["silent"] = True
    runtime.attach(shell)
    parent["header"]["msg_type"] = kind

    assert runtime.is_asked_by_editor() is asked


def test_outside_a_kernel_no_editor_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_cells", None)

    assert not runtime.is_asked_by_editor()


def test_cell_that_loads_the_kernel_side_counts_as_running(shell: Shell) -> None:
    runtime.attach(shell)
    seen: list[str] = []

    runtime._cells.while_running(lambda cell: seen.append(cell.key))  # type: ignore[union-attr]

    assert seen == ["m1"]
    shell.events.trigger("post_run_cell", SimpleNamespace())
    runtime._cells.while_running(lambda cell: seen.append(cell.key))  # type: ignore[union-attr]
    assert seen == ["m1"]


def test_the_link_hears_when_code_clears_the_outputs_of_its_cell(shell: Shell) -> None:
    shell.display_pub.clear_output(True)  # before the link is made
    runtime.attach(shell)
    shell.display_pub.clear_output(True)
    link: Any = Interruptions()
    runtime.use(link)

    shell.display_pub.clear_output(False)

    assert (shell.cleared, link.cleared) == ([True, True, False], ["link"])
