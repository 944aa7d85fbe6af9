from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.mcp_server.consent import MAX_REASON, Consent, Question, Refuser, read_consent


def test_what_is_not_ours_is_indented_and_has_nothing_invisible() -> None:
    facts: Any = {"tool": "a\u202eb", "arguments": {"x": "one\ntwo\x1b[31m![](http://x)", "lone": "\ud800"}}

    ours, _, theirs = Question(headline="Ours.", facts=facts).text.partition("\n\n")

    assert ours == "Ours. What follows is untrusted text:"
    assert all(line.startswith("    ") for line in theirs.split("\n"))
    assert "<U+202E>" in theirs
    assert "<U+D800>" in theirs
    assert "one\\ntwo\\u001b[31m![](http://x)" in theirs
    theirs.encode("utf-8")


def test_names_that_are_not_what_they_look_like_are_told_as_ours() -> None:
    odd = look_alikes(server="shop", tool="rem\u043eve")

    ours, _, theirs = Question(headline="Ours.", facts={"tool": "rem\u043eve"}, odd=odd).text.partition("\n\n")

    assert "In the tool's name, U+043E CYRILLIC SMALL LETTER O looks like `o`." in ours
    assert ours.isascii()
    assert "rem\u043eve" in theirs


def test_arguments_are_shown_in_full() -> None:
    assert "x" * 100_000 in Question(headline="", facts={"arguments": "x" * 100_000}).text


@pytest.mark.parametrize(
    ("action", "content", "answer"),
    [
        ("accept", {"decision": "allow"}, Consent(allowed=True)),
        ("accept", {"decision": "allow", "reason": "fine"}, Consent(allowed=True)),
        ("accept", {"decision": "reject"}, Consent(allowed=False)),
        ("accept", {"decision": "reject", "reason": "no"}, Consent(allowed=False, reason="no")),
        ("accept", {"decision": "reject", "reason": 1}, Consent(allowed=False)),
        ("accept", {"decision": "reject", "reason": "x" * 5000}, Consent(allowed=False, reason="x" * MAX_REASON)),
        ("decline", None, Consent(allowed=False)),
        ("decline", {"decision": "allow"}, Consent(allowed=False)),
    ],
)
def test_answers_are_read(action: str, content: Any, answer: Consent) -> None:
    assert read_consent(action, content) == answer


@pytest.mark.parametrize(
    ("action", "content"),
    [
        *[("accept", content) for content in (None, {}, {"decision": True}, {"decision": "ALLOW"}, {"allow": True})],
        ("cancel", None),
        ("cancel", {"decision": "allow"}),
        ("else", {"decision": "allow"}),
    ],
)
def test_what_is_not_a_clear_yes_is_a_no_that_says_why(action: str, content: Any) -> None:
    answer = read_consent(action, content)

    assert not answer.allowed
    assert answer.reason


async def test_where_nobody_is_asked_the_answer_is_no() -> None:
    assert await Refuser("why").ask(Question(headline="", facts={})) == Consent(
        allowed=False, reason="why", is_anybody_there=False
    )
