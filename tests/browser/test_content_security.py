"""What pages may load, in each browser: the policy by itself, with no guard of outputs in the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, Page

from .addresses import ADDRESSES, CELL, CELL_SOURCE, Listener, listening
from .firefox import FIREFOX, running_firefox
from .lab import PATIENCE, Lab, running_lab
from .person import KERNEL_IS_READY

#: Keeps what the policy stopped.
KEEP_VIOLATIONS = """
window.stopped = [];
document.addEventListener('securitypolicyviolation', ({blockedURI}) => { window.stopped.push(blockedURI); });
"""
#: The current notebook is the one that was told that it has the focus; Firefox's window has none, and tells nobody.
FOCUS = """() => {
  const [main] = window.jupyterapp?.shell.widgets('main') ?? [];
  main?.node.dispatchEvent(new FocusEvent('focus'));
  return Boolean(window.jupyterapp?.shell.currentWidget?.sessionContext);
}"""
RUN_ALL = "async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells'); return true; }"
WAYS = {*ADDRESSES, CELL}


class Window(Protocol):
    """What both browsers can do."""

    def add_init_script(self, script: str) -> None: ...
    def goto(self, url: str) -> object: ...
    def wait_for_function(self, function: str) -> object: ...


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


@pytest.fixture(scope="module", params=["never", "always"])
def mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture(scope="module")
def site(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("site"), f"--AgentBoxApp.content_security_policy={mode}") as lab:
        yield lab


@pytest.fixture(params=["chromium", "firefox"])
def window(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Window]:
    if request.param == "firefox":
        if FIREFOX is None:
            pytest.skip("needs Firefox: Debian's package `firefox-esr`")
        with running_firefox(tmp_path / "profile") as firefox:
            yield firefox
        return
    browser: Browser = request.getfixturevalue("browser")
    page: Page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


@pytest.fixture
def open_notebook(site: Lab, window: Window) -> Iterator[Callable[[str, str], None]]:
    def open_notebook(path: str, front: str) -> None:
        window.goto(f"{site.url}{front}{path}?token={site.token}")
        window.wait_for_function(FOCUS)
        window.wait_for_function(KERNEL_IS_READY)

    yield open_notebook
    site.shut_down_kernels()


@pytest.mark.parametrize("front", ["lab/tree/", "notebooks/"])
def test_no_address_of_an_output_is_asked_and_without_the_policy_each_is(
    listener: Listener, mode: str, site: Lab, window: Window, open_notebook: Callable[[str, str], None], front: str
) -> None:
    listener.asked.clear()
    path = f"{mode}.ipynb"
    sources = [code.replace("URL", listener.address(way)) for way, code in ADDRESSES.items()]
    site.write_notebook(path, *sources)
    notebook = site.read_notebook(path)
    source = CELL_SOURCE.replace("URL", listener.address(CELL))
    notebook["cells"].insert(0, {"cell_type": "markdown", "id": "m", "metadata": {}, "source": source})
    site.ask(f"api/contents/{path}", {"type": "notebook", "content": notebook}, "PUT")
    window.add_init_script(KEEP_VIOLATIONS)

    open_notebook(path, front)
    window.wait_for_function(RUN_ALL)

    if mode == "never":
        assert listener.await_all(WAYS, PATIENCE / 1000) == set()
        return
    addresses = json.dumps([listener.address(way) for way in sorted(WAYS)])
    window.wait_for_function(f"() => {addresses}.every(address => window.stopped.includes(address))")
    assert listener.asked == set()
