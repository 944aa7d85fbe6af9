"""What becomes of calls that wait when a person writes a rule for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.approvers import Approvers
from jupyter_agentbox.core.calls import LONG, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Policy, Rule
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import InvalidTransitionError, StorageError, ToolCallRejectedError
from tests.services.conftest import Services, a_call

ADA = Reviewer(name="ada", via=Via.BROWSER)
ALLOW = Rule(server="shop", tool="delete_*", effect=Effect.ALLOW, file="/rules.json", line=3)
DENY = replace(ALLOW, effect=Effect.DENY)
ASK = replace(ALLOW, effect=Effect.ASK, layer=Layer.SITE)


async def echo(call: ToolCall, _report: Any) -> Any:
    return dict(call.arguments)


class Waiting:
    """Requests that wait, and rules that are written meanwhile."""

    def __init__(self, services: Services) -> None:
        self.services = services

    async def ask(self, call: ToolCall | None = None, evaluation: Evaluation | None = None) -> ApprovalRequest:
        asked = call or a_call(id=1)
        return await self.services.approvals.open(
            asked, ToolDescription(name=asked.tool), evaluation or Evaluation(effect=Effect.ASK)
        )

    async def write(self, *rules: Rule, others: tuple[Rule, ...] = ()) -> None:
        self.services.policies.replace(Policy((*others, *rules)))
        await self.services.decisions.settle_by_rules(rules, reviewer=ADA)

    async def status_of(self, request: ApprovalRequest) -> Status:
        return (await self.services.approvals.get(request.id)).status


@pytest.fixture
def waiting(services: Services) -> Iterator[Waiting]:
    services.tools.tools["shop.delete_order"] = echo
    yield Waiting(services)
    services.grants.close()


@pytest.mark.parametrize(
    ("rule", "status", "answer", "outcome"),
    [
        (ALLOW, Status.APPROVED, Answer.ALLOW_ONCE, OutcomeState.RUNNING),
        (DENY, Status.REJECTED, Answer.REJECT_ONCE, None),
    ],
)
async def test_a_rule_answers_what_waits_and_the_record_says_which_and_whose(
    waiting: Waiting, rule: Rule, status: Status, answer: Answer, outcome: OutcomeState | None
) -> None:
    request, other = await waiting.ask(), await waiting.ask(replace(a_call(id=1), tool="list_orders"))
    waiting.services.clock.advance(60)

    await waiting.write(rule)

    settled = await waiting.services.stored(request.id)
    assert settled.decision is not None
    assert (settled.status, settled.outcome_state, settled.evaluation) == (status, outcome, request.evaluation)
    assert (settled.decision.answer, settled.decision.reviewer, settled.decision.rule) == (answer, ADA, rule)
    assert settled.decision.decided_at == waiting.services.clock.now()
    assert settled in waiting.services.announcer.approvals
    assert await waiting.status_of(other) is Status.PENDING


async def test_a_call_that_a_rule_allows_while_it_waits_runs_once(waiting: Waiting) -> None:
    services = waiting.services
    has_asked = asyncio.Event()
    run = services.calls.run(a_call(id=7), on_waiting=lambda _: has_asked.set(), on_running=lambda _: None)
    task = asyncio.create_task(run)
    async with asyncio.timeout(5):
        await has_asked.wait()
        await waiting.write(ALLOW)
        await waiting.write(ALLOW)
        assert (await task).result.structured == {"id": 7}
    assert len(services.tools.calls) == 1


@pytest.mark.parametrize(("reason", "told"), [("ask Ada", "ask Ada"), ("", "user: deny shop.delete_")])
async def test_the_code_is_told_that_a_rule_rejected_its_call_and_why(waiting: Waiting, reason: str, told: str) -> None:
    has_asked = asyncio.Event()
    run = waiting.services.calls.run(a_call(id=7), on_waiting=lambda _: has_asked.set(), on_running=lambda _: None)
    task = asyncio.create_task(run)
    async with asyncio.timeout(5):
        await has_asked.wait()
        await waiting.write(replace(DENY, reason=reason))
        with pytest.raises(ToolCallRejectedError, match=f"by a rule; it did not run: {told}"):
            await task


async def test_what_another_rule_asks_about_or_denies_is_not_allowed(waiting: Waiting) -> None:
    request = await waiting.ask()
    for stricter in (ASK, replace(ASK, effect=Effect.DENY)):
        await waiting.write(ALLOW, others=(stricter,))
        assert await waiting.status_of(request) is Status.PENDING


async def test_only_a_rule_that_was_just_written_answers(waiting: Waiting) -> None:
    request = await waiting.ask()
    await waiting.write(replace(ALLOW, tool="other"), others=(ALLOW,))
    assert await waiting.status_of(request) is Status.PENDING


async def test_what_a_rule_asked_about_can_be_denied_and_is_not_allowed(waiting: Waiting) -> None:
    found = Rule(server="*", tool="*", effect=Effect.ASK, layer=Layer.SESSION, reason="found in the code")
    request = await waiting.ask(evaluation=Evaluation(effect=Effect.ASK, rule=found))
    await waiting.write(ALLOW)
    assert await waiting.status_of(request) is Status.PENDING
    await waiting.write(DENY)
    assert await waiting.status_of(request) is Status.REJECTED


async def test_what_several_persons_have_to_approve_waits_for_them(waiting: Waiting) -> None:
    asking = replace(ASK, approvers=Approvers(group="ops", count=2))
    request = await waiting.ask(evaluation=Evaluation(effect=Effect.ASK, rule=asking))
    for rule in (ALLOW, DENY):
        await waiting.write(rule)
        assert await waiting.status_of(request) is Status.PENDING


async def test_arguments_that_nobody_need_have_seen_whole_are_not_allowed(waiting: Waiting) -> None:
    long = await waiting.ask(a_call(text="x" * LONG))
    await waiting.write(ALLOW)
    assert await waiting.status_of(long) is Status.PENDING
    await waiting.write(DENY)
    assert await waiting.status_of(long) is Status.REJECTED


@pytest.mark.parametrize("name", [("agentbox", "register_mcp_server"), ("notebook", "set_approval_mode")])
async def test_what_is_asked_about_each_time_is_not_allowed(waiting: Waiting, name: tuple[str, str]) -> None:
    server, tool = name
    request = await waiting.ask(replace(a_call(id=1), server=server, tool=tool))
    await waiting.write(replace(ALLOW, server=server, tool=tool))
    assert await waiting.status_of(request) is Status.PENDING


async def test_what_is_over_by_then_stays_as_it_is(waiting: Waiting) -> None:
    request = await waiting.ask()
    waiting.services.clock.advance(60 * 60)
    await waiting.write(ALLOW)
    assert await waiting.status_of(request) is Status.PENDING
    await waiting.services.approvals.expire_due()
    assert await waiting.status_of(request) is Status.EXPIRED


async def test_an_answer_that_cannot_be_kept_does_not_count(waiting: Waiting) -> None:
    request = await waiting.ask()
    waiting.services.store.failure = StorageError("the disk is full")
    await waiting.write(ALLOW)
    waiting.services.store.failure = None
    assert await waiting.status_of(request) is Status.PENDING


async def test_of_a_person_and_a_rule_at_the_same_moment_one_decides(waiting: Waiting) -> None:
    request = await waiting.ask()
    waiting.services.store.turns = 3

    _, refused = await asyncio.gather(
        waiting.write(ALLOW), waiting.services.decide(request, Answer.REJECT_ONCE), return_exceptions=True
    )

    assert isinstance(refused, InvalidTransitionError)
    final = await waiting.services.stored(request.id)
    written = [one for one in waiting.services.store.writes if one.id == request.id and one.decision is not None]
    assert written == [final]
