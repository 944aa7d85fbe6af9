"""What people find who use a page in which the administrator has turned everything off."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from jupyter_agentbox.core.site_policy import SitePolicy

from .accessibility import violations
from .person import Person

LIST = "from jupyter_agentbox import tools\ntools.shop.list_products()"
FILE = "/etc/jupyter/agentbox_rules.json"
#: What each tab of the panel says.
TABS = {
    "Waiting": "Set by your administrator: Arguments cannot be edited.",
    "History": "",
    "Servers": "Set by your administrator: MCP servers of your own are off.",
    "Rules": "Set by your administrator: Lasting answers that allow are off.",
    "Agents": "Set by your administrator: Agents are off.",
}


def lock(page: Page) -> None:
    """Have the server tell the page that all features are off."""

    def answer(route: Route) -> None:
        response = route.fetch()
        features = SitePolicy.closed(FILE).to_json()
        route.fulfill(response=response, json={**response.json(), "features": features})

    page.route(re.compile(r"/jupyter-agentbox/policy(\?|$)"), answer)


def press_what_is_locked(where: Locator) -> None:
    """Press each control that does nothing, so that the reason appears below it."""
    locked = where.locator("button[aria-disabled=true].jp-mod-locked").filter(visible=True)
    for index in range(locked.count()):
        locked.nth(index).click(force=True)  # Playwright would wait until it is enabled
        expect(locked.nth(index)).to_have_accessible_description(re.compile(r"^Set by your administrator: "))


@pytest.mark.usefixtures("theme")
def test_a_page_in_which_everything_is_locked_can_be_used_by_everybody(
    person: Person, notebook: Callable[..., str]
) -> None:
    lock(person.page)
    person.open(notebook(LIST))
    person.run(0)
    card = person.card(0)
    expect(card.locator(".jp-mod-locked").first).to_be_visible()
    press_what_is_locked(card)
    expect(card.get_by_text(TABS["Waiting"]).first).to_be_visible()
    assert violations(person.page) == []

    person.open_panel()
    for tab, text in TABS.items():
        person.show_tab(tab)
        panel = person.page.locator(".jp-AgentBox-panel")
        press_what_is_locked(panel)
        expect(panel).to_contain_text(text)
        assert violations(person.page) == [], tab
