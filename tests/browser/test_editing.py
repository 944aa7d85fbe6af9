"""Editing the arguments of a call, in a form and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .lab import STRANGE_NAME, Lab
from .person import Person, decide, press

PRICE = "from jupyter_agentbox import tools\ntools.shop.set_price(product_id=5, price=149.0).price"
ORDER = """from jupyter_agentbox import tools
tools.shop.add_order(customer="Ada Nilsen", lines=[{"product_id": 1, "quantity": 2}]).customer"""
ALLOW = "Allow once with edits"


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_form_edits_arguments_and_both_versions_are_kept(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(PRICE)
    person.open(path)
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    expect(card).to_contain_text("No changes")
    price = card.get_by_role("textbox", name="price")
    expect(price).to_have_value("149.0")
    expect(card.get_by_role("textbox", name="product_id")).to_be_focused()
    price.fill("14.9")
    expect(card).to_contain_text("price149.0 → 14.9")
    decide(card, ALLOW)
    expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("14.9")
    expect(card).to_contain_text("Allowed with edited arguments by you")
    card.get_by_text("Allowed with edited arguments").click()
    expect(card).to_contain_text("Edited arguments")
    expect(card).to_contain_text("Original arguments")
    (approved,) = lab.approvals(path, "approved")
    assert approved["call"]["arguments"] == {"product_id": 5, "price": 149.0}
    assert approved["decision"]["arguments"] == {"product_id": 5, "price": 14.9}


def test_the_offer_to_update_the_code_is_there_after_a_reload(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(PRICE))
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    card.get_by_role("textbox", name="price").fill("14.9")
    decide(card, ALLOW)
    person.save()
    person.reload()
    card.get_by_text("Allowed with edited arguments").click()
    offer = card.get_by_role("button", name="Update the cell’s code…")
    offer.click()
    card.get_by_role("button", name="Update the code").click()
    expect(person.cell(0).locator(".jp-Cell-inputArea .cm-content")).to_contain_text("price=14.9")


def test_a_field_that_is_wrong_keeps_the_button_off_and_a_try_by_keyboard_leads_to_it(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(PRICE)
    person.open(path)
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    price, product = card.get_by_role("textbox", name="price"), card.get_by_role("textbox", name="product_id")
    allow = card.get_by_role("button", name=ALLOW)
    expect(product).to_be_focused()  # the form takes the focus when it opens
    price.fill("-3")
    expect(card.get_by_text("Must be more than 0")).to_have_count(1)
    expect(price).to_have_accessible_description("Must be more than 0")
    expect(card.get_by_role("button", name="Cancel")).to_be_enabled()
    expect(allow).to_be_disabled()
    expect(allow).to_have_accessible_description("shop.set_price Correct the marked field first.")
    product.focus()
    person.keyboard.press("Control+Enter")
    expect(price).to_be_focused()
    person.keyboard.press("Tab")
    expect(allow).to_be_focused()
    person.keyboard.press("Enter")
    expect(price).to_be_focused()
    assert lab.approvals(path)
    decide(card, "Cancel")
    expect(card.get_by_role("button", name="Edit")).to_be_focused()
    decide(card, "Edit")
    expect(price).to_have_value("-3")
    price.fill("15")
    expect(card.get_by_text("Must be more than 0")).to_have_count(0)
    expect(allow).to_be_enabled()
    price.press("Control+Enter")
    expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("15.0")


def test_arguments_that_the_server_refuses_are_named_at_their_field_until_they_are_corrected(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    call = f"runtime.link().call({STRANGE_NAME!r}, '<b>delete</b>_all', {{'path': '/', 'code': 'OLD'}})"
    path = notebook(f"from jupyter_agentbox.kernel import runtime\n{call}")
    person.open(path)
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    code = card.get_by_role("textbox", name="code")
    code.fill("new")
    decide(card, ALLOW)
    refusal = card.get_by_text(re.compile("^`code`: .*new"))
    expect(refusal).to_have_count(1)
    expect(code).to_be_focused()
    expect(code).to_have_accessible_description(re.compile("^`code`: .*new"))
    expect(code).to_have_attribute("aria-invalid", "true")
    expect(card.get_by_role("button", name=ALLOW)).to_be_disabled()
    assert lab.approvals(path)
    code.fill("NEW")
    expect(refusal).to_have_count(0)
    decide(card, ALLOW)
    expect(card).to_contain_text("Allowed with edited arguments by you")
    (approved,) = lab.approvals(path, "approved")
    assert approved["decision"]["arguments"]["code"] == "NEW"


def test_raw_json_edits_arguments_and_says_where_it_is_broken(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ORDER))
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    decide(card, "JSON")
    text = card.get_by_role("textbox", name="Arguments as JSON")
    expect(text).to_be_focused()
    expect(text).to_have_value(re.compile(r'"customer": "Ada Nilsen"'))
    text.fill('{"customer": "Emi Tanaka",\n "lines": [}')
    expect(card.get_by_role("alert").filter(has_text="Line 2, column 12")).to_be_visible()
    expect(card.get_by_role("button", name=ALLOW)).to_be_disabled()
    decide(card, "Form")
    expect(card).to_contain_text("Fix the JSON before switching to the form.")
    text.fill('{"customer": "Emi Tanaka", "lines": [{"product_id": 2, "quantity": 1}]}')
    expect(card).to_contain_text(re.compile("customer.+→.+lines.+→"))
    decide(card, "Form")
    expect(card.get_by_role("textbox", name="customer")).to_have_value("Emi Tanaka")
    decide(card, ALLOW)
    expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("Emi Tanaka")


def test_long_numbers_keep_every_digit(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook("from jupyter_agentbox import tools\ntools.shop.get_order(order_id=12345678901234567890)")
    person.open(path)
    person.run(0)
    card = person.card()
    expect(card).to_contain_text("12345678901234567890")
    decide(card, "Edit")
    number = card.get_by_role("textbox", name="order_id")
    expect(number).to_have_value("12345678901234567890")
    number.fill("12345678901234567891")
    expect(card).to_contain_text(re.compile("order_id.+ → "))
    decide(card, ALLOW)
    expect(card).to_contain_text("It failed")
    (approved,) = lab.approvals(path, "approved")
    assert approved["decision"]["arguments"] == {"order_id": 12345678901234567891}


@pytest.mark.parametrize("theme", ["light", "dark"], indirect=True)
def test_edited_arguments_go_into_the_code_of_the_cell_by_keyboard_and_nothing_runs(
    new_person: Callable[[], Person], lab: Lab, theme: str, save_picture: Callable[..., None]
) -> None:
    person = new_person()
    path = "pens.ipynb"
    lab.write_notebook(path, "from jupyter_agentbox import tools", PRICE.split("\n")[1] + "  # a pen")
    person.open(path)
    person.run(0, 1)
    card = person.card(1)
    decide(card, "Edit")
    expect(card.get_by_role("textbox", name="product_id")).to_be_focused()
    card.get_by_role("textbox", name="price").fill("14.9")
    decide(card, ALLOW)
    expect(person.cell(1).locator(".jp-OutputArea-executeResult")).to_contain_text("14.9")
    offer = card.get_by_role("button", name="Update the cell’s code…")
    offer.focus()
    press(offer, "Enter")
    expect(card.get_by_role("group", name="What changes in pens.ipynb, cell 2", exact=True)).to_contain_text(
        "price=14.9)"
    )
    update = card.get_by_role("button", name="Update the code")
    expect(update).to_be_focused()
    save_picture(f"update-cell-{theme}", person.cell(1))
    person.keyboard.press("Enter")
    expect(card).to_contain_text("It was not run again.")
    editor = person.cell(1).locator(".cm-content")
    expect(editor).to_have_text("tools.shop.set_price(product_id=5, price=14.9).price  # a pen")
    expect(person.cell(1).locator(".jp-InputPrompt")).to_have_text("[2]:")
    assert not lab.approvals(path)
