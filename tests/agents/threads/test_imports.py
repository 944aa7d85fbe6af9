"""Importing the libraries of models."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from jupyter_agentbox.agents.threads.imports import without_collections

FIRST_TURN = """
import asyncio, gc
from jupyter_agentbox import AsyncAgent
from jupyter_agentbox.testing import MockModelServer

async def main():
    with MockModelServer() as model:
        model.enqueue_message("hello")
        async with AsyncAgent("openai:scripted", base_url=model.base_url, api_key="none") as agent:
            thread = await agent.thread_start()
            del collections[:]
            assert (await thread.run("go")).final_response == "hello"

collections = []
gc.set_threshold(700, 10, 10)  # as users have it, from the first import on
gc.callbacks.append(lambda phase, info: collections.append(info["generation"]) if phase == "start" else None)
asyncio.run(main())
assert gc.isenabled()
print(collections.count(2))
"""


def test_collecting_goes_on_afterwards_also_after_an_error() -> None:
    with without_collections():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), without_collections():
        raise ImportError
    assert gc.isenabled()


def test_who_collects_no_garbage_goes_on_so() -> None:
    gc.disable()
    try:
        with without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_first_turn_does_not_look_through_all_that_it_imports_again_and_again() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_TURN], capture_output=True, text=True, check=True, timeout=60)

    assert int(done.stdout) <= 1
