"""What a user's server asks the Hub service about a call of its own tool, and how the service reads that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_agentbox.core.approvers import Approvers
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.local_calls import (
    APPROVE_TOOL,
    LOCAL_CALLS,
    as_on_users_server,
    is_local,
    left_to_hub,
    needs_approvers,
    question_about,
    read_question,
)
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.reported_origins import ReportedOrigin
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolArgumentsError

CALL = ToolCall(server="git", tool="push", arguments={"force": True})
TOOL = ToolDescription(
    name="push",
    title="Push",
    description="Sends commits.",
    input_schema={"type": "object", "properties": {"to": {"type": "string", "default": "origin"}}, "required": ["x"]},
    annotations={"destructiveHint": True},
)


def asking(reported: ReportedOrigin | None = None) -> ToolCall:
    origin = Origin(kernel_id="ada", groups=frozenset({"a"}), reported=reported)
    return ToolCall(server=LOCAL_CALLS, tool=APPROVE_TOOL, arguments={}, origin=origin)


@pytest.mark.parametrize(
    ("reported", "notebook", "isolation"),
    [
        (None, None, Isolation.NONE),
        (ReportedOrigin(request_id="1", notebook_path="a.ipynb", isolation="landlock"), "a.ipynb", Isolation.LANDLOCK),
        (ReportedOrigin(request_id="1", isolation="a fortress"), None, Isolation.NONE),
    ],
)
def test_the_service_reads_the_call_with_what_rules_read_and_nothing_that_it_would_have_to_check(
    reported: ReportedOrigin | None, notebook: str | None, isolation: Isolation
) -> None:
    call, tool = read_question(question_about(CALL, TOOL, runs="git-server --all"), asking(reported))

    assert (call.server, call.tool, call.arguments) == ("local/git", "push", {"force": True})
    assert is_local(call)
    assert not is_local(CALL)
    assert as_on_users_server(call).server == "git"
    assert (call.origin.kernel_id, call.origin.groups) == ("ada", frozenset({"a"}))
    assert (call.origin.notebook_path, call.origin.isolation) == (notebook, isolation)
    assert call.origin.reported == (None if reported is None else replace(reported, runs="git-server --all"))
    assert (tool.title, tool.description, tool.annotations) == (TOOL.title, TOOL.description, TOOL.annotations)
    assert tool.defaults == TOOL.defaults
    assert tool.input_schema == {"type": "object", "properties": {"to": {"default": "origin"}}}


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"server": 1}, "server"),
        ({"server": ""}, "server"),
        ({"tool": None}, "tool"),
        ({"runs": 1}, "runs"),
        ({"runs": "x" * 1001}, "runs"),
        ({"arguments": []}, "arguments"),
        ({"annotations": "x"}, "annotations"),
        ({"defaults": 1}, "defaults"),
        ({"server": "s" * 1001}, "server"),
        ({"description": "d" * 20_001}, "description"),
        ({"defaults": {"a": "d" * 200_000}}, None),
        ({"annotations": {"a": float("nan")}}, "annotations"),
        ({"title": 1}, "title"),
        ({"description": []}, "description"),
    ],
)
def test_anything_else_is_refused(change: Any, parameter: str | None) -> None:
    with pytest.raises(ToolArgumentsError) as error:
        read_question({**question_about(CALL, TOOL), **change}, asking())
    assert error.value.parameter == parameter


def test_long_texts_of_a_tool_are_cut_as_the_service_would_refuse_them() -> None:
    tool = replace(TOOL, title="t" * 2000, description="d" * 30_000)
    _, read = read_question(question_about(CALL, tool), asking())
    assert (len(read.title), len(read.description)) == (1000, 20_000)


def test_only_a_rule_with_approvers_leaves_a_call_to_the_hub() -> None:
    asks = Rule(server="*", tool="*", effect=Effect.ASK)
    approvers = Rule(server="*", tool="*", effect=Effect.ASK, approvers=Approvers(group="g"))
    for evaluation in (Evaluation(effect=Effect.ASK), Evaluation(effect=Effect.ASK, rule=asks)):
        assert not needs_approvers(evaluation)
        assert left_to_hub(evaluation) is evaluation
    left = left_to_hub(Evaluation(effect=Effect.ASK, rule=approvers))
    assert left.effect is Effect.ALLOW
    assert needs_approvers(left)
    assert not needs_approvers(Evaluation(effect=Effect.DENY, rule=Rule(server="*", tool="*", effect=Effect.DENY)))
