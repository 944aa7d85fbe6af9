from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.mcp.tool_lists import is_wrapper, repair_tool_list

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
