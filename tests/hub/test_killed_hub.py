"""A Hub that is killed while a call waits for second persons, and started again as its service manager does."""

from __future__ import annotations

from typing import Any

from .documented import Site
from .test_service import Browser, until

SQL = "select 'while the Hub was killed'"


def test_a_call_that_waits_when_the_hub_is_killed_waits_on_and_runs_once_when_it_is_allowed(site: Site) -> None:
    with site.kernel("ada") as kernel:
        kernel.start(f"from jupyter_agentbox import tools\nprint(tools.warehouse.query(sql={SQL!r}))")
        (request,) = until(lambda: site.pending("bob"))
        bob, cleo = Browser(site, "bob"), Browser(site, "cleo")

        site.kill_hub()
        code, _ = bob.decide(request)
        assert code >= 400  # nobody says who that is
        site.start_hub()

        def still() -> Any:
            return [one["id"] for one in site.pending("cleo")]

        assert still() == [request["id"]]
        answers = [until(lambda one=one: answer_of(one, request)) for one in (bob, cleo)]
        until(lambda: outcome_of(site) == "succeeded")

    assert [answer["status"] for answer in answers] == ["pending", "approved"]
    assert [arguments for _, arguments, *_ in site.outside.called].count({"sql": SQL}) == 1


def answer_of(browser: Browser, request: Any) -> Any:
    """Return the answer to a decision once the Hub says again who decides."""
    code, answer = browser.decide(request)
    return answer if code == 200 else None


def outcome_of(site: Site) -> str:
    """Return how the newest call stands at the user's server, whose route the Hub has to find again."""
    code, page = site.ask("user/ada/jupyter-agentbox/audit?tool=query&limit=1", token=site.token_of("ada"))
    return str(page["records"][0]["outcome"]["state"]) if code == 200 else ""
