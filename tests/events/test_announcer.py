from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jupyter_events import EventLogger

from jupyter_agentbox import events as module
from jupyter_agentbox.events import APPROVAL_EVENT, EventAnnouncer
from jupyter_agentbox.testing import TIMEOUT
from tests.samples import a_request


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(module, "PROGRESS_INTERVAL", 0.02)
    return []


@pytest.fixture
def events() -> EventLogger:
    return EventLogger()


def an_announcer(events: EventLogger, announced: list[str]) -> EventAnnouncer:
    announcer = EventAnnouncer(events)

    async def listen(logger: EventLogger, schema_id: str, data: Any) -> None:  # by name
        announced.append(data["id"])

    events.add_listener(schema_id=APPROVAL_EVENT, listener=listen)
    return announcer


async def pass_the_intervals(announcer: EventAnnouncer, events: EventLogger) -> None:
    """Wait until nothing is left to be announced, and the listener has heard all of it."""
    async with asyncio.timeout(TIMEOUT):
        while announcer._later:  # noqa: ASYNC110  # it tells nobody of its timers
            await asyncio.sleep(0)
    await events.gather_listeners()


async def test_progress_is_announced_once_and_again_only_if_more_came(
    events: EventLogger, announced: list[str]
) -> None:
    announcer, request = an_announcer(events, announced), a_request()
    announcer.approval_changed(request)
    announcer.approval_changed(request)  # its call is further
    await pass_the_intervals(announcer, events)
    assert announced == ["r1", "r1"]
    for _ in range(10):
        announcer.approval_changed(request)
    await pass_the_intervals(announcer, events)
    assert announced == ["r1"] * 4


async def test_requests_whose_end_is_never_announced_are_forgotten(
    events: EventLogger, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ANNOUNCED", 5)
    announcer = an_announcer(events, announced)
    for number in range(20):
        announcer.approval_changed(a_request(f"r{number}"))
    assert list(announcer._announced) == [f"r{number}" for number in range(15, 20)]
