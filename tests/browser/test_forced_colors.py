"""A page whose colors the system chooses, as with a contrast theme of Windows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .person import Person

ORDERS = """from jupyter_agentbox import tools
tools.shop.list_orders(limit=1)"""

#: A color of the system, as the page draws it.
SYSTEM_COLOR = """name => {
  const probe = document.body.appendChild(document.createElement('i'));
  probe.style.cssText = `color: ${name}; forced-color-adjust: none`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}"""


@pytest.fixture
def person(new_person: Callable[[], Person]) -> Person:
    person = new_person()
    person.page.emulate_media(forced_colors="active")
    return person


def style(place: Locator, name: str, pseudo: str | None = None) -> str:
    return str(place.evaluate("(node, [name, pseudo]) => getComputedStyle(node, pseudo)[name]", [name, pseudo]))


def test_buttons_the_chosen_tab_and_counts_can_be_told_apart(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ORDERS))
    person.run(0)
    card = person.card()
    allow = card.get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    person.open_panel()
    highlight, canvas, text = [
        person.page.evaluate(SYSTEM_COLOR, name) for name in ("Highlight", "Canvas", "CanvasText")
    ]
    assert len({highlight, canvas, text}) == 3

    assert style(allow, "backgroundColor") == highlight
    assert style(card.get_by_role("button", name="Reject"), "backgroundColor") != highlight
    assert style(card, "borderLeftColor") == text
    tabs = person.page.locator(".jp-AgentBox-tabs .lm-TabBar-tab")
    assert [style(tab, "borderBottomColor") for tab in tabs.all()] == [highlight, *[canvas] * (tabs.count() - 1)]
    assert style(tabs.first, "backgroundColor", "::after") == highlight
    assert style(person.status, "backgroundColor") == highlight
    card.focus()
    assert (style(card, "outlineColor"), style(card, "outlineStyle")) == (highlight, "solid")
