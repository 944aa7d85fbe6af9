from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.policy import Effect, Evaluation, GrantLimit, Rule
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.json_text import text_key
from jupyter_agentbox.storage.rows import new_row, request_from_row, tool_from_row, tool_row
from tests.samples import a_call, a_decision, a_request, requests, texts, tools


@given(requests)
def test_a_request_comes_back_whole(request: ApprovalRequest) -> None:
    tool = tool_row(request.tool)
    row = new_row(request, tool_digest=tool["digest"], owner="me")

    found = request_from_row(
        request=row["request"],
        progress=row["progress"],
        status=row["status"],
        tool=tool_from_row(tool["description"]),
    )

    assert found == request
    assert found.call.digest == request.call.digest
    assert list(found.call.arguments) == list(request.call.arguments)  # people see them in this order


@given(requests)
def test_a_row_holds_only_what_every_database_can_keep(request: ApprovalRequest) -> None:
    for value in new_row(request, tool_digest="d", owner="me").values():
        if isinstance(value, str):
            assert "\0" not in value.encode().decode()


@given(texts, texts)
def test_different_texts_have_different_keys(one: str, other: str) -> None:
    assert (text_key(one) == text_key(other)) is (one == other)


@pytest.mark.parametrize("text", ["", "r1", "work/día 1.ipynb", "日本 😀"])
def test_plain_text_is_its_own_key(text: str) -> None:
    assert text_key(text) == text


@given(tools, tools)
def test_equal_tools_share_a_row_and_others_do_not(one: ToolDescription, other: ToolDescription) -> None:
    same = json.dumps(one.to_json()) == json.dumps(other.to_json())  # 1 and 1.0 and True are equal in Python

    assert (tool_row(one) == tool_row(other)) is same


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), deep(), 10**5000], ids=type)
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(StorageError):
        new_row(a_request(call=a_call(arguments={"x": value})), tool_digest="d", owner="me")


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(StorageError):
        new_row(a_request(created_at=datetime(2026, 5, 1)), tool_digest="d", owner="me")  # noqa: DTZ001


@pytest.mark.parametrize(
    "changes",
    [
        {"request": b"{"},
        {"request": b"[]"},
        {"request": b"\xff"},
        {"request": b"{}"},
        {"progress": b"{}"},
        {"progress": b"null"},
        {"status": "no such status"},
        {"tool": None},
    ],
)
def test_a_damaged_row_is_a_storage_error(changes: dict[str, Any]) -> None:
    row = new_row(a_request(), tool_digest="d", owner="me")
    columns = {"request": row["request"], "progress": row["progress"], "status": "pending", "tool": a_request().tool}

    with pytest.raises(StorageError):
        request_from_row(**{**columns, **changes})


@pytest.mark.parametrize(
    ("pattern", "server", "tool"), [("shop.list_*", "shop", "list_*"), ("*", "*", "*"), ("a.b.c", "a", "b.c")]
)
def test_a_rule_with_one_pattern_is_read_as_that_of_a_server_and_a_tool(pattern: str, server: str, tool: str) -> None:
    rule = Rule(server="x", tool="y", effect=Effect.ALLOW)
    row = new_row(a_request(evaluation=Evaluation(effect=Effect.ALLOW, rule=rule)), tool_digest="d", owner="me")
    progress = json.loads(row["progress"])
    progress["evaluation"]["rule"] = {  # as it was kept before
        "tool": pattern,
        "effect": "allow",
        "layer": "user",
        "reason": "",
        "kernel_id": None,
    }

    found = request_from_row(
        request=row["request"], progress=json.dumps(progress).encode(), status="approved", tool=a_request().tool
    )

    assert found.evaluation.rule == Rule(server=server, tool=tool, effect=Effect.ALLOW)


@pytest.mark.parametrize("limit", GrantLimit)
def test_a_row_keeps_which_grants_a_rule_lets_allow_its_calls(limit: GrantLimit) -> None:
    rule = Rule(server="x", tool="y", effect=Effect.ASK, grants=limit)
    asked = a_request(evaluation=Evaluation(effect=Effect.ASK, rule=rule))
    row = new_row(asked, tool_digest="d", owner="me")

    found = request_from_row(request=row["request"], progress=row["progress"], status="pending", tool=asked.tool)

    assert found.evaluation == asked.evaluation


def test_a_row_that_has_only_the_reviewers_name_is_read_and_claims_nothing_more() -> None:
    decided = a_request().decide(a_decision(a_request()))
    row = new_row(decided, tool_digest="d", owner="me")
    progress = json.loads(row["progress"])
    progress["decision"]["reviewer"] = "ada"  # as it was kept before

    found = request_from_row(
        request=row["request"], progress=json.dumps(progress).encode(), status="approved", tool=a_request().tool
    )

    assert found.decision is not None
    assert found.decision.reviewer == Reviewer(name="ada", via=Via.UNKNOWN)


@pytest.mark.parametrize("description", [b"", b"[]", b'{"no": "such field"}', b"\xff", b"{}"])
def test_a_damaged_tool_is_a_storage_error(description: bytes) -> None:
    with pytest.raises(StorageError):
        tool_from_row(description)


@given(requests)
def test_only_open_requests_have_an_owner(request: ApprovalRequest) -> None:
    assert new_row(request, tool_digest="d", owner="me")["owner"] == ("me" if request.is_open else None)
