from __future__ import annotations

import json

import pytest

from jupyter_agentbox.mcp_client.jsonc import parse


def test_comments_and_trailing_commas_are_allowed() -> None:
    text = '{// a\n"a": [1, {}, ], /* "x" */ "b": "//no, ] /*",\n"c": {"d": "\\"", }, "e": true, }'
    assert parse(text) == {"a": [1, {}], "b": "//no, ] /*", "c": {"d": '"'}, "e": True}


@pytest.mark.parametrize("text", ["{,}", "[1,,]", '{"a":,}', "", '{"a" 1}'])
def test_other_commas_are_not(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        parse(text)


def test_a_comment_moves_no_place() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        parse("{ /* two\nlines */ // more\n  oops }")
    assert (caught.value.lineno, caught.value.colno) == (3, 3)
