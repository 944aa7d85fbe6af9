from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_agentbox.core.approvals import ApprovalRequest, Outcome, OutcomeState
from jupyter_agentbox.core.calls import JsonValue, Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.redaction import REDACTED
from jupyter_agentbox.core.reviewers import DecideWith, Reviewer, Via
from jupyter_agentbox.exceptions import (
    InvalidRequestError,
    InvalidTransitionError,
    NeedsPersonError,
    StorageError,
    ToolArgumentsError,
    UnknownQuestionError,
)
from jupyter_agentbox.services.questions import manager
from jupyter_agentbox.services.questions.manager import MOST_OF_CALL
from jupyter_agentbox.testing import FakeTools, MemoryApprovalStore
from tests.services.conftest import Services, a_call

ADA = Reviewer(name="ada", via=Via.BROWSER)
ACCEPT, DECLINE, CANCEL = QuestionAction.ACCEPT, QuestionAction.DECLINE, QuestionAction.CANCEL
FORM = ServerQuestion.of_form(
    "How many?", {"properties": {"count": {"type": "integer"}, "pin_token": {"type": "integer"}}}
)
PAGE = ServerQuestion.of_url("Sign", "https://shop.example/sign?x=1")


class Shop(FakeTools):
    """A tool that asks some questions and returns what was answered to them."""

    def __init__(self, *questions: ServerQuestion) -> None:
        self._questions = questions or (FORM,)
        super().__init__({"shop.delete_order": self._ask})

    async def _ask(self, _call: ToolCall, _report: object) -> JsonValue:
        listener: CallListener | None = self.listener
        assert listener is not None
        answers = [await listener.ask(question) for question in self._questions]
        return [[answer.action.value, answer.content] for answer in answers]


class SlowStore(MemoryApprovalStore):
    """A store that fails after a while, if it is told to."""

    may_go_on: asyncio.Event | None = None
    is_asked = False

    async def replace_if(self, request: ApprovalRequest, **more: object) -> bool:
        if self.may_go_on is not None:
            self.is_asked = True
            await self.may_go_on.wait()
            raise StorageError("no space left")
        return await super().replace_if(request, **more)  # type: ignore[arg-type]  # what was given


class FullStore(MemoryApprovalStore):
    """A store whose disk is full while a call runs."""

    is_full = False

    async def replace_if(self, request: ApprovalRequest, **more: object) -> bool:
        if self.is_full:
            raise StorageError("no space left")
        return await super().replace_if(request, **more)  # type: ignore[arg-type]  # what was given


@asynccontextmanager
async def asking(services: Services) -> AsyncIterator[asyncio.Task[JsonValue]]:
    """Run a call that a rule allows until its server asks."""
    services.policies.evaluate = lambda *_, **__: Evaluation(effect=Effect.ALLOW)  # type: ignore[method-assign]
    asked = asyncio.Event()

    async def run() -> JsonValue:
        finished = await services.calls.run(
            a_call(id=7), on_waiting=print, on_running=lambda _: None, on_asked=lambda _: asked.set()
        )
        return finished.result.structured["result"] if isinstance(finished.result.structured, dict) else None

    running = asyncio.create_task(run())
    async with asyncio.timeout(60):
        await asked.wait()
        yield running
    running.cancel()
    await asyncio.wait([running])


def outcome(request: ApprovalRequest) -> Outcome:
    assert request.outcome is not None
    return request.outcome


async def test_an_answer_reaches_the_server_and_the_record_without_secrets() -> None:
    services = Services(tools=Shop())
    async with asking(services) as running:
        (question,) = services.questions.pending()
        assert (question.server, question.tool, question.request_id) == ("shop", "delete_order", "r1")
        assert (question.origin.kernel_id, question.origin.cell_id) == ("k1", "c1")
        await services.questions.answer(question.id, ACCEPT, {"count": 3, "pin_token": 99}, reviewer=ADA)
        (kept,) = outcome(await services.store.get("r1")).questions
        assert await running == [["accept", {"count": 3, "pin_token": 99}]]
    (record,) = outcome(await services.stored("r1")).questions
    assert record == kept
    assert (record.action, record.reviewer, dict(record.content)) == (ACCEPT, ADA, {"count": 3, "pin_token": REDACTED})
    assert services.questions.pending() == ()
    assert services.announcer.questions == 2


async def test_where_values_are_not_kept_the_record_says_only_that_somebody_answered() -> None:
    services = Services(tools=Shop(), keeps_values=False)
    async with asking(services) as running:
        (question,) = services.questions.pending()
        await services.questions.answer(question.id, ACCEPT, {"count": 3}, reviewer=ADA)
        assert await running == [["accept", {"count": 3}]]
    (record,) = outcome(await services.stored("r1")).questions
    assert (record.action, record.reviewer, record.content) == (ACCEPT, ADA, ())


async def test_what_one_person_is_asked_does_not_use_up_the_limit_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "MOST_OPEN", 1)
    services = Services(tools=Shop(), question_owner_of=lambda request: request.call.origin.kernel_id or "")
    services.policies.evaluate = lambda *_, **__: Evaluation(effect=Effect.ALLOW)  # type: ignore[method-assign]
    asked: asyncio.Queue[ApprovalRequest] = asyncio.Queue()

    async def run(kernel: str) -> JsonValue:
        call = replace(a_call(id=7), origin=Origin(kernel_id=kernel))
        finished = await services.calls.run(
            call, on_waiting=print, on_running=lambda _: None, on_asked=asked.put_nowait
        )
        return finished.result.structured["result"] if isinstance(finished.result.structured, dict) else None

    async with asyncio.timeout(60):
        first = asyncio.create_task(run("ada"))
        await asked.get()
        assert await run("ada") == [["cancel", {}]]
        other = asyncio.create_task(run("bob"))
        await asked.get()
        await asked.get()
        assert [one.origin.kernel_id for one in services.questions.pending()] == ["ada", "bob"]
        for question in services.questions.pending():
            await services.questions.answer(question.id, DECLINE, {}, reviewer=ADA)
        assert await first == await other == [["decline", {}]]


async def test_the_first_of_two_answers_counts() -> None:
    services = Services(tools=Shop())
    async with asking(services) as running:
        (question,) = services.questions.pending()
        first, second = await asyncio.gather(
            services.questions.answer(question.id, DECLINE, {}, reviewer=ADA),
            services.questions.answer(question.id, ACCEPT, {"count": 3}, reviewer=ADA),
            return_exceptions=True,
        )
        assert first == question
        assert isinstance(second, InvalidTransitionError)
        assert await running == [["decline", {}]]
        with pytest.raises(InvalidTransitionError):
            await services.questions.answer(question.id, DECLINE, {}, reviewer=ADA)
    with pytest.raises(UnknownQuestionError):
        await services.questions.answer("none", DECLINE, {}, reviewer=ADA)


async def test_values_that_were_not_asked_for_are_refused_and_the_question_stays() -> None:
    services = Services(tools=Shop())
    async with asking(services) as running:
        (question,) = services.questions.pending()
        with pytest.raises(ToolArgumentsError):
            await services.questions.answer(question.id, ACCEPT, {"count": "three"}, reviewer=ADA)
        with pytest.raises(InvalidRequestError):
            await services.questions.answer(question.id, DECLINE, {"count": 3}, reviewer=ADA)
        assert services.questions.get(question.id) == question
        await services.questions.answer(question.id, ACCEPT, {}, reviewer=ADA)
        assert await running == [["accept", {}]]


async def test_of_a_page_no_values_come_back() -> None:
    services = Services(tools=Shop(PAGE))
    async with asking(services) as running:
        (page,) = services.questions.pending()
        with pytest.raises(InvalidRequestError):
            await services.questions.answer(page.id, ACCEPT, {"count": 3}, reviewer=ADA)
        await services.questions.answer(page.id, ACCEPT, {}, reviewer=ADA)
        assert await running == [["accept", {}]]


async def test_where_only_persons_decide_no_program_answers() -> None:
    services = Services(tools=Shop())
    services.questions._decide_with = DecideWith.PERSON
    async with asking(services):
        (question,) = services.questions.pending()
        with pytest.raises(NeedsPersonError):
            await services.questions.answer(question.id, DECLINE, {}, reviewer=Reviewer(name="ada", via=Via.API_TOKEN))
        assert services.questions.pending() == (question,)


async def test_an_answer_that_cannot_be_kept_does_not_reach_the_server() -> None:
    store = FullStore()
    services = Services(tools=Shop(), store=store)
    async with asking(services) as running:
        (question,) = services.questions.pending()
        store.is_full = True
        with pytest.raises(StorageError):
            await services.questions.answer(question.id, ACCEPT, {"count": 3}, reviewer=ADA)
        assert not running.done()
        store.is_full = False
        await services.questions.answer(question.id, DECLINE, {}, reviewer=ADA)
        assert await running == [["decline", {}]]
    assert [record.action for record in outcome(await services.stored("r1")).questions] == [DECLINE]


async def test_the_time_is_up_if_an_answer_cannot_be_kept_after_it() -> None:
    store = SlowStore()
    services = Services(tools=Shop(), store=store, question_timeout=timedelta(seconds=1))
    async with asking(services) as running:
        (question,) = services.questions.pending()
        store.may_go_on = asyncio.Event()
        answering = asyncio.create_task(services.questions.answer(question.id, DECLINE, {}, reviewer=ADA))
        await asyncio.sleep(1.1)  # the time is up, and the answer is still being stored
        assert (store.is_asked, running.done()) == (True, False)
        store.may_go_on.set()
        with pytest.raises(StorageError):
            await answering
        store.may_go_on = None
        assert await asyncio.wait_for(running, 10) == [["cancel", {}]]


async def test_with_nobody_there_the_server_is_told_cancel_and_it_is_recorded() -> None:
    services = Services(tools=Shop(), question_timeout=timedelta(seconds=0.01))
    async with asking(services) as running:
        assert await running == [["cancel", {}]]
    (record,) = outcome(await services.stored("r1")).questions
    assert (record.action, record.reviewer) == (CANCEL, None)


async def test_a_call_that_is_interrupted_takes_its_question_back() -> None:
    services = Services(tools=Shop())
    async with asking(services) as running:
        (question,) = services.questions.pending()
        running.cancel()
        await asyncio.wait([running])
        assert services.questions.pending() == ()
        with pytest.raises(InvalidTransitionError):
            await services.questions.answer(question.id, ACCEPT, {"count": 3}, reviewer=ADA)
    ended = outcome(await services.stored("r1"))
    assert (ended.state, [record.action for record in ended.questions]) == (OutcomeState.CANCELLED, [CANCEL])


async def test_a_server_that_asks_for_ever_is_told_cancel_and_the_log_tells_of_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    services = Services(tools=Shop(*[PAGE] * (MOST_OF_CALL + 20)), question_timeout=timedelta(0))
    async with asking(services) as running:
        assert await running == [["cancel", {}]] * (MOST_OF_CALL + 20)
    assert len(outcome(await services.stored("r1")).questions) == MOST_OF_CALL
    assert len([line for line in caplog.messages if "too many" in line]) == 1
    assert not services.questions._refused_of


async def test_a_question_for_a_call_that_does_not_run_is_cancelled() -> None:
    services = Services()
    assert await services.questions.ask("none", FORM) == QuestionAnswer(action=CANCEL)
    assert services.questions.pending() == ()


async def test_a_program_answers_in_the_place_of_a_person() -> None:
    given = [QuestionAnswer(action=ACCEPT, content={"count": 3}, reviewer=ADA)]
    services = Services(tools=Shop(FORM, FORM))

    async def answer(_question: object) -> QuestionAnswer:
        return given.pop() if given else QuestionAnswer(action=ACCEPT, content={"count": "three"}, reviewer=ADA)

    services.questions._answerer = answer
    services.policies.evaluate = lambda *_, **__: Evaluation(effect=Effect.ALLOW)  # type: ignore[method-assign]
    finished = await services.calls.run(a_call(id=7), on_waiting=print, on_running=lambda _: None)
    assert finished.result.structured == {"result": [["accept", {"count": 3}], ["cancel", {}]]}
    assert [record.action for record in outcome(await services.stored("r1")).questions] == [ACCEPT, CANCEL]
