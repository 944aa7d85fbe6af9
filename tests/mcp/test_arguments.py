from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolArgumentsError
from jupyter_agentbox.mcp import schemas
from jupyter_agentbox.mcp.arguments import JsonSchemaChecker

CORPUS = Path(__file__).parent.parent / "data" / "mcp-corpus"
CITY: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}, "days": {"type": "integer", "maximum": 10}},
    "required": ["city"],
    "additionalProperties": False,
}


def check(schema: JsonObject, arguments: JsonObject, *, time_limit: float = 60.0) -> None:
    JsonSchemaChecker(time_limit=time_limit).check(ToolDescription(name="t", input_schema=schema), arguments)


def one(schema: JsonObject, **more: JsonValue) -> JsonObject:
    return {"type": "object", "properties": {"a": schema}, **more}


def test_arguments_that_fit_pass() -> None:
    check(CITY, {"city": "Oslo", "days": 3})


@pytest.mark.parametrize(
    ("arguments", "parameter", "words"),
    [
        ({"city": 5}, "city", "'string'"),
        ({"city": "oslo"}, "city", "does not match"),
        ({"city": "Oslo", "days": 11}, "days", "maximum"),
        ({}, "city", "is required"),
        ({"days": 1}, "city", "is required"),
        ({"city": "Oslo", "colour": "red"}, "colour", "no such parameter (there are: `city`, `days`)"),
    ],
)
def test_a_bad_argument_is_named_with_what_is_wrong(arguments: JsonObject, parameter: str, words: str) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        check(CITY, arguments)
    assert caught.value.parameter == parameter
    assert f"`{parameter}`" in str(caught.value)
    assert words in str(caught.value)


def test_a_bad_value_inside_a_parameter_is_named_by_its_place() -> None:
    items: JsonObject = {"type": "array", "items": {"type": "object", "required": ["x"]}}
    with pytest.raises(ToolArgumentsError, match=r"`a\[1\]\.x`: is required") as caught:
        check(one(items), {"a": [{"x": 1}, {}]})
    assert caught.value.parameter == "a"


def test_a_long_value_is_not_repeated_in_full() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        check(one({"type": "integer"}), {"a": "x" * 100_000})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", ["\ud800"]])
def test_what_json_cannot_say_is_refused(value: JsonValue) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        check(one({}), {"a": value})
    assert caught.value.parameter == "a"


def test_the_schemas_own_draft_counts() -> None:
    tuples: JsonObject = {"type": "array", "items": [{"type": "string"}]}
    with pytest.raises(ToolArgumentsError):
        check(one(tuples, **{"$schema": "http://json-schema.org/draft-07/schema#"}), {"a": [5]})
    newer: JsonObject = {"type": "array", "prefixItems": [{"type": "string"}]}
    with pytest.raises(ToolArgumentsError):
        check(one(newer), {"a": [5]})
    check(one(newer, **{"$schema": "http://json-schema.org/draft-07/schema#"}), {"a": [5]})
    check(one({"type": "string"}, **{"$schema": "https://example.org/no-such-draft"}), {"a": "x"})


def test_references_within_the_schema_work() -> None:
    schema = one({"$ref": "#/$defs/size"}, **{"$defs": {"size": {"enum": ["S", "M"]}}})
    check(schema, {"a": "S"})
    with pytest.raises(ToolArgumentsError):
        check(schema, {"a": "XL"})


def test_nothing_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        for reference in (f"http://127.0.0.1:{server.getsockname()[1]}/s.json", "file:///etc/passwd", "other.json"):
            with pytest.raises(ToolArgumentsError, match="not loaded"):
                check(one({"$ref": reference}), {"a": 1})
            check(one({"$ref": reference}), {})
        with pytest.raises(BlockingIOError):
            server.accept()


def test_properties_by_pattern_are_known_and_checked() -> None:
    schema: JsonObject = {"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}
    check(schema, {"x-a": 1})
    with pytest.raises(ToolArgumentsError):
        check(schema, {"x-a": "1"})
    with pytest.raises(ToolArgumentsError, match="no such parameter"):
        check(schema, {"y": 1})
    with pytest.raises(ToolArgumentsError):
        check({"additionalProperties": {"type": "integer"}}, {"y": "1"})


def test_a_pattern_in_another_dialect_is_left_to_the_server() -> None:
    check(one({"type": "string", "pattern": r"^\p{L}+$"}), {"a": "x"})


def _multiplying(**more: JsonValue) -> JsonObject:
    chain: JsonObject = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2, **more} for n in range(40)}
    return one({"$ref": "#/$defs/d0"}, **{"$defs": {**chain, "d40": {"type": "integer"}}})


def _deep(levels: int) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(levels):
        schema = one(schema)
    return schema


def _deep_value(levels: int) -> JsonObject:
    value: JsonValue = {}
    for _ in range(levels):
        value = {"a": value}
    return {"a": value}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"$ref": "#"}, {"a": 1}),
        (_multiplying(), {"a": "x"}),
        (_multiplying(**{"$schema": "https://json-schema.org/draft/2020-12/schema"}), {"a": "x"}),
        ({"patternProperties": {"(a+)+$": {}}, "unevaluatedProperties": False}, {"a" * 50 + "!": 1}),
        (_deep(400), _deep_value(400)),
        (one({"pattern": "(a+)+$"}), {"a": "a" * 50 + "!"}),
        ({"patternProperties": {"(a+)+$": {}}}, {"a" * 50 + "!": 1}),
        (one({"$ref": "#/$defs/x"}, **{"$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}}), {"a": 1}),
    ],
    ids=["self", "multiplying", "escaping", "unevaluated", "deep", "pattern", "pattern-property", "circle"],
)
def test_a_hostile_schema_refuses_the_call_in_time(schema: JsonObject, arguments: JsonObject) -> None:
    began = time.perf_counter()
    with pytest.raises(ToolArgumentsError) as caught:
        check(schema, arguments, time_limit=0.3)
    assert time.perf_counter() - began < 30  # unchecked, most of them outlast the machine
    assert caught.value.parameter is None


def test_equal_items_are_found_in_linear_time() -> None:
    schema = one({"type": "array", "uniqueItems": True})
    began = time.process_time()
    check(schema, {"a": [{"n": n} for n in range(20_000)]}, time_limit=60)
    assert time.process_time() - began < 2
    check(schema, {"a": [True, 1, "1", None]})
    with pytest.raises(ToolArgumentsError):
        check(schema, {"a": [{"n": [1, {"m": 2}]}, {"n": [1.0, {"m": 2.0}]}]})


def test_thousands_of_nodes_can_be_checked() -> None:
    schema: JsonObject = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5000)}}
    check(schema, {"p1": "x"})
    with pytest.raises(ToolArgumentsError) as caught:
        check(schema, {"p4999": 1})
    assert caught.value.parameter == "p4999"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strng"},
        {"properties": 5},
        {"required": "a"},
        one({"enum": 5}),
        one({"minimum": "1"}),
        one({"$ref": 5}),
    ],
)
def test_a_broken_schema_refuses_the_call(schema: JsonObject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_SCHEMA_TIME_LIMIT", 60.0)
    with pytest.raises(ToolArgumentsError) as caught:
        check(schema, {"a": 1})
    assert caught.value.parameter is None


def test_a_known_schema_is_checked_in_no_time() -> None:
    checker, tool = JsonSchemaChecker(), ToolDescription(name="t", input_schema=CITY)
    checker.check(tool, {"city": "Oslo"})
    began = time.thread_time()
    for _ in range(100):
        checker.check(tool, {"city": "Oslo"})
    assert (time.thread_time() - began) / 100 < 0.001


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_every_schema_of_the_corpus_can_be_checked(path: Path) -> None:
    checker = JsonSchemaChecker(time_limit=60)
    for wire in json.loads(path.read_text())["tools"]:
        tool = ToolDescription(name=wire["name"], input_schema=wire["inputSchema"])
        required = wire["inputSchema"].get("required", [])
        if required:
            with pytest.raises(ToolArgumentsError) as caught:
                checker.check(tool, {})
            assert caught.value.parameter in required
        else:
            checker.check(tool, {})


def _is_quick(schema: JsonObject, arguments: JsonObject) -> bool:
    checker = JsonSchemaChecker(time_limit=60)
    tool = ToolDescription(name="t", input_schema=schema)
    assert not checker.is_quick(tool, arguments), "before the first check nothing is known"
    with suppress(ToolArgumentsError):
        checker.check(tool, arguments)
    return checker.is_quick(tool, arguments)


def test_few_plain_arguments_are_checked_on_the_spot() -> None:
    assert _is_quick({**one({"type": "integer", "minimum": 0}), "required": ["a"]}, {"a": 1})
    assert _is_quick(one({"anyOf": [{"enum": [1, 2]}, {"type": "null"}]}, additionalProperties=False), {"a": None})


@pytest.mark.parametrize(
    "schema",
    [
        _multiplying(),
        {"$ref": "#"},
        one({"pattern": "(a+)+$"}),
        one({"enum": list(range(1000))}),
        one({"allOf": [{"type": "string"}] * 1000}),
        one({"type": "array", "uniqueItems": True}),
        one({"items": {"not": {"pattern": "(a+)+$"}}}),
    ],
)
def test_what_may_take_long_is_not_checked_on_the_spot(schema: JsonObject) -> None:
    assert not _is_quick(schema, {"a": 1})


def test_large_arguments_are_not_checked_on_the_spot() -> None:
    assert not _is_quick({"type": "object"}, {f"a{n}": n for n in range(1000)})
    assert not _is_quick({"type": "object"}, {"a": [[]]})


simple_types = st.sampled_from(["string", "integer", "number", "boolean", "null", "array"])
simple_values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
names = st.sampled_from(["a", "b", "c"])


@given(
    types=st.dictionaries(names, simple_types),
    required=st.lists(names, unique=True),
    more=st.sampled_from([{}, {"additionalProperties": False}, {"minProperties": 1}, {"title": "T"}]),
    arguments=st.dictionaries(names, simple_values),
)
def test_what_evidently_fits_is_what_the_schema_takes(
    types: dict[str, str], required: list[str], more: dict[str, Any], arguments: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {n: {"type": t} for n, t in types.items()}, "required": required, **more}
    tool = ToolDescription(name="tool", input_schema=schema)
    checker = JsonSchemaChecker(time_limit=60)
    fits = Draft202012Validator(schema).is_valid(arguments)
    for _ in range(2):  # the second time the schema is known
        try:
            checker.check(tool, arguments)
        except ToolArgumentsError:
            assert not fits
        else:
            assert fits
