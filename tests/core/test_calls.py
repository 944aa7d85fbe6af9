from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from jupyter_agentbox.core.calls import (
    MAX_DEPTH,
    JsonValue,
    Omission,
    Origin,
    ToolCall,
    canonical_json,
    check_arguments,
    is_long,
)
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import ToolArgumentsError
from tests.samples import a_call, json_values


def nested(depth: int, *inner: object) -> list[Any]:
    value: list[Any] = [*inner]
    for _ in range(depth - 1):
        value = [value]
    return value


#: Digests that people have seen, and that stored decisions name: they never change.
VECTORS = [
    (
        ToolCall(server="s", tool="t", arguments={}),
        "5d9a89c08fb05d2ce60ccf553af7a4370d99326009e3a9ea4f10a3f3544d1b1d",
    ),
    (
        ToolCall(
            server="shop",
            tool="delete_order",
            arguments={"order_id": 7, "why": None, "tags": ["a", 1.5, True]},
            origin=Origin(kernel_id="k1", notebook_path="work/orders.ipynb", cell_id="c1", thread_id="t1"),
        ),
        "64bb3347aa7fe61d247923bcde15f1a589a4cdd3aefc2d2415780dc632801e94",
    ),
    (
        ToolCall(server="ø", tool="日本", arguments={"\ud800": "\u2028😀", "z": {"b": 2**70, "a": -0.0}}),
        "b7ad853e87ef40b29d2a217982b8333ad9e7266276cee171c2f996bc33f3a178",
    ),
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, 1.5]}, '{"a":[true,null,1.5],"b":1}'),
        ({"ø": "日本\u2028"}, '{"ø":"日本\u2028"}'),
        ('\x00\x1f"\\/', '"\\u0000\\u001f\\"\\\\/"'),
        (2**70, "1180591620717411303424"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        ((1, 2), "[1,2]"),
    ],
)
def test_json_has_one_text(value: object, text: str) -> None:
    assert canonical_json(value) == text


@given(json_values)
def test_canonical_json_reads_back_and_is_stable(value: JsonValue) -> None:
    text = canonical_json(value)
    # Through bytes: two lone surrogates that make a pair are one character to every JSON reader.
    again = json.loads(text.encode("utf-8", "surrogatepass"))

    assert again == value
    assert canonical_json(again) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [{"x": float("nan")}], 10**4000])
def test_numbers_that_json_cannot_express_are_refused(value: object) -> None:
    with pytest.raises(ValueError):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, [{True: 1}], {"x": {1, 2}}, b"bytes", object()])
def test_what_is_not_json_is_refused_and_not_changed_into_json(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


def test_nesting_has_a_limit_and_never_a_recursion_error() -> None:
    assert canonical_json(nested(MAX_DEPTH)) == "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert canonical_json(nested(MAX_DEPTH, 1)) == "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(ValueError):
            canonical_json(nested(depth))


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(ValueError):
        canonical_json(value)


@pytest.mark.parametrize("value", [float("nan"), nested(101), 10**4000, {1: 2}, {1, 2}])
def test_an_argument_that_is_not_json_is_named(value: Any) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        check_arguments({"good": 1, "bad": value})

    assert caught.value.parameter == "bad"


def test_arguments_that_pass_have_a_digest() -> None:
    passed = {"a": nested(MAX_DEPTH - 2)}
    check_arguments(passed)
    assert a_call(arguments=passed).digest
    deeper = {"a": nested(MAX_DEPTH - 1)}
    with pytest.raises(ValueError):
        _ = a_call(arguments=deeper).digest
    with pytest.raises(ToolArgumentsError):
        check_arguments(deeper)


def test_arguments_that_are_json_pass() -> None:
    check_arguments({"a": {"b": [1, "x", None]}, "\ud800": "\udfff"})
    check_arguments(MappingProxyType({"a": 1}))  # it need not be a dict, only what is in it


@pytest.mark.parametrize(("call", "digest"), VECTORS, ids=range(len(VECTORS)))
def test_digests_never_change(call: ToolCall, digest: str) -> None:
    assert call.digest == digest


def test_the_order_of_arguments_does_not_change_the_digest() -> None:
    assert a_call(arguments={"a": 1, "b": 2}).digest == a_call(arguments={"b": 2, "a": 1}).digest


@pytest.mark.parametrize(
    "other",
    [
        a_call(server="shop2"),
        a_call(tool="delete"),
        a_call(arguments={"order_id": "7"}),
        a_call(arguments={"order_id": 7, "x": None}),
        a_call(origin=Origin(kernel_id="k2", notebook_path="work/orders.ipynb", cell_id="c1")),
        a_call(origin=Origin(kernel_id="k1", notebook_path="work/orders.ipynb", thread_id="c1")),
        a_call(origin=Origin(kernel_id="k1", notebook_path="work/orders.ipynb", cell_id="c1", turn_id="t1")),
        a_call(origin=Origin(kernel_id="k1", notebook_path="work/orders.ipynb", cell_id="c1", person="ada")),
        a_call(
            origin=Origin(
                kernel_id="k1", notebook_path="work/orders.ipynb", cell_id="c1", isolation=Isolation.BUBBLEWRAP
            )
        ),
        a_call(origin=Origin(kernel_id="k1", notebook_path="work/orders.ipynb", cell_id="c1", has_own_settings=True)),
    ],
)
def test_another_call_has_another_digest(other: ToolCall) -> None:
    assert other.digest != a_call().digest


def test_lone_surrogates_that_look_like_one_character_are_another_call() -> None:
    assert a_call(arguments={"x": "\ud83d\ude00"}).digest != a_call(arguments={"x": "😀"}).digest


def test_a_call_is_whole_unless_its_arguments_lack_what_the_digest_was_made_of() -> None:
    call = a_call(arguments={"password": "x"})
    assert call.is_whole
    known = call.digest

    assert replace(call, known_digest=known).is_whole
    assert not replace(call, arguments={"password": "…"}, known_digest=known).is_whole
    assert not replace(call, omitted=Omission(size=1, head=""), known_digest=known).is_whole


def test_editing_copies_the_arguments() -> None:
    arguments: dict[str, JsonValue] = {"order_id": 8}

    edited = a_call().with_arguments(arguments)
    arguments["order_id"] = 9

    assert edited == a_call(arguments={"order_id": 8})
    assert edited.qualified_name == "shop.delete_order"


def test_arguments_are_long_by_their_text_their_names_and_their_values() -> None:
    assert not is_long({}, limit=100)
    assert not is_long({"a": [1, 2, {"b": "x" * 50}]}, limit=100)
    assert is_long({"a": {"b": ["x" * 100]}}, limit=100)
    assert is_long({"x" * 100: 1}, limit=100)
    assert is_long({"a": [[]] * 100}, limit=100)
    assert is_long({"a": {"x" * 100: None}}, limit=100)
