"""Fixtures that tests of several layers use."""

from __future__ import annotations

import pytest

from jupyter_agentbox.testing import FakeAnnouncer, FakeClock, FakeIds, MemoryApprovalStore


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ids() -> FakeIds:
    return FakeIds()


@pytest.fixture
def announcer() -> FakeAnnouncer:
    return FakeAnnouncer()


@pytest.fixture
def store() -> MemoryApprovalStore:
    return MemoryApprovalStore()
