"""How it looks, in light and dark: the pictures of the documentation."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import FloatRect, Locator, expect

from .lab import Lab
from .person import Person, decide

SAY = "from jupyter_agentbox import tools\n\n"
DELETE = f"{SAY}tools.shop.delete_order(order_id=1042)"
ORDER = f"""{SAY}tools.shop.add_order(
    customer="Greta Lindqvist",
    lines=[{{"product_id": 2, "quantity": 3}}, {{"product_id": 8, "quantity": 1}}],
    note="Gift wrap, please.\\nThe card should say: Happy birthday, Greta!",
)"""
PRICE = f"{SAY}tools.shop.set_price(product_id=5, price=149.0)"
TAKE_MEMORY = """import multiprocessing as mp
import time


def load(megabytes):
    part = b"x" * (megabytes << 20)
    time.sleep(600)


for _ in range(5):
    mp.Process(target=load, args=[300]).start()
load(700)"""
BLOCKED = """from IPython.display import Javascript

Javascript("document.querySelector('.jp-AgentBox-button.jp-mod-allow').click()")"""
FORECAST = f"{SAY}tools.shop.forecast(months=3, seconds=60)"

#: JupyterLab's own orange and red, which mark what needs attention, are a little below the 4.5 of WCAG 2.
MIN_CONTRAST = 3.7

#: The lowest contrast of a text with its background, after WCAG 2; and the text.
CONTRAST = """root => {
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const blend = (top, under) => top.slice(0, 3).map((c, i) => c * (top[3] ?? 1) + under[i] * (1 - (top[3] ?? 1)));
  const luminance = ([r, g, b]) => [r, g, b]
    .map(c => c / 255)
    .map(c => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const background = node => {
    const under = node.parentElement ? background(node.parentElement) : [255, 255, 255];
    return blend(numbers(getComputedStyle(node).backgroundColor), under);
  };
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  let worst = [21, ''];
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !node.checkVisibility()) continue;
    const under = background(node);
    const [a, b] = [blend(numbers(getComputedStyle(node).color), under), under].map(luminance);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < worst[0]) worst = [contrast, texts.currentNode.data];
  }
  return worst;
}"""

#: Parts that are wider than what they are in.
OVERFLOW = """root => [root, ...root.querySelectorAll('*')]
  .filter(node => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== 'inline')
  .filter(node => getComputedStyle(node).overflowX !== 'auto' && getComputedStyle(node).textOverflow !== 'ellipsis')
  .map(node => node.className || node.tagName)"""


def look_at(person: Person, lab: Lab, *sources: str, kernel: str = "python3", path: str = "orders.ipynb") -> None:
    """Open a notebook, with nothing at its left."""
    lab.write_notebook(path, *sources, kernel=kernel)
    person.open(path)
    person.keyboard.press("Control+B")
    expect(person.page.get_by_role("region", name="File Browser")).to_be_hidden()


def assert_legible(place: Locator) -> None:
    contrast, text = place.evaluate(CONTRAST)
    assert contrast >= MIN_CONTRAST, text
    assert place.evaluate(OVERFLOW) == []


def test_card(person: Person, lab: Lab, save_picture: Callable[..., None], theme: str) -> None:
    look_at(person, lab, ORDER)
    person.run(0)
    card = person.card()
    expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    assert_legible(card)
    save_picture(f"card-{theme}", person.cell(0))


def test_loop(person: Person, lab: Lab, pictures: Path) -> None:
    """From the cell to its value, with an edit, as one picture that moves."""
    person.page.set_viewport_size({"width": 900, "height": 860})
    look_at(person, lab, f"{SAY}chair = tools.shop.set_price(product_id=5, price=149.0)", "chair.price")
    frames: list[tuple[bytes, int]] = []
    begin = person.cell(0).bounding_box()
    assert begin
    area = FloatRect(x=begin["x"], y=begin["y"] - 8, width=begin["width"], height=610)

    def keep(milliseconds: int) -> None:
        shot = person.page.screenshot(clip=area, animations="disabled", caret="hide")
        frames.append((shot, milliseconds))

    keep(1500)
    person.run(0)
    card = person.card()
    expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    keep(3000)
    decide(card, "Edit")
    card.get_by_role("textbox", name="price").fill("14.90")
    expect(card.get_by_role("button", name="Allow once with edits")).to_be_enabled()
    keep(3000)
    decide(card, "Allow once with edits")
    expect(card).to_contain_text("Done")
    keep(2500)
    person.run(1)
    expect(person.cell(1)).to_contain_text("14.9")
    keep(3500)
    first, *others = (Image.open(BytesIO(shot)).convert("P", palette=Image.Palette.ADAPTIVE) for shot, _ in frames)
    moving = pictures / "loop.gif"
    durations = [duration for _, duration in frames]
    first.save(moving, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    assert moving.stat().st_size < 300_000


def test_panel(person: Person, lab: Lab, save_picture: Callable[..., None], theme: str) -> None:
    lab.write_notebook("prices.ipynb", PRICE)
    person.open("prices.ipynb")
    person.run(0)
    expect(person.card()).to_be_visible()
    lab.write_notebook("orders.ipynb", DELETE)
    person.page.get_by_role("region", name="File Browser").get_by_text("orders.ipynb").dblclick()
    person.await_kernel()
    person.run(0)
    person.keyboard.press("Control+B")
    person.open_panel()
    panel = person.page.locator(".jp-AgentBox-panel")
    assert_legible(panel)
    oldest = person.item("shop.set_price")
    expect(oldest.get_by_role("button", name="Allow once")).to_be_enabled()
    buttons = oldest.get_by_role("button", name=re.compile("^(Allow once|Edit|Reject)$"))
    tops = buttons.evaluate_all("nodes => nodes.map(node => node.getBoundingClientRect().top)")
    assert (len(tops), len(set(tops))) == (3, 1)
    expect(person.item("shop.delete_order")).to_contain_text("shop.delete_order(order_id=1042)")
    expect(person.toasts).to_have_count(0)
    save_picture(f"panel-{theme}", person.page.locator("#main"), margin=0)


def test_forms(person: Person, lab: Lab, save_picture: Callable[..., None]) -> None:
    look_at(person, lab, PRICE)
    person.run(0)
    card = person.card()
    decide(card, "Edit")
    expect(card.get_by_role("textbox", name="product_id")).to_be_focused()  # the form takes the focus when it opens
    card.get_by_role("textbox", name="price").fill("14.90")
    expect(card.get_by_role("button", name="Allow once with edits")).to_be_enabled()
    assert_legible(card)
    save_picture("edit-light", person.cell(0))
    decide(card, "Cancel")
    decide(card, "Reject")
    card.get_by_role("textbox").fill("The price is 14.90, not 149.")
    expect(card.get_by_role("button", name="Reject")).to_be_enabled()
    assert_legible(card)
    save_picture("reject-light", person.cell(0))


def test_progress(person: Person, lab: Lab, save_picture: Callable[..., None]) -> None:
    look_at(person, lab, FORECAST)
    person.run(0)
    decide(person.card(), "Allow once")
    expect(person.card()).to_contain_text(re.compile(r"of 40\s*Simulated \d\d\d of"))
    assert_legible(person.card())
    save_picture("progress-light", person.cell(0))


def test_history(person: Person, lab: Lab, save_picture: Callable[..., None]) -> None:
    look_at(person, lab, ORDER, DELETE, "tools.shop.get_order(order_id=7)")
    person.run(0)
    decide(person.card(0), "Allow once")
    person.run(1)
    decide(person.card(1), "Reject")
    person.card(1).get_by_role("textbox").fill("this order is open")
    person.keyboard.press("Enter")
    expect(person.cell(1)).to_contain_text("ToolCallRejectedError")
    person.await_kernel()  # until then the kernel refuses to run more
    person.run(2)
    decide(person.card(2), "Allow once")
    person.open_panel()
    person.show_tab("History")
    expect(person.history.get_by_role("listitem").first).to_contain_text("It failed")
    items = person.history.get_by_role("listitem")
    items.nth(1).get_by_role("status").click()
    assert_legible(person.history)
    tabs = person.page.locator(".jp-AgentBox-panel").get_by_role("tablist")
    items.nth(2).scroll_into_view_if_needed()
    expect(items.nth(2)).to_be_in_viewport(ratio=0.99)
    save_picture("history-light", tabs, *(items.nth(n) for n in range(3)), margin=2)


def test_blocked_output(person: Person, lab: Lab, boxed: str, save_picture: Callable[..., None], theme: str) -> None:
    look_at(person, lab, BLOCKED, kernel=boxed)
    person.run(0)
    card = person.cell(0).get_by_role("group", name="Blocked output: JavaScript")
    card.get_by_text("Show code").click()
    font = person.cell(0).locator(".cm-content").evaluate("node => getComputedStyle(node).fontFamily")
    expect(card.locator("pre")).to_have_css("font-family", font)
    expect(card.get_by_role("button", name="Run this output")).to_have_attribute("aria-disabled", "false")
    assert_legible(card)
    save_picture(f"blocked-{theme}", person.cell(0))


def test_ended_kernel(person: Person, lab: Lab, limited: str, save_picture: Callable[..., None], theme: str) -> None:
    look_at(person, lab, TAKE_MEMORY, kernel=limited, path="analysis.ipynb")
    person.run(0)
    expect(person.toasts).to_contain_text("it needed more than 2 GiB of memory.")
    person.page.get_by_role("dialog").get_by_role("button", name="OK").click()
    person.await_kernel()
    assert_legible(person.toasts)
    save_picture(f"ended-{theme}", person.toasts, margin=8)
