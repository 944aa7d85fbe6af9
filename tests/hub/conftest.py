"""One JupyterHub for all of these tests, and one chromium."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import CHROMIUM, CHROMIUM_OPTIONS
from tests.browser.lab import PATIENCE
from tests.postgresql import programs

from .documented import Site, running_site
from .hub import Hub, kept_ports, mcp_server, missing, running_hub
from .machine import why_no_machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))  # the first one starts the Hub and two servers


@pytest.fixture(autouse=True)
def jp_asyncio_loop() -> None:
    """Stand in for pytest-jupyter's fixture: Playwright's loop runs here, and there cannot be two."""


@pytest.fixture(autouse=True)
def jp_server_cleanup() -> None:
    """Stand in for pytest-jupyter's fixture: no server is in this process."""


@pytest.fixture(scope="package")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    if reason := missing():
        pytest.skip(reason)
    with kept_ports(3) as ports, running_hub(tmp_path_factory.mktemp("hub"), ports) as hub:
        yield hub


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A Hub that is set up from the documentation, with users of the system."""
    if reason := missing() or why_no_machine():
        pytest.skip(reason)
    if programs() is None:
        pytest.skip("PostgreSQL's server is not installed")
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(autouse=True)
def withdraw(request: pytest.FixtureRequest) -> Iterator[None]:
    """Withdraw what still waits after a test, so that the next one sees its own requests only."""
    yield
    if "hub" in request.fixturenames:
        hub: Hub = request.getfixturevalue("hub")
        hub.withdraw_requests()


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a chromium in which nobody has logged in."""
    with new_page() as page:
        yield page


@contextmanager
def new_page(*options: str) -> Iterator[Page]:
    """Give the page of a chromium of its own, which is started with more options."""
    assert CHROMIUM, "these tests need Debian's `chromium`"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*CHROMIUM_OPTIONS, *options])
        context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
        context.set_default_timeout(PATIENCE)
        yield context.new_page()
        browser.close()


@pytest.fixture
def shop(hub: Hub) -> Iterator[None]:
    """Give the owner's server an MCP server."""
    with mcp_server(hub, "shop", {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}):
        yield
