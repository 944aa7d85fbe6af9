from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.codegen.annotations import Annotations, Spelling, class_part, describe_values


def annotate(schema: Any, document: Any = None) -> str:
    return Annotations(document, Spelling(()), lambda name: name).annotate(schema, "Order")


@pytest.mark.parametrize(
    ("schema", "annotation"),
    [
        ({"type": "string"}, "str"),
        ({"type": "number"}, "float"),
        ({"type": ["integer", "null"]}, "int | None"),
        ({"type": ["null", "null"]}, "None"),
        ({"const": "a"}, "Literal['a']"),
        ({"enum": ["a", 1, None, True]}, "Literal['a', 1, None, True]"),
        ({"enum": [1.5, "a", None]}, "float | str | None"),
        ({"enum": [[1], "a"]}, "Any"),
        ({"enum": list(range(100))}, "int"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}, "str | None"),
        ({"oneOf": [{"type": "string"}, True]}, "Any"),
        ({"allOf": [{"type": "string"}]}, "str"),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "Any"),
        ({"type": "array", "items": {"type": "integer"}}, "list[int]"),
        ({"items": {"type": "integer"}}, "list[int]"),
        ({"type": "array", "items": [{"type": "integer"}]}, "list[Any]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"properties": {"id": {"type": "integer"}}}, "Order"),
        ({}, "Any"),
        (True, "Any"),
    ],
)
def test_clear_schema_becomes_a_type_and_others_any(schema: Any, annotation: str) -> None:
    assert annotate(schema) == annotation


@pytest.mark.parametrize(
    ("reference", "annotation"),
    [
        ("#/$defs/a~1b", "str"),
        ("#/$defs/c%20d", "int"),
        ("#/list/0", "bool"),
        ("#/list/9", "Any"),
        ("#/list/x", "Any"),
        ("#/nowhere", "Any"),
        ("#anchor", "dict[str, Any]"),
        ("file:///etc/passwd", "Any"),
        (3, "Any"),
    ],
)
def test_references_lead_inside_the_document_only(reference: Any, annotation: str) -> None:
    document: Any = {
        "type": "object",
        "$defs": {"a/b": {"type": "string"}, "c d": {"type": "integer"}},
        "list": [{"type": "boolean"}],
    }

    assert annotate({"$ref": reference}, document) == annotation


def test_object_becomes_a_typed_dict_once() -> None:
    schema: Any = {"properties": {"id": {"type": "integer"}, "note": {}}, "required": ["id"]}
    annotations = Annotations(None, Spelling(()), lambda name: name)

    assert annotations.annotate(schema, "Order") == annotations.annotate(schema, "Other") == "Order"
    (found,) = annotations.classes
    assert found.source == "class Order(TypedDict):\n    id: int\n    note: NotRequired[Any]\n"
    assert found.fields == ("id: int", "note: NotRequired[Any]")


def test_keys_that_no_class_body_can_have_are_spelled_as_a_call() -> None:
    annotations = Annotations(None, Spelling(()), lambda name: name)

    annotations.annotate({"properties": {"user-id": {"type": "string"}, "__x": {}}}, "Order")

    assert annotations.classes[0].source == (
        "Order = TypedDict('Order', {'user-id': NotRequired[str], '__x': NotRequired[Any]})\n"
    )


def test_names_that_functions_took_are_spelled_with_an_alias() -> None:
    spell = Spelling({"list"})

    assert Annotations(None, spell, str).annotate({"type": "array"}, "X") == "_list[Any]"
    assert spell.used == {"list": "_list", "Any": "Any"}


def test_class_part_is_made_of_the_words() -> None:
    assert class_part("line_items-2nd") == "LineItems2nd"


def test_what_an_annotation_cannot_show_is_described() -> None:
    notes = describe_values({"enum": [f"v{n}" for n in range(100)], "default": "x" * 1000, "pattern": "^a\u202e$"})

    assert notes == (
        "One of 100 values: 'v0', 'v1', 'v2', 'v3', 'v4', …\n"
        "The server's default is too long to show.\n"
        "Pattern: ^a<U+202E>$"
    )
    assert describe_values(True) == ""
