"""What the approval mode of an agent's thread makes of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from jupyter_agentbox.core.approvals import Answer, OutcomeState, Status
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.model_reviews import Review, ReviewOutcome, Risk
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Policy, Rule
from jupyter_agentbox.core.reviewers import DecideWith, ReviewerKind, Via
from jupyter_agentbox.core.threads import ApprovalMode
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolCallRejectedError, ToolServerError
from jupyter_agentbox.services.calls.manager import FinishedCall
from jupyter_agentbox.services.calls.thread_modes import MOST_THREADS, ThreadModes
from tests.services.conftest import Services, a_call

MARKED = {"policy": Policy(model_may_allow=("shop.delete_order",))}
ALLOWED = {"policy": Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),))}
ASKS = Evaluation(effect=Effect.ASK)


class FakeReviewer:
    """Says what it was told, and remembers what it saw."""

    name = "openai:reviewer"

    def __init__(self, say: Callable[[], Review]) -> None:
        self._say = say
        self.seen: list[ToolCall] = []

    async def review(self, call: ToolCall, _tool: ToolDescription) -> Review:
        self.seen.append(call)
        return self._say()


def saying(risk: str, outcome: str) -> FakeReviewer:
    review = Review(risk=Risk(risk), outcome=ReviewOutcome(outcome), rationale="because")
    return FakeReviewer(lambda: review)


def failing(error: Exception) -> FakeReviewer:
    def fail() -> Review:
        raise error

    return FakeReviewer(fail)


def in_thread(thread_id: str = "t1") -> ToolCall:
    call = a_call(id=7)
    return replace(call, origin=replace(call.origin, thread_id=thread_id), known_digest="")


class Run:
    """A call on its way, and who was asked."""

    def __init__(self, services: Services, call: ToolCall, floor: Evaluation | None = None) -> None:
        self.asked: list[str] = []
        self.task: asyncio.Task[FinishedCall] = asyncio.create_task(
            services.calls.run(
                call,
                on_waiting=lambda request: self.asked.append(request.id),
                on_running=lambda _: None,
                floor=floor,
            )
        )


@pytest.fixture
def services(services: Services) -> Services:
    async def delete(call: ToolCall, _report: object) -> dict[str, object]:
        return {"deleted": call.arguments["id"]}

    services.tools.tools["shop.delete_order"] = delete
    return services


async def test_deny_all_refuses_what_would_ask_and_it_is_never_pending(services: Services) -> None:
    services.modes.set("t1", ApprovalMode.DENY_ALL)
    run = Run(services, in_thread())
    with pytest.raises(ToolCallRejectedError, match="deny_all") as refused:
        await run.task

    stored = await services.stored(refused.value.request_id or "")
    assert run.asked == []
    assert [request.status for request in services.announcer.approvals] == [Status.REJECTED]
    assert (stored.status, stored.decision) == (Status.REJECTED, None)
    assert stored.evaluation.rule is not None
    assert (stored.evaluation.rule.layer, stored.evaluation.effect) == (Layer.THREAD, Effect.DENY)
    assert "deny_all" in stored.evaluation.rule.reason


@pytest.mark.parametrize("services", [ALLOWED], indirect=True)
async def test_deny_all_lets_what_a_rule_allows_unless_a_floor_asks(services: Services) -> None:
    services.modes.set("t1", ApprovalMode.DENY_ALL)

    assert (await Run(services, in_thread()).task).result.structured == {"deleted": 7}
    with pytest.raises(ToolCallRejectedError, match="deny_all"):
        await Run(services, in_thread(), floor=ASKS).task


@pytest.mark.parametrize("call", [a_call(id=7), in_thread("t2")])
async def test_the_mode_of_a_thread_is_not_that_of_other_calls(call: ToolCall, services: Services) -> None:
    services.modes.set("t1", ApprovalMode.DENY_ALL)
    services.modes.set("t2", ApprovalMode.ASK)
    run = Run(services, call)
    request = await services.announcer.until(lambda request: request.status is Status.PENDING)
    await services.decide(request, Answer.ALLOW_ONCE)

    await run.task
    assert run.asked == [request.id]


@pytest.mark.parametrize("services", [MARKED], indirect=True)
@pytest.mark.parametrize("risk", ["low", "medium"])
async def test_a_model_allows_what_a_rule_lets_it_and_is_recorded_as_the_reviewer(
    risk: str, services: Services
) -> None:
    reviewer = saying(risk, "allow")
    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=reviewer)
    run = Run(services, in_thread())
    finished = await run.task

    stored = await services.stored(finished.request.id)
    assert (run.asked, reviewer.seen) == ([], [in_thread()])
    assert (stored.status, stored.outcome_state) == (Status.APPROVED, OutcomeState.SUCCEEDED)
    assert stored.decision is not None
    assert (stored.decision.answer, stored.decision.reason) == (Answer.ALLOW_ONCE, "because")
    by = stored.decision.reviewer
    assert (by.name, by.kind, by.via) == ("model:openai:reviewer", ReviewerKind.MODEL, Via.MODEL)
    assert Status.PENDING not in [request.status for request in services.announcer.approvals]


@pytest.mark.parametrize("services", [MARKED], indirect=True)
async def test_what_a_model_allows_does_not_run_on_a_server_that_was_exchanged_during_the_review(
    services: Services,
) -> None:
    services.trust_keys["shop"] = "a command"

    def exchange() -> Review:
        services.trust_keys["shop"] = "another command"
        return Review(risk=Risk.LOW, outcome=ReviewOutcome.ALLOW, rationale="because")

    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=FakeReviewer(exchange))
    with pytest.raises(ToolServerError, match="has changed since it was asked for"):
        await Run(services, in_thread()).task
    assert services.tools.calls == []


@pytest.mark.parametrize("services", [MARKED], indirect=True)
async def test_a_model_that_denies_refuses_and_says_why(services: Services) -> None:
    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=saying("medium", "deny"))
    run = Run(services, in_thread())
    with pytest.raises(ToolCallRejectedError, match=r"by a model.*because") as refused:
        await run.task

    stored = await services.stored(refused.value.request_id or "")
    assert (run.asked, stored.status) == ([], Status.REJECTED)
    assert stored.decision is not None
    assert stored.decision.reviewer.kind is ReviewerKind.MODEL


@pytest.mark.parametrize("services", [MARKED], indirect=True)
@pytest.mark.parametrize(
    "reviewer",
    [
        saying("high", "allow"),
        saying("high", "deny"),
        saying("low", "ask"),
        failing(ValueError("no review")),
        failing(TimeoutError()),
        failing(RuntimeError("no connection")),
        None,
    ],
)
async def test_in_any_doubt_a_person_is_asked(reviewer: FakeReviewer | None, services: Services) -> None:
    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=reviewer)
    run = Run(services, in_thread())
    request = await services.announcer.until(lambda request: request.status is Status.PENDING)
    await services.decide(request, Answer.ALLOW_ONCE)
    await run.task

    assert run.asked == [request.id]
    assert (await services.stored(request.id)).decision.reviewer.name == "ada"  # type: ignore[union-attr]  # decided


@pytest.mark.parametrize("services", [MARKED], indirect=True)
async def test_a_model_that_does_not_answer_is_not_waited_for(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(FakeReviewer):
        async def review(self, call: ToolCall, tool: ToolDescription) -> Review:
            await asyncio.Event().wait()
            return await super().review(call, tool)

    monkeypatch.setattr("jupyter_agentbox.services.calls.thread_modes.REVIEW_SECONDS", 0.01)
    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=Silent(lambda: pytest.fail("it was waited for")))
    run = Run(services, in_thread())
    request = await services.announcer.until(lambda request: request.status is Status.PENDING)
    await services.decide(request, Answer.REJECT_ONCE)

    with pytest.raises(ToolCallRejectedError):
        await run.task


@pytest.mark.parametrize(
    ("services", "floor"),
    [
        ({"policy": Policy()}, None),
        ({"policy": Policy((Rule(server="shop", tool="*", effect=Effect.ASK),))}, None),
        (
            {"policy": MARKED["policy"].with_rules([Rule(server="*", tool="*", effect=Effect.ASK, layer=Layer.SITE)])},
            None,
        ),
        (MARKED, ASKS),
        (ALLOWED, ASKS),
        ({"policy": Policy(model_may_allow=("shop.list_*", "notebook.*"))}, None),
    ],
    indirect=["services"],
)
async def test_a_model_is_not_even_asked_about_what_no_rule_leaves_to_it(
    services: Services, floor: Evaluation | None
) -> None:
    reviewer = saying("low", "allow")
    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=reviewer)
    run = Run(services, in_thread(), floor=floor)
    request = await services.announcer.until(lambda request: request.status is Status.PENDING)
    await services.decide(request, Answer.ALLOW_ONCE)
    await run.task

    assert (run.asked, reviewer.seen) == ([request.id], [])


@pytest.mark.parametrize("services", [{**MARKED, "decide_with": DecideWith.PERSON}], indirect=True)
async def test_where_only_a_persons_answers_count_no_model_is_asked(services: Services) -> None:
    reviewer = saying("low", "allow")
    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=reviewer)
    run = Run(services, in_thread())
    request = await services.announcer.until(lambda request: request.status is Status.PENDING)
    await services.decide(request, Answer.ALLOW_ONCE)
    await run.task

    assert (run.asked, reviewer.seen) == ([request.id], [])


@pytest.mark.parametrize("services", [MARKED], indirect=True)
async def test_an_interruption_while_a_model_reviews_leaves_nothing(services: Services) -> None:
    reviewing = asyncio.Event()

    class Slow(FakeReviewer):
        async def review(self, call: ToolCall, tool: ToolDescription) -> Review:
            reviewing.set()
            await asyncio.Event().wait()
            return await super().review(call, tool)

    services.modes.set("t1", ApprovalMode.AUTO_REVIEW, reviewer=Slow(lambda: pytest.fail("it went on")))
    run = Run(services, in_thread())
    await reviewing.wait()
    run.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await run.task
    assert services.announcer.approvals == []


async def test_modes_are_kept_of_so_many_threads_and_only_where_they_are_not_what_an_unknown_one_has() -> None:
    modes = ThreadModes()
    for number in range(MOST_THREADS):
        modes.set(f"t{number}", ApprovalMode.DENY_ALL)
    modes.set("other", ApprovalMode.ASK)
    modes.set("reviewed", ApprovalMode.AUTO_REVIEW)
    before = modes.apply(in_thread("t0"), ASKS)
    modes.set("one more", ApprovalMode.DENY_ALL)

    after = [modes.apply(in_thread(id), ASKS).effect for id in ("t0", "t1", "one more")]
    assert before.effect is Effect.DENY
    assert after == [Effect.ASK, Effect.DENY, Effect.DENY]
    modes.set("t1", ApprovalMode.ASK)
    assert modes.apply(in_thread("t1"), ASKS) == ASKS
