"""Questions from servers to the user, in both protocol eras and over both transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, QuestionMode, ServerQuestion
from jupyter_agentbox.core.tools import ToolResult
from jupyter_agentbox.exceptions import ToolCallInterruptedError, ToolServerError

from .conftest import Hears, Running

TIMEOUT = 60
ERAS = ["legacy", "2026-07-28"]
PAGE = "https://shop.example/sign?order=7"

Script = Callable[..., dict[str, Any]]


def call(tool: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(server="shop", tool=tool, arguments=arguments)


def accept(**content: JsonValue) -> QuestionAnswer:
    return QuestionAnswer(action=QuestionAction.ACCEPT, content=content)


class Person:
    """Answers each question with the next of some answers, once it may."""

    def __init__(self, *answers: QuestionAnswer) -> None:
        self._answers = list(answers)
        self.asked: asyncio.Queue[ServerQuestion] = asyncio.Queue()
        self.may_answer = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def __call__(self, question: ServerQuestion) -> QuestionAnswer:
        self.asked.put_nowait(question)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        return self._answers.pop(0)

    @classmethod
    def at_once(cls, *answers: QuestionAnswer) -> Person:
        person = cls(*answers)
        person.may_answer.set()
        return person


@pytest.fixture(params=["stdio", "http"])
def shop(request: pytest.FixtureRequest, script: Script, http_server: Any) -> Callable[[str], dict[str, Any]]:
    """Return the entry of the server that asks, in an era."""

    def entry(era: str) -> dict[str, Any]:
        if request.param == "stdio":
            return {"shop": script("asking.py", protocolEra=era)}
        return {"shop": {"url": http_server("asking.py", "http"), "protocolEra": era}}

    return entry


async def test_a_tool_that_asks_as_only_the_older_era_can_says_which_setting_lets_it(
    running: Running, shop: Any
) -> None:
    setting = '"protocolEra": "legacy"'
    listener = Hears(on_question=Person.at_once(accept(street="Main")))
    async with running(shop("auto")) as servers, asyncio.timeout(TIMEOUT):
        failed = await servers.call_tool(call("deliver"), listener=listener)
        with pytest.raises(ToolServerError, match=setting):
            await servers.call_tool(call("deliver", refuses=True), listener=listener)
    assert failed.is_error
    assert failed.text.count(setting) == 1
    async with running(shop("legacy")) as servers, asyncio.timeout(TIMEOUT):
        assert (await servers.call_tool(call("deliver"), listener=listener)).text == "accept"


@pytest.mark.parametrize("era", ERAS)
async def test_a_form_is_asked_for_and_the_server_gets_the_answer(running: Running, shop: Any, era: str) -> None:
    no, nobody = QuestionAnswer(action=QuestionAction.DECLINE), QuestionAnswer(action=QuestionAction.CANCEL)
    person = Person.at_once(accept(street="Main", count=2, speed="fast"), no, nobody)
    async with running(shop(era)) as servers, asyncio.timeout(TIMEOUT):
        told = [(await servers.call_tool(call("order"), listener=Hears(on_question=person))).text for _ in range(3)]
    assert told == ['accept {"street":"Main","count":2,"speed":"fast"}', "decline", "cancel"]
    asked = person.asked.get_nowait()
    assert (asked.mode, asked.message, asked.calls) == (QuestionMode.FORM, "Where to?", 1)
    assert asked.schema == {
        "type": "object",
        "properties": {
            "street": {"type": "string", "title": "Street"},
            "count": {"type": "integer", "title": "Count", "default": 1},
            "speed": {"type": "string", "title": "Speed", "default": "slow", "enum": ["slow", "fast"]},
        },
        "required": ["street"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(("era", "tool"), [("legacy", "visit"), ("2026-07-28", "visit_first")])
async def test_a_page_is_shown_by_its_address_and_nothing_of_it_comes_back(
    running: Running, script: Script, era: str, tool: str
) -> None:
    person = Person.at_once(accept())
    async with running({"shop": script("asking.py", protocolEra=era)}) as servers, asyncio.timeout(TIMEOUT):
        got = await servers.call_tool(call(tool, url=PAGE), listener=Hears(on_question=person))
    assert got.text == "accept"
    assert person.asked.get_nowait() == ServerQuestion(mode=QuestionMode.URL, message="Sign the order", url=PAGE)


@pytest.mark.parametrize("era", ERAS)
async def test_the_time_of_a_person_is_not_the_tools(
    running: Running, script: Script, era: str, let_time_pass: Callable[[float], None]
) -> None:
    person = Person(accept(street="Main"))
    async with (
        running({"shop": script("asking.py", protocolEra=era)}, call_timeout=60) as servers,
        asyncio.timeout(3 * 3600),
    ):
        ordering = asyncio.create_task(servers.call_tool(call("order"), listener=Hears(on_question=person)))
        await person.asked.get()
        let_time_pass(3600)
        person.may_answer.set()
        assert (await ordering).text.startswith("accept")


async def test_after_the_answer_the_tools_time_goes_on(
    running: Running, script: Script, let_time_pass: Callable[[float], None]
) -> None:
    person = Person.at_once(accept(street="Main"))
    async with running({"shop": script("asking.py", protocolEra="legacy")}, call_timeout=60) as servers:
        await servers.call_tool(call("order"), listener=Hears(on_question=person))
        waiting = asyncio.create_task(servers.call_tool(call("wait"), listener=Hears(on_question=person)))
        await servers.call_tool(call("order"), listener=Hears(on_question=Person.at_once(accept(street="Main"))))
        let_time_pass(61)
        with pytest.raises(ToolCallInterruptedError, match="60 s"):
            await waiting


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_is_cancelled_takes_its_question_back(running: Running, script: Script, era: str) -> None:
    person = Person()
    async with running({"shop": script("asking.py", protocolEra=era)}) as servers, asyncio.timeout(TIMEOUT):
        ordering = asyncio.create_task(servers.call_tool(call("order"), listener=Hears(on_question=person)))
        await person.asked.get()
        ordering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ordering
        await person.was_cancelled.wait()


async def test_over_standard_streams_a_question_says_that_it_may_be_of_any_call(
    running: Running, script: Script
) -> None:
    first, second = Person(), Person.at_once(accept(street="Main"))
    async with running({"shop": script("asking.py", protocolEra="legacy")}) as servers, asyncio.timeout(TIMEOUT):
        waiting = asyncio.create_task(servers.call_tool(call("wait"), listener=Hears(on_question=second)))
        await servers.list_tools("shop")
        ordering = asyncio.create_task(servers.call_tool(call("order"), listener=Hears(on_question=first)))
        assert (await second.asked.get()).calls == 2
        assert (await ordering).text.startswith("accept")
        assert first.asked.empty()
        await servers.call_tool(call("release"))
        await waiting


async def test_over_http_a_question_goes_to_the_call_whose_it_is(running: Running, http_server: Any) -> None:
    other, own = Person(), Person.at_once(accept(street="Main"))
    entry = {"shop": {"url": http_server("asking.py", "http"), "protocolEra": "legacy"}}
    async with running(entry) as servers, asyncio.timeout(TIMEOUT):
        waiting = asyncio.create_task(servers.call_tool(call("wait"), listener=Hears(on_question=other)))
        await servers.list_tools("shop")
        got = await servers.call_tool(call("order"), listener=Hears(on_question=own))
        assert got.text.startswith("accept")
        assert own.asked.get_nowait().calls == 1
        assert other.asked.empty()
        await servers.call_tool(call("release"))
        await waiting


@pytest.mark.parametrize(("era", "tool"), [("legacy", "visit"), ("2026-07-28", "visit_first")])
async def test_an_address_that_is_none_of_a_page_is_not_shown(
    running: Running, script: Script, era: str, tool: str
) -> None:
    person = Person()
    async with running({"shop": script("asking.py", protocolEra=era)}) as servers, asyncio.timeout(TIMEOUT):
        try:
            got = await servers.call_tool(call(tool, url="javascript:alert(1)"), listener=Hears(on_question=person))
        except ToolServerError as error:
            got = ToolResult(content=({"type": "text", "text": str(error)},), is_error=True)
    assert got.is_error
    assert "cannot be shown" in got.text
    assert person.asked.empty()
