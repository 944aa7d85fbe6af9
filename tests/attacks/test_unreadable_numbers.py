from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import mcp_types

from jupyter_agentbox.mcp_client.elicitation import question_of
from jupyter_agentbox.mcp_client.tool_lists import repair_tool_list
from jupyter_agentbox.services.json_answers import answer_text

from .attack import Attack

ATTACK = Attack(
    "an MCP server that names numbers which JSON does not have (`NaN`), so that no browser can read the list of"
    " questions or of servers, and what others ask or say is not seen",
    plain=False,
    control="test_the_same_words_hide_all_others_where_they_are_passed_on_as_they_came",
)
#: What the server says, as it stands on its wire.
TOOL = b'{"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"default": NaN, "maximum": 1e999}}}}'
DEEP_TOOL = (
    b'{"name": "deep", "inputSchema": {"type": "object", "not": ' + b'{"not": ' * 120 + b"{}" + b"}" * 121 + b"}"
)
QUESTION = b"""{"message": "How much?", "requestedSchema": {"type": "object", "properties": {
    "n": {"type": "number", "title": "Amount", "minimum": NaN, "maximum": 1e999, "default": -Infinity}}}}"""


def read_as_browsers_do(text: str | bytes) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def attack(pass_on: Callable[[Any], str]) -> bool:
    """Return whether a page reads nothing of a list in which these words stand among those of others."""
    try:
        read_as_browsers_do(pass_on({"questions": ["another server's", json.loads(QUESTION), json.loads(TOOL)]}))
    except ValueError:
        return True
    return False


def test_the_same_words_hide_all_others_where_they_are_passed_on_as_they_came() -> None:
    assert attack(json.dumps)


def test_they_hide_nothing_in_an_answer_of_the_rest_api() -> None:
    assert not attack(answer_text)


def test_a_question_has_no_such_limit() -> None:
    question = question_of(mcp_types.ElicitRequestFormParams.model_validate_json(QUESTION))

    assert question.schema["properties"] == {"n": {"type": "number", "title": "Amount"}}


def test_a_tool_that_no_digest_can_name_is_left_out_and_hides_no_other() -> None:
    tools = [{"name": "fine", "inputSchema": {"type": "object"}}, json.loads(TOOL), json.loads(DEEP_TOOL)]
    log: list[str] = []

    repaired = repair_tool_list({"tools": tools}, "2025-11-25", log.append)["tools"]

    assert [tool["name"] for tool in repaired] == ["fine"]
    assert ["`odd` is left out" in log[0], "`deep` is left out" in log[1]] == [True, True]
