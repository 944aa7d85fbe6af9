"""Notifications of the desktop, in a chromium that shows them: its headless shell has none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import CHROMIUM_OPTIONS
from .lab import PATIENCE, Lab
from .person import SIZE, Person

#: Two calls at once, when the file `go` is there: by then the person looks elsewhere.
GATHER = """import asyncio, pathlib
from jupyter_agentbox import tools
while not pathlib.Path("{go}").exists():
    await asyncio.sleep(0.05)
await asyncio.gather(tools.shop.list_orders.aio(limit=1), tools.shop.delete_order.aio(order_id=1051))"""

#: Keeps what is shown, and changes nothing about it.
RECORD = """
window.notified = [];
window.Notification = class extends window.Notification {
  constructor(title, options) {
    super(title, options);
    window.notified.push({ title, isOpen: false, notification: this });
    const own = window.notified.at(-1);
    this.addEventListener('show', () => { own.isOpen = true; });
    this.addEventListener('close', () => { own.isOpen = false; });
  }
};
"""

WAIT = "2 tool calls need your approval"
EXPIRE = "2 tool calls expire in less than 2 minutes"

#: Seconds that a request waits: a few more than those from which on it counts as about to expire.
TIMEOUT = 130


@pytest.fixture
def page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """A page that may notify; afterwards no kernel runs and nothing waits."""
    chromium = shutil.which("chromium")
    assert chromium, "the browser tests need Debian's `chromium`"
    with browser.browser_type.launch(executable_path=chromium, args=CHROMIUM_OPTIONS) as desktop:
        context = desktop.new_context(viewport=SIZE, locale="en-GB", permissions=["notifications"])
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.add_init_script(RECORD)
        yield page
    lab.shut_down_kernels()


@pytest.fixture
def run_unseen(page: Page, lab: Lab, notebook: Callable[..., str], tmp_path: Path) -> Callable[[], str]:
    """Run two calls while the person looks at another page; the result is the notebook's path."""

    def run_unseen() -> str:
        person = Person(page, lab)
        go = tmp_path / "go"
        path = notebook(GATHER.format(go=go))
        person.open(path)
        person.run(0)
        # Playwright has each page believe that somebody looks at it.
        page.context.new_cdp_session(page).send("Emulation.setFocusEmulationEnabled", {"enabled": False})
        page.context.new_page().bring_to_front()
        await_unseen(page, "!document.hasFocus()")
        go.touch()
        return path

    return run_unseen


def await_unseen(page: Page, condition: str, arg: Any = None) -> None:
    """Wait for something on a page that draws nothing, because nobody looks at it."""
    page.wait_for_function(condition, arg=arg, polling=100)


def await_one_open(page: Page, title: str) -> None:
    """Wait until one notification is shown, with this title, and all others are gone."""
    open_now = "window.notified.filter(({ isOpen }) => isOpen)"
    shown = f"title => {open_now}.length === 1 && {open_now}[0].title === title"
    await_unseen(page, shown, title)


def test_one_notification_shows_what_waits_decides_nothing_and_comes_again_before_it_expires(
    page: Page, lab: Lab, run_unseen: Callable[[], str]
) -> None:
    person = Person(page, lab)
    with (
        lab.rules({"effect": "ask", "server": "shop", "tool": "*", "timeout": TIMEOUT}),
        lab.settings("jupyter-agentbox:notifications", {"desktopNotifications": True}),
    ):
        path = run_unseen()
        await_one_open(page, WAIT)
        page.evaluate("window.notified.at(-1).notification.dispatchEvent(new Event('click'))")
        page.bring_to_front()
        expect(person.panel.locator(".jp-AgentBox-card:focus")).to_have_count(1)
        assert len(lab.approvals(path)) == 2
        page.context.pages[-1].bring_to_front()
        await_one_open(page, EXPIRE)
        titles: list[Any] = page.evaluate("window.notified.map(n => n.title)")
        assert titles.count(EXPIRE) == 1
        assert len(lab.approvals(path)) == 2
        for request in lab.approvals(path):
            lab.decide(request, decision="reject_once")
        await_unseen(page, "window.notified.every(n => !n.isOpen)")


def test_nothing_pops_up_while_do_not_disturb_is_on(page: Page, lab: Lab, run_unseen: Callable[[], str]) -> None:
    person = Person(page, lab)
    with (
        lab.settings("jupyter-agentbox:notifications", {"desktopNotifications": True}),
        lab.settings("@jupyterlab/apputils-extension:notification", {"doNotDisturbMode": True}),
    ):
        path = run_unseen()
        page.evaluate("window.jupyterapp.shell.currentWidget.dispose()")  # its cards are out of view
        expect(page.locator(".jp-Notification-Status")).to_have_text("1")
        expect(person.toasts).to_have_count(0)
        assert page.evaluate("window.notified") == []
        page.evaluate("window.jupyterapp.commands.execute('apputils:display-notifications')")
        expect(page.locator(".jp-Notification-List")).to_contain_text(WAIT)
        assert len(lab.approvals(path)) == 2
