from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from jupyter_agentbox.background import in_background, in_thread
from tests.beats import beat_of_the_loop


async def fail() -> None:
    raise RuntimeError("nobody thought of this")


async def test_what_fails_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    failed = asyncio.Event()
    await in_background(fail(), what="the work", on_failure=failed.set)
    assert failed.is_set()
    assert "the work failed" in caplog.text
    assert "nobody thought of this" in caplog.text


async def test_what_is_cancelled_or_ends_is_not(caplog: pytest.LogCaptureFixture) -> None:
    failed = asyncio.Event()
    task = in_background(asyncio.sleep(60), what="the work", on_failure=failed.set)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await in_background(asyncio.sleep(0), what="the work", on_failure=failed.set)
    assert (task.cancelled(), failed.is_set(), caplog.text) == (True, False, "")


async def test_work_that_is_cancelled_before_it_begins_is_closed_without_a_warning() -> None:
    work = fail()
    task = in_background(work, what="the work")
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)  # callbacks of the task run in the next turn
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


async def test_what_blocks_in_a_thread_leaves_the_loop_free_and_its_result_comes_back() -> None:
    await_beat = beat_of_the_loop()

    def work(number: int) -> int:
        await_beat()
        return number + 1

    assert await in_thread(work, 1) == 2


async def test_a_cancelled_task_waits_for_what_its_thread_does() -> None:
    began, go_on, done = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(began.set)
        go_on.wait(60)
        done.append("all of it")

    task = asyncio.create_task(in_thread(work))
    await began.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["all of it"]
