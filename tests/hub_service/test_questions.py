"""What a central server asks while its tool runs: the user whose call it is, and nobody else."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from jupyter_agentbox.composition import Settings as UsersSettings
from jupyter_agentbox.composition import build as build_users_box
from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonValue, Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, QuestionMode, ServerQuestion
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import LogMessage, Progress, ToolResult
from jupyter_agentbox.exceptions import ToolCallInterruptedError
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.services.questions.manager import MOST_OF_CALL
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeAnnouncer
from tests.mcp_client.conftest import SCRIPTS

from .service import TIMEOUT, USERS, Service, a_policy, ask, listening, running_service
from .test_restart import Stream, id_of
from .test_service import waiting

SERVER = "shop"
ALLOW = {"effect": "allow", "server": SERVER, "tool": "*"}
CURIOUS = Path(__file__).parent / "curious.py"
FORM: dict[str, JsonValue] = {
    "message": "Where to?",
    "requestedSchema": {"type": "object", "properties": {"street": {"type": "string"}}},
}
PAGE = "https://shop.example/sign?order=7"
STREET = "Elm Street 1428"
CANCEL = QuestionAnswer(action=QuestionAction.CANCEL)


def accept(**content: JsonValue) -> QuestionAnswer:
    return QuestionAnswer(action=QuestionAction.ACCEPT, content=content)


def call(tool: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(server=SERVER, tool=tool, arguments=arguments)


class User:
    """A `CallListener` of a user: shows questions, and answers when the test says what."""

    request_id = "own-1"

    def __init__(self, answer: QuestionAnswer | None = None) -> None:
        self.asked: asyncio.Queue[ServerQuestion] = asyncio.Queue()
        self.answer: asyncio.Future[QuestionAnswer] = asyncio.get_running_loop().create_future()
        self.withdrawn = asyncio.Event()
        if answer is not None:
            self.answer.set_result(answer)

    def progressed(self, progress: Progress) -> None:
        pass

    def logged(self, message: LogMessage) -> None:
        pass

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        self.asked.put_nowait(question)
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise

    async def question(self) -> ServerQuestion:
        async with asyncio.timeout(TIMEOUT):
            return await self.asked.get()

    async def withdrawal(self) -> None:
        async with asyncio.timeout(TIMEOUT):
            await self.withdrawn.wait()


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Return the file in which the curious server keeps what it is answered."""
    return tmp_path / "answers.jsonl"


async def answered(answers: Path, count: int = 1) -> list[Any]:
    """Wait until the curious server was answered so often. The file is read while it is written."""
    async with asyncio.timeout(TIMEOUT):
        while not answers.exists() or (text := answers.read_text()).count("\n") < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return [json.loads(line) for line in text.split("\n")[:-1]]


def curious(answers: Path, *rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy with the curious server, which runs for each user."""
    entry = {"command": sys.executable, "args": [str(CURIOUS), str(answers)], "env": {"FOR_USER": "${HUB_USER}"}}
    return {**a_policy(*(rules or [ALLOW])), "mcpServers": {SERVER: entry}}


def sdk_server(transport: str, era: str, url: str = "", **env: str) -> dict[str, Any]:
    """Return a policy with a server on the official SDK."""
    if transport == "http":
        entry: dict[str, Any] = {"url": url}
    else:
        entry = {"command": sys.executable, "args": [str(SCRIPTS / "asking.py")], "env": env}
    return {**a_policy(ALLOW), "mcpServers": {SERVER: {**entry, "protocolEra": era}}}


@pytest.fixture(scope="module")
def http_shop() -> Iterator[str]:
    """Start a server over HTTP that all of these tests share, and return its URL."""
    command = [sys.executable, str(SCRIPTS / "asking.py"), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.kill()


async def result_of(calling: asyncio.Task[ToolResult]) -> ToolResult:
    async with asyncio.timeout(TIMEOUT):
        return await calling


@asynccontextmanager
async def calling(tools: McpServers, one: ToolCall, user: User) -> AsyncIterator[asyncio.Task[ToolResult]]:
    task = asyncio.create_task(tools.call_tool(one, listener=user))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def asked_of(
    user: User, directory: Path, answers: Path, **settings: float
) -> AsyncIterator[tuple[Service, McpServers, asyncio.Task[ToolResult]]]:
    """Run a service whose curious server is called by ada, and asks for a street."""
    async with (
        running_service(directory, curious(answers), **settings) as service,
        service.tools_of("ada", SERVER) as tools,
        calling(tools, call("ask", questions=[FORM]), user) as asking,
    ):
        yield service, tools, asking


@pytest.mark.parametrize(
    ("transport", "era", "env"),
    [
        ("http", "legacy", {}),
        ("http", "2026-07-28", {}),
        ("stdio", "2026-07-28", {}),
        ("stdio", "legacy", {"FOR_USER": "${HUB_USER}"}),
    ],
)
async def test_the_user_is_asked_and_the_server_gets_the_answer_that_is_in_no_record(
    tmp_path: Path,
    http_shop: str,
    transport: str,
    era: str,
    env: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    ada = User(accept(street=STREET, count=2))
    policy = sdk_server(transport, era, http_shop, **env)
    async with running_service(tmp_path, policy) as service, service.tools_of("ada", SERVER) as tools:
        async with calling(tools, call("order"), ada) as ordering:
            result = await result_of(ordering)
        (record,) = (await service.json("api/requests", token="ada"))["own"]
        kept = b"".join(path.read_bytes() for path in service.database.parent.glob("hub.sqlite*"))
    assert result.text == f'accept {{"street":"{STREET}","count":2,"speed":"slow"}}'
    asked = await ada.question()
    assert (asked.mode, asked.message, asked.calls) == (QuestionMode.FORM, "Where to?", 1)
    assert asked.schema["required"] == ["street"]
    (question,) = record["outcome"]["questions"]
    assert (question["message"], question["action"], question["content"]) == ("Where to?", "accept", {})
    assert (question["reviewer"], question["via"]) == ("ada", "api_token")
    assert b"Where to?" in kept
    assert STREET.encode() not in kept.replace(json.dumps(result.text).encode(), b"")
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("jupyter_agentbox")]
    assert not any(STREET in text for text in ours)


async def test_users_of_one_server_see_only_their_own_questions(tmp_path: Path, http_shop: str) -> None:
    ada, bob = User(), User()
    policy = sdk_server("http", "legacy", http_shop)
    async with (
        running_service(tmp_path, policy) as service,
        service.tools_of("ada", SERVER) as adas,
        service.tools_of("bob", SERVER) as bobs,
        calling(adas, call("visit", url=f"{PAGE}&for=ada"), ada) as first,
        calling(bobs, call("visit", url=f"{PAGE}&for=bob"), bob) as second,
    ):
        assert (await ada.question()).url == f"{PAGE}&for=ada"
        assert (await bob.question()).url == f"{PAGE}&for=bob"
        bob.answer.set_result(QuestionAnswer(action=QuestionAction.DECLINE))
        assert (await result_of(second)).text == "decline"
        assert not first.done()
        ada.answer.set_result(accept())
        assert (await result_of(first)).text == "accept"
        assert ada.asked.empty()
        assert bob.asked.empty()


async def test_a_shared_server_that_does_not_say_whose_call_it_is_asks_nobody(tmp_path: Path) -> None:
    ada, bob = User(accept(street=STREET)), User(accept(street=STREET))
    policy = sdk_server("stdio", "legacy")
    async with (
        running_service(tmp_path, policy) as service,
        service.tools_of("ada", SERVER) as adas,
        service.tools_of("bob", SERVER) as bobs,
        calling(adas, call("wait"), ada) as first,
        calling(bobs, call("deliver"), bob) as second,
    ):
        result = await result_of(second)
        await bobs.call_tool(call("release"))
        await result_of(first)
        (status,) = service.box.servers.shared.servers()
    assert result.is_error
    assert "does not say whose call the question belongs to" in result.text
    assert [line for line in status.log if "does not say whose call the question belongs to" in line]
    assert ada.asked.empty()
    assert bob.asked.empty()


async def test_of_several_calls_of_one_user_the_question_says_that_it_may_be_any(tmp_path: Path, answers: Path) -> None:
    first, second = User(), User()
    async with (
        running_service(tmp_path, curious(answers)) as service,
        service.tools_of("ada", SERVER) as tools,
        calling(tools, call("ask", questions=[FORM]), first),
    ):
        assert (await first.question()).calls == 1
        async with calling(tools, call("ask", questions=[FORM]), second):
            assert (await first.question()).calls == 2
        assert second.asked.empty()


async def test_what_cannot_be_shown_is_refused_and_values_that_do_not_fit_are_not_passed_on(
    tmp_path: Path, answers: Path
) -> None:
    ada = User(accept(street=7))
    questions: list[JsonValue] = [
        {"mode": "url", "message": "Sign", "url": "javascript:alert(1)", "elicitationId": "1"},
        {"message": "x" * 4_001, "requestedSchema": FORM["requestedSchema"]},
        FORM,
    ]
    async with running_service(tmp_path, curious(answers)) as service, service.tools_of("ada", SERVER) as tools:
        async with asyncio.timeout(TIMEOUT):
            told = json.loads((await tools.call_tool(call("ask", questions=questions), listener=ada)).text)
    assert [one.get("code") for one in told] == [-32602, -32602, None]
    assert told[2] == {"action": "cancel"}
    assert ada.asked.qsize() == 1


async def test_a_call_that_asks_without_end_is_told_that_nobody_answers(tmp_path: Path, answers: Path) -> None:
    ada = User(accept(street=STREET))
    async with running_service(tmp_path, curious(answers)) as service, service.tools_of("ada", SERVER) as tools:
        async with asyncio.timeout(TIMEOUT):
            many = call("ask", questions=[FORM] * (MOST_OF_CALL + 10))
            told = json.loads((await tools.call_tool(many, listener=ada)).text)
    assert [one["action"] for one in told] == ["accept"] * MOST_OF_CALL + ["cancel"] * 10
    assert ada.asked.qsize() == MOST_OF_CALL


async def test_the_metrics_count_questions_by_outcome_and_contain_nothing_of_them(
    tmp_path: Path, answers: Path
) -> None:
    given = [accept(street=STREET), QuestionAnswer(action=QuestionAction.DECLINE), CANCEL, accept(street=7)]
    async with running_service(tmp_path, curious(answers)) as service, service.tools_of("ada", SERVER) as tools:
        for answer in given:
            async with calling(tools, call("ask", questions=[FORM]), User(answer)) as asking:
                await result_of(asking)
        text = (await service.get("metrics", token="eve")).body.decode()
    found = dict(re.findall(r'agentbox_hub_questions_total{outcome="(.*)",server="shop"} (.*)', text))
    assert found == {"accepted": "1.0", "declined": "1.0", "cancelled": "2.0"}
    assert not [said for said in (STREET, "Where to?", "street", "ada") if said in text]


async def test_a_question_that_the_server_takes_back_is_no_longer_shown(tmp_path: Path, answers: Path) -> None:
    ada = User()
    async with asked_of(ada, tmp_path, answers) as (_, tools, asking):
        await ada.question()
        await tools.call_tool(call("take_back"))
        assert (await result_of(asking)).text == "taken back"
        await ada.withdrawal()


async def test_a_question_that_nobody_answers_ends_with_the_services_time(tmp_path: Path, answers: Path) -> None:
    ada = User()
    async with asked_of(ada, tmp_path, answers, approval_timeout=0.5) as (_, _, asking):
        assert json.loads((await result_of(asking)).text) == [{"action": "cancel"}]
        if not ada.asked.empty():  # on a slow machine, the time may be over before she is asked
            await ada.withdrawal()


@pytest.mark.parametrize("how", ["the call is cancelled", "the connection is closed", "the service ends"])
async def test_when_the_caller_or_the_service_goes_the_server_is_told_that_nobody_answers(
    tmp_path: Path, answers: Path, how: str
) -> None:
    ada = User()
    async with AsyncExitStack() as with_service, AsyncExitStack() as with_tools:
        service = await with_service.enter_async_context(running_service(tmp_path, curious(answers)))
        tools = await with_tools.enter_async_context(service.tools_of("ada", SERVER))
        async with calling(tools, call("ask", questions=[FORM]), ada) as asking:
            await ada.question()
            if how == "the call is cancelled":
                asking.cancel()
            elif how == "the connection is closed":
                await with_tools.aclose()
            else:
                await with_service.aclose()
            assert await answered(answers) == [{"action": "cancel"}]
            await ada.withdrawal()


async def test_the_question_of_a_server_that_dies_is_no_longer_shown(tmp_path: Path, answers: Path) -> None:
    ada = User()
    async with asked_of(ada, tmp_path, answers) as (_, tools, asking):
        await ada.question()
        assert (await tools.call_tool(call("crash"))).is_error
        assert (await result_of(asking)).is_error
        await ada.withdrawal()


async def test_a_user_whose_token_no_longer_counts_is_told_that_the_answer_did_not_reach_the_server(
    tmp_path: Path, answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = User()
    async with running_service(tmp_path, curious(answers)) as service:
        async with (
            service.tools_of("ada", SERVER) as tools,
            calling(tools, call("ask", questions=[FORM]), ada) as asking,
        ):
            await ada.question()
            monkeypatch.delitem(USERS, "ada")
            ada.answer.set_result(accept(street=STREET))
            with pytest.raises(ToolCallInterruptedError, match="did not reach the server: this needs a token"):
                await result_of(asking)
        assert await answered(answers) == [{"action": "cancel"}]


async def test_a_policy_that_removes_the_server_ends_its_question(tmp_path: Path, answers: Path) -> None:
    ada = User()
    async with asked_of(ada, tmp_path, answers) as (service, _, asking):
        await ada.question()
        (tmp_path / "policy.json").write_text(json.dumps({**a_policy(ALLOW), "mcpServers": {}}))
        await service.box.policy.reload()
        result = await result_of(asking)
        await ada.withdrawal()
    assert result.is_error


async def session_of(service: Service, user: str, **elicitation: Any) -> str:
    """Begin a session as a client that declares this of elicitation, if anything, and return its id."""
    capabilities = {"elicitation": elicitation["declared"]} if elicitation else {}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "c", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = await service.send(f"mcp/{SERVER}", message, {"Authorization": f"Bearer {user}"})
    assert answer.code == 200
    return answer.headers["Mcp-Session-Id"]


async def answer_as(service: Service, user: str, session: str, id: Any, **result: Any) -> int:
    """Answer a question, and return the status."""
    headers = {"Authorization": f"Bearer {user}", "Mcp-Session-Id": session}
    return (await service.send(f"mcp/{SERVER}", {"jsonrpc": "2.0", "id": id, "result": result}, headers)).code


def a_stream(service: Service, session: str, *questions: Any, last: str = "") -> Stream:
    params = {"name": "ask", "arguments": {"questions": list(questions)}}
    return Stream(service, call=params, server=SERVER, session=session, last=last)


@asynccontextmanager
async def begun(service: Service, session: str, *questions: Any) -> AsyncIterator[asyncio.StreamReader]:
    """Begin a call, and hang up at the end."""
    place = urlsplit(service.url)
    params = {"name": "ask", "arguments": {"questions": list(questions)}}
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    head = (
        f"POST {place.path}mcp/{SERVER} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer ada\r\n"
        f"Mcp-Session-Id: {session}\r\nContent-Length: {len(message)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(f"{head}{message}".encode())
        yield reader
    finally:
        writer.close()
        await writer.wait_closed()


async def message_of(stream: Stream) -> Any:
    """Return the next message of a stream."""
    while not (data := (await stream.event())["data"].strip()):
        pass
    return json.loads(data)


@pytest.mark.parametrize(
    ("declared", "can"),
    [
        ({}, ["form"]),
        ({"declared": {}}, ["form"]),
        ({"declared": {"form": {}}}, ["form"]),
        ({"declared": {"url": {}}}, ["url"]),
        ({"declared": {"form": {}, "url": {}}}, ["form", "url"]),
    ],
)
async def test_a_client_that_cannot_ask_is_told_why_the_question_is_not_asked(
    tmp_path: Path, answers: Path, declared: Any, can: list[str]
) -> None:
    can = can if declared else []
    page = {"mode": "url", "message": "Sign", "url": PAGE, "elicitationId": "1"}
    async with running_service(tmp_path, curious(answers)) as service:
        session = await session_of(service, "ada", **declared)
        for mode, question in (("form", FORM), ("url", page)):
            stream = a_stream(service, session, question)
            first = await message_of(stream)
            if mode in can:
                assert first["method"] == "elicitation/create"
                assert first["params"].get("mode", "form") == mode
                assert await answer_as(service, "ada", session, first["id"], action="decline") == 202
                action = "decline"
            else:
                assert first["method"] == "notifications/message"
                assert "this MCP client does not say that it can ask its user" in first["params"]["data"]
                action = "cancel"
            assert json.loads((await stream.result())["content"][0]["text"]) == [{"action": action}]


async def test_an_answer_of_another_user_or_session_does_not_count(tmp_path: Path, answers: Path) -> None:
    async with running_service(tmp_path, curious(answers)) as service:
        ada, other, bob = [await session_of(service, user, declared={"form": {}}) for user in ("ada", "ada", "bob")]
        stream = a_stream(service, ada, FORM)
        question = await message_of(stream)
        for user, session in (("bob", bob), ("bob", ada), ("ada", other), ("ada", "")):
            assert await answer_as(service, user, session, question["id"], action="decline") == 202
        assert await answer_as(service, "ada", ada, "another", action="decline") == 202
        assert await answer_as(service, "ada", ada, question["id"], action="accept", content={"street": "Main"}) == 202
        assert await answer_as(service, "ada", ada, question["id"], action="decline") == 202  # the first one counts
        told = {"action": "accept", "content": {"street": "Main"}}
        assert json.loads((await stream.result())["content"][0]["text"]) == [told]


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"action": "allow"}},
        {"result": {"action": "accept", "content": [1]}},
        {"result": {"action": "accept", "content": {"street": "x" * 300_000}}},
        {"result": None},
        {"result": {}},
        {"error": {"code": -1, "message": "no"}},
    ],
)
async def test_a_strange_answer_counts_as_none(tmp_path: Path, answers: Path, answer: Any) -> None:
    async with running_service(tmp_path, curious(answers)) as service:
        session = await session_of(service, "ada", declared={"form": {}})
        stream = a_stream(service, session, FORM)
        message = {"jsonrpc": "2.0", "id": (await message_of(stream))["id"], **answer}
        headers = {"Authorization": "Bearer ada", "Mcp-Session-Id": session}
        assert (await service.send(f"mcp/{SERVER}", message, headers)).code == 202
        assert json.loads((await stream.result())["content"][0]["text"]) == [{"action": "cancel"}]


async def test_a_broken_connection_is_taken_up_again_with_the_question_unless_it_had_arrived(
    tmp_path: Path, answers: Path
) -> None:
    policy = curious(answers, {**ask(group="data-stewards"), "server": SERVER})
    async with running_service(tmp_path, policy, at=listening()) as service:
        session = await session_of(service, "ada", declared={"form": {}})
        first = a_stream(service, session, FORM)
        before = id_of(await first.event())
        await service.decide(await waiting(service, "bob"), "bob")
        while "elicitation/create" not in (event := await first.event())["data"]:
            pass
        question, after = json.loads(event["data"]), id_of(event)

        again = a_stream(service, session, last=before)
        assert await message_of(again) == question  # the caller says that it had not arrived
        stranger = a_stream(service, await session_of(service, "ada", declared={"form": {}}), last=before)
        assert id_of(await stranger.event()) == before
        third = a_stream(service, session, last=after)
        assert id_of(await third.event()) == after
        assert await answer_as(service, "ada", session, question["id"], action="decline") == 202
        result = await third.result()  # the next message is no question
        assert json.loads(result["content"][0]["text"]) == [{"action": "decline"}]
        assert stranger.events.empty()


async def test_a_caller_that_does_not_come_back_ends_the_question(tmp_path: Path, answers: Path) -> None:
    policy = curious(answers, {**ask(group="data-stewards"), "server": SERVER})
    async with running_service(tmp_path, policy, resume_timeout=0.2) as service:
        session = await session_of(service, "ada", declared={"form": {}})
        async with begun(service, session, FORM) as events:
            await service.decide(await waiting(service, "bob"), "bob")
            async with asyncio.timeout(TIMEOUT):
                await events.readuntil(b"elicitation/create")
        assert await answered(answers) == [{"action": "cancel"}]


async def test_a_caller_whose_call_did_not_wait_ends_the_question_with_its_connection(
    tmp_path: Path, answers: Path
) -> None:
    async with running_service(tmp_path, curious(answers), resume_timeout=3600) as service:
        session = await session_of(service, "ada", declared={"form": {}})
        async with begun(service, session, FORM) as events, asyncio.timeout(TIMEOUT):
            await events.readuntil(b"elicitation/create")
        assert await answered(answers) == [{"action": "cancel"}]


async def test_it_is_a_question_of_the_users_own_server_and_recorded_there_with_its_values(
    tmp_path: Path, answers: Path
) -> None:
    async with running_service(tmp_path, curious(answers)) as service:
        entry = {"url": f"{service.url}mcp/{SERVER}", "headers": {"Authorization": "Bearer ada"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {SERVER: entry}}))
        asked: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
        settings = UsersSettings(
            mcp_config_path=(tmp_path / "mcp.json",), database_url=sqlite_url(str(tmp_path / "own.sqlite"))
        )
        box = build_users_box(
            settings,
            announcer=FakeAnnouncer(),
            policy=Policy(rules=(Rule(server=SERVER, tool="*", effect=Effect.ALLOW, layer=Layer.USER),)),
        )
        await box.start()
        try:
            ordering = asyncio.ensure_future(
                box.calls.run(
                    replace(call("ask", questions=[FORM]), origin=Origin(kernel_id="k1", notebook_path="a.ipynb")),
                    on_waiting=print,
                    on_running=lambda _: None,
                    on_asked=asked.put_nowait,
                )
            )
            async with asyncio.timeout(TIMEOUT):
                await asked.get()
                (question,) = box.questions.pending()
                reviewer = Reviewer(name="ada", via=Via.BROWSER)
                await box.questions.answer(question.id, QuestionAction.ACCEPT, {"street": STREET}, reviewer=reviewer)
                finished = await ordering
            await box.approvals.recorded()
            stored = await box.approvals.get(finished.request.id)
        finally:
            await box.aclose()
    assert (question.server, question.origin.notebook_path) == (SERVER, "a.ipynb")
    assert json.loads(finished.result.text) == [{"action": "accept", "content": {"street": STREET}}]
    assert stored.outcome is not None
    assert [dict(one.content) for one in stored.outcome.questions] == [{"street": STREET}]
