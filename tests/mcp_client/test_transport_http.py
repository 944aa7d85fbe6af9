from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.tools import Progress, ServerState
from jupyter_agentbox.exceptions import ToolCallInterruptedError, ToolServerError
from jupyter_agentbox.mcp_client import answer_delivery, transport_http
from jupyter_agentbox.mcp_client.limits import MOST_VALUES
from jupyter_agentbox.mcp_client.running_calls import RunningCall

from .conftest import Hears, Running

HttpServer = Callable[..., str]
TIMEOUT = 60


def call(tool: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(server="web", tool=tool, arguments=arguments)


def entry(url: str, **more: Any) -> dict[str, Any]:
    return {"web": {"url": url, **more}}


@pytest.mark.parametrize(
    ("era", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
@pytest.mark.parametrize("answers", ["events", "json"])
async def test_both_eras_call_and_cancel(
    running: Running, http_server: HttpServer, era: str, version: str, answers: str
) -> None:
    async with running(entry(http_server("official.py", "http", answers), protocolEra=era)) as servers:
        result = await servers.call_tool(call("add", a=2, b=3))
        assert (result.structured, result.wrapped) == ({"result": 5}, True)
        (found,) = servers.servers()
        assert (found.state, found.transport, found.protocol_version) == (ServerState.RUNNING, "http", version)

        slow = asyncio.create_task(servers.call_tool(call("slow")))
        await servers.call_tool(call("await_slow"))
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        if answers == "events" or version == "2025-11-25":  # else the SDK's server does not notice that we hung up
            async with asyncio.timeout(TIMEOUT):
                await servers.call_tool(call("await_cancelled"))


async def test_progress_reaches_the_caller(running: Running, http_server: HttpServer) -> None:
    reported: asyncio.Queue[Progress] = asyncio.Queue()
    async with running(entry(http_server("official.py", "http"))) as servers:
        slow = asyncio.create_task(servers.call_tool(call("slow"), listener=Hears(reported.put_nowait)))
        async with asyncio.timeout(TIMEOUT):
            assert await reported.get() == Progress(progress=1, total=3, message="waiting")
        slow.cancel()
        await asyncio.wait([slow])


@pytest.mark.parametrize("tool", ["hang_up", "cut", "cut_events"])
async def test_a_connection_that_breaks_interrupts_its_own_call_only(
    running: Running, http_server: HttpServer, tool: str
) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        other = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))

        with pytest.raises(ToolCallInterruptedError):
            await servers.call_tool(call(tool))

        await servers.call_tool(call("release"))
        assert (await other).text == "released"


@pytest.mark.parametrize(
    ("status", "error"), [(500, ToolCallInterruptedError), (502, ToolCallInterruptedError), (403, ToolServerError)]
)
async def test_an_error_status_fails_its_own_call_only_and_is_named(
    running: Running, http_server: HttpServer, status: int, error: type[ToolServerError]
) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        other = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))

        with pytest.raises(ToolServerError, match=f"HTTP {status}") as caught:
            await servers.call_tool(call("status", status=status))
        assert type(caught.value) is error

        await servers.call_tool(call("release"))
        assert (await other).text == "released"


async def test_a_persons_answer_that_the_server_did_not_take_is_sent_again(
    running: Running, http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_delivery, "DELAYS", (0.01, 0.01))
    async with running(entry(http_server("raw_http.py"))) as servers, asyncio.timeout(TIMEOUT):
        result = await servers.call_tool(call("ask", refusals=[502, 429]), listener=Hears())
    assert result.text == '[{"action": "decline"}]'


@pytest.mark.parametrize(("refusals", "reason"), [([502] * 3, "HTTP 502"), ([403], "HTTP 403")])
async def test_a_call_whose_server_does_not_get_a_persons_answer_ends(
    running: Running, http_server: HttpServer, monkeypatch: pytest.MonkeyPatch, refusals: list[JsonValue], reason: str
) -> None:
    monkeypatch.setattr(answer_delivery, "DELAYS", (0.01, 0.01))
    async with running(entry(http_server("raw_http.py"))) as servers, asyncio.timeout(TIMEOUT):
        with pytest.raises(ToolCallInterruptedError, match=f"its question did not reach the server: .*{reason}"):
            await servers.call_tool(call("ask", refusals=refusals), listener=Hears())
        assert (await servers.call_tool(call("echo"))).text == ""


async def test_a_call_is_given_up_although_another_of_its_questions_is_answered_in_the_same_moment() -> None:
    running = RunningCall(None, 2 * TIMEOUT)

    async def run() -> None:
        async with running.limit:
            with running.paused():
                running.give_up("HTTP 502")
            await asyncio.Event().wait()

    async with asyncio.timeout(TIMEOUT):
        with pytest.raises(TimeoutError):
            await run()


async def test_an_answer_that_the_server_neither_takes_nor_refuses_ends_its_call(
    running: Running, http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_delivery, "DELAYS", ())
    monkeypatch.setattr(answer_delivery, "TIMEOUT", 0.1)
    async with running(entry(http_server("raw_http.py"))) as servers, asyncio.timeout(TIMEOUT):
        with pytest.raises(ToolCallInterruptedError, match="reach the server: the server did not answer in time"):
            await servers.call_tool(call("ask", refusals=["mute"]), listener=Hears())


@pytest.mark.parametrize("refusals", [["mute"], [502] * 2])
async def test_a_persons_answer_that_takes_long_to_send_delays_no_other_call(
    running: Running, http_server: HttpServer, monkeypatch: pytest.MonkeyPatch, refusals: list[JsonValue]
) -> None:
    monkeypatch.setattr(answer_delivery, "DELAYS", (TIMEOUT,))
    async with running(entry(http_server("raw_http.py"))) as servers, asyncio.timeout(TIMEOUT):
        asked = asyncio.Event()

        async def decline(_: ServerQuestion) -> QuestionAnswer:
            asked.set()
            return QuestionAnswer(action=QuestionAction.DECLINE)

        asking = asyncio.create_task(
            servers.call_tool(call("ask", refusals=refusals), listener=Hears(on_question=decline))
        )
        await asked.wait()
        for _ in range(3):  # the answer is on its way, and is not taken
            assert (await servers.call_tool(call("echo"))).text == ""
        assert not asking.done()
        asking.cancel()
        await asyncio.wait([asking])
        assert (await servers.call_tool(call("echo"))).text == ""


async def test_an_answer_that_is_not_json_fails_its_call(running: Running, http_server: HttpServer) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        with pytest.raises(ToolServerError, match="text/html"):
            await servers.call_tool(call("text"))
        assert (await servers.call_tool(call("echo"))).text == ""


async def test_an_answer_that_is_compressed_is_not_read(running: Running, http_server: HttpServer) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        with pytest.raises(ToolServerError, match=r"`web\.compressed` ran, but its answer is compressed \(gzip\)"):
            await servers.call_tool(call("compressed", size=100_000_000))
        assert (await servers.call_tool(call("echo"))).text == ""


async def test_a_server_that_does_not_answer_the_end_of_its_session_is_stopped_all_the_same(
    running: Running, http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_http, "_END_TIMEOUT", 0.1)
    async with running(entry(http_server("raw_http.py", "mute at the end"))) as servers:
        await servers.call_tool(call("echo"))
        async with asyncio.timeout(TIMEOUT):
            await servers.stop("web")
        assert servers.servers()[0].state is ServerState.STOPPED


async def test_a_server_that_does_not_listen_says_so(running: Running) -> None:
    with socket.socket() as taken:  # bound, so that nobody else listens there, and without listening
        taken.bind(("127.0.0.1", 0))
        async with running(entry(f"http://127.0.0.1:{taken.getsockname()[1]}/mcp")) as servers:
            with pytest.raises(ToolServerError, match="no answer over HTTP"):
                await servers.list_tools("web")
            assert servers.servers()[0].state is ServerState.FAILED


@pytest.mark.parametrize("events", [False, True])
async def test_fifty_megabytes_are_read_in_linear_time(running: Running, http_server: HttpServer, events: bool) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        await servers.list_tools("web")
        began = time.process_time()  # of this process, which reads; how busy the machine is does not count
        result = await servers.call_tool(call("big", size=50_000_000, events=events))
        assert time.process_time() - began < 8  # below 0.8 s; read in quadratic time, 24 s
        assert len(result.text) == 50_000_000


@pytest.mark.parametrize("events", [False, True])
async def test_an_answer_over_the_cap_fails_its_own_call_only(
    running: Running, http_server: HttpServer, events: bool
) -> None:
    async with running(entry(http_server("raw_http.py")), message_cap=1_000_000) as servers:
        other = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))

        with pytest.raises(ToolServerError) as caught:
            await servers.call_tool(call("big", size=3_000_000, events=events))
        assert type(caught.value) is ToolServerError

        await servers.call_tool(call("release"))
        assert (await other).text == "released"


@pytest.mark.parametrize("events", [False, True])
async def test_an_answer_of_too_many_values_to_read_in_one_step_fails_its_own_call_only(
    running: Running, http_server: HttpServer, events: bool
) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        with pytest.raises(ToolServerError, match="more than the 2,000,000 values that are allowed"):
            await servers.call_tool(call("many", count=MOST_VALUES + 1, events=events))
        most = MOST_VALUES - 1000  # what is in a string does not count
        result = await servers.call_tool(call("many", count=most, events=events))
        assert result.structured == {"a": [1] * most, "text": "," * most}


async def test_headers_are_sent_and_are_in_no_message(running: Running, http_server: HttpServer) -> None:
    headers = {"Authorization": "Bearer s3cret-value"}
    async with running(entry(http_server("raw_http.py"), headers=headers)) as servers:
        assert (await servers.call_tool(call("echo"))).text == "Bearer s3cret-value"
        with pytest.raises(ToolServerError) as caught:
            await servers.call_tool(call("status", status=401))
        assert "s3cret-value" not in str(caught.value) + repr(servers.servers())


async def test_a_redirect_to_another_origin_is_not_followed(running: Running, http_server: HttpServer) -> None:
    url = http_server("raw_http.py").replace("/mcp", "/elsewhere")
    async with running(entry(url, headers={"Authorization": "Bearer s3cret-value"})) as servers:
        with pytest.raises(ToolServerError, match="not followed"):
            await servers.list_tools("web")


async def test_a_server_of_the_older_transport_is_told_from_others(running: Running, http_server: HttpServer) -> None:
    url = http_server("raw_http.py").replace("/mcp", "/sse")
    async with running(entry(url)) as servers:
        with pytest.raises(ToolServerError, match=r"HTTP 40[45].*HTTP\+SSE transport is not supported"):
            await servers.list_tools("web")


async def test_a_redirect_within_the_origin_is_followed(running: Running, http_server: HttpServer) -> None:
    async with running(entry(http_server("raw_http.py").replace("/mcp", "/moved"))) as servers:
        assert await servers.list_tools("web")


@pytest.mark.parametrize("status", ["404", "400", "400 text"])
async def test_a_call_on_a_lost_session_is_sent_again_on_a_new_one(
    running: Running, http_server: HttpServer, status: str
) -> None:
    async with running(entry(http_server("raw_http.py", status))) as servers:
        for times in range(1, 4):
            await servers.call_tool(call("forget"))
            assert (await servers.call_tool(call("echo"))).text == ""
            assert (await servers.call_tool(call("ran", name="echo"))).text == str(times)


async def test_several_calls_on_a_lost_session_are_all_sent_again(running: Running, http_server: HttpServer) -> None:
    async with running(entry(http_server("raw_http.py", "400"))) as servers:
        await servers.call_tool(call("forget"))
        results = await asyncio.gather(*(servers.call_tool(call("echo")) for _ in range(5)))
        assert [result.text for result in results] == [""] * 5
        assert (await servers.call_tool(call("ran", name="echo"))).text == "5"


@pytest.mark.parametrize("status", ["404", "400", "400 text"])
@pytest.mark.parametrize("forgets", [True, False])
async def test_a_call_that_the_server_took_is_not_sent_again(
    running: Running, http_server: HttpServer, status: str, forgets: bool
) -> None:
    async with running(entry(http_server("raw_http.py", status))) as servers:
        with pytest.raises(ToolCallInterruptedError, match="It may have had an effect"):
            await servers.call_tool(call("let_poll", forgets=forgets))
        assert (await servers.call_tool(call("ran", name="let_poll"))).text == "1"


async def test_a_call_is_not_sent_to_a_tool_that_is_another_one_now(running: Running, http_server: HttpServer) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        await servers.call_tool(call("rename"))
        with pytest.raises(ToolServerError, match="did not run"):
            await servers.call_tool(call("echo"))
        assert (await servers.call_tool(call("ran", name="echo"))).text == "0"


@pytest.mark.parametrize(
    ("code", "status"), [(-32000, 200), (-32000, 400), (-32602, 400), (-32001, 200), (-32700, 200)]
)
async def test_an_error_of_the_server_is_passed_on_whole(
    running: Running, http_server: HttpServer, code: int, status: int
) -> None:
    words = "request exceeded the 1000 byte limit: session timed out"
    error: JsonValue = {"code": code, "message": f"[\n  {words}\n]", "data": {"path": ["a", 1]}}
    async with running(entry(http_server("raw_http.py"))) as servers:
        with pytest.raises(ToolServerError) as caught:
            await servers.call_tool(call("error", error=error, status=status))
    assert type(caught.value) is ToolServerError
    assert str(caught.value) == f"the server refused `web.error`: [\n  {words}\n]\n" + '{"path": ["a", 1]}'


async def test_a_server_that_wants_authorization_is_told_how_to_give_it(
    running: Running, http_server: HttpServer
) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        with pytest.raises(ToolServerError, match="set `headers`"):
            await servers.call_tool(call("status", status=401))


async def test_cancelling_the_caller_tells_a_server_of_the_older_era(running: Running, http_server: HttpServer) -> None:
    async with running(entry(http_server("raw_http.py"))) as servers:
        waiting = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await servers.call_tool(call("was_cancelled"))).text == "1"
