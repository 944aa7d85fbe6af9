from __future__ import annotations

from typing import Any

from jupyter_agentbox.codegen.annotations import Annotations, Spelling
from jupyter_agentbox.codegen.parameters import Parameter, Parameters, read_parameters


def read(schema: Any) -> Parameters:
    return read_parameters(schema, Annotations(schema, Spelling(()), str), "Tool")


def names(schema: Any) -> list[tuple[str, bool]]:
    return [(each.wire_name, each.required) for each in read(schema).named]


def test_required_parameters_come_first() -> None:
    assert names({"properties": {"a": {}, "b": {}}, "required": ["b"]}) == [("b", True), ("a", False)]


def test_parameter_has_everything_that_its_schema_says() -> None:
    schema: Any = {
        "$defs": {"n": {"type": "integer", "default": 3, "description": "How many."}},
        "properties": {"max-n": {"$ref": "#/$defs/n"}},
    }

    assert read(schema).named == (
        Parameter(
            wire_name="max-n",
            name="max_n",
            annotation="int",
            required=False,
            default="3",
            description="How many.",
        ),
    )


def test_required_name_without_a_schema_is_a_parameter() -> None:
    assert names({"properties": {}, "required": ["a"]}) == [("a", True)]


def test_required_parameter_with_a_default_must_be_given_for_the_default_is_not_sent() -> None:
    assert names({"properties": {"a": {"default": 1}}, "required": ["a"]}) == [("a", True)]


def test_all_parts_of_a_conjunction_count() -> None:
    parts = [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]

    assert names({"type": "object", "allOf": parts}) == [("a", True), ("b", False)]
    assert not read({"type": "object", "allOf": parts}).extra


def test_nothing_is_required_by_only_one_alternative() -> None:
    parts = [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]

    assert names({"type": "object", "oneOf": parts}) == [("a", False), ("b", False)]


def test_alternatives_that_only_require_add_nothing() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}

    assert names(schema) == [("a", False), ("b", False)]


def test_other_keywords_are_taken_where_the_schema_says_so() -> None:
    assert not read({"properties": {}}).extra
    assert not read({"type": "object", "additionalProperties": False}).extra
    assert read({"properties": {}, "additionalProperties": True}).extra
    assert read({"properties": {}, "patternProperties": {"^x-": {}}}).extra
    assert read({"type": "object"}).extra
