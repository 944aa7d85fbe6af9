from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agentbox.agent_composition import AgentSettings, build_threads
from jupyter_agentbox.core.threads import ApprovalMode
from jupyter_agentbox.exceptions import ThreadError, UnknownThreadError
from jupyter_agentbox.kernel import agent_magic
from jupyter_agentbox.services.calls.thread_modes import ThreadModes
from jupyter_agentbox.services.threads import turn_options
from jupyter_agentbox.services.threads.cell_commands import CellCommands
from jupyter_agentbox.services.threads.cell_kernels import CellKernels
from jupyter_agentbox.services.threads.manager import NotebookThreads
from jupyter_agentbox.services.threads.mode_changes import ModeChanges

NOTEBOOK = "a.ipynb"
#: No command here lets a thread ask less.
UNASKED: Any = None


@pytest.fixture
def threads(database: str, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[NotebookThreads]:
    settings = AgentSettings(database_url=database, model="openai:scripted")
    made = build_threads(settings, kernels=CellKernels(), modes=ThreadModes(), announce=lambda *_: None)
    yield made
    jp_asyncio_loop.run_until_complete(made.aclose())


async def test_a_thread_is_found_by_its_name_or_the_beginning_of_its_id(threads: NotebookThreads) -> None:
    commands = CellCommands(threads, NOTEBOOK, UNASKED)
    named = await threads.start(NOTEBOOK, name="sales")
    archived = await threads.start(NOTEBOOK)
    await threads.change(archived.id, is_archived=True)

    found = [await commands.find(name) for name in ("sales", named.id, named.id[:8], archived.id[:8])]

    assert [entry.thread.id for entry in found] == [named.id, named.id, named.id, archived.id]
    for name, is_archived in (("sales", True), (archived.id, False), (named.id[:7], None)):
        with pytest.raises(UnknownThreadError):
            await commands.find(name, archived=is_archived)


async def test_a_thread_of_another_notebook_is_not_found(threads: NotebookThreads) -> None:
    other = await threads.start("other.ipynb", name="sales")

    for name in ("sales", other.id, other.id[:8]):
        with pytest.raises(UnknownThreadError):
            await CellCommands(threads, NOTEBOOK, UNASKED).find(name)


async def test_of_several_threads_of_a_name_none_is_taken(threads: NotebookThreads) -> None:
    commands = CellCommands(threads, NOTEBOOK, UNASKED)
    both = [await threads.start(NOTEBOOK, name="sales") for _ in range(2)]

    with pytest.raises(ThreadError) as refused:
        await commands.answer("delete", ["sales"])

    assert not isinstance(refused.value, UnknownThreadError)
    assert [one.id for one in both if one.id[:8] not in str(refused.value)] == []


async def test_copies_of_a_thread_have_names_of_their_own(threads: NotebookThreads) -> None:
    commands = CellCommands(threads, NOTEBOOK, ModeChanges(UNASKED, UNASKED, "m1"))
    await threads.start(NOTEBOOK, name="sales")

    said = [await commands.answer("fork", ["sales"]) for _ in range(2)]

    goes_on = "The next %%agent goes on with thread"
    assert said == [f"{goes_on} `sales (copy)`, a copy of `sales`.", f"{goes_on} `sales (copy 2)`, a copy of `sales`."]
    assert (await commands.find("sales (copy 2)")).thread.forked_from is not None


async def test_the_magic_offers_what_the_server_takes(threads: NotebookThreads) -> None:
    commands = CellCommands(threads, NOTEBOOK, UNASKED)

    assert {*agent_magic.COMMANDS, "names"} == {*commands._commands, "help"}
    assert [name.removeprefix("--") for name in agent_magic.OPTIONS] == list(turn_options.NAMES)
    assert agent_magic.OPTIONS["--mode"] == tuple(mode.value for mode in ApprovalMode)
    assert agent_magic.OPTIONS["--backend"] == turn_options.BACKENDS
    assert agent_magic.OPTIONS["--context"] == turn_options.CONTEXTS
