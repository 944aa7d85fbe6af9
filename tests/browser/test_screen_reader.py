"""What a screen reader finds and says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .person import Person, decide

#: No other file deletes this order: files share a shop, in any sequence.
DELETE = "from jupyter_agentbox import tools\ntools.shop.delete_order(order_id=1054)"


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_panel_is_a_region_with_lists_of_named_requests(person: Person, notebook: Callable[..., str]) -> None:
    path = notebook(DELETE)
    person.open(path)
    person.run(0)
    person.open_panel()
    expect(person.panel).to_match_aria_snapshot(f"""
        - region "Approval requests":
          - heading "{path}" [level=4]
          - list "{path}":
            - listitem "shop.delete_order":
              - 'group "Approval request: shop.delete_order"':
                - timer
                - button "Go to cell"
                - term: order_id
                - definition:
                  - code: "1054"
                - button "Allow once"
                - button "Let it run more often…"
                - button "Edit"
                - button "Reject"
                - button "Keep it from running…"
    """)
    allow = person.item("shop.delete_order").get_by_role("button", name="Allow once")
    expect(allow).to_have_accessible_description("shop.delete_order")


def test_arrival_is_announced_politely_and_the_countdown_is_not(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(DELETE))
    person.run(0)
    announcement = person.page.get_by_role("status").filter(has_text="New approval request: shop.delete_order")
    expect(announcement).to_have_attribute("aria-live", "polite")
    expect(person.card().get_by_role("timer")).to_have_attribute("aria-live", "off")


def test_outcome_and_errors_are_announced(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(DELETE))
    person.page.route("**/decision*", lambda route: route.abort())
    person.run(0)
    decide(person.card(), "Allow once")
    alert = person.card().get_by_role("alert").filter(has_text="Try again: no request is decided twice.")
    expect(alert).to_be_visible()
    person.page.unroute("**/decision*")
    decide(person.card(), "Allow once")
    expect(person.card().get_by_role("status").first).to_contain_text("shop.delete_order Allowed by you. Done in")
