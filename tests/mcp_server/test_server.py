"""The MCP server by itself: a client in this process, and a session that runs nothing."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.mcp_server.consent import ConsentSource, Question
from jupyter_agentbox.mcp_server.server import CodeServer
from jupyter_agentbox.mcp_server.sessions import CellRequest, Executed, SessionError
from jupyter_agentbox.mcp_server.settings import Approver, CodeServerSettings

from .conftest import Caller, Person, text_of

PNG = b"\x89PNG picture"
PICTURE = {"image/png": base64.b64encode(PNG).decode()}
QUESTION = Question(headline="Ours.", facts={"tool": "add"})
AT_CLIENT = CodeServerSettings(approver=Approver.CLIENT)

Run = Callable[[CellRequest], Awaitable[Executed]]


class FakeSession:
    """A session whose cells do what the test says.

    Parameters
    ----------
    run : callable
        Instead of a kernel.
    tools : mapping
        What each server has, or why it cannot be listed.
    """

    def __init__(
        self, run: Run | None = None, tools: Mapping[str, Sequence[ToolDescription] | SessionError] | None = None
    ) -> None:
        self._run = run
        self._tools = tools or {}

    async def execute(self, cell: CellRequest) -> Executed:
        assert self._run is not None
        return await self._run(cell)

    async def reset(self) -> None:
        pass

    async def servers(self) -> Sequence[JsonObject]:
        return [{"name": name} for name in self._tools]

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        found = self._tools[server]
        if isinstance(found, SessionError):
            raise found
        return found

    async def register(self, name: str, _configuration: JsonObject, consents: ConsentSource) -> Sequence[str]:
        consent = await consents.ask(Question(headline="Ours.", facts={"name": name}))
        if not consent.allowed:
            raise SessionError(consent.reason)
        return ["add"]

    async def aclose(self) -> None:
        pass


@asynccontextmanager
async def served(
    session: FakeSession,
    settings: CodeServerSettings = AT_CLIENT,
    *,
    person: Person | None = None,
    mode: Any = "legacy",
) -> AsyncIterator[Caller]:
    """Connect a client to a server with that session."""
    server = CodeServer(settings, open_local=lambda _settings, _images: session)
    try:
        async with Client(server.build(), mode=mode, elicitation_callback=person.elicit if person else None) as client:
            yield Caller(client)
    finally:
        await server.aclose()


async def ask(cell: CellRequest) -> Executed:
    consent = await cell.consents.ask(QUESTION)
    return Executed(text="3" if consent.allowed else "", error=None if consent.allowed else consent.reason)


# -- arguments and versions


async def test_the_tools_are_the_four_with_schemas_that_say_what_they_take() -> None:
    async with served(FakeSession()) as caller:
        tools = {tool.name: tool for tool in (await caller.client.list_tools()).tools}
        wrong = [
            await caller.call("execute_code", arguments)
            for arguments in ({}, {"code": 1}, {"code": "1", "timeout": 0}, {"code": "1", "time": 1})
        ]
        with pytest.raises(MCPError):
            await caller.call("no_such_tool")

    assert list(tools) == ["execute_code", "reset", "register_mcp_server", "list_tools"]
    assert tools["execute_code"].input_schema["required"] == ["code"]
    assert tools["execute_code"].input_schema["properties"]["timeout"]["type"] == "number"
    assert all(result.is_error and "do not fit" in text_of(result) for result in wrong)


async def test_a_client_that_insists_on_a_later_version_is_told_which_there_are() -> None:
    async with served(FakeSession(), mode="2026-07-28") as caller:
        with pytest.raises(MCPError, match="2025-11-25 and older"):
            await caller.run("1")


# -- results


def as_gemini_reads(result: CallToolResult) -> object:
    """Return the structured content as Gemini CLI has it: its own, or the first text, if that is JSON."""
    if result.structured_content is not None:
        return result.structured_content
    first = next((block.text for block in result.content if block.type == "text"), "")
    try:
        return json.loads(first)
    except ValueError:
        return None


async def test_a_client_that_wants_objects_gets_no_other_json_from_any_tool() -> None:
    texts = ["42", "-1.5", "[1, 2]", "true", "null", '"a"', "(1, 2)", "'a'", "'[[[[[[[[['", '{"a": 1}']
    texts += ["1" + "0" * 5000, "[" * 9999 + "]" * 9999, ""]
    cells = [Executed(text=text) for text in texts]
    cells += [Executed(text="1\n", error="ZeroDivisionError"), Executed(text="1\n", bundles=[PICTURE])]
    cells += [Executed(text="1\n", bundles=[PICTURE], error="ZeroDivisionError")]

    async def run(cell: CellRequest) -> Executed:
        return cells[int(cell.code)]

    async with served(FakeSession(run, {"mini": [ToolDescription(name="add")]})) as caller:
        answers = [await caller.run(str(number)) for number in range(len(cells))]
        answers += [await caller.call("execute_code", {"code": 1}), await caller.call("list_tools")]
        answers += [await caller.call("list_tools", {"server": server}) for server in ("mini", "none")]
        answers += [await caller.call("register_mcp_server", {"name": "b c", "configuration": {}})]
        answers += [await caller.call("reset")]

    read = [as_gemini_reads(answer) for answer in answers]
    assert [content for content in read if content is not None and not isinstance(content, dict)] == []
    assert read[:2] == [{"text": "42"}, {"text": "-1.5"}]
    assert [block.type for block in answers[-7].content if answers[-7].structured_content is None] == [
        "text",
        "text",
        "image",
    ]


async def test_tools_are_listed_with_their_exact_names_functions_and_schemas() -> None:
    schema: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    place = ToolDescription(name="Where-Is", description="Find a place.", input_schema=schema)
    tools = {"mini": [place], "my-broken": SessionError("AGENTBOX_TEST_UNSET is not set")}
    async with served(FakeSession(tools=tools)) as caller:
        everything = await caller.call("list_tools")
        one = await caller.call("list_tools", {"server": "mini"})
        unusable = await caller.call("list_tools", {"server": "my-broken"})
        unknown = await caller.call("list_tools", {"server": "none"})

    mini = {"name": "mini", "python": "tools.mini", "tools": [{**place.to_json(), "python": "tools.mini.Where_Is"}]}
    broken = {"name": "my-broken", "python": "tools.my_broken", "error": "AGENTBOX_TEST_UNSET is not set", "tools": []}
    assert everything.structured_content == {"servers": [mini, broken]}
    assert json.loads(text_of(everything)) == everything.structured_content
    assert one.structured_content == {"servers": [mini]}
    assert unusable.is_error
    assert "AGENTBOX_TEST_UNSET" in text_of(unusable)
    assert unknown.is_error
    assert "`mini`" in text_of(unknown)


# -- questions


async def test_questions_of_one_cell_are_put_one_at_a_time_and_each_is_answered() -> None:
    at_once: list[int] = []
    open_now = 0

    async def slowly(_: str) -> Any:
        nonlocal open_now
        open_now += 1
        at_once.append(open_now)
        for _ in range(100):  # turns of the loop, in which the next question would come
            await asyncio.sleep(0)
        open_now -= 1
        return Person().answer("")

    async def run(cell: CellRequest) -> Executed:
        consents = await asyncio.gather(*(cell.consents.ask(QUESTION) for _ in range(8)))
        return Executed(text=str([consent.allowed for consent in consents]))

    async with served(FakeSession(run), person=Person(slowly)) as caller:
        result = await caller.run("")

    assert text_of(result) == str([True] * 8)
    assert at_once == [1] * 8


async def test_a_client_that_fails_to_ask_is_a_no() -> None:
    def fail(_: str) -> Any:
        raise RuntimeError("no window")

    async with served(FakeSession(ask), person=Person(fail)) as caller:
        result = await caller.run("")

    assert result.is_error
    assert "could not ask" in text_of(result)


async def test_without_a_way_to_ask_a_call_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))  # no JupyterLab runs there
    async with served(FakeSession(ask), CodeServerSettings()) as caller:
        refused = await caller.run("")
        registered = await caller.call("register_mcp_server", {"name": "two", "configuration": {}})

    assert refused.is_error
    for words in ("nobody could be asked", "elicitation", "JupyterLab", "--rules"):
        assert words in text_of(refused)
    assert registered.is_error
    assert "nobody could be asked" in text_of(registered)


async def test_ask_nobody_asks_nobody() -> None:
    person = Person()
    async with served(FakeSession(ask), CodeServerSettings(approver=Approver.NOBODY), person=person) as caller:
        result = await caller.run("")

    assert result.is_error
    assert "--ask nobody" in text_of(result)
    assert person.shown == []
