from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.mcp_client.tool_lists import MOST_TOOLS, is_wrapper, repair_tool_list

CORPUS = Path(__file__).parent.parent / "data" / "mcp-corpus"
RESULT: JsonObject = {"type": "object", "properties": {"result": {}}, "required": ["result"]}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_no_tool_of_the_corpus_is_changed_but_for_a_missing_type(path: Path, version: str) -> None:
    tools = json.loads(path.read_text())["tools"]
    log: list[str] = []
    repaired = repair_tool_list({"tools": tools}, version, log.append)["tools"]
    assert repaired == [{**tool, "inputSchema": {**tool["inputSchema"], "type": "object"}} for tool in tools]
    assert log == []


@pytest.mark.parametrize("has_types", [True, False])
def test_of_too_many_tools_the_first_are_taken_and_a_tool_that_is_too_large_is_left_out(has_types: bool) -> None:
    schema = {"type": "object"} if has_types else {}
    large = {"name": "large", "inputSchema": {**schema, "properties": {"a": {"pattern": "(" * 3_000_000}}}}
    tools = [large, *({"name": f"t{n}", "inputSchema": schema} for n in range(MOST_TOOLS + 50))]
    log: list[str] = []
    repaired = repair_tool_list({"tools": tools}, "2025-11-25", log.append)["tools"]
    assert [tool["name"] for tool in repaired] == [f"t{n}" for n in range(MOST_TOOLS - 1)]
    assert len(log) == 2
    assert "`large` is left out" in log[1]


def test_what_is_no_tool_list_is_left_to_the_sdk() -> None:
    for result in ({"tools": 5}, {"tools": [{"name": "a", "inputSchema": {}}], "nextCursor": 5}):
        assert repair_tool_list(result, "2025-11-25", print) is result


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, False),
        ({"type": "object"}, False),
        (RESULT, True),
        ({**RESULT, "properties": {"result": {}, "count": {}}}, False),
        ({**RESULT, "required": []}, False),
        ({"type": "object", "x-fastmcp-wrap-result": True}, True),
    ],
)
def test_wrappers_are_known_by_their_shape_or_mark(schema: JsonObject | None, expected: bool) -> None:
    assert is_wrapper(schema) is expected
