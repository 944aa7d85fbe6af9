"""Secrets in arguments: the tool gets them, the person sees them, and no file of the record has them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Outcome, OutcomeState, Status
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.testing import FakeClock
from tests.samples import NOON, a_call, a_decision, a_request
from tests.services.conftest import Services

SECRET, EDITED = "hunter2-the-first", "hunter2-the-second"


def a_store(directory: Path) -> SqlApprovalStore:
    return SqlApprovalStore(sqlite_url(str(directory / "approvals.db")), clock=FakeClock(), redaction=Redaction())


def a_secret_request(id: str = "r1", padding: int = 0, **changes: Any) -> ApprovalRequest:
    arguments = {"password": SECRET, "note": f"login with {SECRET} " + "x" * padding}
    return a_request(id, call=a_call(arguments=arguments), **changes)


def files_with(directory: Path, text: str) -> list[str]:
    return [path.name for path in directory.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.parametrize("padding", [0, 50_000])
async def test_a_secret_is_in_no_file_from_the_question_to_the_end(tmp_path: Path, padding: int) -> None:
    store = a_store(tmp_path)
    asked = a_secret_request(padding=padding)
    await store.add(asked)
    assert files_with(tmp_path, SECRET) == []

    decided = asked.decide(a_decision(asked, arguments={"password": EDITED}, reason=f"{SECRET} is stale"))
    running = decided.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
    assert await store.replace_if(running, status=Status.PENDING, outcome=None)
    error = f"401: {EDITED} is wrong, {SECRET} too"
    failed = running.with_outcome(Outcome(state=OutcomeState.FAILED, started_at=NOON, finished_at=NOON, error=error))
    assert await store.replace_if(failed, status=Status.APPROVED, outcome=OutcomeState.RUNNING)

    assert files_with(tmp_path, SECRET) + files_with(tmp_path, EDITED) == []
    kept = await store.get("r1")
    assert kept.call.arguments["password"] == REDACTED
    assert kept.call.digest == asked.call.digest
    assert kept.decision is not None
    assert kept.outcome is not None
    assert kept.decision.arguments == {"password": REDACTED}
    assert kept.effective_call.digest == decided.effective_call.digest
    assert kept.decision.reason == f"{REDACTED} is stale"
    assert kept.outcome.error == f"401: {REDACTED} is wrong, {REDACTED} too"
    await store.aclose()


async def test_the_positive_control_without_redaction_the_file_has_it(tmp_path: Path) -> None:
    async with SqlApprovalStore(sqlite_url(str(tmp_path / "approvals.db")), clock=FakeClock()) as store:
        await store.add(a_secret_request())
        assert files_with(tmp_path, SECRET) != []


async def test_what_a_rule_denied_is_redacted_too(store: SqlApprovalStore, tmp_path: Path) -> None:
    await store.add(
        a_secret_request(evaluation=Evaluation(effect=Effect.DENY, rule=Rule(server="*", tool="*", effect=Effect.DENY)))
    )
    assert files_with(tmp_path, SECRET) == []


async def test_the_person_sees_and_the_tool_gets_what_the_code_asked_for(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    services = Services(store=store)  # type: ignore[arg-type]  # another one with the same port
    got: list[Any] = []

    async def login(call: ToolCall, _report: Any) -> Any:
        got.append(dict(call.arguments))
        return {}

    services.tools.tools["shop.login"] = login
    approvals = services.approvals
    call = ToolCall(server="shop", tool="login", arguments={"token": 123456789})
    ran = asyncio.create_task(services.calls.run(call, on_waiting=lambda _: None, on_running=lambda _: None))
    request = await services.announcer.until(lambda one: one.status is Status.PENDING)

    listed = (await approvals.list(ApprovalQuery(statuses=(Status.PENDING,)))).approvals
    assert [one.call.arguments for one in (*listed, await approvals.get(request.id))] == [{"token": 123456789}] * 2
    await services.decide(request, Answer.ALLOW_ONCE, arguments={"token": 987654321})
    await ran

    assert got == [{"token": 987654321}]
    kept = await approvals.get(request.id)
    assert kept.decision is not None
    assert (kept.call.arguments, kept.decision.arguments) == ({"token": REDACTED}, {"token": REDACTED})
    await store.aclose()
