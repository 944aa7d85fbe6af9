"""What a server asks while its tool runs: a card of its own, under the cell and in the panel."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Request, expect

from .lab import Lab
from .person import NEXT_FRAMES, Person, await_letters, decide, press

SERVER = Path(__file__).parents[1] / "mcp_client" / "servers" / "asking.py"
ORDER = "from jupyter_agentbox import tools\nprint('told:', tools.asking.order())"
DELETE = "tools.shop.delete_order(order_id=1052)"
TOGETHER = f"""{ORDER.splitlines()[0]}
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor() as pool:
    calls = [pool.submit(lambda: {DELETE}), pool.submit(lambda: tools.asking.order())]
print('told:', calls[1].result())
calls[0].result()
"""
#: The server asks once when somebody writes into a pipe, and once more when they do into the other.
LATER = f"""{ORDER.splitlines()[0]}
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor() as pool:
    for name in ("first", "second"):
        pool.submit(lambda name: (open(name).read(), tools.asking.order()), name)
    pool.submit(lambda: {DELETE})
    pool.submit(lambda: tools.shop.list_products())
"""
VISIT = "print('told:', tools.asking.visit(url='{}sign?order=7'))"


@pytest.fixture(scope="module")
def asking(lab: Lab) -> Iterator[None]:
    """A server that asks is configured, and a rule allows its calls."""
    path = lab.root / "config" / "mcp.json"
    before = path.read_text()
    servers = json.loads(before)
    servers["mcpServers"]["asking"] = {
        "command": sys.executable,
        "args": [str(SERVER)],
        "protocolEra": "legacy",
    }
    rules = lab.root / "config" / "agentbox_rules.json"
    path.write_text(json.dumps(servers))
    rules.write_text(json.dumps({"rules": [{"effect": "allow", "server": "asking", "tool": "*"}]}))
    yield
    path.write_text(before)
    rules.unlink()


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


@pytest.mark.usefixtures("asking")
def test_a_server_asks_and_gets_its_answer_from_the_card_or_the_panel(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    page = person.page
    person.open(notebook(ORDER, VISIT.format(lab.url)))
    person.run(0)
    card = person.cell(0).get_by_role("group", name="The server “asking” asks you")
    expect(card).to_contain_text("Where to?")
    expect(person.status).to_have_accessible_name("1 question from a server")
    expect(card.get_by_role("button", name="Allow once")).to_have_count(0)
    decide(card, "Answer")
    expect(card.get_by_role("alert")).to_contain_text("street")
    card.get_by_role("textbox", name="street").fill("Main <b>1</b>")
    decide(card, "Answer")
    expect(person.cell(0)).to_contain_text('told: accept {"street":"Main <b>1</b>","count":1,"speed":"slow"}')
    expect(card).to_have_count(0)

    fetched: list[str] = []

    def note(request: Request) -> None:
        fetched.append(request.url)

    page.context.on("request", note)
    person.run(1)
    # Meanwhile the call runs, and its card says what the server says of it.
    expect(person.cell(1)).to_contain_text("42 of 100")
    expect(person.cell(1)).to_contain_text("asking: opened the <b>orders</b>")
    person.execute("jupyter-agentbox:open-panel")
    listed = page.get_by_role("region", name="Questions from servers", exact=True)
    asked = listed.get_by_role("group", name="The server “asking” asks you")
    expect(asked.locator(".jp-AgentBox-address strong")).to_have_text(lab.url.split("/")[2])
    assert not [url for url in fetched if "sign?order=7" in url]
    with page.context.expect_page() as opened:
        decide(asked, "Open the page")
    opened.value.wait_for_load_state()
    assert opened.value.evaluate("window.opener") is None
    opened.value.close()
    expect(person.cell(1)).to_contain_text("told: accept")
    expect(listed).to_have_count(0)
    page.context.remove_listener("request", note)


@pytest.mark.usefixtures("asking")
def test_the_focus_goes_back_to_where_it_was_when_a_question_is_answered(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(ORDER, ORDER))
    for way in ("pointer", "key"):
        person.edit(0)
        person.keyboard.press("Shift+Enter")
        card = person.cell(0).get_by_role("group", name="The server “asking” asks you")
        expect(card).to_be_visible()
        expect(person.cell(1)).to_be_focused()
        if way == "pointer":
            decide(card, "Decline")
        else:
            decline = card.get_by_role("button", name="Decline")
            expect(decline).to_be_enabled()
            person.keyboard.press("Shift+Tab")
            person.keyboard.press("Shift+Tab")
            press(decline, "Enter")
        expect(card).to_have_count(0)
        expect(person.cell(1)).to_be_focused()
        person.await_kernel()
    person.keyboard.press("Shift+Enter")
    person.execute("jupyter-agentbox:open-panel")
    listed = person.page.get_by_role("region", name="Questions from servers", exact=True)
    decide(listed.get_by_role("group", name="The server “asking” asks you"), "Decline")
    expect(listed).to_have_count(0)
    expect(person.page.locator(".jp-AgentBox-panel")).to_be_focused()


@pytest.mark.usefixtures("asking")
def test_a_question_and_a_request_of_one_cell_are_answered_each_by_itself(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(TOGETHER, "")
    person.open(path)
    person.edit(0)
    person.keyboard.press("Shift+Enter")
    question = person.cell(0).get_by_role("group", name="The server “asking” asks you")
    request = person.cell(0).get_by_role("group", name="Approval request: shop.delete_order")
    asker = person.cell(0).get_by_role("group", name="Approval request: asking.order")
    expect(question).to_be_visible()
    expect(request.get_by_role("button", name="Allow once")).to_be_visible()
    expect(person.status).to_have_accessible_name("1 request awaiting approval, 1 question from a server")
    # A question stands below the call that it is of, whatever else waits.
    places = [card.bounding_box() for card in (asker, question)]
    assert places[0]
    assert places[1]
    assert 0 <= places[1]["y"] - (places[0]["y"] + places[0]["height"]) < 40
    question.get_by_role("button", name="Decline").focus()
    person.page.evaluate(NEXT_FRAMES)
    expect(question.get_by_role("button", name="Decline")).to_be_enabled()
    for letter in "area":
        person.keyboard.press(letter)
    question.focus()
    for letter in "area":
        person.keyboard.press(letter)
    assert len(lab.approvals(path)) == 1
    expect(question).to_be_visible()
    question.get_by_role("textbox", name="street").fill("Main 1")
    decide(question, "Answer")
    expect(question).to_have_count(0)
    expect(person.cell(1)).to_be_focused()
    expect(request.get_by_role("button", name="Allow once")).to_be_visible()
    assert len(lab.approvals(path)) == 1
    decide(request, "Allow once")
    expect(person.cell(0)).to_contain_text("told: accept")
    expect(person.cell(1)).to_be_focused()


@pytest.fixture
def pipes(lab: Lab) -> Iterator[tuple[Path, Path]]:
    """The pipes of the cell `LATER`."""
    first, second = (lab.root / "work" / name for name in ("first", "second"))
    for pipe in (first, second):
        os.mkfifo(pipe)
    yield first, second
    for pipe in (first, second):
        pipe.unlink()


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("place", ["cell", "panel"])
def test_new_questions_take_neither_focus_nor_keys_from_who_answers_a_request(
    person: Person, notebook: Callable[..., str], lab: Lab, pipes: tuple[Path, Path], place: str
) -> None:
    path = notebook(LATER)
    person.open(path)
    person.run(0)
    expect(person.status).to_have_accessible_name("2 requests awaiting approval")
    where = person.cell(0)
    if place == "panel":
        person.page.set_viewport_size({"width": 1280, "height": 520})  # a list that has no room for all can be scrolled
        person.open_panel()
        where = person.page.locator(".jp-AgentBox-panel")
    request = where.get_by_role("group", name="Approval request: shop.delete_order")
    request.locator(".jp-AgentBox-name, .jp-AgentBox-compactLine").first.click()
    # Which of the two requests came first is not known, and the lower one is not whole in the panel's view.
    request.get_by_role("button", name="Reject", exact=True).scroll_into_view_if_needed()
    questions = where.get_by_role("group", name="The server “asking” asks you")

    def ask(pipe: Path, count: int) -> None:
        pipe.write_text("now")
        expect(questions.get_by_role("textbox", name="street")).to_have_count(count)

    await_letters(request)
    before = request.bounding_box()
    ask(pipes[0], 1)
    expect(request).to_be_focused()
    await_letters(request)
    after = request.bounding_box()
    assert before
    assert after
    assert abs(after["y"] - before["y"]) < 1
    person.keyboard.press("r")
    reason = request.get_by_role("textbox", name="Reason (optional)")
    expect(reason).to_be_focused()
    person.keyboard.type("No, bec")
    ask(pipes[1], 2)
    expect(reason).to_be_focused()
    person.keyboard.type("ause area")
    expect(reason).to_have_value("No, because area")
    assert len(lab.approvals(path)) == 2
    press(reason, "Enter")
    expect(person.status).to_have_accessible_name("1 request awaiting approval, 2 questions from servers")
    rejected, *_ = lab.approvals(path, "rejected")
    assert rejected["decision"]["reason"] == "No, because area"


@pytest.mark.usefixtures("asking")
def test_the_shortcut_goes_to_a_question_that_has_waited_longest(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ORDER, "1"))
    person.run(0)
    name = "The server “asking” asks you"
    question = person.cell(0).get_by_role("group", name=name)
    expect(question).to_be_visible()
    person.edit(1)
    person.keyboard.press("Alt+Shift+A")
    expect(question).to_be_focused()
    decide(question, "Decline")
    expect(question).to_have_count(0)
    expect(person.cell(1)).to_have_class(re.compile("jp-mod-active"))
    # Where its notebook is closed, it is in the panel.
    person.run(0)
    expect(question).to_be_visible()
    person.execute("application:close")
    dialog = person.page.get_by_role("dialog")
    expect(dialog.or_(person.page.locator(".jp-LauncherBody")).first).to_be_visible()
    if dialog.count():
        dialog.get_by_role("button", name="Discard").click()
    expect(person.page.locator(".jp-NotebookPanel")).to_have_count(0)
    person.keyboard.press("Alt+Shift+A")
    in_panel = person.page.locator(".jp-AgentBox-questions").get_by_role("group", name=name)
    expect(in_panel).to_be_focused()
