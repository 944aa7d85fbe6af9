"""The REST API of questions, over HTTP against a real Jupyter server."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.calls import JsonValue, Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.services.handlers import SETTINGS_KEY, Services

FORM = ServerQuestion.of_form("How many?", {"properties": {"count": {"type": "integer"}}, "required": ["count"]})


@pytest.fixture
def services(jp_serverapp: Any) -> Services:
    found: Services = jp_serverapp.web_app.settings[SETTINGS_KEY]
    return found


@pytest.fixture
def fetch(fetch: Any) -> Any:
    return functools.partial(fetch, "questions")


async def asked(services: Services) -> tuple[asyncio.Task[QuestionAnswer], str]:
    """Return what will be the answer to a question, and the id of its call."""
    origin = Origin(kernel_id="k1", notebook_path="a.ipynb", cell_id="c1")
    call = ToolCall(server="shop", tool="order", arguments={}, origin=origin)
    request = await services.approvals.open(call, ToolDescription(name="order"), Evaluation(effect=Effect.ALLOW))
    answer = asyncio.create_task(services.questions.ask(request.id, FORM))
    await asyncio.sleep(0)  # it has been put when its task has had its turn
    return answer, request.id


async def test_a_question_is_listed_read_and_answered_once(fetch: Any, services: Services) -> None:
    answer, request_id = await asked(services)
    code, listed = await fetch()
    (question,) = listed["questions"]
    assert (code, question["request_id"], question["notebook_path"]) == (200, request_id, "a.ipynb")
    assert await fetch(question["id"]) == (200, question)

    code, refused = await fetch(question["id"], "answer", body={"action": "accept", "content": {"count": "x"}})
    assert (code, refused["reason"], refused["parameter"]) == (422, "invalid_arguments", "count")

    body = {"action": "accept", "content": {"count": 3}}
    assert await fetch(question["id"], "answer", body=body) == (200, {"id": question["id"], "action": "accept"})
    given = await answer
    assert (given.action, given.content) == (QuestionAction.ACCEPT, {"count": 3})
    assert given.reviewer is not None
    assert given.reviewer.via is Via.API_TOKEN

    code, late = await fetch(question["id"], "answer", body={"action": "decline"})
    assert (code, late["reason"]) == (409, "not_pending")
    assert (await fetch())[1] == {"questions": []}


async def test_a_number_that_json_does_not_have_hides_no_question(
    jp_fetch: Any, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd: JsonValue = [float("nan"), [float("-inf"), 1.5]]
    monkeypatch.setitem(FORM.schema, "odd", odd)
    answer, _ = await asked(services)

    listed = (await jp_fetch("jupyter-agentbox", "questions")).body.decode()

    assert '"odd": [null, [null, 1.5]]' in listed
    answer.cancel()


@pytest.mark.parametrize(
    "body", [{}, [], {"action": "allow"}, {"action": "decline", "content": {}}, {"action": "accept", "by": "x"}]
)
async def test_a_malformed_answer_is_refused(fetch: Any, services: Services, body: Any) -> None:
    answer, _ = await asked(services)
    (question,) = services.questions.pending()
    code, refused = await fetch(question.id, "answer", body=body)
    assert (code, refused["reason"]) == (422, "invalid_request")
    answer.cancel()


async def test_an_answer_too_long_is_refused(fetch: Any, services: Services) -> None:
    answer, _ = await asked(services)
    (question,) = services.questions.pending()
    body = {"action": "accept", "content": {"count": 1, "x": "y" * 300_000}}
    assert (await fetch(question.id, "answer", body=body))[0] == 422
    answer.cancel()


async def test_an_unknown_question_is_not_found(fetch: Any) -> None:
    for code, found in (await fetch("none"), await fetch("none", "answer", body={"action": "decline"})):
        assert (code, found["reason"]) == (404, "unknown_question")


async def test_nobody_answers_without_a_token(jp_fetch: Any) -> None:
    for parts, more in ((("questions",), {}), (("questions", "q", "answer"), {"method": "POST", "body": "{}"})):
        with pytest.raises(HTTPClientError) as refused:
            await jp_fetch("jupyter-agentbox", *parts, headers={"Authorization": ""}, **more)
        assert refused.value.code == 403
