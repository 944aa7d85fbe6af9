"""The card under a cell: what it shows, and what each answer does."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .lab import STRANGE_NAME, Lab
from .person import CARD, Person, approach, await_true, decide

PRICE = "from jupyter_agentbox import tools\ntools.shop.set_price(product_id=5, price=149.0)"
TEAS = "from jupyter_agentbox import tools\nteas = tools.shop.list_products(category='tea')\nteas[0].name"
DELETE = """from jupyter_agentbox import ToolCallRejectedError, tools
try:
    tools.shop.delete_order(order_id=1042)
except ToolCallRejectedError as error:
    print("the code read:", error.reason)"""


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_card_says_what_would_run_and_allowing_it_gives_the_cell_its_value(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(TEAS)
    person.open(path)
    person.run(0)
    card = person.card()
    expect(card).to_have_accessible_name("Approval request: shop.list_products")
    expect(card).to_contain_text("List products")
    expect(card).to_contain_text(re.compile(r"Server says:\s*read-only"))
    expect(card).to_contain_text(f"From {path}, cell 1")
    expect(card).to_contain_text("category“tea”")
    expect(card).to_contain_text("Server’s words: “List what the shop sells, with prices in euros and the stock.”")
    card.get_by_text("Details", exact=True).click()
    expect(card).to_contain_text(lab.approvals(path)[0]["call"]["digest"])
    decide(card, "Allow once")
    expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("Sencha")
    expect(card).to_contain_text(re.compile(r"shop\.list_products Allowed by you\. Done in [\d.]+ m?s"))
    expect(card.get_by_role("button", name="Allow once")).to_have_count(0)


RISKS = f"""import asyncio
from jupyter_agentbox import tools
shop = tools.shop
await asyncio.gather(
    shop.list_orders.aio(limit=1),
    shop.add_order.aio(customer="Ada", lines=[{{"product_id": 1}}]),
    shop.delete_order.aio(order_id=1051),
    tools[{STRANGE_NAME!r}].plain.aio(),
)"""

#: What a person sees of the risk of a card: its word, the path of its icon, and the color and width of its edge.
LOOK = """card => {
  const mark = card.querySelector('.jp-AgentBox-risk');
  const icon = mark.querySelector('svg');
  const { width, height } = icon.getBoundingClientRect();
  const style = getComputedStyle(card);
  return {
    word: mark.innerText,
    icon: width > 10 && height > 10 && icon.querySelector('path').getAttribute('d'),
    drawn: getComputedStyle(icon.querySelector('path')).fill,
    color: style.borderLeftColor,
    width: parseFloat(style.borderLeftWidth),
    others: style.borderTopColor,
  };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"], indirect=True)
def test_each_of_four_levels_of_risk_has_an_edge_an_icon_and_a_word_of_its_own(
    new_person: Callable[[], Person], notebook: Callable[..., str], theme: str
) -> None:
    person = new_person()
    person.page.set_viewport_size({"width": 1280, "height": 2000})
    person.open(notebook(RISKS))
    expect(person.page.locator("body")).to_have_attribute("data-jp-theme-light", str(theme == "light").lower())
    person.open_panel()
    person.run(0)
    cards = person.panel.get_by_role("group", name=CARD)
    expect(cards).to_have_count(4)
    looks = {card.get_attribute("data-risk"): card.evaluate(LOOK) for card in cards.all()}
    assert {risk: look["word"] for risk, look in looks.items()} == {
        "readonly": "read-only",
        "changes": "adds or changes data",
        "destructive": "destructive",
        "unsaid": "Server does not say what it changes",
    }
    for aspect in ("icon", "color"):
        assert len({look[aspect] for look in looks.values()}) == 4, aspect
    for look in looks.values():
        assert look["icon"]
        assert look["color"] != look["others"]
        assert look["drawn"] != "none"
    assert looks["readonly"]["width"] == looks["changes"]["width"] < looks["unsaid"]["width"]
    assert looks["unsaid"]["width"] < looks["destructive"]["width"]


def test_time_that_is_left_counts_down(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(TEAS))
    person.run(0)
    timer = person.card().get_by_role("timer")
    expect(timer).to_have_text(re.compile(r"^(10:00|\d:\d\d) left$"))
    shown = timer.inner_text()
    expect(timer).not_to_have_text(shown)
    expect(timer).to_have_text(re.compile(r"^\d:\d\d left$"))


def test_no_card_moves_when_it_can_be_kept_waiting(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    person.open(notebook(PRICE))
    person.open_panel()
    with lab.rules({"effect": "ask", "server": "shop", "tool": "*", "timeout": 126}):
        person.run(0)
        cards = (person.card(), person.item("shop.set_price").get_by_role("group", name="Approval request"))
        for card in cards:
            expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
        before = [card.bounding_box() for card in cards]
        assert [card.get_by_role("button", name="Keep waiting").count() for card in cards] == [0, 0]
        for card in cards:
            expect(card.get_by_role("button", name="Keep waiting")).to_be_visible()
        assert [card.bounding_box() for card in cards] == before
        decide(cards[1], "Keep waiting")
        for card in cards:
            expect(card.get_by_role("button", name="Keep waiting")).to_have_count(0)
        assert [card.bounding_box() for card in cards] == before


def test_rejection_gives_its_reason_to_the_code(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(DELETE)
    person.open(path)
    person.run(0)
    card = person.card()
    expect(card).to_contain_text("destructive")
    decide(card, "Reject")
    reason = card.get_by_role("textbox", name="Reason (optional)")
    expect(reason).to_be_focused()
    person.keyboard.type("1042 is")
    person.keyboard.press("Shift+Enter")
    person.keyboard.type("still open")
    expect(reason).to_have_value("1042 is\nstill open")
    decide(card, "Reject")
    expect(person.cell(0)).to_contain_text("the code read: 1042 is still open")
    expect(card).to_contain_text("shop.delete_order Rejected by you: 1042 is still open")
    (rejected,) = lab.approvals(path, "rejected")
    assert rejected["outcome"] is None


def test_progress_of_a_running_tool_shows_on_the_card(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook("from jupyter_agentbox import tools\ntools.shop.forecast(months=2, seconds=120)"))
    person.run(0)
    card = person.card()
    decide(card, "Allow once")
    expect(card).to_contain_text("Allowed by you. Running…")
    expect(card.get_by_role("progressbar", name="Progress")).to_have_attribute("max", "40")
    expect(card).to_contain_text(re.compile(r"[1-9]\d? of 40\s*Simulated \d+ of 1000 years"))
    person.execute("notebook:interrupt-kernel")
    expect(person.cell(0)).to_contain_text("KeyboardInterrupt")
    expect(card).not_to_contain_text("Running…")
    expect(card.get_by_role("progressbar")).to_have_count(0)


def test_long_arguments_scroll_and_nothing_is_cut_silently(person: Person, notebook: Callable[..., str]) -> None:
    sql = "'SELECT 1 -- ' + '\\n'.join(f'line {n} of the text' for n in range(2000))"
    person.open(notebook(f"from jupyter_agentbox import tools\ntools.shop.query(sql={sql})"))
    person.run(0)
    card = person.card()
    text = card.get_by_role("group", name="sql")
    expect(card).to_contain_text(re.compile(r"2,000 lines, [\d,]+ characters"))
    await_true(text, "node => node.scrollHeight > node.clientHeight && node.clientHeight < 500")
    expect(text).to_contain_text("line 1999 of the text")  # the end is shown as well as the beginning
    expect(text).not_to_contain_text("line 1000 of the text")
    unseen = re.compile(r"You have not seen [\d,]+ characters of “sql”")
    expect(card).to_contain_text(unseen)
    card.get_by_role("button", name="Show all").click()
    expect(text).to_contain_text("line 1000 of the text")
    expect(card).not_to_contain_text(unseen)
    await_true(text, "node => node.scrollHeight === node.clientHeight")


def test_card_within_another_widget_has_no_buttons_and_leads_to_the_panel(
    person: Person, notebook: Callable[..., str]
) -> None:
    code = """import ipywidgets, threading
from jupyter_agentbox import tools
out = ipywidgets.Output()
display(ipywidgets.VBox([ipywidgets.Label("a box"), out]))
with out:
    tools.shop.restock(product_id=1, quantity=2)"""
    person.open(notebook(code))
    person.run(0)
    box = person.cell(0).locator(".widget-vbox")
    card = box.get_by_role("group", name="Approval request: shop.restock")
    expect(card.get_by_role("button")).to_have_text(["Decide in the panel"])
    decide(card, "Decide in the panel")
    item = person.item("shop.restock")
    expect(item.get_by_role("group", name=CARD)).to_be_focused()
    decide(item, "Allow once")
    expect(card).to_contain_text("Done in")


def test_card_that_is_covered_has_buttons_that_are_off_and_says_so(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(TEAS)
    person.open(path)
    person.run(0)
    card = person.card()
    allow = card.get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    card.evaluate(
        """card => {
          const cover = document.createElement('div');
          const {left, top} = card.getBoundingClientRect();
          cover.id = 'cover';
          cover.style = `position: fixed; left: ${left + 20}px; top: ${top + 20}px; width: 9px; height: 9px;`
            + 'pointer-events: none; background: red; z-index: 99999';
          document.body.append(cover);
        }"""
    )
    expect(allow).to_be_disabled()
    expect(card.get_by_role("status").filter(has_text="Something covers part of this card")).to_be_visible()
    allow.focus()
    person.keyboard.press("Enter")
    person.page.locator("#cover").evaluate("cover => cover.remove()")
    expect(allow).to_be_enabled()
    assert len(lab.approvals(path)) == 1
    decide(card, "Allow once")
    expect(card).to_contain_text("Done in")


#: Scrolls a card by so many pixels below the upper edge of its notebook.
SCROLL = """(card, below) => {
  const view = card.closest('.jp-WindowedPanel-outer');
  view.scrollTop += card.getBoundingClientRect().top - view.getBoundingClientRect().top - below;
}"""


def test_press_counts_at_once_on_a_card_that_has_come_wholly_into_view(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook("1\n" * 20, TEAS, "1\n" * 60))
    person.run(1)
    card = person.card(1)
    reject = card.get_by_role("button", name="Reject")
    approach(reject)
    card.evaluate(SCROLL, -40)
    approach(reject)
    card.evaluate(SCROLL, 40)
    box = reject.bounding_box()
    assert box
    person.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(card.get_by_role("textbox")).to_be_focused()


def test_card_that_is_scrolled_to_the_edge_of_its_notebook_is_decided_there(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook("1\n" * 20, TEAS, "1\n" * 60))
    person.run(1)
    card = person.card(1)
    reject = card.get_by_role("button", name="Reject")
    for below in (0, 1, 2):  # the shadow of the toolbar falls on it
        expect(reject).to_be_enabled()
        card.evaluate(SCROLL, -500)
        expect(reject).to_be_disabled()
        card.evaluate(SCROLL, below)
        expect(reject).to_be_enabled()


def test_press_that_does_not_count_is_said_not_to(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(TEAS)
    person.open(path)
    person.run(0)
    card = person.card()
    allow = card.get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    # Covered between the press of the pointer and its release, before the card has seen it.
    allow.evaluate(
        """button => button.addEventListener('pointerup', () => {
          const cover = document.createElement('div');
          cover.style = 'position: fixed; inset: 0; background: red; pointer-events: none; z-index: 99999';
          document.body.append(cover);
          setTimeout(() => cover.remove(), 300);
        }, {once: true})"""
    )
    decide(card, "Allow once")
    expect(card.get_by_role("status").filter(has_text="That did not count")).to_be_visible()
    assert len(lab.approvals(path)) == 1
    decide(card, "Allow once")
    expect(card).to_contain_text("Done in")


def test_card_that_is_longer_than_the_window_is_decided_wherever_its_buttons_are_in_view(
    person: Person, notebook: Callable[..., str]
) -> None:
    sql = "'\\n'.join(str(n) for n in range(200))"
    person.open(notebook(f"from jupyter_agentbox import tools\ntools.shop.query(sql={sql})"))
    person.run(0)
    card = person.card()
    card.get_by_role("button", name="Show all").click()
    await_true(card, "card => card.clientHeight > innerHeight")
    decide(card, "Reject")
    decide(card, "Reject")
    expect(card).to_contain_text("Rejected by you")
