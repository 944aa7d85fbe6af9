from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolArgumentsError
from jupyter_agentbox.mcp_client.arguments import JsonSchemaChecker

CORPUS = Path(__file__).parent.parent / "data" / "mcp-corpus"
CITY: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}, "days": {"type": "integer", "maximum": 10}},
    "required": ["city"],
    "additionalProperties": False,
}


@contextmanager
def checker(time_limit: float = 60.0) -> Iterator[JsonSchemaChecker]:
    made = JsonSchemaChecker(time_limit=time_limit)
    try:
        yield made
    finally:
        made.close()


def check(schema: JsonObject, arguments: JsonObject, *, time_limit: float = 60.0) -> None:
    with checker(time_limit) as made:
        asyncio.run(made.check(ToolDescription(name="t", input_schema=schema), arguments))


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
        ({"city": "Oslo", "color": "red"}, "color", "no such parameter (there are: `city`, `days`)"),
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
            with pytest.raises(ToolArgumentsError, match="loaded from elsewhere"):
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
    check(one({"type": "string", "pattern": r"^(?<=x{2,})(?:$"}), {"a": "x"})
    check(one({"type": "string", "pattern": "(", "maxLength": 1}), {"a": "x"})
    with pytest.raises(ToolArgumentsError):
        check(one({"type": "string", "pattern": "(", "maxLength": 1}), {"a": "xy"})


def test_a_pattern_with_unicode_properties_is_matched() -> None:
    check(one({"type": "string", "pattern": r"^\p{L}+$"}), {"a": "é"})
    with pytest.raises(ToolArgumentsError):
        check(one({"type": "string", "pattern": r"^\p{L}+$"}), {"a": "1"})


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
        (_deep(400), _deep_value(400)),
        (one({"$ref": "#/$defs/x"}, **{"$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}}), {"a": 1}),
    ],
    ids=["self", "multiplying", "escaping", "deep", "circle"],
)
def test_a_hostile_schema_refuses_the_call_in_time(schema: JsonObject, arguments: JsonObject) -> None:
    began = time.perf_counter()
    with pytest.raises(ToolArgumentsError) as caught:
        check(schema, arguments, time_limit=0.3)
    assert time.perf_counter() - began < 30  # unchecked, most of them outlast the machine
    assert caught.value.parameter is None


def test_a_pattern_that_others_match_in_exponential_time_is_matched() -> None:
    check({"patternProperties": {"(a+)+$": {}}}, {"a" * 50 + "!": 1})
    for pattern in ("(a+)+$", r"(?=a)(a+)+$", r"(a+)+\1$"):
        with pytest.raises(ToolArgumentsError):
            check(one({"pattern": pattern}), {"a": "a" * 50 + "!"}, time_limit=1)


def test_look_around_and_references_back_are_understood() -> None:
    strong = one({"type": "string", "pattern": r"^(?=.*\d)(\w)(?!\1).*$"})
    check(strong, {"a": "ab1"})
    with pytest.raises(ToolArgumentsError) as caught:
        check(strong, {"a": "aa1"})
    assert caught.value.parameter == "a"


def test_equal_items_are_found_in_linear_time() -> None:
    schema = one({"type": "array", "uniqueItems": True})
    began = time.process_time()
    check(schema, {"a": [{"n": n} for n in range(20_000)]}, time_limit=60)
    assert time.process_time() - began < 10  # 200 million comparisons of two take longer
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
def test_a_broken_schema_refuses_the_call(schema: JsonObject) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        check(schema, {"a": 1})
    assert caught.value.parameter is None


def test_a_known_schema_is_checked_in_no_time() -> None:
    async def run() -> float:
        with checker() as made:
            tool = ToolDescription(name="t", input_schema=CITY)
            await made.check(tool, {"city": "Oslo"})
            began = time.thread_time()
            for _ in range(100):
                await made.check(tool, {"city": "Oslo"})
            return time.thread_time() - began

    assert asyncio.run(run()) / 100 < 0.001


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_every_schema_of_the_corpus_is_checked_on_the_spot(path: Path) -> None:
    async def run() -> None:
        with checker() as made:
            for wire in json.loads(path.read_text())["tools"]:
                tool = ToolDescription(name=wire["name"], input_schema=wire["inputSchema"])
                required = wire["inputSchema"].get("required", [])
                if required:
                    with pytest.raises(ToolArgumentsError) as caught:
                        await made.check(tool, {})
                    assert caught.value.parameter in required
                else:
                    await made.check(tool, {})
            assert made.worker is None

    asyncio.run(run())
