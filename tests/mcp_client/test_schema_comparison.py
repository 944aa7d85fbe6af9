"""The same answers as ``jsonschema``, Python's reference, for the servers of the corpus and for schemas at random."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolArgumentsError
from jupyter_agentbox.mcp_client.arguments import JsonSchemaChecker
from jupyter_agentbox.mcp_client.schemas import CompiledSchema

CORPUS = Path(__file__).parent.parent / "data" / "mcp-corpus"
names = st.sampled_from(["a", "b", "c", "path", "x-y"])
definitions = st.deferred(lambda: leaves.filter(lambda leaf: "$ref" not in str(leaf)))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 20) | st.floats(-20, 20) | st.sampled_from(["", "a", "ab1", "é", "-"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
numbers = st.integers(-5, 10)
lengths = st.integers(0, 3)
leaves: st.SearchStrategy[Any] = st.one_of(
    st.just({}),
    st.booleans(),
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean", "null", "array"])}),
    st.fixed_dictionaries({"type": st.just(["string", "null"])}),
    st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": values}),
    st.fixed_dictionaries({"pattern": st.sampled_from(["^a", "[0-9]$", "^[a-z]+$", "a|b"])}),
    st.fixed_dictionaries({"minimum": numbers, "exclusiveMaximum": numbers}),
    st.fixed_dictionaries({"multipleOf": st.sampled_from([1, 2, 3])}),
    st.fixed_dictionaries({"minLength": lengths, "maxLength": lengths}),
    st.fixed_dictionaries({"minItems": lengths, "uniqueItems": st.booleans()}),
    st.fixed_dictionaries({"minProperties": lengths, "required": st.lists(names, unique=True, max_size=2)}),
    st.fixed_dictionaries({"format": st.just("email"), "contentEncoding": st.just("base64")}),
    st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"])}),
)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(names, inner, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"properties": by_name}, optional={"additionalProperties": inner}),
        st.fixed_dictionaries({"properties": by_name, "required": st.lists(names, unique=True, max_size=2)}),
        st.fixed_dictionaries({"patternProperties": st.dictionaries(st.sampled_from(["^a", "-"]), inner, max_size=2)}),
        st.fixed_dictionaries({"items": inner}, optional={"prefixItems": some, "contains": inner}),
        st.fixed_dictionaries({"propertyNames": inner}),
        *(st.fixed_dictionaries({keyword: some}) for keyword in ("allOf", "anyOf", "oneOf")),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
        st.fixed_dictionaries({"properties": by_name, "allOf": some, "unevaluatedProperties": st.booleans()}),
        st.fixed_dictionaries({"dependentRequired": st.dictionaries(names, st.lists(names, unique=True), max_size=2)}),
    )


schemas = st.recursive(leaves, larger, max_leaves=8)


def fits(schema: JsonObject, arguments: JsonObject, *, is_small: bool) -> bool:
    return CompiledSchema(schema, is_small=is_small).fits(arguments)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(schema=schemas, one=definitions, arguments=st.dictionaries(names, values))
def test_schemas_at_random(schema: Any, one: Any, arguments: JsonObject) -> None:
    whole: JsonObject = {"allOf": [schema], "$defs": {"one": one, "two": {"properties": {"a": one}}}}

    expected = Draft202012Validator(whole).is_valid(arguments)

    assert fits(whole, arguments, is_small=True) == expected
    assert fits(whole, arguments, is_small=False) == expected
    if not expected:
        CompiledSchema(whole, is_small=True).explain(arguments)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_the_tools_of_real_servers(path: Path) -> None:
    asyncio.run(compare(path))


async def compare(path: Path) -> None:
    chance = Random(path.stem)
    checker = JsonSchemaChecker()
    for wire in json.loads(path.read_text())["tools"]:
        tool = ToolDescription(name=wire["name"], input_schema=wire["inputSchema"])
        reference = validator_for(tool.input_schema, default=Draft202012Validator)(tool.input_schema)
        for _ in range(12):
            arguments = some_arguments(tool.input_schema, chance)
            expected = reference.is_valid(arguments)
            assert await is_taken(checker, tool, arguments) == expected, (tool.name, arguments)
    assert checker.worker is None, "real schemas are checked on the spot"
    checker.close()


def some_arguments(schema: JsonObject, chance: Random) -> JsonObject:
    """Return arguments that are nearly right."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    some = [name for name in known if chance.random() < 0.3 or (isinstance(required, list) and name in required)]
    arguments: JsonObject = {name: some_value(known[name], chance) for name in some if chance.random() < 0.95}
    return arguments | ({"other": 1} if chance.random() < 0.1 else {})


def some_value(schema: Any, chance: Random) -> JsonValue:
    if isinstance(schema, dict) and "enum" in schema and chance.random() < 0.8:
        return chance.choice(schema["enum"])
    if isinstance(schema, dict) and isinstance(among := schema.get("anyOf"), list):
        return some_value(chance.choice(among), chance)
    fitting: dict[object, JsonValue] = {
        "string": "PROJ-1",
        "integer": 3,
        "number": 2.5,
        "boolean": True,
        "array": ["a"],
    }
    wanted = schema.get("type") if isinstance(schema, dict) else None
    if wanted == "array" and isinstance(schema, dict):
        return [some_value(schema.get("items"), chance) for _ in range(chance.randrange(3))]
    if wanted == "object" and isinstance(schema, dict):
        return some_arguments(schema, chance)
    if isinstance(wanted, str) and wanted in fitting and chance.random() < 0.9:
        return fitting[wanted]
    return chance.choice([None, True, 0, -1, 1.5, "", "a", "2024-01-01", "é", [], [1, 1], {}, {"a": 1}])


async def is_taken(checker: JsonSchemaChecker, tool: ToolDescription, arguments: JsonObject) -> bool:
    try:
        await checker.check(tool, arguments)
    except ToolArgumentsError as error:
        if error.parameter is None and "cannot be checked" in str(error):
            raise
        return False
    return True
