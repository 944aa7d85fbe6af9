from __future__ import annotations

from dataclasses import replace
from typing import Any

from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.tools import (
    LONGEST_MESSAGE,
    MOST_MESSAGES,
    Activity,
    ConfigurationProblem,
    LogMessage,
    Progress,
    ServerState,
    ServerStatus,
    ToolDescription,
    ToolResult,
)


def test_a_description_is_sent_whole() -> None:
    tool = ToolDescription(name="t", title="T", description="d", annotations={"readOnlyHint": True})

    assert tool.to_json() == {
        "name": "t",
        "title": "T",
        "description": "d",
        "input_schema": {"type": "object"},
        "output_schema": None,
        "annotations": {"readOnlyHint": True},
    }


def test_a_changed_description_has_a_digest_of_its_own() -> None:
    tool = ToolDescription(name="t", description="d")
    digest = tool.digest
    assert replace(tool, description="e").digest != digest
    assert replace(tool, description="d").digest == tool.digest == digest


def test_a_result_is_sent_whole() -> None:
    result = ToolResult(content=({"type": "text", "text": "a"},), structured={"result": 1}, wrapped=True)

    assert result.to_json() == {
        "content": [{"type": "text", "text": "a"}],
        "structured": {"result": 1},
        "wrapped": True,
        "is_error": False,
        "meta": {},
    }


def test_the_text_of_a_result_is_its_text_blocks() -> None:
    result = ToolResult(
        content=({"type": "text", "text": "a"}, {"type": "image", "data": ""}, {"type": "text", "text": "b"})
    )

    assert result.text == "a\nb"
    assert ToolResult().text == ""


def test_progress_is_sent_whole() -> None:
    assert Progress(progress=1, message="m").to_json() == {"progress": 1, "total": None, "message": "m"}


def test_a_servers_status_is_sent_whole() -> None:
    status = ServerStatus(name="shop", state=ServerState.FAILED, transport="stdio", error="gone", log=("a", "b"))

    assert status.to_json() == {
        "name": "shop",
        "state": "failed",
        "transport": "stdio",
        "error": "gone",
        "protocol_version": "",
        "tool_count": None,
        "log": ["a", "b"],
        "calls": 0,
        "last_error": "",
        "is_signed_in": False,
        "is_of_project": False,
        "is_trusted": False,
        "sign_in_url": "",
        "trust_key": "",
    }


def test_a_configuration_problem_is_sent_with_its_place() -> None:
    problem = ConfigurationProblem(path="mcp.json", message="a comma is missing", line=3, column=7)

    assert problem.to_json() == {"path": "mcp.json", "message": "a comma is missing", "line": 3, "column": 7}
    assert replace(problem, rule=2).to_json() == {**problem.to_json(), "rule": 2}


def test_progress_that_json_cannot_say_is_left_out() -> None:
    said = Progress(progress=float("nan"), total=float("inf"), message="m").to_json()
    assert said == {"progress": 0, "total": None, "message": "m"}


def test_a_description_has_another_digest_if_anything_of_it_changes() -> None:
    tool = ToolDescription(name="t", title="T", description="d")
    others = [
        ToolDescription(name="u", title="T", description="d"),
        ToolDescription(name="t", title="U", description="d"),
        ToolDescription(name="t", title="T", description="\ud800"),
        ToolDescription(name="t", title="T", description="d", input_schema={"type": "object", "required": ["a"]}),
        ToolDescription(name="t", title="T", description="d", output_schema={"type": "object"}),
        ToolDescription(name="t", title="T", description="d", annotations={"readOnlyHint": True}),
    ]

    assert ToolDescription(name="t", title="T", description="d").digest == tool.digest
    assert len({tool.digest, *(other.digest for other in others)}) == 7


def test_a_problem_is_said_with_its_place_as_compilers_do() -> None:
    found = ConfigurationProblem(path="/mcp.json", message="no colon", line=3, column=9)

    assert str(found) == "/mcp.json:3:9: no colon"
    assert str(ConfigurationProblem(path="/mcp.json", message="is no file")) == "/mcp.json: is no file"


def test_a_log_message_is_a_line_with_its_level_and_the_part_that_says_it() -> None:
    assert str(LogMessage(level="info", logger="db", text="opened")) == "[info] db: opened"
    assert str(LogMessage(level="error", logger="", text="closed")) == "[error] closed"


def test_whom_a_server_asks_is_known_until_it_says_more_of_it() -> None:
    waiting, allowed = HubReview(status="pending"), HubReview(status="approved")
    asked = Activity().with_progress(Progress(progress=0, review=waiting))

    assert asked.with_progress(Progress(progress=1)) == Activity(progress=Progress(progress=1), review=waiting)
    assert asked.with_progress(Progress(progress=1, review=allowed)).review == allowed


def test_of_what_a_server_logs_during_a_call_the_last_is_kept_and_cut() -> None:
    activity = Activity(progress=Progress(progress=1))
    for number in range(MOST_MESSAGES + 2):
        activity = activity.with_message(LogMessage(level="info", logger="db", text=f"row {number}"))
    activity = activity.with_message(LogMessage(level="error", logger="", text="x" * 10_000))

    said = activity.to_json()
    assert said["progress"] == {"progress": 1, "total": None, "message": ""}
    messages: Any = said["messages"]
    assert [message["text"] for message in messages[:-1]] == ["row 3", "row 4", "row 5", "row 6"]
    assert messages[-1] == {"level": "error", "logger": "", "text": "x" * (LONGEST_MESSAGE - 1) + "…"}
