from __future__ import annotations

import json
from decimal import Decimal
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.located_json import MAX_DEPTH, Lines, LocatedJsonError, parse

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@given(values, st.sampled_from([None, 1]), st.booleans())
def test_what_json_writes_is_read_as_the_same_value(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found = parse(text).value
    assert (found, json.dumps(found)) == (value, json.dumps(value))  # 1, 1.0 and True are equal in Python


@given(st.text(st.sampled_from('[]{}:,"\\ \n\t019.-+eEtrufalsn/*#\ud800é'), max_size=30))
def test_any_text_is_read_as_by_json_or_refused_at_a_place_in_it(text: str) -> None:
    error = None
    try:
        found = parse(text).value
    except LocatedJsonError as refused:
        error = refused
    if error is None:
        assert found == json.loads(text)
    else:
        assert 0 <= error.at <= len(text)
        assert str(error)


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("", 0, "value"),
        ("  ", 2, "value"),
        ("[1, 2", 5, "`,` or `]`"),
        ("[1,]", 3, "after the comma"),
        ('{"a": 1,}', 8, "after the comma"),
        ("{a: 1}", 1, "not JSON"),
        ("{1: 1}", 1, "double quotes"),
        ('{"a" 1}', 5, "`:`"),
        ('{"a": 1 "b": 2}', 8, "`,` or `}`"),
        ('{"a": 1, "a": 1}', 9, "twice"),
        ('{"a": 1, "\\u0061": 1}', 9, "twice"),
        ("[1] 2", 4, "end of the file"),
        ("[NaN]", 1, "NaN"),
        ("[-Infinity]", 1, "infinity"),
        ("[1e999]", 1, "range"),
        ("[1e-999]", 1, "range"),
        ("[0.1000000000000000055511151231257827]", 1, "more digits"),
        ("[01]", 1, "not JSON"),
        (f"[{'1' * 1001}]", 1, "too many digits"),
        ('["a]', 1, "string"),
        ('["\\x"]', 1, "string"),
        ('["a\nb"]', 1, "string"),
        ('["\\ud800"]', 1, "half a character"),
        ('["\ud800"]', 1, "half a character"),
        ("[] // so", 3, "comments"),
        ("[1, /* so */ 2]", 4, "comments"),
        ("'a'", 0, "not JSON"),
        ("True", 0, "not JSON"),
        ("nulls", 0, "not JSON"),
        ("\ufeff[]", 0, "not JSON"),
        (":", 0, "value"),
    ],
)
def test_what_is_refused_is_refused_where_it_stands(text: str, at: int, message: str) -> None:
    with pytest.raises(LocatedJsonError, match=message) as caught:
        parse(text)
    assert caught.value.at == at


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 40 + "]" * 40])
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(LocatedJsonError, match=f"{MAX_DEPTH} levels"):
        parse(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4))
def test_numbers_keep_their_digits_or_are_refused(number: object) -> None:
    text = f"{number:f}"
    try:
        found = parse(text).value
    except LocatedJsonError:
        return
    assert isinstance(found, int | float)
    assert isfinite(found)
    assert number == Decimal(repr(found))


def test_values_and_keys_know_where_they_stand() -> None:
    node = parse('{\r\n  "a": [true,\n null]}')
    assert isinstance(node.content, dict)
    lines = Lines('{\r\n  "a": [true,\n null]}')
    inner = node.content["a"].content
    assert isinstance(inner, list)
    places = [node.at, node.keys["a"], node.content["a"].at, inner[0].at, inner[1].at]
    assert [lines.place(at) for at in places] == [(1, 1), (2, 3), (2, 8), (2, 9), (3, 2)]
