"""The servers in the side panel: their tools, tried once a person has allowed it, and a new server."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from playwright.sync_api import expect

from .lab import SHOP, Lab
from .person import Person, decide


def test_a_tool_is_tried_once_it_is_allowed_and_a_server_is_added_by_the_button_that_names_its_command(
    person: Person, lab: Lab
) -> None:
    lab.ask("jupyter-agentbox/servers/shop/stop", {})  # a list of tools that is open closes when the server restarts
    person.visit()
    person.open_panel()
    person.show_tab("Servers")
    servers = person.page.get_by_role("region", name="MCP servers")
    servers.get_by_role("button", name="Start shop").click()
    shop = servers.get_by_role("listitem").filter(has=person.page.get_by_role("button", name="Stop shop")).first
    shop.locator("summary", has_text=re.compile(r"^\d+ tools$")).click()
    shop.get_by_role("searchbox").fill("get_order")
    shop.locator("summary", has_text="get_order").click()
    shop.get_by_role("button", name="Try…").click()
    expect(shop.get_by_role("group", name="Try get_order").get_by_role("textbox").first).to_be_focused()
    person.keyboard.type("1042")
    shop.get_by_role("button", name="Ask to call get_order").click()
    shop.get_by_role("button", name="Show the request").click()
    decide(person.item("shop.get_order"), "Allow once")
    person.show_tab("Servers")
    expect(shop).to_contain_text("The tool answered:")
    if shots := os.environ.get("AGENTBOX_SHOTS"):
        person.page.screenshot(path=f"{shots}/servers-try.png")

    servers.get_by_role("button", name="Add server…").click()
    form = servers.get_by_role("group", name="Add an MCP server")
    program = form.get_by_role("textbox", name="Program", exact=True)
    program.fill(json.dumps({"mcpServers": {"second": SHOP}}))
    program.press("Control+A")
    program.press("Control+X")
    program.press("Control+V")  # as what a server's instructions have
    expect(form.get_by_label("Name", exact=True)).to_have_value("second")
    expect(program).to_have_value(SHOP["command"])
    expect(form.get_by_label("Arguments, one per line")).to_have_value("\n".join(SHOP["args"]))
    expect(form.get_by_role("button", name="Preview")).to_have_css("text-align", "center")
    form.get_by_role("button", name="Preview").click()
    line = " ".join([SHOP["command"], *SHOP["args"]])
    add = form.get_by_role("button", name=f"Add and start: {line}")
    expect(add).to_be_visible()
    if shots:
        person.page.screenshot(path=f"{shots}/servers-add.png")
    file = Path(lab.ask("jupyter-agentbox/servers")["file"]["path"])
    before = file.read_text()
    try:
        decide(form, f"Add and start: {line}")
        expect(servers.get_by_role("button", name="Stop second")).to_be_visible()
        assert json.loads(file.read_text())["mcpServers"]["second"] == SHOP
    finally:
        file.write_text(before)


def test_a_server_of_the_project_starts_once_it_is_allowed_and_asks_again_with_the_difference(
    person: Person, lab: Lab
) -> None:
    file, started = lab.root / "work" / ".mcp.json", lab.root / "started"
    program = (
        f"import pathlib, runpy; pathlib.Path({str(started)!r}).touch();"
        " runpy.run_module('jupyter_agentbox.demo.shop', run_name='__main__')"
    )

    def write(*arguments: str) -> None:
        entry = {"command": sys.executable, "args": ["-c", program, *arguments]}
        file.write_text(json.dumps({"mcpServers": {"ours": entry}}))

    write()
    try:
        person.visit()
        person.open_panel()
        person.show_tab("Servers")
        servers = person.page.get_by_role("region", name="MCP servers")
        expect(servers).to_contain_text("Nothing of it runs before you trust it.")
        servers.get_by_role("button", name="Review ours").click()
        card = person.item("agentbox.register_mcp_server")
        expect(card).to_contain_text(started.name)
        expect(card.get_by_role("button", name="Edit", exact=True)).to_have_attribute("aria-disabled", "true")
        assert not started.exists()
        decide(card, "Trust and start")
        person.show_tab("Servers")
        expect(
            servers.get_by_role("button", name="Restart ours")
        ).to_be_visible()  # it runs; one that starts has "Stop"
        assert started.exists()

        write("--again")
        person.reload()
        person.show_tab("Servers")
        servers.get_by_role("button", name="Review ours").click()
        difference = card.get_by_role("group", name="What has changed since you trusted it")
        expect(difference.locator(".jp-mod-added")).to_contain_text(['"--again"'])
        if shots := os.environ.get("AGENTBOX_SHOTS"):
            person.page.screenshot(path=f"{shots}/servers-project-changed.png")
        decide(card, "Reject")
        decide(card, "Reject")  # without a reason
        expect(card).to_have_count(0)
    finally:
        file.unlink()
