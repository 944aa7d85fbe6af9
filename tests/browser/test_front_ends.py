"""Other pages than JupyterLab with the extension."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from .lab import Lab
from .person import Person, decide

ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)[0].status in ('open', 'shipped', 'returned')"


def test_notebook_7_shows_the_card(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK), front="notebooks/")
    person.run(0)
    expect(person.page).to_have_title(re.compile(r"^\(1\) [^(]"))
    decide(person.card(), "Allow once")
    expect(person.card()).to_contain_text("Allowed by you. Done in")
    expect(person.cell(0)).to_contain_text("True")
    expect(person.page).to_have_title(re.compile(r"^[^(]"))


def test_console_shows_the_card(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook("1"))
    person.execute("console:create", kernelPreference={"name": "python3"})
    console = person.page.locator(".jp-CodeConsole")
    expect(console.locator(".jp-CodeConsole-banner")).to_contain_text("IPython")
    console.locator(".jp-CodeConsole-promptCell .cm-content").fill(ASK)
    person.keyboard.press("Shift+Enter")
    card = console.get_by_role("group", name="Approval request: shop.list_orders")
    expect(card).to_contain_text("From a console")
    decide(card, "Allow once")
    expect(console).to_contain_text("True")
    expect(console.locator(".jp-CodeConsole-promptCell .cm-content")).to_be_focused()


def test_without_the_extension_the_output_says_what_waits_and_where_to_decide(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    path, other = notebook(ASK), notebook("'another notebook'")
    bare, person = new_person(), new_person()
    with lab.without_extension():
        bare.open(path)
    bare.run(0)
    output = bare.cell(0).locator(".jp-OutputArea-output")
    expect(output).to_contain_text(
        "shop.list_orders is waiting for approval. Allow, edit or reject it at http://127.0.0.1"
    )
    expect(output.get_by_role("link")).to_have_attribute("href", re.compile(re.escape(lab.url)))
    person.open(other)
    person.open_panel()
    decide(person.item("shop.list_orders"), "Allow once")
    line = re.compile(r"^✓ shop\.list_orders\(limit=1\) — allowed by .+, \d{4}-\d\d-\d\d \d\d:\d\d$")
    expect(output.first).to_have_text(line)
    expect(bare.cell(0)).to_contain_text("True")
