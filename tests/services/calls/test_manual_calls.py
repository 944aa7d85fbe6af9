"""Calls that a person makes in the panel, on fakes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, OutcomeState, Status
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.grant_uses import Scope
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.exceptions import ToolArgumentsError, ToolCallRejectedError, UnknownServerError
from jupyter_agentbox.services.calls.manual_calls import LONGEST_RESULT, MOST_RESULTS, ManualCalls
from jupyter_agentbox.testing import FakeTools
from tests.services.conftest import Services


async def delete_order(call: ToolCall, _report: Any) -> Any:
    return {"deleted": call.arguments["id"]}


class Manual:
    """The calls of the panel, and what is around them."""

    def __init__(self, *rules: Rule) -> None:
        self.services = Services(policy=Policy(rules), tools=FakeTools({"shop.delete_order": delete_order}))
        self.calls = ManualCalls(self.services.calls)

    async def begin(self, **arguments: Any) -> Any:
        return await self.calls.begin("shop", "delete_order", arguments, person="ada")

    async def ended(self, request_id: str) -> Any:
        return await self.services.announcer.until(
            lambda request: request.id == request_id and request.outcome_state not in (None, OutcomeState.RUNNING)
        )


@pytest.fixture
def manual(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Manual]:
    made = Manual()
    yield made
    jp_asyncio_loop.run_until_complete(made.calls.aclose())


async def test_a_call_waits_for_a_person_and_its_result_is_kept_for_a_while(manual: Manual) -> None:
    request = await manual.begin(id=7)
    assert (request.status, request.call.origin.person) == (Status.PENDING, "ada")
    assert manual.calls.result(request.id) == {"result": None, "error": None}
    assert manual.services.tools.calls == []

    await manual.services.decide(request, Answer.ALLOW_ONCE)
    await until_known(manual, request.id)

    end = manual.calls.result(request.id)
    assert end is not None
    assert (end["error"], end["result"]["structured"]) == (None, {"deleted": 7})  # type: ignore[index, call-overload]
    stored = await manual.services.stored(request.id)
    assert (stored.call.origin.person, stored.outcome_state) == ("ada", OutcomeState.SUCCEEDED)


async def test_no_rule_and_no_lasting_answer_allows_it() -> None:
    manual = Manual(Rule(server="shop", tool="*", effect=Effect.ALLOW))
    request = await manual.begin(id=7)
    assert request.status is Status.PENDING
    await manual.services.decide(request, Answer.ALLOW_ALWAYS, grant=GrantTerms(scope=Scope.USER, uses=5))
    await manual.ended(request.id)

    again = await manual.begin(id=7)

    assert again.status is Status.PENDING
    assert len(manual.services.tools.calls) == 1
    await manual.calls.aclose()


async def test_what_a_rule_denies_is_denied() -> None:
    manual = Manual(Rule(server="shop", tool="*", effect=Effect.DENY))
    with pytest.raises(ToolCallRejectedError):
        await manual.begin(id=7)
    assert manual.services.tools.calls == []


async def test_arguments_that_do_not_fit_ask_nobody(manual: Manual) -> None:
    with pytest.raises(ToolArgumentsError):
        await manual.begin(id="seven")
    assert not manual.services.approvals.requests.pending_of(None)


@pytest.mark.parametrize("server", ["agentbox", "notebook", "shell"])
async def test_the_tools_of_this_package_are_not_called_by_hand(manual: Manual, server: str) -> None:
    with pytest.raises(UnknownServerError):
        await manual.calls.begin(server, "run_code", {}, person="ada")


async def test_a_rejection_is_told(manual: Manual) -> None:
    request = await manual.begin(id=7)
    await manual.services.decide(request, Answer.REJECT_ONCE, reason="not now")
    await until_known(manual, request.id)
    end = manual.calls.result(request.id)
    assert end is not None
    assert "not now" in str(end["error"])


async def test_it_is_taken_back_before_its_end(manual: Manual) -> None:
    request = await manual.begin(id=7)
    assert await manual.calls.cancel(request.id)
    assert (await manual.services.stored(request.id)).status is Status.CANCELLED
    assert not await manual.calls.cancel(request.id)


async def test_few_results_are_kept_and_none_that_is_huge(manual: Manual) -> None:
    async def huge(_call: ToolCall, _report: Any) -> Any:
        return "x" * LONGEST_RESULT

    manual.services.tools.tools["shop.huge"] = huge
    first = await manual.calls.begin("shop", "huge", {}, person="ada")
    await manual.services.decide(first, Answer.ALLOW_ONCE)
    await until_known(manual, first.id)
    end = manual.calls.result(first.id)
    assert end is not None
    assert (end["result"], "too long" in str(end["error"])) == (None, True)

    for _ in range(MOST_RESULTS):
        request = await manual.begin(id=7)
        await manual.services.decide(request, Answer.ALLOW_ONCE)
        await until_known(manual, request.id)
    assert manual.calls.result(first.id) is None


async def until_known(manual: Manual, request_id: str) -> None:
    """Wait for the end of a call, which is known a step after its request is final."""
    task = manual.calls._started._running.get(request_id)
    if task is not None:
        await asyncio.wait([task])
        await asyncio.sleep(0)
