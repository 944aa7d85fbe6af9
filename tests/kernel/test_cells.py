from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jupyter_agentbox.kernel.cells import Cell, Cells


class Shell:
    """Runs cells: says what the parent message is."""

    def __init__(self) -> None:
        self.parent: dict[str, Any] = {}
        self.cells = Cells(lambda: self.parent)

    def run(self, cell_id: str, code: Callable[[], Any]) -> Any:
        def execute() -> Any:
            self.parent = {"header": {"msg_id": f"m-{cell_id}"}, "metadata": {"cellId": cell_id}}
            self.cells.started()
            try:
                return code()
            finally:
                self.cells.ended()

        return contextvars.copy_context().run(execute)

    def where(self) -> str | None:
        return self.cells.current().cell_id


@pytest.fixture
def shell() -> Shell:
    return Shell()


class Worker:
    """A thread that says, when asked, which cell it belongs to."""

    def __init__(self, shell: Shell) -> None:
        self._asked, self._answered = threading.Event(), threading.Event()
        self._shell = shell
        self.cell_id: str | None = None
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        self._asked.wait(60)
        self.cell_id = self._shell.where()
        self._answered.set()

    def ask(self) -> str | None:
        self._asked.set()
        assert self._answered.wait(60)
        self._thread.join(60)
        return self.cell_id


def test_code_belongs_to_the_cell_that_runs_it(shell: Shell) -> None:
    assert shell.run("a", shell.where) == "a"
    assert shell.run("b", shell.where) == "b"


def test_code_outside_any_cell_belongs_to_the_shells_last_message(shell: Shell) -> None:
    assert shell.where() is None
    shell.parent = {"metadata": {"cellId": "silent"}}
    assert shell.where() == "silent"


def test_thread_belongs_to_the_cell_that_started_it_also_later(shell: Shell) -> None:
    worker = shell.run("a", lambda: Worker(shell))

    assert shell.run("b", worker.ask) == "a"


def test_thread_of_the_running_cell_belongs_to_it(shell: Shell) -> None:
    assert shell.run("a", lambda: Worker(shell).ask()) == "a"


def test_thread_of_a_pool_belongs_to_the_cell_that_runs(shell: Shell) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert shell.run("a", lambda: pool.submit(shell.where).result(60)) == "a"
        assert shell.run("b", lambda: pool.submit(shell.where).result(60)) == "b"


async def test_task_belongs_to_the_cell_that_made_it_also_later(shell: Shell) -> None:
    go = asyncio.Event()

    async def work() -> tuple[str | None, str | None]:
        await go.wait()
        return shell.where(), await asyncio.to_thread(shell.where)

    task = shell.run("a", lambda: asyncio.create_task(work()))
    shell.run("b", go.set)

    assert await asyncio.wait_for(task, 60) == ("a", "a")


def test_running_cell_is_acted_upon_until_it_ends(shell: Shell) -> None:
    seen: list[str | None] = []

    shell.run("a", lambda: shell.cells.while_running(lambda cell: seen.append(cell.cell_id)))
    shell.cells.while_running(lambda cell: seen.append(cell.cell_id))

    assert seen == ["a"]


@pytest.mark.parametrize(
    ("metadata", "shows"),
    [
        ({"cellId": "5b6c"}, True),
        ({"cellId": "vscode-notebook-cell:/x.ipynb#W0"}, False),
        ({"cellId": 3}, False),
        ({}, False),
    ],
)
def test_widgets_are_for_pages_that_can_have_the_extension(metadata: dict[str, Any], shows: bool) -> None:
    assert Cell({"metadata": metadata}).shows_widgets is shows
