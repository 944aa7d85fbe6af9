"""`GET audit`, over HTTP against a real Jupyter server."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.approvals import Answer, OutcomeState
from jupyter_agentbox.core.calls import JsonValue, Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.services.audit import manager as audit_manager

ADA = Reviewer(name="ada", via=Via.BROWSER, display_name="Ada Lovelace")
DecidedCall: TypeAlias = Callable[..., Awaitable[str]]
ASK = Evaluation(effect=Effect.ASK)


@pytest.fixture
def audit(jp_fetch: Any) -> Any:
    async def audit(**query: str) -> tuple[int, str, Any]:
        try:
            response = await jp_fetch("jupyter-agentbox", "audit", params=query)
        except HTTPClientError as error:
            return error.code, "", None
        return response.code, response.body.decode(), response.headers

    return audit


@pytest.fixture
def decided_call(approvals: ApprovalManager, decisions: DecisionManager) -> DecidedCall:
    """Let Ada allow a call with edited arguments, and let it run; return its id."""

    async def decided(tool: str = "restock", **arguments: JsonValue) -> str:
        call = ToolCall(server="shop", tool=tool, arguments=arguments, origin=Origin(notebook_path="work/a.ipynb"))
        request = await approvals.open(call, ToolDescription(name=tool), ASK)
        verdict = Verdict(
            answer=Answer.ALLOW_ONCE, digest=call.digest, reason="fine", arguments={**arguments, "quantity": 25}
        )
        await decisions.decide(request.id, verdict, reviewer=ADA)
        await approvals.record(request.id, OutcomeState.SUCCEEDED)
        return request.id

    return decided


async def test_a_record_has_who_when_where_what_and_what_became_of_it(decided_call: DecidedCall, audit: Any) -> None:
    id = await decided_call(product_id=3)

    _, body, _ = await audit()

    [record] = json.loads(body)["records"]
    assert (record["id"], record["signature"]) == (id, "restock(product_id=3, quantity=25)")
    assert (record["decided_by"], record["status"], record["outcome"]["state"]) == (
        "Ada Lovelace",
        "approved",
        "succeeded",
    )
    assert record["call"]["arguments"] == {"product_id": 3}
    assert record["decision"]["arguments"] == {"product_id": 3, "quantity": 25}
    assert record["call"]["notebook_path"] == "work/a.ipynb"
    assert record["ended_at"] == record["outcome"]["finished_at"]
    assert record["seconds"] >= 0
    assert "tool" not in record


async def test_secrets_are_in_no_answer(decided_call: DecidedCall, audit: Any) -> None:
    await decided_call(token="hunter2-and-more", note="it is hunter2-and-more")
    for form in ("json", "jsonl", "csv"):
        _, body, _ = await audit(format=form)
        assert "restock" in body
        assert "hunter2" not in body


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"tool": "rest*", "server": "shop", "decision": "allow_once", "outcome": "succeeded,failed"}, 3),
        ({"tool": "restock"}, 3),
        ({"reviewer": "Ada Lovelace"}, 3),
        ({"reviewer": "bob"}, 0),
        ({"notebook_path": "work/a.ipynb", "q": "LOVELACE fine"}, 3),
        ({"status": "rejected"}, 0),
        ({"since": "2020-01-01", "until": "2021-01-01T00:00:00+02:00"}, 0),
        ({"limit": "2"}, 2),
    ],
)
async def test_records_can_be_filtered(
    decided_call: DecidedCall, audit: Any, query: dict[str, str], count: int
) -> None:
    for number in range(3):
        await decided_call(product_id=number)

    code, body, _ = await audit(**query)

    assert (code, len(json.loads(body)["records"])) == (200, count)


async def test_pages_follow_each_other_without_a_gap(decided_call: DecidedCall, audit: Any) -> None:
    ids = [await decided_call(product_id=number) for number in range(5)]
    found: list[str] = []
    cursor = ""
    while cursor is not None:
        _, body, _ = await audit(limit="2", cursor=cursor)
        page = json.loads(body)
        found += [record["id"] for record in page["records"]]
        cursor = page["next"]

    assert sorted(found) == sorted(ids)


@pytest.mark.parametrize(
    "query",
    [
        *(
            {"limit": "0"},
            {"limit": "x"},
            {"limit": "9" * 5000},
            {"cursor": "x"},
            {"since": "soon"},
            {"decision": "perhaps"},
        ),
        *({"status": "x"}, {"outcome": "x"}, {"format": "xml"}, {"q": "x" * 201}, {"tool": "[z-a]"}),
    ],
)
async def test_what_cannot_be_read_is_422(audit: Any, query: dict[str, str]) -> None:
    assert (await audit(**query))[0] == 422


async def test_all_records_can_be_downloaded_in_pieces(
    decided_call: DecidedCall, audit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_manager, "_EXPORTED", 2)
    ids = [await decided_call(product_id=number) for number in range(5)]

    _, lines, headers = await audit(format="jsonl")
    _, table, csv_headers = await audit(format="csv", q="restock")

    assert {json.loads(line)["id"] for line in lines.splitlines()} == set(ids)
    # An id that begins with a minus is marked as text, like all that a spreadsheet would take for a formula.
    assert {row["id"].removeprefix("'") for row in csv.DictReader(io.StringIO(table))} == set(ids)
    assert headers["Content-Type"] == "application/x-ndjson"
    assert csv_headers["Content-Type"].startswith("text/csv")
    assert csv_headers["Content-Disposition"] == 'attachment; filename="agentbox-history.csv"'


async def test_who_is_not_logged_in_gets_nothing(jp_serverapp: Any, http_server_client: Any, jp_base_url: str) -> None:
    del jp_serverapp
    for form in ("json", "csv"):
        with pytest.raises(HTTPClientError) as caught:
            await http_server_client.fetch(f"{jp_base_url}jupyter-agentbox/audit?format={form}")
        assert caught.value.code == 403
