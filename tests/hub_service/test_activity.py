"""What a central server reports and logs while its tool runs: the user whose call it is sees it, and nobody else."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.composition import Settings as UsersSettings
from jupyter_agentbox.composition import build as build_users_box
from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.tools import Activity, LogMessage, Progress, ToolResult
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeAnnouncer

from .service import TIMEOUT, Service, a_policy, ask, running_service
from .test_questions import message_of, session_of
from .test_restart import Stream
from .test_service import waiting

SERVER = "shop"
ALLOW = {"effect": "allow", "server": SERVER, "tool": "*"}
TALKATIVE = Path(__file__).parent / "talkative.py"


@dataclass
class Ear:
    """A `CallListener` that keeps what it hears."""

    request_id: str = "own-1"
    progress: list[Progress] = field(default_factory=list)
    messages: list[LogMessage] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    def progressed(self, progress: Progress) -> None:
        self.progress.append(progress)
        self.heard.set()

    def logged(self, message: LogMessage) -> None:
        self.messages.append(message)
        self.heard.set()

    async def ask(self, _: ServerQuestion) -> QuestionAnswer:
        return QuestionAnswer(action=QuestionAction.DECLINE)

    async def until(self, condition: Callable[[Ear], bool]) -> None:
        async with asyncio.timeout(TIMEOUT):
            while not condition(self):
                self.heard.clear()
                await self.heard.wait()

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.messages]


@pytest.fixture
def over_http() -> Iterator[Callable[[], dict[str, Any]]]:
    """Start the talkative server over HTTP, and return its entry."""
    with ExitStack() as stack:

        def start() -> dict[str, Any]:
            command = [sys.executable, str(TALKATIVE), "http"]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            return {"url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"}

        yield start


def over_stdio(**env: str) -> dict[str, Any]:
    """Return the entry of the talkative server over standard input and output."""
    return {"command": sys.executable, "args": [str(TALKATIVE)], "env": env}


def policy_with(entry: dict[str, Any], *rules: dict[str, Any], era: str = "legacy") -> dict[str, Any]:
    return {**a_policy(*(rules or [ALLOW])), "mcpServers": {SERVER: {**entry, "protocolEra": era}}}


def call(tool: str = "talk", **arguments: JsonValue) -> ToolCall:
    return ToolCall(server=SERVER, tool=tool, arguments=arguments)


@asynccontextmanager
async def calling(tools: McpServers, one: ToolCall, ear: Ear) -> AsyncIterator[asyncio.Task[ToolResult]]:
    task = asyncio.create_task(tools.call_tool(one, listener=ear))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def finished(task: asyncio.Task[ToolResult]) -> None:
    async with asyncio.timeout(TIMEOUT):
        assert (await task).text == "done"


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_of_a_shared_server_each_user_sees_what_it_says_about_their_own_calls(
    tmp_path: Path, over_http: Callable[[], dict[str, Any]], era: str, caplog: pytest.LogCaptureFixture
) -> None:
    ada, second, bob, cleo = Ear(), Ear(), Ear(), Ear()
    async with (
        running_service(tmp_path, policy_with(over_http(), era=era)) as service,
        service.tools_of("ada", SERVER) as adas,
        service.tools_of("bob", SERVER) as bobs,
        service.tools_of("cleo", SERVER) as cleos,
        calling(cleos, call("wait"), cleo) as third,
        calling(adas, call(text="for ada", waits=True), ada) as first,
        calling(adas, call(text="for ada, too", waits=True), second) as other,
        calling(bobs, call(text="for bob", level="warning", waits=True), bob) as last,
    ):
        for ear in (ada, second, bob):
            await ear.until(lambda one: bool(one.progress and one.messages))
        await cleos.call_tool(call("release"), listener=Ear())
        for task in (first, other, third, last):
            await finished(task)
    assert ada.progress[-1] == Progress(progress=1, total=1, message="for ada")
    assert bob.progress[-1] == Progress(progress=1, total=1, message="for bob")
    assert (ada.texts, second.texts, bob.texts) == (["for ada 1"], ["for ada, too 1"], ["for bob 1"])
    assert [one.level for one in bob.messages] == ["warning"]
    assert (cleo.progress, cleo.messages) == ([], [])
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("jupyter_agentbox")]
    assert not any("for ada" in text for text in ours)


async def test_a_log_message_of_a_shared_server_that_does_not_say_whose_call_it_is_about_reaches_nobody(
    tmp_path: Path,
) -> None:
    ada, bob = Ear(), Ear()
    async with (
        running_service(tmp_path, policy_with(over_stdio())) as service,
        service.tools_of("ada", SERVER) as adas,
        service.tools_of("bob", SERVER) as bobs,
    ):
        async with calling(adas, call(text="for ada"), ada) as first:
            await finished(first)
        async with calling(bobs, call("wait"), bob) as second:
            async with calling(adas, call(text="for ada"), ada) as again:
                await finished(again)
            await adas.call_tool(call("release"))
            await finished(second)
        (status,) = service.box.servers.shared.servers()
    assert ada.progress[-1].message == "for ada"  # progress says whose call it is about
    assert (ada.messages, bob.messages, bob.progress) == ([], [], [])
    assert any("for ada 1" in line for line in status.log)


async def test_a_log_message_beside_the_streams_of_all_calls_reaches_nobody(
    tmp_path: Path, over_http: Callable[[], dict[str, Any]]
) -> None:
    ada, bob = Ear(), Ear()
    async with (
        asyncio.timeout(TIMEOUT),
        running_service(tmp_path, policy_with(over_http())) as service,
        service.tools_of("ada", SERVER) as adas,
        service.tools_of("bob", SERVER) as bobs,
        calling(bobs, call("talk", text="for bob", waits=True), bob) as first,
    ):
        await bob.until(lambda one: bool(one.messages))
        async with calling(adas, call("announce", text="secret of ada"), ada) as second:
            await finished(second)
        while "secret of ada" not in str(service.box.servers.shared.servers()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await adas.call_tool(call("release"))
        await finished(first)
    assert (ada.texts, bob.texts) == (["done"], ["for bob 1"])


async def test_the_error_of_a_cut_off_call_does_not_quote_the_log_of_a_server_that_others_share(tmp_path: Path) -> None:
    ada = Ear()
    async with (
        running_service(tmp_path, policy_with(over_stdio())) as service,
        service.tools_of("ada", SERVER) as adas,
        service.tools_of("bob", SERVER) as bobs,
        calling(adas, call(text="secret of ada", waits=True), ada) as first,
    ):
        await ada.until(lambda one: bool(one.progress))
        while "secret of ada 1" not in str(service.box.servers.shared.servers()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        result = await bobs.call_tool(call("crash"), listener=Ear())
        async with asyncio.timeout(TIMEOUT):
            await first
    assert result.is_error
    assert "was cut off" in result.text
    assert "secret of ada" not in result.text


async def test_a_server_that_runs_for_each_user_logs_to_the_only_call_of_its_user(tmp_path: Path) -> None:
    ada, second, bob = Ear(), Ear(), Ear()
    async with (
        running_service(tmp_path, policy_with(over_stdio(FOR_USER="${HUB_USER}"))) as service,
        service.tools_of("ada", SERVER) as adas,
        service.tools_of("bob", SERVER) as bobs,
        calling(bobs, call("wait"), bob),
        calling(adas, call(text="alone", waits=True), ada) as first,
    ):
        await ada.until(lambda one: bool(one.messages))
        async with calling(adas, call(text="beside it", waits=True), second) as other:
            await second.until(lambda one: bool(one.progress))
            await adas.call_tool(call("release"))
            await finished(first)
            await finished(other)
    assert (ada.texts, second.texts, bob.texts) == (["alone 1"], [], [])


async def test_what_a_tool_says_without_end_is_cut_and_sent_at_intervals(
    tmp_path: Path, over_http: Callable[[], dict[str, Any]]
) -> None:
    ada = Ear()
    async with (
        running_service(tmp_path, policy_with(over_http())) as service,
        service.tools_of("ada", SERVER) as tools,
        calling(tools, call(text="x" * 5_000, times=400), ada) as talking,
    ):
        began = asyncio.get_running_loop().time()
        await finished(talking)
        seconds = asyncio.get_running_loop().time() - began
    rounds = seconds / 0.25 + 2
    assert len(ada.progress) <= rounds
    assert len(ada.messages) <= 10 * rounds
    assert len(ada.messages) < 400
    assert {len(one.text) for one in ada.messages} == {2_000}
    assert ada.progress[-1].progress == 400  # the latest is never lost
    assert len(ada.progress[-1].message) == 2_000


async def test_a_client_gets_only_log_messages_of_the_level_that_it_has_set(
    tmp_path: Path, over_http: Callable[[], dict[str, Any]]
) -> None:
    async with running_service(tmp_path, policy_with(over_http())) as service:
        quiet, other = [await session_of(service, "ada") for _ in range(2)]
        assert "result" in await set_level(service, quiet, "error")
        assert (await set_level(service, quiet, "loud"))["error"]["code"] == -32602
        assert await told(service, quiet, "info") == []
        assert await told(service, quiet, "error") == [{"level": "error", "data": "news 1"}]
        assert await told(service, other, "info") == [{"level": "info", "data": "news 1"}]
        assert "result" in await set_level(service, quiet, "debug")
        assert await told(service, quiet, "info") == [{"level": "info", "data": "news 1"}]


async def set_level(service: Service, session: str, level: str) -> Any:
    headers = {"Authorization": "Bearer ada", "Mcp-Session-Id": session}
    message = {"jsonrpc": "2.0", "id": 3, "method": "logging/setLevel", "params": {"level": level}}
    return json.loads((await service.send(f"mcp/{SERVER}", message, headers)).body)


async def told(service: Service, session: str, level: str) -> list[Any]:
    """Return the log messages of a call, which asks for no progress and must be told none."""
    params = {"name": "talk", "arguments": {"text": "news", "level": level}}
    stream = Stream(service, call=params, server=SERVER, session=session)
    found = []
    while "result" not in (message := await message_of(stream)):
        assert message["method"] == "notifications/message"
        found.append(message["params"])
    return found


def has_said(seen: Activity, text: str) -> bool:
    return bool(seen.messages) and seen.progress is not None and seen.progress.message == text


async def test_progress_after_an_approval_keeps_the_approvers_and_is_on_the_card_of_the_users_server(
    tmp_path: Path, over_http: Callable[[], dict[str, Any]]
) -> None:
    policy = policy_with(
        over_http(), {**ask("talk", group="data-stewards"), "server": SERVER}, {**ALLOW, "tool": "release"}
    )
    async with running_service(tmp_path, policy) as service:
        entry = {"url": f"{service.url}mcp/{SERVER}", "headers": {"Authorization": "Bearer ada"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {SERVER: entry}}))
        announcer = FakeAnnouncer()
        box = build_users_box(
            UsersSettings(
                mcp_config_path=(tmp_path / "mcp.json",),
                database_url=sqlite_url(str(tmp_path / "own.sqlite")),
                hub_service=service.url,
            ),
            announcer=announcer,
            policy=Policy(rules=(Rule(server=SERVER, tool="*", effect=Effect.ALLOW, layer=Layer.USER),)),
        )
        await box.start()
        try:
            begun: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
            talking = asyncio.ensure_future(
                box.calls.run(call(text="Sorting", waits=True), on_waiting=print, on_running=begun.put_nowait)
            )
            async with asyncio.timeout(TIMEOUT):
                request = await begun.get()
                await service.decide(await waiting(service, "bob"), "bob")
                while not ((seen := box.running_calls.activity_of(request.id)) and has_said(seen, "Sorting")):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                async with service.tools_of("ada", SERVER) as tools:
                    await tools.call_tool(call("release"))
                finished = await talking
        finally:
            await box.aclose()
    assert finished.result.text == "done"
    assert seen.review is not None
    assert seen.review.approved_by == ("bob",)
    assert [str(one) for one in seen.messages] == ["[info] Sorting 1"]
