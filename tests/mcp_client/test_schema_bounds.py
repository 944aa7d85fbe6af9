"""Whatever a server sends as a schema, the event loop goes on, and the check ends."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolArgumentsError
from jupyter_agentbox.mcp_client.arguments import JsonSchemaChecker

#: The loop's own work on one check, in seconds of processor time; waiting for another process is none.
ALLOWED = 0.1


def one(schema: JsonValue, **more: JsonValue) -> JsonObject:
    return {"type": "object", "properties": {"a": schema}, **more}


def pattern(text: str) -> JsonObject:
    return one({"type": "string", "pattern": text})


def nested(levels: int, keyword: str, **more: JsonValue) -> JsonObject:
    schema: JsonObject = {"type": "object", **more}
    for _ in range(levels):
        schema = {keyword: [schema] if keyword.endswith("Of") else schema, **more}
    return schema


def doubling(levels: int, keyword: str, last: JsonObject) -> JsonObject:
    chain: JsonObject = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return one({"$ref": "#/$defs/d0"}, **{"$defs": {**chain, f"d{levels}": last}})


def behind(reference: str, **others: JsonValue) -> JsonObject:
    """Refer to what doubles by a name that another definition has, too, if it is read otherwise."""
    doubled = doubling(40, "allOf", {"not": {"type": "null"}})["$defs"]
    assert isinstance(doubled, dict)
    return one({"$ref": reference}, **{"$defs": {reference.removeprefix("#/$defs/"): {}, **doubled, **others}})


DOUBLED: JsonObject = {"$ref": "#/$defs/d0"}
TEXT: JsonObject = {"a": "a" * 50 + "!"}
HOSTILE: dict[str, tuple[JsonObject, JsonObject]] = {
    "repeat": (pattern("{" + "1" * 100_000), TEXT),
    "repeat of 1 MB": (pattern("{" + "1" * 1_000_000), TEXT),
    "classes": (pattern("[" * 1_000_000), TEXT),
    "groups": (pattern("(" * 500_000 + ")" * 500_000), TEXT),
    "alternatives": (pattern("|".join(f"a{n}" for n in range(300_000))), TEXT),
    "counted": (pattern("((a{100}){100}){100}"), TEXT),
    "many counted": (one({"allOf": [{"pattern": f"(\\w{{20}}){{{n}}}"} for n in range(2000)]}), TEXT),
    "backtracking": (pattern("(?=a)(a|aa)+(?=x)\\1$"), {"a": "a" * 5000}),
    "names": ({"patternProperties": {"[" * 1_000_000: {}}, "unevaluatedProperties": False}, TEXT),
    "enum": (one({"enum": [f"value {n}" for n in range(200_000)]}), TEXT),
    "deep": (nested(2000, "not"), TEXT),
    "unevaluated": (nested(40, "allOf", unevaluatedProperties={"type": "string"}), TEXT),
    "anyOf": (doubling(40, "anyOf", {"type": "integer"}), TEXT),
    "allOf": (doubling(40, "allOf", {"type": "string"}), TEXT),
    "oneOf": (doubling(40, "oneOf", {"type": "string"}), TEXT),
    "escaped reference": (behind("#/$defs/x~1y", **{"x/y": DOUBLED}), TEXT),
    "encoded reference": (behind("#/$defs/d%30"), TEXT),
    "reference of two names": (behind("#/$defs/x/not", x={"not": DOUBLED}), TEXT),
    "reference of an id": (
        behind("#/$defs/z", x={"$id": "json-schema:///", "$defs": {"z": DOUBLED}}),
        TEXT,
    ),
    "required": ({"allOf": [{"required": ["b"]}] * 2000}, {"a": list(range(50_000))}),
    "problems": (one({"items": {"type": "string"}}), {"a": list(range(300_000))}),
    "name": (one({"additionalProperties": {"type": "string"}}), {"a": {"k" * 1_000_000: 1}}),
    "alternatives of items": (one({"anyOf": [{"items": {"type": "string"}}, False]}), {"a": list(range(300_000))}),
    "unique": (one({"uniqueItems": True}), {"a": [{"n": n} for n in range(100_000)]}),
    "multipleOf": (one({"items": {"multipleOf": int("3" * 4000)}}), {"a": [int("9" * 4000)] * 200}),
}


@asynccontextmanager
async def checking(**options: Any) -> AsyncIterator[JsonSchemaChecker]:
    checker = JsonSchemaChecker(**options)
    try:
        yield checker
    finally:
        checker.close()


async def outcome(checker: JsonSchemaChecker, schema: JsonObject, arguments: JsonObject) -> str:
    try:
        await checker.check(ToolDescription(name="t", input_schema=schema), arguments)
    except ToolArgumentsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", HOSTILE)
async def test_the_loop_goes_on_and_the_check_ends(name: str) -> None:
    schema, arguments = HOSTILE[name]
    async with checking(time_limit=1.0) as checker:
        began = time.thread_time()
        async with asyncio.timeout(60):
            said = await outcome(checker, schema, arguments)
        assert time.thread_time() - began < ALLOWED
        assert len(said) < 1000
        assert await outcome(checker, one({"type": "string"}), {"a": "x"}) == "", "the next one is as quick as ever"


async def test_what_ends_the_process_refuses_the_call_and_no_other() -> None:
    schema = doubling(40, "anyOf", {"type": "integer"})
    recursive: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    async with checking(time_limit=0.5) as checker:
        assert await outcome(checker, recursive, {"a": {"a": {}}}) == ""
        first = checker.worker
        assert "takes more than 0.5 s" in await outcome(checker, schema, TEXT)
        assert first is not None
        assert not psutil.pid_exists(first)
        assert "`a`: 1 is not of type 'object'" in await outcome(checker, recursive, {"a": 1})
        assert checker.worker not in (None, first)


async def test_a_schema_that_took_too_long_is_tried_again_only_after_a_while() -> None:
    schema = doubling(40, "anyOf", {"type": "integer"})
    now = [0.0]
    async with checking(time_limit=0.3, clock=lambda: now[0]) as checker:
        said = await outcome(checker, schema, TEXT)
        assert checker.worker is None
        assert await outcome(checker, schema, TEXT) == said
        assert checker.worker is None, "it was not tried"
        now[0] = 61.0
        assert await outcome(checker, schema, {}) == ""
        assert checker.worker is not None


async def test_the_process_ends_with_its_checker() -> None:
    async with checking() as checker:
        await outcome(checker, one({"uniqueItems": True}), {"a": [1, 1]})
        worker = checker.worker
        assert worker is not None
        assert psutil.pid_exists(worker)
        assert os.getpgid(worker) != os.getpgid(0)
    assert not psutil.pid_exists(worker)


async def test_the_process_sees_nothing_of_this_ones_environment() -> None:
    async with checking() as checker:
        await outcome(checker, one({"uniqueItems": True}), {"a": [1, 1]})
        environment = psutil.Process(checker.worker).environ()
        assert "HOME" not in environment


async def test_checks_at_the_same_time_get_their_own_answers() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#"}, "n": {"type": "integer"}}}
    async with checking() as checker:
        values: list[JsonValue] = [n if n % 2 else str(n) for n in range(40)]
        said = await asyncio.gather(*(outcome(checker, schema, {"a": {"n": value}}) for value in values))
    expected = ["" if n % 2 else f"`a.n`: {json.dumps(str(n))} is not of type 'integer'" for n in range(40)]
    assert said == expected
