"""A card at a real JupyterHub after the login of its page has ended."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.person import decide

from .hub import OWNER, Hub
from .test_page import log_in

pytestmark = pytest.mark.browser


def test_a_page_whose_login_has_ended_decides_nothing_and_says_so_until_its_user_logs_in_again(
    hub: Hub, page: Page
) -> None:
    request = hub.new_request()
    person = log_in(page, hub.password, OWNER, hub.server())
    person.status.click()
    item = person.item("agentbox.register_mcp_server")
    expect(item.get_by_role("button", name="Allow once")).to_be_visible()
    page.context.clear_cookies()

    for _ in ("open the form", "send it"):
        decide(item, "Reject")
    said = item.get_by_role("alert")
    expect(said).to_contain_text(
        "Your login has ended, or this page was opened with a token. Log in again in another tab"
    )
    assert hub.read(request) == request

    log_in(page.context.new_page(), hub.password, OWNER, hub.server()).page.close()
    decide(item, "Reject")
    expect(item).to_have_count(0)
    assert hub.read(request)["decision"]["via"] == "browser"
