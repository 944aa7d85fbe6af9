"""A new notebook for an agent: from the launcher, and from the palette."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .person import Person


@pytest.mark.parametrize("way", ["launcher", "palette"])
def test_new_agent_notebook_begins_with_the_magic_and_the_cursor_below_it(person: Person, way: str) -> None:
    person.visit()
    if way == "palette":
        person.choose_command("New Agent Notebook")
    else:
        person.page.get_by_role("button", name="Agent Notebook").click()
    person.await_kernel()
    expect(person.cell(0).locator(".jp-InputArea .cm-line")).to_have_text(["%%agent", ""])
    expect(person.cell(0).locator(".cm-content")).to_be_focused()
    person.keyboard.type("Hello")
    expect(person.cell(0).locator(".jp-InputArea .cm-line")).to_have_text(["%%agent", "Hello"])
