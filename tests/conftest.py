"""Fixtures that tests of several layers use."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from jupyter_core.paths import jupyter_path
from jupyter_server.serverapp import ServerApp
from xdist.scheduler import LoadScopeScheduling

from jupyter_agentbox.system import SystemClock
from jupyter_agentbox.testing import FakeAnnouncer, FakeClock, FakeIds, MemoryApprovalStore

from .pgbouncer import pooled
from .ports import keep_kernel_ports
from .postgresql import make_postgresql_database
from .scheduling import InOrder, rank

__all__ = ["make_postgresql_database", "pooled"]

# To read the tests makes millions of objects, and no garbage: looking for it would take a third of that time.
gc.disable()

# Whether a property holds does not depend on how busy the machine is, nor on what was drawn this time.
# For other examples: pytest --hypothesis-profile=default
settings.register_profile("tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

keep_kernel_ports()

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


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def jp_server_cleanup(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Stand in for pytest-jupyter's fixture, which makes a server after each test that has none, to clean it up."""
    yield
    if not ServerApp.initialized():
        return
    app = ServerApp.instance()
    with suppress(RuntimeError, SystemExit):
        jp_asyncio_loop.run_until_complete(app._cleanup())
    if hasattr(app, "kernel_manager"):
        app.kernel_manager.context.destroy()
    ServerApp.clear_instance()


@pytest.fixture
def jp_nbconvert_templates(jp_data_dir: Path) -> None:
    """Stand in for pytest-jupyter's fixture, which copies hundreds of files for each server."""
    found = next((Path(path) for path in jupyter_path("nbconvert", "templates") if Path(path).exists()), None)
    if found is not None:
        (jp_data_dir / "nbconvert").mkdir(parents=True)
        (jp_data_dir / "nbconvert" / "templates").symlink_to(found)


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
