from __future__ import annotations

import asyncio

import pytest

from jupyter_agentbox.background import in_background


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
