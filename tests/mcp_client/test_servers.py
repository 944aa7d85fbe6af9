from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from pydantic import TypeAdapter

from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.tools import LogMessage, Progress, ServerState, ServerStatus, ToolResult
from jupyter_agentbox.exceptions import (
    ServerConfigurationError,
    ToolArgumentsError,
    ToolCallInterruptedError,
    ToolServerError,
    UnknownServerError,
    UnknownToolError,
)
from jupyter_agentbox.mcp_client.configuration import Configuration, UnusableServer, where_to_look
from jupyter_agentbox.mcp_client.limits import MOST_VALUES, ServerLimits
from jupyter_agentbox.mcp_client.servers import McpServers
from tests.processes_alive import children, survivors

from .conftest import Changes, Hears, Running

Script = Callable[..., dict[str, Any]]
TIMEOUT = 60
CORPUS = Path(__file__).parent.parent / "data" / "mcp-corpus"


def call(tool: str, server: str = "raw", **arguments: JsonValue) -> ToolCall:
    return ToolCall(server=server, tool=tool, arguments=arguments)


def state(servers: McpServers, name: str = "raw") -> ServerState:
    return status(servers, name).state


def status(servers: McpServers, name: str = "raw") -> ServerStatus:
    return next(found for found in servers.servers() if found.name == name)


async def gone(*processes: psutil.Process) -> bool:
    """Wait until the processes have ended. They are looked up while they run: later, an id may be another one's."""
    return not await asyncio.to_thread(survivors, processes)


# -- start and stop


async def test_importing_the_adapter_does_not_import_the_sdk() -> None:
    code = "import sys; import jupyter_agentbox.mcp_client.servers; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_server_starts_on_first_use_and_not_before(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        assert state(servers) is ServerState.STOPPED

        result = await servers.call_tool(call("echo", a=1, b=None))

        assert result == ToolResult(content=({"type": "text", "text": '{"a": 1, "b": null}'},))
        found = status(servers)
        assert (found.state, found.transport, found.error) == (ServerState.RUNNING, "stdio", "")
        assert found.protocol_version == "2025-11-25"
        assert found.tool_count is not None


async def test_concurrent_first_users_share_one_start(running: Running, script: Script, tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with running({"raw": script("raw.py", "count", str(log), protocolEra="legacy")}) as servers:
        await asyncio.gather(*(servers.call_tool(call("echo", n=n)) for n in range(10)))
    assert log.read_text() == "started\n"


async def test_a_cancelled_first_user_does_not_cancel_the_start_for_the_others(
    running: Running, script: Script
) -> None:
    changes = Changes()
    async with running({"raw": script("raw.py")}, on_change=changes) as servers:
        first = asyncio.create_task(servers.list_tools("raw"))
        second = asyncio.create_task(servers.list_tools("raw"))
        await changes.until(lambda: state(servers) is ServerState.STARTING)
        first.cancel()

        assert await second
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_status_changes_are_announced(running: Running, script: Script) -> None:
    seen: list[ServerState] = []
    async with running({"raw": script("raw.py")}, on_change=lambda: seen.append(state(servers))) as servers:
        servers.servers()
        seen.clear()
        await servers.list_tools("raw")
        assert seen == [ServerState.STARTING, ServerState.RUNNING]


async def test_a_listener_that_fails_breaks_no_server(
    running: Running, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError

    async with running({"raw": script("raw.py")}, on_change=fail) as servers:
        await servers.preload()
        assert await servers.list_tools("raw")
    assert caplog.records


async def test_a_server_that_fails_at_start_says_why_with_its_last_words(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py", "crash")}) as servers:
        with pytest.raises(ToolServerError, match="cannot find the database"):
            await servers.list_tools("raw")
        assert state(servers) is ServerState.FAILED
        assert "status 4" in status(servers).error


async def test_the_error_of_a_start_names_what_is_missing_not_only_how_many_errors_there_are(
    running: Running, script: Script
) -> None:
    async with running({"raw": script("raw.py", "incomplete", protocolEra="legacy")}) as servers:
        with pytest.raises(ToolServerError, match=r"(?s)did not start.*capabilities"):
            await servers.list_tools("raw")


async def test_a_server_that_fails_at_start_says_each_word_once_and_in_the_end_where_to_look(
    running: Running, script: Script, tmp_path: Path
) -> None:
    look = partial(where_to_look, has_panel=True)
    entries = {"other": {"command": "raw"}, "raw": script("raw.py", "crash")}
    async with running(entries, where_to_look=look, clock=lambda: 0.0) as servers:
        for _ in range(2):
            with pytest.raises(ToolServerError) as failed:
                await servers.list_tools("raw")
            assert str(failed.value) == (
                "`raw` did not start: the server ended with status 4\n    cannot find the database\n"
                f"Its entry is at {tmp_path / 'mcp.json'}:1; its log is in JupyterLab's side panel, tab “Servers”."
            )
            assert status(servers).error == str(failed.value)


async def test_a_command_that_does_not_exist_says_so(running: Running) -> None:
    async with running({"raw": {"command": "no-such-command-anywhere"}}) as servers:
        with pytest.raises(ToolServerError, match="cannot start `no-such-command-anywhere`"):
            await servers.list_tools("raw")


async def test_a_server_that_hangs_at_start_is_given_up_with_its_last_words(
    running: Running, script: Script, let_time_pass: Callable[[float], None]
) -> None:
    async with running({"raw": script("raw.py", "hang", protocolEra="legacy")}, start_timeout=100) as servers:
        starting = asyncio.create_task(servers.list_tools("raw"))
        async with asyncio.timeout(TIMEOUT):
            while not status(servers).log:  # noqa: ASYNC110 - no change is announced
                await asyncio.sleep(0.01)
        let_time_pass(100)
        with pytest.raises(ToolServerError, match=r"did not start within 100 s\n    still thinking"):
            await starting
        assert state(servers) is ServerState.FAILED


async def test_an_old_server_that_ends_at_the_newer_eras_probe_is_started_for_the_older(
    running: Running, script: Script
) -> None:
    async with running({"raw": script("raw.py", "ends-at-probe")}) as servers:
        assert await servers.list_tools("raw")


async def test_closing_while_a_server_starts_leaves_nothing(running: Running, script: Script) -> None:
    changes = Changes()
    async with running({"raw": script("raw.py", "hang", protocolEra="legacy")}, on_change=changes) as servers:
        starting = asyncio.create_task(servers.list_tools("raw"))
        await changes.until(lambda: state(servers) is ServerState.STARTING)
    with pytest.raises(ToolServerError):
        await starting


async def test_a_closed_runner_starts_nothing(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        await servers.list_tools("raw")
    with pytest.raises(ToolServerError):
        await servers.call_tool(call("echo"))


async def test_unknown_names_have_errors_of_their_own(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        with pytest.raises(UnknownServerError):
            await servers.list_tools("other")
        with pytest.raises(UnknownToolError):
            await servers.describe("raw", "other")
        with pytest.raises(UnknownToolError):
            await servers.call_tool(call("other"))


# -- crashes and backoff


async def test_a_crash_interrupts_the_running_calls_and_no_call_is_repeated(running: Running, script: Script) -> None:
    changes = Changes()
    async with running({"raw": script("raw.py")}, on_change=changes) as servers:
        waiting = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))

        with pytest.raises(ToolCallInterruptedError, match=r"status 3.*\n    the last words"):
            await servers.call_tool(call("crash"))
        with pytest.raises(ToolCallInterruptedError):
            await waiting

        await changes.until(lambda: state(servers) is ServerState.FAILED)
        assert "the last words" in status(servers).error
        # had the call been repeated, this one would crash again
        assert (await servers.call_tool(call("echo"))).text == "{}"


async def test_the_server_is_started_again_on_the_next_use_with_growing_pauses(
    running: Running, script: Script
) -> None:
    now = 0.0
    async with running({"raw": script("raw.py", "crash", protocolEra="legacy")}, clock=lambda: now) as servers:
        waits: list[float] = []
        for _ in range(4):
            with pytest.raises(ToolServerError, match="did not start"):
                await servers.list_tools("raw")
            wait = 0.0
            while wait < 100:
                now += 0.5
                wait += 0.5
                try:
                    await servers.list_tools("raw")
                except ToolServerError as error:
                    if "is not started again" not in str(error):
                        break
            waits.append(wait)
            now += 1000
    assert waits == sorted(waits)


async def test_a_use_during_the_pause_fails_at_once_and_restart_does_not_wait(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py", "crash", protocolEra="legacy")}, clock=lambda: 0.0) as servers:
        for _ in range(2):
            with pytest.raises(ToolServerError, match="did not start"):
                await servers.list_tools("raw")
        with pytest.raises(ToolServerError, match="not started again for 1 s"):
            await servers.list_tools("raw")

        restarted = await servers.restart("raw")

        assert restarted.state is ServerState.FAILED
        assert "cannot find the database" in restarted.error


async def test_restart_gives_a_new_process(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        first = (await servers.call_tool(call("pid"))).text
        process = psutil.Process(int(first))
        assert (await servers.restart("raw")).state is ServerState.RUNNING
        assert (await servers.call_tool(call("pid"))).text != first
        assert await gone(process)


# -- what comes through the pipes


async def test_garbage_on_the_output_goes_to_the_log_and_not_to_the_caller(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        assert (await servers.call_tool(call("garbage"))).text == "after garbage"
        assert status(servers).log == ("Listening on port 8080", "{not json}", "[]", "red")


async def test_invalid_utf8_costs_characters_and_not_the_connection(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        assert (await servers.call_tool(call("invalid_utf8"))).text == "a\N{REPLACEMENT CHARACTER}b"
        assert (await servers.call_tool(call("lone_surrogate"))).text == "cut ?"
        assert (await servers.call_tool(call("echo"))).text == "{}"


@pytest.mark.parametrize("id_last", [False, True])
async def test_fifty_megabytes_are_read_in_linear_time(running: Running, script: Script, id_last: bool) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        await servers.list_tools("raw")
        began = time.process_time()  # of this process, which reads; how busy the machine is does not count
        result = await servers.call_tool(call("big", size=50_000_000, id_last=id_last))
        assert time.process_time() - began < 8  # below 0.8 s; read in quadratic time, 24 s
        assert len(result.text) == 50_000_000


@pytest.mark.parametrize("id_last", [False, True])
async def test_an_answer_over_the_cap_fails_its_own_call_only(running: Running, script: Script, id_last: bool) -> None:
    async with running({"raw": script("raw.py")}, message_cap=1_000_000) as servers:
        other = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))

        with pytest.raises(ToolServerError, match=r"more than the 1\.0 MB"):
            await servers.call_tool(call("big", size=3_000_000, id_last=id_last))

        await servers.call_tool(call("release"))
        assert (await other).text == "released"
        assert len((await servers.call_tool(call("big", size=900_000))).text) == 900_000


async def test_an_answer_of_too_many_values_to_read_in_one_step_fails_its_own_call_only(
    running: Running, script: Script
) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        other = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))

        with pytest.raises(ToolServerError, match=r"values, more than the 2,000,000 that are allowed"):
            await servers.call_tool(call("many", count=MOST_VALUES + 1))

        await servers.call_tool(call("release"))
        assert (await other).text == "released"
        result = await servers.call_tool(call("many", count=1000))
        assert result.structured == {"a": [1] * 1000}


async def test_an_answer_over_the_cap_whose_id_cannot_be_found_fails_the_only_call(
    running: Running, script: Script
) -> None:
    async with running({"raw": script("raw.py")}, message_cap=100_000) as servers:
        with pytest.raises(ToolServerError, match="more than"):
            await servers.call_tool(call("big", size=300_000, id_hidden=True))
        assert (await servers.call_tool(call("echo"))).text == "{}"


async def test_an_answer_that_is_not_mcp_fails_its_call_and_not_by_a_timeout(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        with pytest.raises(ToolServerError, match="not a valid MCP message"):
            await servers.call_tool(call("broken_answer"))
        with pytest.raises(ToolServerError, match="not valid MCP"):
            await servers.call_tool(call("bad_result"))


@pytest.mark.parametrize("id_last", [False, True])
async def test_a_server_that_ends_in_the_middle_of_an_answer_is_told_as_cut_off(
    running: Running, script: Script, id_last: bool
) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        with pytest.raises(ToolCallInterruptedError, match=r"ran, but was cut off in the middle of its.*status 3"):
            await servers.call_tool(call("cut_answer", id_last=id_last))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32000, "request exceeded the 1000 byte limit"),
        (-32001, "Request 'tools/call' timed out"),
        (-32000, "Connection closed"),
        (-32603, "SSE stream failed: the connection broke in the middle of the answer"),
    ],
)
async def test_the_words_of_a_servers_error_do_not_say_what_became_of_the_call(
    running: Running, script: Script, code: int, message: str
) -> None:
    error: JsonValue = {"code": code, "message": message, "data": {"jupyter_agentbox.failure": "not_sent"}}
    async with running({"raw": script("raw.py")}) as servers:
        with pytest.raises(ToolServerError) as caught:
            await servers.call_tool(call("refused", error=error))
    assert type(caught.value) is ToolServerError
    assert str(caught.value).startswith(f"the server refused `raw.refused`: {message}\n")


async def test_an_error_of_many_lines_is_passed_on_whole_and_one_without_end_is_cut(
    running: Running, script: Script
) -> None:
    lines = '[\n  {\n    "path": ["files"],\n    "message": "Required"\n  }\n]'
    async with running({"raw": script("raw.py")}) as servers:
        with pytest.raises(ToolServerError) as caught:
            await servers.call_tool(call("refused", error={"code": -32602, "message": lines}))
        assert lines in str(caught.value)
        with pytest.raises(ToolServerError) as caught:
            await servers.call_tool(
                call("refused", error={"code": 1, "message": "x" * 100_000, "data": ["y" * 100_000]})
            )
        assert len(str(caught.value)) < 7000


# -- calls


async def test_calls_run_at_the_same_time(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        waiting = [asyncio.create_task(servers.call_tool(call("wait"))) for _ in range(20)]
        await servers.call_tool(call("echo"))
        await servers.call_tool(call("release"))
        assert [result.text for result in await asyncio.gather(*waiting)] == ["released"] * 20


async def test_a_tool_that_takes_too_long_is_cancelled(
    running: Running, script: Script, let_time_pass: Callable[[float], None]
) -> None:
    async with running({"raw": script("raw.py", timeout=100.5)}) as servers:
        waiting = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))
        let_time_pass(101)
        with pytest.raises(ToolCallInterruptedError, match=r"within 100\.5 s"):
            await waiting
        assert (await servers.call_tool(call("was_cancelled"))).text == "1"


async def test_cancelling_the_caller_cancels_the_call_on_the_server(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        waiting = asyncio.create_task(servers.call_tool(call("wait")))
        await servers.call_tool(call("echo"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await servers.call_tool(call("was_cancelled"))).text == "1"


async def test_progress_reaches_the_caller(running: Running, script: Script) -> None:
    seen: list[Progress] = []
    async with running({"raw": script("raw.py")}) as servers:
        await servers.call_tool(call("progress"), listener=Hears(seen.append))
    assert seen == [
        Progress(progress=1, total=2, message="step 1"),
        Progress(progress=2, total=2, message="step 2"),
    ]


async def test_of_a_flood_of_progress_the_last_arrives(running: Running, script: Script) -> None:
    seen: list[Progress] = []
    async with running({"raw": script("raw.py")}) as servers:
        await servers.call_tool(call("much_progress", steps=50_000), listener=Hears(seen.append))
    assert seen[-1].progress == 50_000
    assert len(seen) < 25_000


async def test_progress_that_is_no_finite_number_is_dropped_and_ends_no_call(running: Running, script: Script) -> None:
    seen: list[Progress] = []
    numbers: JsonValue = [
        f'"progress":1{"0" * 400}',
        f'"progress":1,"total":1{"0" * 400}',
        f'"progress":1,"total":-1{"0" * 400}',
        '"progress":1e400',
        '"progress":NaN',
        '"progress":"far","total":[]',
        '"progress":3,"total":4',
    ]
    async with running({"raw": script("raw.py")}) as servers:
        waiting = asyncio.create_task(servers.call_tool(call("wait")))
        result = await servers.call_tool(call("odd_progress", numbers=numbers), listener=Hears(seen.append))
        assert result.text == "done"
        await servers.call_tool(call("release"))
        assert (await waiting).text == "released"
        lines = status(servers).log
    assert seen == [Progress(progress=3, total=4, message="")]
    dropped = "a progress notification was dropped: its progress or total is not a finite number"
    assert lines.count(dropped) >= 4


async def test_a_call_whose_answer_the_end_of_the_connection_overtakes_may_have_had_an_effect(
    running: Running, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OverflowError("an error in the SDK")

    async with running({"raw": script("raw.py")}) as servers:
        await servers.call_tool(call("echo"))
        monkeypatch.setattr(JSONRPCDispatcher, "_dispatch_notification", fail)
        with pytest.raises(ToolCallInterruptedError, match="may have had an effect"):
            await servers.call_tool(call("odd_progress", numbers=['"progress":1']), listener=Hears())


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"level": "warning", "logger": "db", "data": "slow query"}, "[warning] db: slow query"),
        ({"level": "info", "data": {"rows": 3}}, '[info] {"rows": 3}'),
        ({}, "[info] null"),
    ],
)
async def test_what_a_server_logs_by_messages_stands_in_its_log(
    running: Running, script: Script, params: JsonValue, line: str
) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        await servers.call_tool(call("log_message", params=params))
        assert status(servers).log == (line,)


async def test_who_listens_gets_what_a_server_logs_without_its_secrets(running: Running, script: Script) -> None:
    heard: list[tuple[str, LogMessage]] = []
    entry = script("raw.py", env={"TOKEN": "s3cret-token"})
    async with running({"raw": entry}, on_log=lambda *said: heard.append(said)) as servers:
        await servers.call_tool(call("log_message", params={"level": "error", "data": "denied: s3cret-token"}))
        await servers.call_tool(call("log_message", params={"data": "x" * 100_000}))

    (first, long) = heard
    assert first == ("raw", LogMessage(level="error", logger="", text="denied: ***"))
    assert len(long[1].text) < 20_000


async def test_what_is_cut_does_not_end_with_a_part_of_a_secret(running: Running, script: Script) -> None:
    secret = 's3cr3t"' + "A1b2" * 40
    heard, alone = [], Hears()
    entry = script("raw.py", env={"TOKEN": secret})
    async with running({"raw": entry}, on_log=lambda *said: heard.append(said)) as servers:
        for data in ("x" * 16_300 + secret, {"a": [secret]}):
            said: JsonValue = {"logger": "x" * 20 + secret, "data": data}
            await servers.call_tool(call("log_message", params=said), listener=alone)
        error: JsonValue = {"code": 1, "message": "x" * 3990 + secret, "data": ["y" * 1990 + secret]}
        with pytest.raises(ToolServerError) as caught:
            await servers.call_tool(call("refused", error=error))
        log = status(servers).log

    assert len(alone.messages) == 2
    assert "s3cr3t" not in f"{heard} {alone.messages} {caught.value} {log}"


async def test_a_call_hears_what_its_server_logs_without_its_secrets_while_it_runs_alone(
    running: Running, script: Script
) -> None:
    alone, first, second = Hears(), Hears(), Hears()
    entry = script("raw.py", env={"TOKEN": "s3cret-token"})
    said = {"data": "denied: s3cret-token"}
    async with running({"raw": entry}) as servers:
        await servers.call_tool(call("log_message", params=said), listener=alone)
        waiting = asyncio.create_task(servers.call_tool(call("wait"), listener=first))
        await servers.call_tool(call("echo"))
        await servers.call_tool(call("log_message", params=said), listener=second)
        await servers.call_tool(call("release"))
        await waiting

    assert alone.messages == [LogMessage(level="info", logger="", text="denied: ***")]
    assert (first.messages, second.messages) == ([], [])


async def test_a_call_hears_progress_without_the_servers_secrets(running: Running, script: Script) -> None:
    seen: list[Progress] = []
    async with running({"raw": script("raw.py", env={"TOKEN": "step"})}) as servers:
        await servers.call_tool(call("progress"), listener=Hears(seen.append))
    assert [progress.message for progress in seen] == ["step 1", "step 2"]  # too short to be taken for a secret
    async with running({"raw": script("raw.py", env={"TOKEN": "step 1"})}) as servers:
        await servers.call_tool(call("progress"), listener=Hears(seen.append))
    assert [progress.message for progress in seen[2:]] == ["***", "step 2"]


async def test_a_list_of_tools_that_is_too_long_is_not_read(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py", "long-list")}) as servers:
        with pytest.raises(ToolServerError, match=r"17\.0 MB, more than the 16\.0 MB"):
            await servers.list_tools("raw")


async def test_an_argument_that_json_cannot_say_is_not_altered_but_refused(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        for value in (float("nan"), "\ud800"):
            with pytest.raises(ToolArgumentsError):
                await servers.call_tool(call("echo", value=value))
        exact: dict[str, JsonValue] = {"none": None, "int": 2**70, "float": 1.0, "nested": [{"none": None}], "é": "\0"}
        result = await servers.call_tool(ToolCall(server="raw", tool="echo", arguments=exact))
    assert json.loads(result.text) == exact


async def test_a_tool_that_fails_by_itself_does_not_raise(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        result = await servers.call_tool(call("failing"))
    assert result == ToolResult(content=({"type": "text", "text": "no such order"},), is_error=True)


async def test_content_blocks_keep_their_wire_names(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        result = await servers.call_tool(call("block"))
    assert result.content == (
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
    )


async def test_of_many_content_blocks_the_loop_gets_a_turn_between_some_and_none_is_altered(
    running: Running, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    steps = TypeAdapter.validate_python

    def validate(adapter: Any, value: Any, **options: Any) -> Any:
        parsed.append(len(value))
        return steps(adapter, value, **options)

    async with running({"raw": script("raw.py")}) as servers:
        few = await servers.call_tool(call("block"))
        monkeypatch.setattr(TypeAdapter, "validate_python", validate)
        many = await servers.call_tool(call("block", times=10_000))
        with pytest.raises(ToolServerError, match=r"not valid MCP: content\.5200\.TextContent\.text"):
            await servers.call_tool(call("bad_result", after=5200))
    assert many.content == few.content * 10_000
    assert max(parsed) <= 1000, "how many values are parsed at once"


async def test_a_wrapper_is_known_and_a_result_that_breaks_its_schema_is_still_a_result(
    running: Running, script: Script
) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        wrapped = await servers.call_tool(call("structured", value={"result": 5}))
        breaking = await servers.call_tool(call("structured", value={"result": "five", "more": 1}))
    assert wrapped == ToolResult(structured={"result": 5}, wrapped=True, meta={"m": 1})
    assert breaking == ToolResult(structured={"result": "five", "more": 1}, wrapped=False, meta={"m": 1})


async def test_a_server_that_asks_while_nobody_listens_is_refused_and_the_call_goes_on(
    running: Running, script: Script
) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        await servers.list_tools("raw")
        async with asyncio.timeout(TIMEOUT):
            result = await servers.call_tool(call("ask"))
            (line,) = status(servers).log
            with pytest.raises(ToolServerError) as refused:
                await servers.call_tool(call("ask", fail=True))
    assert "nobody to ask" in result.text
    assert line == "the server asked a question, but there is nobody to ask"
    assert "no input" in str(refused.value)


# -- lists of tools


async def test_one_odd_tool_does_not_hide_the_others(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py", "odd-list")}) as servers:
        tools = {tool.name: tool for tool in await servers.list_tools("raw")}
        log = status(servers).log
    assert tools.keys() == {"untyped", "schemaless", "good"}
    assert tools["untyped"].input_schema == {"properties": {"a": {"type": "string"}}, "type": "object"}
    assert tools["schemaless"].input_schema == {"type": "object"}
    assert (tools["good"].description, tools["good"].output_schema) == ("", None)
    assert [line.split(":")[0] for line in log] == [
        "tool `good`",
        "tool `good` is listed twice; the first one counts",
        "tool `bad` is left out",
        "tool `list` is left out",
        "tool number 7 is left out",
        "tool number 8 is left out",
    ]


@pytest.mark.parametrize(("behavior", "count"), [("endless", 100), ("circle", 1)])
async def test_a_list_that_never_ends_is_cut(running: Running, script: Script, behavior: str, count: int) -> None:
    async with running({"raw": script("raw.py", behavior)}) as servers:
        assert len(await servers.list_tools("raw")) == count
        assert any("does not end" in line for line in status(servers).log)


async def test_a_changed_list_is_read_again_and_announced(running: Running, script: Script) -> None:
    changes = Changes()
    async with running({"raw": script("raw.py")}, on_change=changes) as servers:
        count = len(await servers.list_tools("raw"))
        await servers.call_tool(call("more_tools"))
        await changes.until(lambda: status(servers).tool_count == count + 1)
        assert (await servers.describe("raw", "added")).name == "added"


async def test_a_server_that_does_not_list_its_changed_tools_is_stopped_at_once(
    running: Running, script: Script
) -> None:
    changes = Changes()
    async with running({"raw": script("raw.py", "deaf")}, on_change=changes, start_timeout=600) as servers:
        await servers.call_tool(call("more_tools"))
        async with asyncio.timeout(TIMEOUT):
            while "not now" not in status(servers).log:
                await servers.call_tool(call("echo"))
        async with asyncio.timeout(TIMEOUT):
            await servers.aclose()
        assert state(servers) is ServerState.STOPPED


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
async def test_every_tool_of_the_corpus_is_listed_and_called_with_its_names(
    running: Running, script: Script, path: Path
) -> None:
    listed = json.loads(path.read_text())["tools"]
    async with running({"corpus": script("corpus.py", str(path), protocolEra="legacy")}) as servers:
        tools = await servers.list_tools("corpus")
        assert [tool.name for tool in tools] == [tool["name"] for tool in listed]
        for tool, wire in zip(tools, listed, strict=True):
            assert tool.input_schema == {**wire["inputSchema"], "type": "object"}
            assert tool.output_schema == wire.get("outputSchema")
            arguments = dict.fromkeys(wire["inputSchema"].get("properties", {}))
            result = await servers.call_tool(ToolCall(server="corpus", tool=tool.name, arguments=arguments))
            assert json.loads(result.text) == arguments


# -- both eras, on the official SDK's own server


@pytest.mark.parametrize(
    ("era", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
async def test_both_eras_call_report_progress_and_cancel(
    running: Running, script: Script, era: str, version: str
) -> None:
    seen: list[Progress] = []
    reported = asyncio.Event()

    def on_progress(progress: Progress) -> None:
        seen.append(progress)
        reported.set()

    async with running({"sdk": script("official.py", protocolEra=era)}) as servers:
        result = await servers.call_tool(call("add", "sdk", a=2, b=3))
        assert (result.structured, result.wrapped) == ({"result": 5}, True)
        assert status(servers, "sdk").protocol_version == version

        slow = asyncio.create_task(servers.call_tool(call("slow", "sdk"), listener=Hears(on_progress)))
        async with asyncio.timeout(TIMEOUT):
            await reported.wait()
        assert seen == [Progress(progress=1, total=3, message="waiting")]
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        async with asyncio.timeout(TIMEOUT):
            await servers.call_tool(call("await_cancelled", "sdk"))
        assert (await servers.call_tool(call("count_cancelled", "sdk"))).structured == {"result": 1}


@pytest.mark.parametrize("era", ["auto", "2026-07-28"])
async def test_a_server_of_the_newer_era_announces_new_tools(running: Running, script: Script, era: str) -> None:
    changes = Changes()
    async with running({"sdk": script("official.py", protocolEra=era)}, on_change=changes) as servers:
        count = len(await servers.list_tools("sdk"))
        await servers.call_tool(call("grow", "sdk"))
        await changes.until(lambda: status(servers, "sdk").tool_count == count + 1)


async def test_an_unknown_era_needs_configuration(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py", protocolEra="1999-01-01")}) as servers:
        with pytest.raises(ServerConfigurationError):
            await servers.list_tools("raw")
        assert state(servers) is ServerState.NEEDS_CONFIGURATION


# -- environment and secrets


async def test_the_process_gets_what_it_needs_and_what_is_configured_and_no_token(
    running: Running, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "JUPYTER_TOKEN",
        "JUPYTERHUB_API_TOKEN",
        "JPY_SESSION_NAME",
        "AWS_SECRET_ACCESS_KEY",
        "OPENAI_API_KEY",
    ):
        monkeypatch.setenv(name, "stays-here")
    async with running({"raw": script("raw.py", env={"SHOP": "1"})}) as servers:
        environment = json.loads((await servers.call_tool(call("environment"))).text)
    assert environment["SHOP"] == "1"
    assert environment["PATH"] == os.environ["PATH"]
    assert "stays-here" not in environment.values()


async def test_secrets_are_in_no_message_and_no_log(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py", env={"TOKEN": "s3cret-value"})}) as servers:
        with pytest.raises(ToolServerError, match=r"bad token \*\*\*") as caught:
            await servers.call_tool(call("secret"))
        assert status(servers).log == ("token is ***",)
        assert "s3cret-value" not in str(caught.value) + repr(servers.servers())


# -- configuration


async def test_an_unset_variable_needs_configuration_and_the_others_work(running: Running, script: Script) -> None:
    entries = {"raw": script("raw.py"), "bad": script("raw.py", env={"TOKEN": "${NOT_SET_ANYWHERE}"})}
    async with running(entries) as servers:
        assert state(servers, "bad") is ServerState.NEEDS_CONFIGURATION
        assert "`NOT_SET_ANYWHERE`" in status(servers, "bad").error
        with pytest.raises(ServerConfigurationError, match="`NOT_SET_ANYWHERE`"):
            await servers.list_tools("bad")
        assert await servers.list_tools("raw")


async def test_an_edit_needs_no_restart_and_unchanged_servers_keep_running(
    running: Running, script: Script, tmp_path: Path
) -> None:
    entries = {"raw": script("raw.py"), "other": script("raw.py")}
    async with running(entries) as servers:
        pids = [(await servers.call_tool(call("pid", name))).text for name in entries]
        changed = psutil.Process(int(pids[1]))
        entries["other"]["env"] = {"NEW": "1"}
        entries["third"] = script("raw.py")
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))

        assert [found.name for found in servers.servers()] == ["raw", "other", "third"]
        assert (await servers.call_tool(call("pid", "raw"))).text == pids[0]
        assert (await servers.call_tool(call("pid", "other"))).text != pids[1]
        assert await gone(changed)


class Looks:
    """A configuration that counts how often it is looked at."""

    def __init__(self) -> None:
        self.count = 0
        self._found = Configuration(servers={"x": UnusableServer(name="x", transport="stdio", error="off")})

    def load(self) -> Configuration:
        self.count += 1
        return self._found


async def test_a_tool_that_is_described_and_called_at_once_costs_one_look_and_any_other_use_one_of_its_own() -> None:
    looks, seconds = Looks(), [0.0]
    servers = McpServers(source=looks, limits=ServerLimits(), clock=lambda: seconds[0])

    async def use(*, described: bool, later: float = 0.0) -> int:
        before = looks.count
        if described:
            with pytest.raises(ServerConfigurationError):
                await servers.describe("x", "tool")
        seconds[0] += later
        with pytest.raises(ServerConfigurationError):
            await servers.call_tool(call("tool", "x"))
        return looks.count - before

    assert await use(described=True) == 1
    assert await use(described=False) == 1
    assert await use(described=True, later=60.0) == 2  # a person thought about it meanwhile


async def test_a_file_that_breaks_is_a_problem_with_a_place(running: Running, script: Script, tmp_path: Path) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        (tmp_path / "mcp.json").write_text('{\n "mcpServers": {,}\n}')
        (problem,) = servers.problems()
        assert (problem.path, problem.line, problem.column) == (str(tmp_path / "mcp.json"), 2, 17)


# -- processes


async def test_the_whole_tree_ends_with_the_connection(running: Running, script: Script) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        pids = json.loads((await servers.call_tool(call("grandchildren"))).text)
        tree = [psutil.Process(pid) for pid in pids]
    assert await gone(*tree)


OWNER = """
import asyncio, sys
from pathlib import Path
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.limits import MOST_VALUES, ServerLimits
from jupyter_agentbox.mcp_client.servers import McpServers

async def main():
    servers = McpServers(source=ConfigurationFiles([Path(sys.argv[1])], {}), limits=ServerLimits())
    for tool in ("pid", "grandchildren"):
        print((await servers.call_tool(ToolCall(server="raw", tool=tool, arguments={}))).text, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_the_whole_tree_ends_when_its_owner_is_killed(script: Script, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"raw": script("raw.py")}}))
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        pids = [int(owner.stdout.readline()), *json.loads(owner.stdout.readline())]
        tree = [psutil.Process(pid) for pid in pids] + children(owner.pid)

        owner.send_signal(signal.SIGKILL)
        owner.wait()

    assert not survivors(tree)


async def test_what_is_wrong_with_the_configuration_is_in_the_log_once(
    running: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running({}) as servers:
        (tmp_path / "mcp.json").write_text('{"mcpServers": {\n"shop" 1}}')
        with caplog.at_level("WARNING"):
            servers.problems()
            servers.servers()

    assert [record.getMessage().partition(": not")[0] for record in caplog.records] == [
        f"MCP servers: {tmp_path / 'mcp.json'}:2:8"
    ]


async def test_a_start_that_is_stopped_before_its_first_step_holds_nobody_up(running: Running, script: Script) -> None:
    async with running({"one": script("official.py")}) as servers, asyncio.timeout(60):
        using = asyncio.create_task(servers.list_tools("one"))
        await asyncio.sleep(0)  # it has begun to start, and the task that does so has not run
        await servers.stop("one")
        with pytest.raises(ToolServerError, match="was stopped"):
            await using
        assert servers.servers()[0].state is ServerState.STOPPED
        assert await servers.list_tools("one")
