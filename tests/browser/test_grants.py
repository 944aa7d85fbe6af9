"""Lasting answers from the card, and their list in the panel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .lab import Lab
from .person import Person, decide

LOOP = """from jupyter_agentbox import tools

for n in (1, 2, 3):
    tools.shop.set_price(product_id=n, price=10.0 + n)
print("done")"""
ONCE = "from jupyter_agentbox import tools\nprint(tools.shop.set_price(product_id=7, price=9.5))"
SCOPE = "Allow the destructive shop.set_price in this notebook until its kernel ends"


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_one_answer_lets_a_loop_run_and_is_listed_and_revoked(
    person: Person, notebook: Callable[..., str], by: str
) -> None:
    person.open(notebook(LOOP, ONCE))
    person.run(0)
    card = person.card()
    arrow = card.get_by_role("button", name="Let it run more often…")
    answer = card.get_by_role("button", name=SCOPE)
    if by == "mouse":
        arrow.click()
        expect(answer).to_be_enabled()
        answer.click()
    else:
        arrow.press("Enter")
        expect(card.get_by_role("button", name="Allow this exact call")).to_be_focused()
        person.keyboard.press("ArrowDown")
        expect(answer).to_be_focused()
        expect(answer).to_be_enabled()
        person.keyboard.press("Enter")
    expect(person.cell(0).locator(".jp-OutputArea-output")).to_contain_text(["done"])
    person.open_panel()
    person.show_tab("Rules")
    panel = person.page.locator(".jp-AgentBox-panel")
    grant = panel.locator(".jp-AgentBox-grant")
    expect(grant).to_contain_text("Allows shop.set_price in")
    expect(grant).to_contain_text("used 3 times")
    grant.get_by_role("button", name="Revoke").click()
    expect(grant).to_have_count(0)
    person.show_tab("History")
    expect(person.history).to_contain_text("Allowed by your lasting answer of")
    person.run(1)
    expect(person.cell(1).get_by_role("button", name="Allow once")).to_be_visible()


def test_a_call_is_allowed_with_a_comment_that_the_code_is_told_and_becomes_a_rule(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook("from jupyter_agentbox import tools\ntools.shop.set_price(product_id=7, price=9.5).price"))
    person.run(0)
    card = person.card()
    card.get_by_role("button", name="Let it run more often…").click()
    decide(card, "Allow once with a comment…")
    card.get_by_role("textbox", name="Comment").fill("the last change today")
    card.get_by_role("checkbox", name="Show it to the calling code").check()
    decide(card, "Allow once")
    outputs = person.cell(0).locator(".jp-OutputArea-output")
    expect(outputs).to_contain_text(
        [
            "shop.set_price Allowed by you (“the last change today”).",
            "on shop.set_price: the last change today",
            "9.5",
        ]
    )
    card.get_by_text("shop.set_price").click()
    card.get_by_role("button", name="Make a rule…").click()
    form = person.page.locator(".jp-AgentBox-ruleForm, .jp-AgentBox-panel")
    expect(form.get_by_role("textbox", name="Tool", exact=True)).to_have_value("set_price")


def test_picture_of_the_lasting_answers(person: Person, lab: Lab, save_picture: Callable[..., None]) -> None:
    lab.write_notebook("prices.ipynb", ONCE)
    person.open("prices.ipynb")
    person.keyboard.press("Control+B")
    person.run(0)
    card = person.card()
    card.get_by_role("button", name="Let it run more often…").click()
    expect(card.get_by_role("button", name=SCOPE)).to_be_enabled()
    save_picture("grants-light", person.cell(0))
