"""Signing in to a remote server: from the panel to the provider's page, and back."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.oauth_server import running_oauth_server

from .lab import Lab
from .person import Person, press


def test_a_person_sees_whose_page_it_is_signs_in_there_and_comes_back_to_a_server_that_runs(
    person: Person, lab: Lab
) -> None:
    file = Path(lab.ask("jupyter-agentbox/servers")["file"]["path"])
    before = file.read_text()
    with running_oauth_server() as remote:
        try:
            entries = json.loads(before)["mcpServers"]
            file.write_text(json.dumps({"mcpServers": {**entries, "remote": {"url": remote.url}}}))
            person.visit()
            person.open_panel()
            person.show_tab("Servers")
            servers = person.page.get_by_role("region", name="MCP servers")
            servers.get_by_role("button", name="Start remote").click()
            expect(servers.get_by_role("button", name="Sign in to remote")).to_be_visible()
            expect(servers.get_by_role("button", name="Sign out of remote")).to_have_count(0)
            servers.get_by_role("button", name="Sign in to remote").click()
            page = servers.get_by_role("group", name="Sign in to remote")
            expect(page.locator("strong")).to_have_text(urlsplit(remote.origin).netloc)
            if shots := os.environ.get("AGENTBOX_SHOTS"):
                person.page.screenshot(path=f"{shots}/sign-in.png")
            with person.page.expect_popup() as opened:
                page.get_by_role("button", name="Open the page").click()
            opened.value.get_by_role("link", name="Deny").click()
            expect(servers.get_by_text("did not sign you in to `remote`: it was cancelled there")).to_be_visible()
            expect(page).to_have_count(0)
            if shots:
                person.page.screenshot(path=f"{shots}/sign-in-denied.png")

            for button in (
                servers.get_by_role("button", name="Sign in to remote"),
                page.get_by_role("button", name="Cancel"),
            ):
                button.focus()
                press(button, "Enter")
            expect(servers.get_by_text("You cancelled the sign-in.")).to_be_visible()
            expect(servers.get_by_role("button", name="Sign in to remote")).to_be_focused()
            press(servers.get_by_role("button", name="Sign in to remote"), "Enter")
            with person.page.expect_popup() as opened:
                page.get_by_role("button", name="Open the page").click()
            provider = opened.value
            provider.get_by_role("link", name="Allow as ada").click()
            expect(provider.get_by_role("heading", name="You are signed in")).to_be_visible()

            # It runs: one that only starts can be stopped, too.
            expect(servers.get_by_role("button", name="Restart remote")).to_be_visible()
            assert remote.valid[remote.bearers[-1].removeprefix("Bearer ")] == "ada"

            # the server stops first, then its provider is told
            with person.page.expect_response(
                lambda answer: answer.request.method == "DELETE" and "/remote/sign-in" in answer.url
            ):
                servers.get_by_role("button", name="Sign out of remote").click()
            expect(servers.get_by_role("button", name=re.compile("^Start remote$"))).to_be_visible()
            assert remote.refreshable == {}
        finally:
            file.write_text(before)
