"""An MCP server may list any tools and answer anything: it fails its own calls at most."""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from jupyter_agentbox.codegen.modules import generate_module
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.kernel.results import CallResult, result_of
from jupyter_agentbox.mcp_client.servers import McpServers
from tests.mcp_client.conftest import Running, running

from .fuzzing import fuzz, limited, texts, values

__all__ = ["running"]  # a fixture

LIAR = Path(__file__).with_name("liar.py")
GOOD = {"name": "echo", "inputSchema": {"type": "object"}}
#: What a generated module may consist of: nothing that does anything when it is imported.
HARMLESS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.Expr)
KEYWORDS = ["type", "properties", "required", "items", "enum", "default", "anyOf", "$ref", "$defs", "format", "title"]

schemas = st.recursive(
    values | st.sampled_from([{"type": "string"}, {"type": ["integer", "null"]}, {"$ref": "#"}, True, {}]),
    lambda inner: st.dictionaries(
        st.sampled_from(KEYWORDS) | texts,
        inner | st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    ),
    max_leaves=8,
)
tools = st.fixed_dictionaries(
    {"name": texts | values, "inputSchema": schemas},
    optional={"outputSchema": schemas, "description": texts | values, "annotations": values, "title": values},
)
lists = st.lists(tools | values, max_size=4)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "other"])},
    optional={"text": texts | values, "data": texts, "mimeType": texts, "resource": values, "uri": texts},
)
results = st.one_of(
    values,
    st.fixed_dictionaries(
        {"content": st.lists(blocks | values, max_size=3)},
        optional={"structuredContent": values, "isError": values, "_meta": values},
    ),
)


class Liar:
    """The server, and the files that say what it answers."""

    def __init__(self, directory: Path) -> None:
        self._list, self._result = directory / "list.json", directory / "result.json"
        self.answer([], {"content": []})
        self.entry = {"command": sys.executable, "args": [str(LIAR), str(self._list), str(self._result)]}

    def answer(self, listed: list[Any], result: Any) -> None:
        """Say what is listed, besides one good tool, and what a call gives."""
        self._list.write_text(json.dumps({"tools": [*listed, GOOD]}))
        self._result.write_text(json.dumps(result))


@limited
def test_a_server_that_says_anything_fails_its_own_calls_at_most(
    running: Running, tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    liar = Liar(tmp_path)
    servers = running({"liar": liar.entry})
    started: McpServers = jp_asyncio_loop.run_until_complete(servers.__aenter__())

    def check(listed: list[Any], result: Any) -> None:
        liar.answer(listed, result)
        jp_asyncio_loop.run_until_complete(_check(started))

    try:
        assert fuzz(check, listed=lists, result=results)
    finally:
        jp_asyncio_loop.run_until_complete(servers.__aexit__(None, None, None))


async def _check(servers: McpServers) -> None:
    answer = await _call(servers)
    assert answer is None or isinstance(answer.text, str)
    if answer is not None:
        assert answer.value is None or answer.value is not NotImplemented

    described = await servers.list_tools("liar")
    assert "echo" in [tool.name for tool in described]
    module = generate_module("liar", described)
    assert all(isinstance(statement, HARMLESS) for statement in ast.parse(module.source).body)
    assert [wire for wire, _ in module.functions] == [tool.name for tool in described]
    assert all(len(tool.digest) == 64 for tool in described)


async def _call(servers: McpServers) -> CallResult | None:
    """Call the good tool; what it answers as the kernel reads it, or nothing where the answer is refused."""
    try:
        result = await servers.call_tool(ToolCall(server="liar", tool="echo", arguments={}))
    except AgentBoxError:
        return None
    return result_of(json.loads(json.dumps(result.to_json())))
