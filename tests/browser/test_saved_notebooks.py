"""What stays in a notebook: in the file, in this JupyterLab, and elsewhere."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime

import pytest
from playwright.sync_api import expect

from .lab import TIMEOUT, Lab
from .person import Person, decide

CARD = "application/vnd.jupyter-agentbox.request+json"
EDITED = "from jupyter_agentbox import tools\ntools.shop.set_price(product_id=5, price=149.0).price"
BOTH = """from jupyter_agentbox import ToolCallRejectedError, tools
tools.shop.list_orders(limit=1)
try:
    tools.shop.delete_order(order_id=1053)
except ToolCallRejectedError:
    print("kept")"""


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def converted(lab: Lab, path: str, form: str) -> str:
    """Return what nbconvert makes of a saved notebook."""
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", form, "--stdout", str(lab.root / "work" / path)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout


def test_saved_notebook_says_what_became_of_its_calls(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(BOTH)
    person.open(path)
    person.run(0)
    decide(person.card().nth(0), "Allow once")
    decide(person.card().nth(1), "Reject")
    person.card().nth(1).get_by_role("textbox").fill("no reason to")
    person.keyboard.press("Enter")
    # In the output, not in the code: by then the kernel has said what became of both calls.
    expect(person.cell(0).locator(".jp-OutputArea-output").get_by_text("kept")).to_be_visible()
    person.await_kernel()
    person.save()
    (saved,) = [output["data"] for output in lab.read_notebook(path)["cells"][0]["outputs"] if "data" in output]
    assert sorted(saved) == sorted([CARD, "text/html", "text/plain"])
    assert sorted(saved[CARD]) == ["request_id", "request_ids"]
    allowed, rejected = saved["text/plain"].splitlines()
    assert allowed.startswith("✓ shop.list_orders(limit=1) — allowed by ")
    assert rejected.startswith("✗ shop.delete_order(order_id=1053) — rejected by ")
    assert rejected.endswith("no reason to; did not run")
    person.reload()
    expect(person.card().nth(0)).to_contain_text("shop.list_orders Allowed by you. Done in")
    expect(person.card().nth(1)).to_contain_text("shop.delete_order Rejected by you: no reason to")
    expect(person.page.get_by_text("Error displaying widget")).to_have_count(0)


def test_saved_notebook_says_what_ran_after_an_edit(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook("from jupyter_agentbox import tools\ntools.shop.set_price(product_id=5, price=149.0).price")
    person.open(path)
    person.run(0)
    decide(person.card(), "Edit")
    person.card().get_by_role("textbox", name="price").fill("14.9")
    decide(person.card(), "Allow once with edits")
    expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("14.9")
    person.await_kernel()
    person.save()
    text = lab.read_notebook(path)["cells"][0]["outputs"][0]["data"]["text/plain"]
    assert text.startswith(
        "✓ shop.set_price(product_id=5, price=14.9) — edited (the code asked for price=149.0), allowed by "
    )


def test_notebook_of_another_server_shows_what_it_says_itself(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook("1 + 1")
    content = lab.read_notebook(path)
    text = "shop.delete_order: rejected <b>by</b> Ada (too many)"
    data = {CARD: {"request_id": "from-elsewhere"}, "text/html": "<i>unused</i>", "text/plain": text}
    content["cells"][0]["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]
    lab.ask(f"api/contents/{path}", {"type": "notebook", "content": content}, "PUT")
    person.open(path)
    expect(person.cell(0)).to_contain_text(text)
    expect(person.cell(0).get_by_role("button", name="Allow once")).to_have_count(0)


def test_after_a_reload_the_card_says_where_the_value_is_and_the_saved_text_is_true(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook("from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)[0].status", "'next'")
    person.open(path)
    person.run(0)
    expect(person.card()).to_be_visible()
    person.save()
    assert "is waiting for approval" in str(lab.read_notebook(path)["cells"][0]["outputs"])
    person.reload()
    decide(person.card(), "Allow once")
    expect(person.card()).to_contain_text("the output of the cell is not shown here")
    decide(person.card(), "Insert a cell with “_”")
    expect(person.cell(1).locator(".cm-content")).to_have_text("_")
    person.await_kernel()
    expect(person.page.locator("[data-windowed-list-index='1']:focus-within")).to_have_count(1)
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1).locator(".jp-OutputArea-executeResult")).to_be_visible()
    person.save()
    text = lab.read_notebook(path)["cells"][0]["outputs"][0]["data"]["text/plain"]
    assert text.startswith("✓ shop.list_orders(limit=1) — allowed by ")
    for form in ("html", "markdown"):
        exported = converted(lab, path, form)
        assert "is waiting for approval" not in exported
        assert "✓ shop.list_orders(limit=1) — allowed by " in exported


@pytest.mark.parametrize("form", ["html", "markdown", "rst"])
def test_an_exported_notebook_says_who_decided_when_and_which_arguments_ran(
    person: Person, notebook: Callable[..., str], lab: Lab, form: str
) -> None:
    path = notebook(BOTH, EDITED)
    person.open(path)
    person.run(0)
    decide(person.card().nth(0), "Allow once")
    decide(person.card().nth(1), "Reject")
    person.card().nth(1).get_by_role("textbox").fill("no <reason> to")
    person.keyboard.press("Enter")
    expect(person.cell(0).locator(".jp-OutputArea-output").get_by_text("kept")).to_be_visible()
    person.await_kernel()
    person.run(1)
    decide(person.card(1), "Edit")
    person.card(1).get_by_role("textbox", name="price").fill("14.9")
    decide(person.card(1), "Allow once with edits")
    expect(person.cell(1).locator(".jp-OutputArea-executeResult")).to_contain_text("14.9")
    person.await_kernel()
    person.save()

    exported = html.unescape(converted(lab, path, form))

    today = datetime.now().astimezone().strftime("%Y-%m-%d")
    who = r"(?!,)[^,\n]+"
    edited = r"edited \(the code asked for price=149\.0\)"
    for line in (
        rf"✓ shop\.list_orders\(limit=1\) — allowed by {who}, {today} \d\d:\d\d",
        rf"✗ shop\.delete_order\(order_id=1053\) — rejected by {who}, {today} \d\d:\d\d.*no <reason> to; did not run",
        rf"✓ shop\.set_price\(product_id=5, price=14\.9\) — {edited}, allowed by {who}",
    ):
        assert re.search(line, exported), line
    assert "waiting for approval" not in exported
    assert "application/vnd.jupyter-agentbox" not in exported


def test_an_exported_script_is_the_code_alone(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(EDITED)
    person.open(path)
    person.run(0)
    decide(person.card(), "Allow once")
    expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("149")
    person.await_kernel()
    person.save()
    script = converted(lab, path, "script")
    assert EDITED in script
    compile(script, path, "exec")
