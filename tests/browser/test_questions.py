"""What a server asks while its tool runs: a card of its own, under the cell and in the panel."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .lab import Lab
from .person import Person, decide

SERVER = Path(__file__).parents[1] / "mcp_client" / "servers" / "asking.py"
ORDER = "from jupyter_agentbox import tools\nprint('told:', tools.asking.order())"
VISIT = "print('told:', tools.asking.visit(url='{}sign?order=7'))"


@pytest.fixture
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


@pytest.mark.usefixtures("asking")
def test_a_server_asks_and_gets_its_answer_from_the_card_or_the_panel(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    page = person.page
    person.open(notebook(ORDER, VISIT.format(lab.url)))
    person.run(0)
    card = person.cell(0).get_by_role("group", name="The server “asking” asks you")
    expect(card).to_contain_text("Where to?")
    expect(card.get_by_role("button", name="Allow once")).to_have_count(0)
    decide(card, "Answer")
    expect(card.get_by_role("alert")).to_contain_text("street")
    card.get_by_role("textbox", name="street").fill("Main <b>1</b>")
    decide(card, "Answer")
    expect(person.cell(0)).to_contain_text('told: accept {"street":"Main <b>1</b>","count":1,"speed":"slow"}')
    expect(card).to_have_count(0)

    fetched: list[str] = []
    page.context.on("request", lambda request: fetched.append(request.url))
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
    expect(person.cell(1)).to_contain_text("told: accept")
    expect(listed).to_have_count(0)
