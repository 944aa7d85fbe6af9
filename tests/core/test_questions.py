from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_agentbox.core.approvals import Outcome, OutcomeState
from jupyter_agentbox.core.calls import JsonObject, JsonValue, Origin
from jupyter_agentbox.core.questions import (
    LONGEST_MESSAGE,
    LONGEST_URL,
    MOST_CHOICES,
    MOST_FIELDS,
    OpenQuestion,
    QuestionAction,
    QuestionAnswer,
    QuestionMode,
    ServerQuestion,
    answer_from_json,
    flat_schema,
)
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from jupyter_agentbox.core.reviewers import Reviewer, Via
from tests.samples import NOON, a_request

ADA = Reviewer(name="ada", via=Via.BROWSER)


def form(**fields: JsonValue) -> JsonObject:
    return {"type": "object", "properties": fields, "required": list(fields)[:1]}


def asked(question: ServerQuestion) -> OpenQuestion:
    return OpenQuestion(
        id="q1",
        request_id="r1",
        server="shop",
        tool="order",
        origin=Origin(kernel_id="k1", notebook_path="a.ipynb", cell_id="c1"),
        question=question,
        asked_at=NOON,
        expires_at=None,
    )


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (
            {"type": "string", "title": "Name", "minLength": 2, "maxLength": 9, "pattern": "(a+)+", "format": "email"},
            {"type": "string", "title": "Name", "minLength": 2, "maxLength": 9, "format": "email"},
        ),
        ({"type": "string", "format": "password", "default": "x"}, {"type": "string", "default": "x"}),
        ({"type": "number", "minimum": 0.5, "maximum": True}, {"type": "number", "minimum": 0.5}),
        ({"type": "number", "minimum": float("nan"), "maximum": 10**4000}, {"type": "number"}),
        (
            {"type": "integer", "default": 3, "description": "How many"},
            {"type": "integer", "default": 3, "description": "How many"},
        ),
        ({"type": "boolean", "default": True}, {"type": "boolean", "default": True}),
        ({"type": "boolean", "default": 1}, {"type": "boolean"}),
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"], "description": "Which"},
            {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"], "description": "Which"},
        ),
        (
            {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]},
            {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]},
        ),
        (
            {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            {"type": "array", "items": {"type": "string", "enum": ["a"], "enumNames": ["A"]}, "uniqueItems": True},
        ),
        (
            {"type": "array", "items": {"anyOf": [{"const": "a"}]}, "maxItems": 1},
            {"type": "array", "items": {"type": "string", "enum": ["a"]}, "maxItems": 1, "uniqueItems": True},
        ),
    ],
)
def test_of_a_field_only_what_is_known_is_kept(source: JsonObject, kept: JsonObject) -> None:
    assert flat_schema(form(x=source)) == {
        "type": "object",
        "properties": {"x": kept},
        "required": ["x"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "object"},
        {"type": "array", "properties": {}},
        form(x={"type": "object", "properties": {}}),
        form(x={"type": ["string", "null"]}),
        form(x="string"),
        form(x={"type": "array", "items": {"type": "string"}}),
        form(x={"type": "array"}),
        form(x={"type": "string", "enum": [1, 2]}),
        form(x={"type": "string", "enum": [str(n) for n in range(MOST_CHOICES + 1)]}),
        form(x={"type": "string", "title": "x" * 1000}),
        form(**{"x" * 1000: {"type": "string"}}),
        form(**{f"x{n}": {"type": "string"} for n in range(MOST_FIELDS + 1)}),
    ],
)
def test_a_form_that_is_not_flat_or_too_large_is_refused(schema: JsonValue) -> None:
    with pytest.raises(ValueError, match="it"):
        ServerQuestion.of_form("Where to?", schema)


def test_a_required_that_is_no_list_requires_nothing() -> None:
    assert flat_schema({"properties": {"x": {"type": "string"}}, "required": "x"})["required"] == []


def test_a_field_that_a_page_cannot_show_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot show"):
        flat_schema({"properties": {"__proto__": {"type": "string"}}, "required": ["__proto__"]})


def test_a_message_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="4,000"):
        ServerQuestion.of_form("x" * (LONGEST_MESSAGE + 1), form())
    with pytest.raises(ValueError, match="4,000"):
        flat_schema(form(a={"type": "string", "default": "x" * (LONGEST_MESSAGE + 1)}))


@pytest.mark.parametrize(
    "url", ["https://shop.example/a?b=c#d", "http://127.0.0.1:8000", "HTTPS://xn--bcher-kva.example/"]
)
def test_a_page_has_a_plain_address(url: str) -> None:
    assert ServerQuestion.of_url("Sign", url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//shop.example",
        "https:shop.example",
        "https://",
        "https://shop.example@evil.example",
        "https://shop.example\\@evil.example",
        "https://sh\u043ep.example",
        "https://shop.example/\u202egpj",
        "https://shop.example/ a",
        "https://shop.example:99999",
        "https://shop.example:0",
        "https://[::1",
        "https://shop.example/" + "x" * LONGEST_URL,
    ],
)
def test_an_address_that_would_show_another_host_than_it_opens_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="it"):
        ServerQuestion.of_url("Sign", url)


def test_a_question_says_who_asks_what_and_where() -> None:
    question = asked(ServerQuestion.of_form("Where to?", form(street={"type": "string"})))
    assert question.to_json() == {
        "id": "q1",
        "request_id": "r1",
        "server": "shop",
        "tool": "order",
        "mode": "form",
        "message": "Where to?",
        "schema": question.question.schema,
        "url": None,
        "calls": 1,
        "kernel_id": "k1",
        "notebook_path": "a.ipynb",
        "cell_id": "c1",
        "thread_id": None,
        "asked_at": "2026-05-01T12:00:00.000Z",
        "expires_at": None,
    }
    page = asked(ServerQuestion.of_url("Sign", "https://shop.example")).to_json()
    assert (page["mode"], page["schema"], page["url"]) == ("url", None, "https://shop.example")


@pytest.mark.parametrize("names", [Redaction(), Redaction(()), Redaction(["street"])])
def test_what_is_kept_has_no_value_whose_name_or_title_tells_of_a_secret(names: Redaction) -> None:
    fields = form(
        street={"type": "string"},
        password={"type": "string"},
        x={"type": "string", "title": "API key"},
        count={"type": "integer"},
    )
    question = asked(ServerQuestion.of_form("Where to?", fields))
    content: JsonObject = {"street": "Main", "password": "hunter2", "x": "s3cret", "count": 2, "odd": "x"}
    answer = QuestionAnswer(action=QuestionAction.ACCEPT, content=content, reviewer=ADA)
    record = names.question(question, answer, at=NOON + timedelta(seconds=5))
    street = REDACTED if names.is_secret("street") else "Main"
    assert record.to_json() == {
        "mode": "form",
        "message": "Where to?",
        "url": None,
        "action": "accept",
        "content": {"street": street, "password": REDACTED, "x": REDACTED, "count": 2, "odd": "x"},
        "reviewer": "ada",
        "via": "browser",
        "asked_at": "2026-05-01T12:00:00.000Z",
        "answered_at": "2026-05-01T12:00:05.000Z",
    }


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Please enter your GitHub token.", {"type": "string"}),
        ("What is the API key?", {"type": "number"}),
        ("Who are you?", {"type": "string", "description": "The password of your account"}),
        ("Who are you?", {"type": "string", "title": "Your pass\u200bword, please"}),
    ],
)
def test_a_value_that_any_text_of_the_question_calls_a_secret_is_not_kept(message: str, field: JsonObject) -> None:
    question = asked(ServerQuestion.of_form(message, form(value=field, sure={"type": "boolean"})))
    content: JsonObject = {"value": "hunter2", "sure": True}
    answer = QuestionAnswer(action=QuestionAction.ACCEPT, content=content, reviewer=ADA)
    assert Redaction().question(question, answer, at=NOON).content == (("value", REDACTED), ("sure", True))


def test_a_choice_and_a_plain_word_are_no_secret() -> None:
    fields = form(scope={"type": "string", "enum": ["read", "write"]}, seat={"type": "string"})
    answer = QuestionAnswer(action=QuestionAction.ACCEPT, content={"scope": "read"}, reviewer=ADA)
    for message, kept in (("Which scope has the token?", "read"), ("Pass me the salt, and a cookie", "read")):
        question = asked(ServerQuestion.of_form(message, fields))
        assert Redaction().question(question, answer, at=NOON).content == (("scope", kept),)
    seat = QuestionAnswer(action=QuestionAction.ACCEPT, content={"seat": "12A"}, reviewer=ADA)
    assert Redaction().question(question, seat, at=NOON).content == (("seat", "12A"),)


def test_what_was_kept_before_a_name_was_a_secrets_is_not_shown_any_more() -> None:
    question = asked(ServerQuestion.of_form("Where to?", form(street={"type": "string"})))
    answer = QuestionAnswer(action=QuestionAction.ACCEPT, content={"street": "Main"}, reviewer=ADA)
    outcome = Outcome(state=OutcomeState.RUNNING, questions=(Redaction().question(question, answer, at=NOON),))
    shown = Redaction(["street"]).answer(replace(a_request(), outcome=outcome)).outcome
    assert shown is not None
    assert shown.questions[0].content == (("street", REDACTED),)


def test_of_a_page_only_what_stands_before_its_query_is_kept() -> None:
    question = asked(ServerQuestion.of_url("Sign in", "https://shop.example/sign?code=abc#d"))
    record = Redaction().question(question, QuestionAnswer(action=QuestionAction.CANCEL), at=NOON)
    assert (record.mode, record.url, record.reviewer) == (QuestionMode.URL, "https://shop.example/sign", None)
    assert record.to_json()["reviewer"] is None


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"action": "accept", "content": {"a": 1}}, (QuestionAction.ACCEPT, {"a": 1})),
        ({"action": "decline"}, (QuestionAction.DECLINE, {})),
        ({"action": "cancel", "content": None}, (QuestionAction.CANCEL, {})),
    ],
)
def test_an_answer_is_read(body: JsonObject, answer: object) -> None:
    assert answer_from_json(body) == answer


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "allow"},
        {"action": 1},
        {"action": "accept", "content": []},
        {"action": "decline", "content": {}},
        {"action": "accept", "reviewer": "ada"},
    ],
)
def test_a_malformed_answer_is_refused(body: JsonObject) -> None:
    with pytest.raises(ValueError, match="a"):
        answer_from_json(body)
