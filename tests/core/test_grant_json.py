"""What the REST API says of grants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_agentbox.core.approval_json import request_to_json
from jupyter_agentbox.core.approvals import reason_for
from jupyter_agentbox.core.grant_json import grant_to_json, grant_use_to_json, void_grant_to_json
from jupyter_agentbox.core.grant_uses import Scope, Void
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.pagination import from_microseconds, microseconds
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.tools import ToolDescription
from tests.samples import ADA, NOON, a_decision, a_request

TOOL = ToolDescription(name="delete_order", description="Deletes an order.")
GRANT = Grant(
    id="g1",
    effect=Effect.ALLOW,
    scope=Scope.KERNEL,
    server="shop",
    tool="delete_order",
    granter=ADA,
    granted_at=NOON,
    request_id="r1",
    kernel_id="k1",
    notebook_path="a.ipynb",
    definitions={"delete_order": "d"},
    seen=TOOL,
    reason="fine",
    used=1,
    last_used_at=NOON,
)
USE = {
    "id": "g1",
    "scope": "kernel",
    "granted_at": "2026-05-01T12:00:00.000Z",
    "reviewer": "ada",
    "reviewer_kind": "user",
    "reviewer_name": None,
    "via": "browser",
}


def test_a_grant_as_json_has_every_field() -> None:
    assert grant_to_json(GRANT) == {
        **USE,
        "effect": "allow",
        "server": "shop",
        "tool": "delete_order",
        "tools": ["delete_order"],
        "kernel_id": "k1",
        "notebook_path": "a.ipynb",
        "thread_id": None,
        "request_id": "r1",
        "arguments_digest": None,
        "reason": "fine",
        "until": None,
        "uses": None,
        "used": 1,
        "last_used_at": "2026-05-01T12:00:00.000Z",
        "void": None,
    }
    assert grant_to_json(replace(GRANT, void=Void.SERVER))["void"] == "server"


@pytest.mark.parametrize("seen", [TOOL, None])
def test_a_grant_that_no_longer_holds_says_what_the_tool_was(seen: ToolDescription | None) -> None:
    voided = replace(GRANT, seen=seen).voided_by(replace(TOOL, description="Other."), "")
    assert voided is not None
    before = None
    if seen is not None:
        before = {
            "title": "",
            "description": "Deletes an order.",
            "annotations": {},
            "input_schema": {"type": "object"},
            "output_schema": None,
        }
    assert void_grant_to_json(voided) == {"grant": USE, "void": "definition", "before": before, "server": None}
    moved = void_grant_to_json(replace(voided, server_before="shop --dry-run", server_now="shop"))
    assert moved["server"] == {"before": "shop --dry-run", "now": "shop"}


def test_a_request_names_the_grant_that_answered_it() -> None:
    allowed = request_to_json(a_request(evaluation=Evaluation(effect=Effect.ALLOW, grant=GRANT.use)))
    asked = a_request()
    settled = request_to_json(asked.decide(a_decision(asked, grant=GRANT.use)))
    assert isinstance(allowed["evaluation"], dict)
    assert isinstance(settled["decision"], dict)
    assert allowed["evaluation"]["grant"] == settled["decision"]["grant"] == grant_use_to_json(GRANT.use)


def test_what_a_grant_rejects_has_its_reason() -> None:
    assert reason_for(a_request(evaluation=Evaluation(effect=Effect.DENY, grant=GRANT.use))) == "fine"


def test_microseconds_are_a_time_again() -> None:
    assert from_microseconds(microseconds(NOON)) == NOON
