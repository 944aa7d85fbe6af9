"""Rules in the panel: written in a form, obeyed at the next call, taken back."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, expect

from .accessibility import violations
from .person import Person, decide

LIST = "from jupyter_agentbox import tools\nlen(tools.shop.list_products())"


#: Pixels of the ring around what has the focus, and of the gap before it.
RING = 3


def assert_room_for_the_ring(button: Locator) -> None:
    """Check that the list, which paints nothing outside its box, leaves room around a button in it."""
    list_box = button.page.get_by_role("group", name="Rules in force").bounding_box()
    box = button.bounding_box()
    assert list_box
    assert box
    assert box["x"] - RING >= list_box["x"]
    assert box["y"] + box["height"] + RING <= list_box["y"] + list_box["height"]


def test_a_rule_that_is_written_in_the_panel_answers_the_next_call(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(LIST, LIST))
    person.run(0)
    decide(person.card(0), "Allow once")
    expect(person.card(0)).to_contain_text("Allowed by you")
    person.open_panel()
    person.show_tab("Rules")
    rules = person.page.get_by_role("region", name="Rules")
    expect(rules).to_contain_text("There are no rules: every call asks.")
    rules.get_by_role("button", name="New rule…").click()
    rules.get_by_label("Server").fill("shop")
    rules.get_by_label("Tool").fill("list_*")
    rules.get_by_role("button", name="Try on the history").click()
    expect(rules.get_by_text("It would have allowed")).to_be_visible()
    assert violations(person.page) == []
    decide(rules, "Save rule")
    expect(rules).to_contain_text("Allow shop.list_*")
    assert_room_for_the_ring(rules.get_by_role("button", name="Edit shop.list_*"))
    try:
        person.run(1)
        expect(person.cell(1)).to_contain_text(re.compile(r"\[2\]:"))
        person.show_tab("History")
        record = person.history.get_by_role("listitem").first
        expect(record).to_contain_text("Allowed by the rule “user: allow shop.list_*”")
        expect(record).to_contain_text("agentbox_rules.json:3)")
    finally:
        person.show_tab("Rules")
        decide(rules, "Remove shop.list_*")
        expect(rules).to_contain_text("There are no rules: every call asks.")
