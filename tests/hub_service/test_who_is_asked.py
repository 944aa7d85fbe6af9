"""What the server of a user is told of those who have to approve a call: while they are asked, and afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer
from jupyter_agentbox.core.tools import LogMessage, Progress

from .service import TIMEOUT, a_policy, ask, running_service
from .test_service import call, waiting

TWO = ask(group="data-stewards", count=2)


class Heard:
    """A `CallListener` that keeps what is said of those who are asked."""

    request_id = "own-1"

    def __init__(self) -> None:
        self.progress: list[Progress] = []
        self._news = asyncio.Event()

    @property
    def reviews(self) -> list[HubReview]:
        return [one.review for one in self.progress if one.review is not None]

    def progressed(self, progress: Progress) -> None:
        self.progress.append(progress)
        self._news.set()

    def logged(self, message: LogMessage) -> None:
        pass

    async def ask(self, _question: Any) -> QuestionAnswer:
        return QuestionAnswer(action=QuestionAction.CANCEL)

    async def has_progress(self) -> None:
        while not self.progress:
            self._news.clear()
            await self._news.wait()

    async def until(self, count: int) -> HubReview:
        async with asyncio.timeout(TIMEOUT):
            while len(self.reviews) < count:
                self._news.clear()
                await self._news.wait()
        return self.reviews[count - 1]


async def test_who_asks_is_told_who_is_asked_until_when_and_who_has_approved(tmp_path: Path) -> None:
    heard = Heard()
    async with running_service(tmp_path, a_policy(TWO)) as service, service.tools_of("ada") as tools:
        calling = asyncio.create_task(tools.call_tool(call(), listener=heard))
        request = await waiting(service, "bob")
        first = await heard.until(1)
        await service.decide(request, "bob")
        second = await heard.until(2)
        await service.decide(request, "cleo")
        async with asyncio.timeout(TIMEOUT):
            result = await calling

    assert (first.status, first.groups, first.count, first.approved_by) == ("pending", ("data-stewards",), 2, ())
    assert first.to_json()["expires_at"] == request["expires_at"]
    assert first.url == f"{service.url}requests/{request['id']}"
    assert (second.status, second.approved_by) == ("pending", ("bob",))
    assert [(one.progress, one.total) for one in heard.progress[:2]] == [(0, 2), (1, 2)]
    assert "waiting for 2 members of data-stewards" in heard.progress[0].message
    assert heard.progress[1].message.endswith("; approved by bob so far")
    assert not result.is_error
    final = result.review
    assert final is not None
    assert (final.status, final.approved_by, final.expires_at) == ("approved", ("bob", "cleo"), None)


@pytest.mark.parametrize("votes", [(), ("bob",)])
async def test_a_rejection_says_who_gave_it_and_why(tmp_path: Path, votes: tuple[str, ...]) -> None:
    async with running_service(tmp_path, a_policy(TWO)) as service, service.tools_of("ada") as tools:
        calling = asyncio.create_task(tools.call_tool(call()))
        request = await waiting(service, "bob")
        for vote in votes:
            await service.decide(request, vote)
        await service.decide(request, "cleo", "reject_once", reason="too broad")
        async with asyncio.timeout(TIMEOUT):
            result = await calling

    assert result.is_error
    assert result.text == "`warehouse.query` was rejected by cleo; it did not run: too broad"
    final = result.review
    assert final is not None
    assert (final.status, final.approved_by) == ("rejected", votes)
    assert (final.rejected_by, final.reason) == ("cleo", "too broad")


async def test_a_call_that_too_few_approved_in_time_says_so(tmp_path: Path) -> None:
    timed = {**TWO, "timeout": 3}
    async with running_service(tmp_path, a_policy(timed)) as service, service.tools_of("ada") as tools:
        calling = asyncio.create_task(tools.call_tool(call()))
        assert (await service.decide(await waiting(service, "bob"), "bob"))[0] == 200
        async with asyncio.timeout(TIMEOUT):
            result = await calling

    assert "needed the approval of 2 people, and only bob approved it in time; it did not run" in result.text
    final = result.review
    assert final is not None
    assert (final.status, final.approved_by) == ("expired", ("bob",))


async def test_what_a_central_server_says_of_approvals_itself_does_not_reach_who_asks(tmp_path: Path) -> None:
    policy = a_policy({"effect": "allow", "server": "warehouse", "tool": "*"})
    async with running_service(tmp_path, policy) as service, service.tools_of("ada") as tools:
        result = await tools.call_tool(call(sql="claims a review"))

    assert not result.is_error
    assert result.meta == {}


@pytest.mark.parametrize("hub_service", ["", "https://hub.example.org/services/agentbox/"])
async def test_only_of_the_hub_service_the_word_counts_on_who_approved(tmp_path: Path, hub_service: str) -> None:
    heard = Heard()
    async with (
        running_service(tmp_path, a_policy(ask(group="data-stewards"))) as service,
        service.tools_of("ada", hub_service=hub_service) as tools,
    ):
        calling = asyncio.create_task(tools.call_tool(call(), listener=heard))
        request = await waiting(service, "bob")
        async with asyncio.timeout(TIMEOUT):
            await heard.has_progress()
        await service.decide(request, "bob")
        async with asyncio.timeout(TIMEOUT):
            result = await calling

    assert heard.progress[0].message.startswith("waiting for a member of data-stewards")
    assert (heard.reviews, result.review) == ([], None)
