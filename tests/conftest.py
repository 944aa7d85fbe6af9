"""Fixtures that tests of several layers use."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from jupyter_agentbox.system import SystemClock
from jupyter_agentbox.testing import FakeAnnouncer, FakeClock, FakeIds, MemoryApprovalStore

from .pgbouncer import pooled
from .postgresql import make_postgresql_database
from .scheduling import InOrder, rank

__all__ = ["make_postgresql_database", "pooled"]

# Whether a property holds does not depend on how busy the machine is, nor on what was drawn this time.
# For other examples: pytest --hypothesis-profile=default
settings.register_profile("tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Keep the files of a folder together, unless another way of handing out tests is asked for."""
    return InOrder(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=rank)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def let_time_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let the clocks of this process jump by so many seconds: each time limit that is under way ends then.

    So a limit can be so long that no machine is too slow for what has to happen before it ends.
    """

    def jump(seconds: float) -> None:
        monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + seconds)
        later = timedelta(seconds=seconds)
        monkeypatch.setattr(SystemClock, "now", lambda self, now=SystemClock.now: now(self) + later)

    return jump


@pytest.fixture
def ids() -> FakeIds:
    return FakeIds()


@pytest.fixture
def announcer() -> FakeAnnouncer:
    return FakeAnnouncer()


@pytest.fixture
def store() -> MemoryApprovalStore:
    return MemoryApprovalStore()
