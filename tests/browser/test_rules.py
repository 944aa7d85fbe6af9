"""Rules in the panel: written in a form, obeyed at the next call, taken back."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .accessibility import violations
from .lab import Lab
from .person import Person, decide

LIST = "from jupyter_agentbox import tools\nlen(tools.shop.list_products())"


#: Pixels of the ring around what has the focus, and of the gap before it.
RING = 3


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


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
    expect(rules).to_contain_text("There are no rules: every call waits for you")
    rules.get_by_role("button", name="New rule…").click()
    save = rules.get_by_role("button", name="Save rule")
    expect(save).to_have_accessible_description("Fill in the server first.")
    expect(save).to_be_disabled()
    rules.get_by_label("Effect").select_option("Allow")
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
        expect(rules).to_contain_text("There are no rules: every call waits for you")


def test_a_rule_that_is_made_from_a_waiting_card_answers_its_request(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(LIST))
    person.run(0)
    card = person.card(0)
    card.get_by_role("button", name="Let it run more often…").click()
    decide(card, "Make a rule…")
    rules = person.page.get_by_role("region", name="Rules")
    expect(rules.get_by_label("Tool")).to_have_value("list_products")
    decide(rules, "Save rule")
    try:
        expect(card).to_contain_text("Allowed by the rule “user: allow shop.list_products” that you wrote.")
        expect(person.cell(0)).to_contain_text(re.compile(r"\[1\]:"))
        card.locator("summary").first.click()
        card.get_by_text("Details", exact=True).click()
        expect(card).to_contain_text("agentbox_rules.json:3")
        assert violations(person.page) == []
    finally:
        decide(rules, "Remove shop.list_products")
        expect(rules).to_contain_text("There are no rules: every call waits for you")


def test_a_file_of_rules_that_breaks_is_noticed_while_the_panel_is_closed(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    person = new_person()
    rules = lab.root / "config" / "agentbox_rules.json"
    # The page asks now and then; here, the time goes by at once.
    person.page.clock.install()
    person.open(notebook(LIST))
    page = person.page
    marked = page.locator(".jp-AgentBox-tabs [data-agentbox-problem]")
    expect(marked).to_have_count(0)
    rules.write_text('{"rules": [')
    try:
        page.clock.fast_forward(31_000)
        told = person.toasts.filter(has_text="A file of rules cannot be used")
        expect(told).to_have_count(1)
        expect(marked).to_have_text("Rules")
        show = told.get_by_role("button", name="Show")
        show.focus()
        person.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Rules")).to_contain_text("agentbox_rules.json, line 1")
        expect(page.locator(".jp-AgentBox-panel")).to_be_focused()
        page.clock.run_for(2_000)
        expect(told).to_have_count(0)
        assert violations(page) == []
    finally:
        rules.unlink()
    page.clock.fast_forward(31_000)
    expect(marked).to_have_count(0)
