"""What the server answers who asks for a cell's code with edited arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.services.approvals.manager import ApprovalManager

SCHEMA: Any = {
    "type": "object",
    "properties": {"password": {"type": "string"}, "order-id": {"type": "integer"}},
    "required": ["order-id"],
}
TOOL = ToolDescription(name="delete-order", input_schema=SCHEMA)


@pytest.fixture
def jp_server_config(jp_server_config: Any, tmp_path: Any) -> Any:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"my-shop": {"command": "true"}}}))
    return jp_server_config


async def a_request(
    approvals: ApprovalManager, fetch: Any, arguments: dict[str, Any] | None, *, asked: Any = None
) -> str:
    """Return the id of a request that a person allowed with these arguments."""
    call = ToolCall(
        server="my-shop", tool="delete-order", arguments=asked or {"order-id": 7}, origin=Origin(kernel_id="k1")
    )
    request = await approvals.open(call, TOOL, Evaluation(effect=Effect.ASK))
    body = {"decision": "allow_once", "digest": call.digest}
    code, _ = await fetch(
        "approvals", request.id, "decision", body=body | ({"arguments": arguments} if arguments else {})
    )
    assert code == 200
    return request.id


async def test_the_record_says_what_was_asked_and_edited_and_names_are_those_of_python(
    approvals: ApprovalManager, fetch: Any
) -> None:
    id = await a_request(approvals, fetch, {"order-id": 8})

    answer = await fetch("approvals", id, "cell-update", body={"source": "tools.my_shop.delete_order(order_id=7)"})

    assert answer == (200, {"source": "tools.my_shop.delete_order(order_id=8)", "reason": None})


async def test_an_argument_may_stand_in_the_code_by_position(approvals: ApprovalManager, fetch: Any) -> None:
    id = await a_request(approvals, fetch, {"order-id": 8})

    answer = await fetch("approvals", id, "cell-update", body={"source": "tools.my_shop.delete_order(7)"})

    assert answer == (200, {"source": "tools.my_shop.delete_order(8)", "reason": None})


async def test_what_cannot_be_updated_is_answered_with_a_reason(approvals: ApprovalManager, fetch: Any) -> None:
    edited, plain = [await a_request(approvals, fetch, arguments) for arguments in ({"order-id": 8}, None)]
    for id, source, reason in [
        (edited, "tools.my_shop.delete_order(order_id=n)", "`order_id`"),
        (plain, "tools.my_shop.delete_order(order_id=7)", "Nobody edited"),
    ]:
        code, body = await fetch("approvals", id, "cell-update", body={"source": source})
        assert (code, body["source"]) == (200, None)
        assert reason in body["reason"]


@pytest.mark.parametrize(
    ("asked", "edited"),
    [({"password": "a long secret"}, {"order-id": 8}), ({}, {"order-id": 8, "password": "a long secret"})],
    ids=["asked", "edited"],
)
async def test_a_call_with_a_secret_is_not_written_into_the_code(
    approvals: ApprovalManager, fetch: Any, asked: dict[str, Any], edited: dict[str, Any]
) -> None:
    id = await a_request(approvals, fetch, asked | edited, asked={"order-id": 7} | asked)
    arguments = ", ".join(f"{name.replace('-', '_')}={value!r}" for name, value in ({"order-id": 7} | asked).items())

    code, body = await fetch(
        "approvals", id, "cell-update", body={"source": f"tools.my_shop.delete_order({arguments})"}
    )

    assert (code, body["source"]) == (200, None)
    assert "looks like a secret" in body["reason"]


@pytest.mark.parametrize(
    "body", [{}, {"source": 1}, {"source": "x", "arguments": {}}, {"source": "x" * 200_001}, {"source": "\ud800"}, []]
)
async def test_a_body_that_is_none_is_refused(approvals: ApprovalManager, fetch: Any, body: Any) -> None:
    id = await a_request(approvals, fetch, {"order-id": 8})
    code, answer = await fetch("approvals", id, "cell-update", body=body)
    assert (code, answer["reason"]) == (422, "invalid_request")


async def test_a_request_that_is_not_there_is_404(fetch: Any) -> None:
    code, answer = await fetch("approvals", "nothing", "cell-update", body={"source": "x"})
    assert (code, answer["reason"]) == (404, "unknown_approval")
