"""Generated packages: the names of their classes, over real tool lists and by rule."""

from __future__ import annotations

import ast
import json
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_agentbox.codegen.class_names import class_name, singular
from jupyter_agentbox.codegen.packages import generate_package
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.kernel import models
from jupyter_agentbox.kernel.models import Model

from .test_modules import CORPUS

#: The classes, and their fields, that mcpygen 0.1.4 with datamodel-code-generator 0.89 makes of the same tool lists.
OF_MCPYGEN = json.loads((CORPUS.parent / "mcpygen-class-names.json").read_text("utf-8"))
#: A string with bounds within an array has a class there; here it is a `str`.
NO_CLASS = {("mongodb-mcp-server", "atlas_create_cluster", "Region")}


def sources(path: Path) -> dict[str, str]:
    tools = [
        ToolDescription(
            name=tool["name"],
            title=tool.get("title") or "",
            description=tool.get("description") or "",
            input_schema=tool["inputSchema"],
            output_schema=tool.get("outputSchema"),
            annotations=tool.get("annotations") or {},
        )
        for tool in json.loads(path.read_text("utf-8"))["tools"]
    ]
    files = generate_package(path.stem, tools).files
    return {name.removesuffix(".py"): source for name, source in files.items() if name != "__init__.py"}


def classes(source: str) -> dict[str, list[str]]:
    """Return the classes of a module, and their fields or members."""
    return {
        node.name: [
            ast.unparse(line.target if isinstance(line, ast.AnnAssign) else line.targets[0])
            for line in node.body
            if isinstance(line, ast.AnnAssign | ast.Assign)
        ]
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }


def module(properties: dict[str, Any] | None, output: dict[str, Any] | None = None, **schema: Any) -> dict[str, Any]:
    """Generate a tool's module, run it and return what it defines."""
    tool = ToolDescription(
        name="tool",
        title="",
        description="",
        input_schema={"type": "object", **({} if properties is None else {"properties": properties}), **schema},
        output_schema=output,
        annotations={},
    )
    defined: dict[str, Any] = {"__name__": "generated"}
    exec(compile(generate_package("server", [tool]).files["tool.py"], "tool.py", "exec"), defined)
    return defined


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_classes_of_real_tools_have_the_names_that_programs_for_ipybox_import(path: Path) -> None:
    found = {name: classes(source) for name, source in sources(path).items()}
    missing = {
        (path.stem, name, cls)
        for name, expected in OF_MCPYGEN.get(path.stem, {}).items()
        for cls, fields in expected.items()
        if fields != ["root"] and [each for each in found[name].get(cls, []) if not each.startswith("_")] != fields
    }
    assert missing - NO_CLASS == set()


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_modules_of_real_tools_run_and_their_annotations_mean_something(path: Path) -> None:
    for name, source in sources(path).items():
        defined: dict[str, Any] = {"__name__": f"generated.{name}"}
        exec(compile(source, name, "exec"), defined)
        for each in list(defined.values()):
            if isinstance(each, type) and issubclass(each, Model) and each is not Model:
                get_type_hints(each, {**vars(models), **defined})


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("Entities", "Entity"),
        ("Addresses", "Address"),
        ("Boxes", "Box"),
        ("Matches", "Match"),
        ("Statuses", "Status"),
        ("Days", "Day"),
        ("People", "Person"),
        ("Movies", "Movie"),
        ("LineItems", "LineItem"),
        ("Data", "Datum"),
        ("Status", "StatusItem"),
        ("Class", "ClassItem"),
        ("Sort", "SortItem"),
    ],
)
def test_singulars_are_those_of_the_library(plural: str, expected: str) -> None:
    assert singular(plural) == expected


def test_names_become_classes_in_camel_case() -> None:
    assert [class_name(name) for name in ("sort_by", "resource-group", "$meta", "nodeGroups", "2d")] == [
        "SortBy",
        "ResourceGroup",
        "FieldMeta",
        "NodeGroups",
        "Field2d",
    ]


def test_what_an_array_holds_has_the_singular_and_the_earlier_name_still() -> None:
    entity = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    defined = module({"entities": {"type": "array", "items": entity}})
    assert defined["Entity"](name="Oslo").model_dump() == {"name": "Oslo"}
    assert defined["ParamsEntitiesItem"] is defined["Entity"]


def test_an_enumeration_is_a_class_whose_members_can_be_sent_and_so_can_its_values() -> None:
    defined = module({"sort_by": {"type": "string", "enum": ["name", "created at", "*", "class"]}})
    sort_by = defined["SortBy"]
    assert issubclass(sort_by, Enum)
    assert {member.name: member.value for member in sort_by} == {
        "name": "name",
        "created_at": "created at",
        "field_": "*",
        "class_": "class",
    }
    assert defined["Params"](sort_by=sort_by.created_at).model_dump() == {"sort_by": "created at"}
    assert defined["Params"](sort_by="name").model_dump() == {"sort_by": "name"}


def test_a_second_class_of_a_name_is_numbered() -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}}
    line = {"type": "object", "properties": {"end": {"type": "object", "properties": {"y": {"type": "integer"}}}}}
    defined = module({"end": point, "line": line})
    assert defined["End"]._fields.keys() == {"x"}
    assert defined["End1"]._fields.keys() == {"y"}


def test_a_definition_has_its_own_name() -> None:
    place = {"type": "object", "properties": {"x": {"type": "integer"}}}
    defined = module(
        {"from": {"$ref": "#/$defs/Place"}, "to": {"$ref": "#/$defs/Place"}}, **{"$defs": {"Place": place}}
    )
    assert defined["Params"](from_=defined["Place"](x=1)).model_dump() == {"from": {"x": 1}}


def test_of_two_classes_that_differ_the_results_has_the_name() -> None:
    asked = {"type": "object", "properties": {"id": {"type": "string"}}}
    given = {"type": "object", "properties": {"id": {"type": "string"}, "at": {"type": "string"}}}
    output = {"type": "object", "properties": {"records": {"type": "array", "items": given}}}
    defined = module({"records": {"type": "array", "items": asked}}, output)
    assert defined["Record"]._fields.keys() == {"id", "at"}
    assert defined["ParamsRecordsItem"]._fields.keys() == {"id"}


def test_fields_that_pydantic_shadows_have_its_names_and_their_own() -> None:
    params = module({"schema": {"type": "string"}, "$meta": {"type": "string"}})["Params"]
    given = params(schema_="main", field_meta="m")
    assert given == params(schema="main", meta="m") == params(**{"schema": "main", "$meta": "m"})
    assert given.model_dump() == given.model_dump(by_alias=True) == {"schema": "main", "$meta": "m"}
    assert given.model_dump(by_alias=False, exclude={"field_meta"}) == {"schema_": "main"}
    assert (given.schema, given.schema_, given.meta) == ("main", "main", "m")


def test_a_result_of_free_form_has_attributes_and_is_a_dict_still() -> None:
    result = module({}, {"type": "object", "additionalProperties": {"type": "integer"}})["Result"]
    made = result.model_validate({"a": 1})
    assert made.a == made["a"] == 1
    assert made == made.root == made.model_dump() == {"a": 1}
    assert made.model_dump_json() == '{"a": 1}'


@pytest.mark.parametrize("names", [["", "field_"], ["a-b", "a_b"], ["a_b_1", "a-b", "a b", "a_b"]])
def test_a_value_that_is_given_by_name_reaches_the_field_of_that_name(names: list[str]) -> None:
    given_values = {name: f"to {name}" for name in names}
    assert module({name: {"type": "string"} for name in names})["Params"](**given_values).model_dump() == given_values


@given(st.dictionaries(st.text(min_size=0, max_size=8), st.lists(st.text(max_size=5), min_size=1, max_size=4)))
@settings(max_examples=200, deadline=None)
def test_whatever_names_and_values_a_schema_has_the_module_runs_and_sends_them(enums: dict[str, list[str]]) -> None:
    defined = module({name: {"type": "string", "enum": values} for name, values in enums.items()})
    given_values = {name: values[0] for name, values in enums.items()}
    assert defined["Params"](**given_values).model_dump() == given_values


def test_letters_of_other_languages_stay() -> None:
    params = module({"größe": {"type": "string", "enum": ["groß"]}})
    assert params["Params"](größe=params["Größe"].groß).model_dump() == {"größe": "groß"}


def test_params_of_a_tool_without_properties_take_an_object() -> None:
    assert module(None)["Params"]({"anything": 1}).model_dump() == {"anything": 1}
