"""Records are found by who, when, where and what, in SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, OutcomeState, Status
from jupyter_agentbox.core.audit_search import AuditQuery
from jupyter_agentbox.core.calls import Origin
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.storage import audit_search
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.testing import FakeClock
from tests.samples import NOON, a_call, a_decision, a_request

BOB = Reviewer(name="bob", via=Via.API_TOKEN, display_name="Bob B.")
RULED = Evaluation(effect=Effect.DENY, rule=Rule(server="shop", tool="*", effect=Effect.DENY, reason="month's end"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        made: str = request.getfixturevalue("make_postgresql_database")()
        return made
    return sqlite_url(str(tmp_path / "approvals.db"))


def the_requests() -> list[ApprovalRequest]:
    """Return requests of several kinds, the oldest first."""
    made = [
        a_request("waits"),
        a_request("allowed"),
        a_request("rejected", call=a_call(tool="restock", arguments={"note": 'Ünïcode "quoted" \\ 100%'})),
        a_request(
            "denied",
            call=a_call(server="bank", tool="[pay]", origin=Origin(kernel_id="k*", thread_id="t1")),
            evaluation=RULED,
        ),
        a_request("lapsed", call=a_call(server="shop_x", tool="\ud800x" * 80)),
    ]
    times = [replace(request, created_at=NOON + timedelta(hours=hour)) for hour, request in enumerate(made)]
    times[1] = times[1].decide(a_decision(times[1]))
    times[2] = times[2].decide(a_decision(times[2], Answer.REJECT_ONCE, reviewer=BOB, reason="not_today"))
    times[4] = times[4].lapse(Lapse.TIMED_OUT)
    return times


async def ids(url: str, requests: list[ApprovalRequest], **query: Any) -> list[str]:
    async with SqlApprovalStore(url, clock=FakeClock()) as store:
        for request in requests:
            await store.add(request)
    log = SqlAuditLog(url)
    found: list[str] = []
    cursor = None
    while True:
        page = await log.search(AuditQuery(**query, cursor=cursor))
        found += [request.id for request in page.records]
        cursor = page.next
        if cursor is None:
            await log.aclose()
            return found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "lapsed denied rejected allowed waits"),
        ({"limit": 2}, "lapsed denied rejected allowed waits"),
        ({"since": NOON + timedelta(hours=3)}, "lapsed denied"),
        ({"until": NOON + timedelta(hours=1)}, "waits"),
        ({"server": "shop"}, "rejected allowed waits"),
        ({"server": "shop*"}, "lapsed rejected allowed waits"),
        ({"server": "[!s]*"}, "denied"),
        ({"tool": "delete_order"}, "allowed waits"),
        ({"tool": "*o[rc]*"}, "rejected allowed waits"),
        ({"tool": "[[]pay]"}, "denied"),
        ({"tool": "DELETE_Order"}, "allowed waits"),
        ({"tool": "*O[RC]*"}, "rejected allowed waits"),
        ({"tool": "[[]P[Z-a]Y]"}, "denied"),
        ({"tool": "Bank.*PAY*"}, "denied"),
        ({"server": "SHOP"}, "rejected allowed waits"),
        ({"server": "[!S]*"}, "denied"),
        ({"server": "[!A-C]*"}, "lapsed rejected allowed waits"),
        ({"tool": "[[:x:]]*"}, ""),
        ({"tool": "\ud800x" * 80}, "lapsed"),
        ({"reviewer": "ada"}, "allowed"),
        ({"reviewer": "Bob B."}, "rejected"),
        ({"reviewer": "bob b"}, "rejected"),
        ({"reviewer": "b. (BOB)"}, "rejected"),
        ({"reviewer": "a program with a token of Bob B."}, "rejected"),
        ({"reviewer": "a program run by Bob B."}, ""),
        ({"reviewer": "b?b"}, ""),
        ({"reviewer": "api_token"}, "rejected"),
        ({"reviewer": "rule"}, "denied"),
        ({"notebook_path": "work/orders.ipynb", "server": "shop"}, "rejected allowed waits"),
        ({"thread_id": "t1"}, "denied"),
        ({"kernel_id": "k*", "server": "b*"}, "denied"),
        ({"kernel_id": "k"}, ""),
        ({"answers": (Answer.ALLOW_ONCE, Answer.REJECT_ONCE)}, "rejected allowed"),
        ({"statuses": (Status.PENDING, Status.EXPIRED)}, "lapsed waits"),
        ({"outcomes": (OutcomeState.FAILED,)}, ""),
        ({"text": "RESTOCK"}, "rejected"),
        ({"text": 'ünïcode "quoted" 100%'}, "rejected"),
        ({"text": "\\"}, "rejected"),
        ({"text": "not_today"}, "rejected"),
        ({"text": "month's"}, "denied"),
        ({"text": "order_id 7", "limit": 1}, "lapsed denied allowed waits"),
        ({"text": "delete_order(order_id=7)"}, "allowed waits"),
        ({"text": "note='ünïcode"}, "rejected"),
        ({"text": "evaluation"}, ""),
        ({"text": "orders", "reviewer": "ada"}, "allowed"),
    ],
    ids=str,
)
async def test_records_are_found(url: str, query: dict[str, Any], expected: str) -> None:
    assert await ids(url, the_requests(), **query) == expected.split()


@pytest.mark.parametrize(
    ("reviewer", "expected"),
    [
        ("anonymous pasithee", "named"),
        ("Pasi", "named"),
        ("user F9FA68", "nameless"),
        ("abc[x]", "bracket"),
        ("ZOË", "bracket"),
        ("f9fa68".ljust(32, "a"), "nameless named"),
        ("aaa", ""),
        ("browser", "bracket nameless named"),
    ],
)
async def test_reviewers_are_found_by_the_names_under_which_they_are_shown(
    url: str, reviewer: str, expected: str
) -> None:
    made_up = Reviewer(name="f9fa68".ljust(32, "a"), via=Via.BROWSER)
    reviewers = {
        "named": replace(made_up, display_name="Anonymous Pasithee"),
        "nameless": made_up,
        "bracket": replace(made_up, name="zo", display_name="Zoë ABC[x]"),
    }
    asked = [a_request(name) for name in reviewers]
    times = [replace(request, created_at=NOON + timedelta(hours=hour)) for hour, request in enumerate(asked)]
    decided = [request.decide(a_decision(request, reviewer=reviewers[request.id])) for request in times]

    assert await ids(url, decided, reviewer=reviewer) == expected.split()


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("shop.set_price", "plain"),
        ("shop.set_*", "plain"),
        ("*shop.set_price*", "dotted plain"),
        ("my.shop.set_price", "dotted"),
        ("m?.shop.*", "dotted"),
        ("v1.set_price", "versioned"),
        ("shop.v1.set_price", "versioned"),
        ("set_price", "dotted plain"),
        ("shop*", ""),
        ("shop.", ""),
        ("hop.set_price", ""),
        ("long." + "x" * 150, "long"),
        ("long.x*x", "long"),
    ],
)
async def test_a_tool_is_found_by_its_name_with_and_without_its_server(url: str, tool: str, expected: str) -> None:
    names = {
        "long": ("long", "x" * 150),
        "versioned": ("shop", "v1.set_price"),
        "plain": ("shop", "set_price"),
        "dotted": ("my.shop", "set_price"),
    }
    made = [a_request(id, call=a_call(server=server, tool=name)) for id, (server, name) in names.items()]
    times = [replace(request, created_at=NOON + timedelta(hours=hour)) for hour, request in enumerate(made)]

    assert await ids(url, times, tool=tool) == expected.split()


async def test_a_call_is_found_by_what_lists_show_of_it(url: str) -> None:
    edited = a_request("edited", call=a_call(arguments={"order_id": 7, "note": None, "is_new": True}))
    edited = edited.decide(a_decision(edited, arguments={"order_id": 8, "note": None, "is_new": True}))

    text = "delete_order(order_id=8, note=None, is_new=True)"

    assert await ids(url, [a_request("other"), edited], text=text) == ["edited"]


@pytest.mark.parametrize("name", ["straße", "\u212aai", "NONE", 'o"neill', "a*"])
async def test_the_first_of_two_approvals_is_found_by_the_whole_name_of_who_gave_it(url: str, name: str) -> None:
    request = a_request("endorsed")
    request = request.endorse(a_decision(request, reviewer=Reviewer(name=name, via=Via.BROWSER)))

    assert await ids(url, [a_request("other"), request], answered_by=name) == ["endorsed"]


async def test_a_search_for_words_goes_on_where_its_time_was_over(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_search, "_STEP", 2)
    monkeypatch.setattr(audit_search, "_PATIENCE", 0.0)

    assert await ids(url, the_requests(), text="ada") == ["allowed"]


async def test_a_cursor_that_is_none_is_refused(url: str) -> None:
    log = SqlAuditLog(url)
    with pytest.raises(ValueError, match="cursor"):
        await log.search(AuditQuery(cursor="x"))
    await log.aclose()


async def plan_of(directory: Path, **query: Any) -> str:
    """Return how SQLite finds the first records."""
    log = SqlAuditLog(sqlite_url(str(directory / "approvals.db")))

    def plan(connection: Any) -> str:
        statement = audit_search._keys(AuditQuery(**query), "sqlite").limit(10)
        text = str(statement.compile(connection, compile_kwargs={"literal_binds": True}))
        return " ".join(row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}"))

    run: Callable[..., Any] = log._committer.run
    found: str = await run(plan, write=False)
    await log.aclose()
    return found


@pytest.mark.parametrize(
    "query", [{}, {"server": "s", "statuses": (Status.PENDING,)}, {"reviewer": "x", "tool": "a.b*"}]
)
async def test_a_search_reads_one_index_and_no_other_record(tmp_path: Path, query: dict[str, Any]) -> None:
    found = await plan_of(tmp_path, **query)

    assert "COVERING INDEX agentbox_approvals_found" in found
    assert "TEMP B-TREE" not in found


async def test_a_search_for_a_kernel_reads_no_record_of_another(tmp_path: Path) -> None:
    found = await plan_of(tmp_path, kernel_id="k", server="s")

    assert "INDEX agentbox_approvals_kernel (kernel_id=?" in found
    assert "TEMP B-TREE" not in found
