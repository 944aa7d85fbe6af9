"""The card of code that asks to run: an editor, what was found in the code, and what an edit changes."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from .lab import Lab
from .person import Person, await_true, decide

SHOW = (
    "display({{'application/vnd.jupyter-agentbox.request+json': {{'request_id': '{}'}}, 'text/plain': ''}}, raw=True)"
)
CODE = "import os\nname = '\u202eoldest'\nos.remove(name)\nprint('Allowed by Ada. Done in 3 s.')"
EDITOR = "Python code. Press Escape to leave the editor."
FINDINGS = [
    {"code": "AB105", "severity": "warning", "message": "characters that are not seen", "line": 2, "column": 9},
    {"code": "AB202", "severity": "error", "message": "deletes a file", "line": 3, "column": 1},
]
#: The editor learns the height of lines as they come into view, so that the end is further down than it seems at first.
TO_THE_END = "box => { box.scrollTop = box.scrollHeight; return box.textContent.includes('line_999'); }"

#: Numbers of requests: the page keeps what was typed on the card of each.
_REQUESTS = itertools.count(1)


def request(id: str, code: str) -> dict[str, Any]:
    """Return a request as the REST API has it."""
    schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    return {
        "id": id,
        "status": "pending",
        "call": {
            "server": "notebook",
            "tool": "run_code",
            "arguments": {"code": code},
            "digest": "d1",
            "kernel_id": None,
            "notebook_path": None,
            "cell_id": None,
            "isolation": "none",
        },
        "tool": {
            "title": "",
            "description": "Runs Python code in the kernel.",
            "annotations": {"outcome": "ask", "findings": FINDINGS},
            "input_schema": schema,
        },
        "evaluation": {"effect": "ask", "rule": None},
        "created_at": "2026-01-01T00:00:00+00:00",
        "expires_at": None,
        "decision": None,
        "outcome": None,
    }


@pytest.fixture(scope="module", autouse=True)
def quiet(lab: Lab) -> Iterator[None]:
    """Show no notifications: the requests name no cell, so that each would be notified of, over its card."""
    with lab.settings("jupyter-agentbox:notifications", {"notifications": False}):
        yield


@pytest.fixture
def person(same_page: Person) -> Iterator[Person]:
    yield same_page
    # No server knows the request: the page learns it when it asks anew.
    same_page.page.unroute_all()
    same_page.page.evaluate("() => { window.dispatchEvent(new Event('online')); }")


@pytest.fixture
def ask(person: Person, notebook: Callable[..., str]) -> Callable[[str], tuple[Locator, list[Any]]]:
    """Show the card of code, and keep what is sent to allow it."""
    id = f"r{next(_REQUESTS)}"

    def ask(code: str) -> tuple[Locator, list[Any]]:
        sent: list[Any] = []

        def answer(route: Route) -> None:
            if route.request.method == "POST":
                sent.append(json.loads(route.request.post_data or "null"))
                route.fulfill(status=409, json={"message": "this test takes no answer"})
            else:
                route.fulfill(json=request(id, code))

        person.page.route(re.compile(rf"/jupyter-agentbox/approvals/{id}\b"), answer)
        person.open(notebook(SHOW.format(id)))
        person.run(0)
        card = person.card()
        expect(card.locator(".cm-content")).to_be_visible()
        return card, sent

    return ask


def test_code_is_read_in_an_editor_with_its_findings_at_their_lines(ask: Callable[..., tuple[Locator, Any]]) -> None:
    card, _ = ask(CODE)
    expect(card.locator(".cm-line")).to_have_text(
        ["import os", "name = '\\u202eoldest'", "os.remove(name)", "print('Allowed by Ada. Done in 3 s.')"]
    )
    expect(card.get_by_role("list", name="Findings of the static analysis").get_by_role("listitem")).to_have_text(
        ["Warning line 2 characters that are not seen AB105", "Error line 3 deletes a file AB202"]
    )
    expect(card.locator(".cm-line.jp-AgentBox-findingLine")).to_have_text([re.compile("oldest"), "os.remove(name)"])
    # What is like a line of the card is a line of the editor, which has a number.
    expect(card.locator(".cm-lineNumbers .cm-gutterElement:visible")).to_have_text(["1", "2", "3", "4"])
    # The editor can be read, and takes neither the focus nor a key.
    card.locator(".cm-line").first.click()
    card.page.keyboard.type("x")
    expect(card.locator(".cm-line").first).to_have_text("import os")


def test_edited_code_is_sent_as_it_was_typed_and_shown_as_a_difference(
    ask: Callable[..., tuple[Locator, Any]], person: Person
) -> None:
    card, sent = ask(CODE)
    decide(card, "Edit")
    editor = card.get_by_role("textbox", name=EDITOR)
    expect(editor).to_be_focused()
    for key in ("Control+End", "Enter"):
        person.keyboard.press(key)
    person.keyboard.type("if name:")
    person.keyboard.press("Enter")
    person.keyboard.type("pass")
    person.keyboard.press("Enter")
    person.keyboard.press("Tab")
    person.keyboard.type("x")
    added = card.locator(".jp-AgentBox-diffLines .jp-mod-added code")
    expect(added).to_have_text(["if name:", "    pass", "        x"])
    expect(card.locator(".jp-AgentBox-diffLines .jp-mod-removed")).to_have_count(0)
    person.keyboard.press("Escape")
    expect(editor).not_to_be_focused()
    expect(editor).to_be_visible()
    decide(card, "Allow once with edits")
    expect(card.get_by_role("alert").last).to_contain_text("discarded")
    assert [answer["arguments"] for answer in sent] == [{"code": f"{CODE}\nif name:\n    pass\n        x"}]


def test_escape_leaves_the_editor_and_then_the_form(ask: Callable[..., tuple[Locator, Any]], person: Person) -> None:
    card, _ = ask(CODE)
    decide(card, "Edit")
    expect(card.get_by_role("textbox", name=EDITOR)).to_be_focused()
    person.keyboard.press("Escape")
    person.keyboard.press("Escape")
    expect(card.get_by_role("button", name="Edit")).to_be_focused()


def test_what_of_long_code_was_not_scrolled_into_view_is_said(ask: Callable[..., tuple[Locator, Any]]) -> None:
    card, _ = ask("\n".join(f"line_{number} = {number}" for number in range(1000)))
    note = card.get_by_text(re.compile(r"You have not seen [\d,]+ characters of “Python code”"))
    expect(note).to_be_visible()
    box = card.get_by_role("group", name="Python code")
    expect(box).not_to_contain_text("line_999")
    box.scroll_into_view_if_needed()
    card.page.wait_for_function(TO_THE_END, arg=box.element_handle())
    expect(box).to_contain_text("line_999")
    expect(note).to_have_count(0)


def test_all_lines_of_long_code_are_shown_on_request(ask: Callable[..., tuple[Locator, Any]]) -> None:
    card, _ = ask("\n".join(f"line_{number} = {number}" for number in range(100)))
    expect(card).to_contain_text("100 lines")
    card.get_by_role("button", name="Show all lines").click()
    expect(card.get_by_text(re.compile("You have not seen"))).to_have_count(0)
    await_true(card.get_by_role("group", name="Python code"), "box => box.scrollHeight <= box.clientHeight + 2")
