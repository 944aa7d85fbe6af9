"""Editing the arguments of a call, in a form and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .accessibility import violations
from .lab import STRANGE_NAME, Lab
from .person import SIZE, Person, decide, press

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
    call = f"runtime.link().call({STRANGE_NAME!r}, '<b>delete</b>_all', {{'path': '/', 'shelf': 'OLD'}})"
    path = notebook(f"from jupyter_agentbox.kernel import runtime\n{call}")
    person.open(path)
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    shelf = card.get_by_role("textbox", name="shelf")
    shelf.fill("new")
    decide(card, ALLOW)
    refusal = card.get_by_text(re.compile("^`shelf`: .*new"))
    expect(refusal).to_have_count(1)
    expect(shelf).to_be_focused()
    expect(shelf).to_have_accessible_description(re.compile("^`shelf`: .*new"))
    expect(shelf).to_have_attribute("aria-invalid", "true")
    expect(card.get_by_role("button", name=ALLOW)).to_be_disabled()
    assert lab.approvals(path)
    shelf.fill("NEW")
    expect(refusal).to_have_count(0)
    decide(card, ALLOW)
    expect(card).to_contain_text("Allowed with edited arguments by you")
    (approved,) = lab.approvals(path, "approved")
    assert approved["decision"]["arguments"]["shelf"] == "NEW"


LINES = ", ".join(f'{{"product_id": {id}, "quantity": {id}}}' for id in range(1, 15))
LONG_ORDER = f"""from jupyter_agentbox import tools
tools.shop.add_order(customer="Ada Nilsen", lines=[{LINES}]).customer"""


def test_a_list_of_14_objects_is_edited_on_one_screen_in_a_row_each(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(LONG_ORDER)
    person.open(path)
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    lines = card.locator(".jp-AgentBox-form").get_by_role("group", name="lines", exact=True)
    rows = lines.get_by_role("group", name="lines, ")
    expect(rows).to_have_count(14)
    boxes = [box for row in rows.all() if (box := row.bounding_box())]
    assert max(box["height"] for box in boxes[1:]) <= 40
    assert (whole := lines.bounding_box()) is not None
    assert whole["height"] < SIZE["height"]
    last = rows.nth(13)
    last.get_by_role("textbox", name="quantity").fill("0")
    expect(last.get_by_text("Must be 1 or more")).to_be_visible()
    expect(card.get_by_role("button", name=ALLOW)).to_be_disabled()
    last.get_by_role("textbox", name="quantity").fill("7")
    last.get_by_role("button", name="Move lines, 14 up").click()
    lines.get_by_role("button", name="Move lines, 13 down").click()
    at_end = lines.get_by_role("button", name="Move lines, 14 down")
    expect(at_end).to_be_focused()
    expect(at_end).to_be_disabled()
    lines.get_by_role("button", name="Move lines, 14 up").click()
    rows.nth(0).get_by_role("button", name="Remove lines, 1", exact=True).click()
    expect(rows).to_have_count(13)
    expect(lines).to_be_focused()
    lines.get_by_role("button", name="Add to lines").click()
    expect(card.get_by_text("Correct the marked field first.")).to_be_visible()
    expect(rows.nth(13).get_by_role("textbox").first).to_be_focused()
    rows.nth(13).get_by_role("textbox", name="product_id").fill("3")
    assert violations(person.page) == []
    decide(card, ALLOW)
    expect(card).to_contain_text("Allowed with edited arguments by you")
    (approved,) = lab.approvals(path, "approved")
    sent = approved["decision"]["arguments"]["lines"]
    assert [line["product_id"] for line in sent] == [*range(2, 13), 14, 13, 3]
    assert sent[11]["quantity"] == 7


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
