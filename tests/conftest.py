"""Fixtures that tests of several layers use."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from jupyter_agentbox.testing import FakeAnnouncer, FakeClock, FakeIds, MemoryApprovalStore

# Whether a property holds does not depend on how busy the machine is, nor on what was drawn this time.
# For other examples: pytest --hypothesis-profile=default
settings.register_profile("tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


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
