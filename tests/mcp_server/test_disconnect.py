"""What is left when the client goes away, and what is written meanwhile, watched from outside."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes_alive import children, survivors

from .conftest import TIMEOUT, command

#: A cell with a tool's server and a process of its own, which then runs for ever and writes wherever it can.
CODE = """
import os, subprocess, sys, time
from jupyter_agentbox import tools
tools.mini.add(a=1, b=2)
child = subprocess.Popen(["sleep", "1000"])
print("to standard output")
os.system("echo from a child; echo to standard error >&2")
os.write(1, b"around python")
"""


class Wire:
    """A client by hand, which sees each line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self._results: dict[int, Any] = {}

    async def send(self, method: str, params: Any, id: int | None = None) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": id} if id is not None else {})}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def answer(self, id: int) -> Any:
        async with asyncio.timeout(TIMEOUT):
            while id not in self._results:
                await self._read()
        return self._results.pop(id)

    async def asked(self, method: str) -> Any:
        """Wait for a request of the server, and leave it without an answer."""
        async with asyncio.timeout(TIMEOUT):
            while (message := await self._read()).get("method") != method:
                pass
        return message["params"]

    async def _read(self) -> Any:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "it hung up"
        self.lines.append(line)
        message = json.loads(line)
        if "method" not in message:
            self._results[message["id"]] = message["result"]
        return message

    async def call(self, id: int, tool: str, arguments: Any) -> Any:
        await self.send("tools/call", {"name": tool, "arguments": arguments}, id)
        return await self.answer(id)


@asynccontextmanager
async def wired(
    environment: Mapping[str, str],
    places: Path,
    *options: str,
    effect: str = "allow",
    capabilities: Any = None,
    process_group: int | None = None,
) -> AsyncIterator[Wire]:
    rules = places / "rules.json"
    rules.write_text(json.dumps({"rules": [{"server": "mini", "tool": "*", "effect": effect}]}))
    with (places / "errors.log").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command("--rules", str(rules), *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            cwd=places,
            process_group=process_group,
        )
    wire = Wire(process)
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities or {},
        "clientInfo": {"name": "wire", "version": "1"},
    }
    try:
        await wire.send("initialize", hello, 1)
        await wire.answer(1)
        await wire.send("notifications/initialized", {})
        yield wire
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]  # nothing public closes its pipes


@pytest.mark.parametrize("how", ["close", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
async def test_no_process_outlives_the_client(environment: Mapping[str, str], places: Path, how: object) -> None:
    async with wired(environment, places) as wire:
        assert not (await wire.call(2, "execute_code", {"code": CODE})).get("isError")
        started = children(wire.process.pid)
        assert len(started) >= 5  # two reapers, the kernel, its child, the MCP server
        await wire.send("tools/call", {"name": "execute_code", "arguments": {"code": "while True: pass"}}, 3)
        if isinstance(how, signal.Signals):
            wire.process.send_signal(how)
            if how is signal.SIGINT:  # the first one cancels the request, a second one ends all
                assert (await wire.answer(3))["isError"]
                wire.process.send_signal(how)
        else:
            assert wire.process.stdin is not None
            wire.process.stdin.close()
        async with asyncio.timeout(TIMEOUT):
            status = await wire.process.wait()
        left = await asyncio.to_thread(survivors, started)

    assert left == []
    expected = {"close": 0, signal.SIGKILL: -signal.SIGKILL}
    assert status == expected.get(how, 128 + how if isinstance(how, int) else 0)  # type: ignore[call-overload]


async def test_what_is_sent_right_after_a_reset_runs_in_the_fresh_kernel(
    environment: Mapping[str, str], places: Path
) -> None:
    async with wired(environment, places) as wire:
        await wire.call(2, "execute_code", {"code": "x = 1"})
        await wire.send("tools/call", {"name": "reset", "arguments": {}}, 3)
        for id in (4, 5):
            await wire.send("tools/call", {"name": "execute_code", "arguments": {"code": "'x' in globals()"}}, id)
        answers = [(await wire.answer(id))["content"][0]["text"] for id in (3, 4, 5)]

    assert answers == ["The kernel is fresh.", "False", "False"]


async def test_standard_output_has_the_protocol_and_nothing_else(environment: Mapping[str, str], places: Path) -> None:
    async with wired(environment, places) as wire:
        done = await wire.call(2, "execute_code", {"code": CODE})
        await wire.call(3, "execute_code", {"code": "1 / 0"})
        await wire.call(4, "reset", {})
        listed = await wire.call(5, "list_tools", {})
        assert wire.process.stdin is not None
        assert wire.process.stdout is not None
        wire.process.stdin.close()
        async with asyncio.timeout(TIMEOUT):
            rest = await wire.process.stdout.read()

    assert "to standard output" in done["content"][0]["text"]
    assert listed["structuredContent"]["servers"][0]["name"] == "mini"
    messages = [json.loads(line) for line in [*wire.lines, *rest.splitlines()]]
    assert all(message["jsonrpc"] == "2.0" for message in messages)


async def test_what_is_no_message_does_not_end_the_server(environment: Mapping[str, str], places: Path) -> None:
    async with wired(environment, places) as wire:
        assert wire.process.stdin is not None
        wire.process.stdin.write(b"no json\n{}\n[]\n\xff\xfe\n")
        done = await wire.call(2, "execute_code", {"code": "1"})

    assert done["content"] == [{"type": "text", "text": "1"}]


async def test_requests_that_come_after_the_signal_keep_nothing_alive(
    environment: Mapping[str, str], places: Path
) -> None:
    async with wired(environment, places) as wire:
        assert not (await wire.call(2, "execute_code", {"code": CODE})).get("isError")
        started = children(wire.process.pid)
        wire.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(TIMEOUT):
            for id in range(3, 10_000):
                try:
                    await wire.send(
                        "tools/call", {"name": "execute_code", "arguments": {"code": "while True: pass"}}, id
                    )
                except ConnectionError:
                    break
                await asyncio.sleep(0.01)
            assert await wire.process.wait() == 128 + signal.SIGTERM
        left = await asyncio.to_thread(survivors, started)

    assert left == []
