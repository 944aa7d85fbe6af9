from __future__ import annotations

import ast
import asyncio
import inspect
import json
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_agentbox.codegen.modules import GeneratedModule, generate_module
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.kernel.functions import Default

from .conftest import Build, Recorder, execute

CORPUS = Path(__file__).parents[1] / "data" / "mcp-corpus"


def corpus() -> dict[str, list[ToolDescription]]:
    """The tool lists of 23 published MCP servers."""
    lists = [json.loads(path.read_text("utf-8")) for path in sorted(CORPUS.glob("*.json"))]
    return {
        each["server"]: [
            ToolDescription(
                name=tool["name"],
                title=tool.get("title") or "",
                description=tool.get("description") or "",
                input_schema=tool["inputSchema"],
                output_schema=tool.get("outputSchema"),
                annotations=tool.get("annotations") or {},
            )
            for tool in each["tools"]
        ]
        for each in lists
    }


@pytest.mark.parametrize(("server", "tools"), corpus().items(), ids=list(corpus()))
def test_every_published_tool_sends_exactly_the_names_of_its_schema(
    server: str, tools: list[ToolDescription], recorder: Recorder
) -> None:
    module = generate_module(server, tools)
    namespace = execute(module.source)

    assert [wire for wire, _ in module.functions] == [tool.name for tool in tools]
    for tool, (wire, python) in zip(tools, module.functions, strict=True):
        function = namespace[python]
        parameters = inspect.signature(function).parameters
        named = [each for each in parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        function(**{each.name: "value" for each in named})
        assert recorder.sent.pop() == (
            server,
            wire,
            dict.fromkeys(tool.input_schema.get("properties", {}), "value"),  # type: ignore[arg-type]
        )
        function(**{each.name: None for each in named if each.default is inspect.Parameter.empty})
        assert recorder.sent.pop()[2] == dict.fromkeys(tool.input_schema.get("required", []))  # type: ignore[arg-type]


def test_all_published_tools_are_generated_and_compiled() -> None:
    lists = corpus()

    for server, tools in lists.items():
        compile(generate_module(server, tools).source, server, "exec")

    assert sum(map(len, lists.values())) == 503


def test_same_tools_give_the_same_source() -> None:
    for server, tools in corpus().items():
        assert generate_module(server, tools) == generate_module(server, tools)


def test_signature_has_types_and_defaults_and_the_only_required_parameter_before_the_star(build: Build) -> None:
    function = build(
        {
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "default": 20},
                "status": {"enum": ["open", "closed"]},
                "note": {"type": ["string", "null"]},
            },
            "required": ["status"],
        }
    )

    assert str(inspect.signature(function)) == (
        "(status: Literal['open', 'closed'], *, limit: int = 20, note: str | None = <not sent>) -> Any"
    )
    assert function.__annotations__["status"] == Literal["open", "closed"]


@pytest.mark.parametrize(
    ("schema", "signature"),
    [
        ({"properties": {"from": {}}, "required": ["from"]}, "(from_: Any) -> Any"),
        ({"properties": {}, "required": ["a"]}, "(a: Any) -> Any"),
        ({"properties": {"a": {}, "b": {}}, "required": ["b"]}, "(b: Any, *, a: Any = <not sent>) -> Any"),
        ({"properties": {"a": {}, "b": {}}, "required": ["b", "a"]}, "(*, a: Any, b: Any) -> Any"),
        ({"properties": {"a": {}}}, "(*, a: Any = <not sent>) -> Any"),
        ({"properties": {"a": {}}, "required": ["a"], "additionalProperties": True}, "(a: Any, **extra: Any) -> Any"),
        (
            {"properties": {"a": {}, "b": {}}, "required": ["a"], "additionalProperties": True},
            "(a: Any, *, b: Any = <not sent>, **extra: Any) -> Any",
        ),
        ({"type": "object"}, "(**extra: Any) -> Any"),
    ],
)
def test_only_a_parameter_that_alone_is_required_can_be_given_by_position(
    schema: Any, signature: str, build: Build
) -> None:
    assert str(inspect.signature(build(schema))) == signature


async def test_the_only_required_argument_is_sent_by_position_as_by_name(build: Build, recorder: Recorder) -> None:
    function = build({"properties": {"limit": {}, "order-id": {}}, "required": ["order-id"]})

    function(1042)
    function(1042, limit=2)
    function(order_id=1042)
    function.raw(1042)
    await function.aio(1042)

    sent = [arguments for _, _, arguments in recorder.sent]
    assert sent == [{"order-id": 1042}, {"order-id": 1042, "limit": 2}, *[{"order-id": 1042}] * 3]
    for wrong in (function, function.raw, function.aio):
        with pytest.raises(TypeError):
            wrong(1042, 2)
        with pytest.raises(TypeError):
            wrong(1042, order_id=1042)
        with pytest.raises(TypeError):
            wrong()


def test_other_keywords_beside_an_argument_by_position_are_sent_under_their_names(
    build: Build, recorder: Recorder
) -> None:
    function = build({"properties": {"extra": {}}, "required": ["extra"], "additionalProperties": True})

    function(1, note=2)

    assert recorder.sent[0][2] == {"extra": 1, "note": 2}
    with pytest.raises(TypeError):
        function(1, extra_=2)


def test_values_that_were_not_given_are_not_sent_and_an_explicit_none_is(build: Build, recorder: Recorder) -> None:
    function = build({"properties": {"limit": {"default": 20}, "note": {}, "tag": {}}})

    function(note=None, limit=20)
    function()

    assert [arguments for _, _, arguments in recorder.sent] == [{"note": None, "limit": 20}, {}]


async def test_function_can_be_awaited_with_the_same_signature_and_documentation(
    build: Build, recorder: Recorder
) -> None:
    function = build({"properties": {"from": {}}, "required": ["from"]}, name="get-it", description="Gets it.")

    assert (await function.aio(from_=1)).sent == 1
    assert recorder.sent == [("shop", "get-it", {"from": 1})]
    assert inspect.signature(function.aio) == inspect.signature(function)
    assert function.aio.__doc__ == function.__doc__
    with pytest.raises(TypeError):
        function.aio()


def test_raw_variant_gives_the_whole_result(build: Build, recorder: Recorder) -> None:
    assert build().raw().structured == {"sent": 1}


def test_names_are_mapped_and_clashes_get_a_suffix(build: Build, recorder: Recorder) -> None:
    function = build({"properties": {"user-id": {}, "user_id": {}, "from": {}, "_call": {}, "1st": {}, "": {}}})

    names = ["user_id", "user_id_", "from_", "_call_", "p_1st", "p"]
    assert sorted(inspect.signature(function).parameters) == sorted(names)
    function(user_id=1, user_id_=2, from_=3, _call_=4, p_1st=5, p=6)
    assert recorder.sent[0][2] == {"user-id": 2, "user_id": 1, "from": 3, "_call": 4, "1st": 5, "": 6}


def test_tools_may_be_named_like_the_types_that_annotations_need(recorder: Recorder) -> None:
    schema: Any = {"properties": {"list": {"type": "array", "items": {"type": "string"}}, "x": {}}}
    names = ["list", "str", "Any", "Literal", "dict", "Default", "print"]
    module = generate_module("shop", [ToolDescription(name=name, input_schema=schema) for name in names])

    namespace = execute(module.source)

    assert module.functions == tuple((name, name) for name in names)
    for name in names:
        namespace[name](list=["a"], x=1)
        assert recorder.sent.pop() == ("shop", name, {"list": ["a"], "x": 1})
        assert namespace[name].__annotations__["list"] == list[str]


def test_of_two_tools_with_one_name_the_first_counts() -> None:
    tools = [ToolDescription(name="a", description="one"), ToolDescription(name="a", description="two")]

    module = generate_module("shop", tools)

    assert module.functions == (("a", "a"),)
    assert "two" not in module.source


def test_server_without_tools_is_an_empty_module() -> None:
    module = generate_module("shop", [])

    assert module == GeneratedModule(source=module.source, functions=())
    execute(module.source)


def test_free_form_input_takes_any_keyword(build: Build, recorder: Recorder) -> None:
    build({"type": "object"})(anything=1)
    build({"properties": {"a": {}}, "additionalProperties": {"type": "string"}})(a=1, b="2")
    build("no schema")(**{"not an identifier": 1})

    assert [sent for _, _, sent in recorder.sent] == [{"anything": 1}, {"a": 1, "b": "2"}, {"not an identifier": 1}]


def test_unknown_keyword_is_a_mistake_where_the_schema_lists_all(build: Build) -> None:
    with pytest.raises(TypeError):
        build({"properties": {"status": {}}})(statsu="open")


NASTY = [
    '"""\nraise SystemExit\n"""',
    "'''\nraise SystemExit\n'''",
    'ends with a quote"',
    "ends with a backslash\\",
    "\\N{BULLET} \\x00 \\u202e \\",
    "null \x00 byte",
    "lone \ud800 surrogate",
    "a\rb\r\nc\x0cd\x85e\u2028f\u2029g",
    "bidi \u202e override and zero\u200bwidth",
    "{__import__('os').abort()}",
    "# coding: utf-7",
    "\x1a",
]


@pytest.mark.parametrize("text", NASTY)
def test_text_of_a_server_can_neither_run_nor_break_the_source(text: str, recorder: Recorder) -> None:
    schema: Any = {
        "type": "object",
        "title": text,
        "properties": {
            text: {"description": text, "default": text, "title": text, "pattern": text},
            "choice": {"enum": [text, "b"], "default": text},
            "object": {"type": "object", "properties": {text: {"type": "string"}}, "required": [text]},
        },
        "required": [text],
    }
    tool = ToolDescription(name=text, title=text, description=text, input_schema=schema, output_schema=schema)

    module = generate_module(text, [tool])
    namespace = execute(module.source)
    function = namespace[module.functions[0][1]]
    first = next(iter(inspect.signature(function).parameters))
    function(**{first: 1})

    assert recorder.sent == [(text, text, {text: 1})]
    assert module.source.encode("utf-8").decode().replace("\n", "").isprintable()
    statements = [type(each).__name__ for each in ast.parse(module.source).body]
    assert set(statements) <= {"Expr", "ImportFrom", "Assign", "ClassDef", "FunctionDef"}
    assert statements.count("FunctionDef") == 1
    json.dumps(inspect.getdoc(function))


def deep(levels: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def deep_unions(levels: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"anyOf": [schema, schema, {"type": "array", "items": schema}]}
    return {"properties": {"a": schema}}


HOSTILE = {
    "10,000 levels": deep(10_000),
    "10,000 levels of unions": deep_unions(10_000),
    "cycle through the document": {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/properties/b"}}},
    "references in a ring": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"a": {"$ref": "#/$defs/a"}},
    },
    "recursive tree": {
        "$defs": {"n": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}] * 50}}}},
        "properties": {"a": {"$ref": "#/$defs/n"}},
    },
    "remote reference": {"properties": {"a": {"$ref": "file:///etc/passwd"}, "b": {"$ref": "http://x.invalid/s"}}},
    "root is a remote reference": {"$ref": "https://x.invalid/schema.json"},
    "50,000 properties": {"properties": {f"p{number}": {"type": "string"} for number in range(50_000)}},
    "50,000 nodes": {"properties": {f"a{i}": {"properties": {f"b{j}": {} for j in range(250)}} for i in range(200)}},
    "enum of 100,000": {"properties": {"a": {"enum": [f"value {number}" for number in range(100_000)]}}},
    "enum of long texts": {"properties": {"a": {"enum": ["x" * 100_000] * 3}}},
    "wide union": {"properties": {"a": {"anyOf": [{"const": number} for number in range(50_000)]}}},
    "all of itself": {"allOf": [{"$ref": "#"}] * 50, "anyOf": [{"$ref": "#"}] * 50},
    "properties is a list": {"type": "object", "properties": ["a"]},
    "properties are no schemas": {"properties": {"a": True, "b": None, "c": 3, "d": [], "e": "f"}},
    "required is no list": {"properties": {"a": {}}, "required": "a"},
    "required is not text": {"properties": {"a": {}}, "required": [1, None, {}]},
    "types that are none": {"properties": {"a": {"type": "any"}, "b": {"type": [1, {}]}, "c": {"type": {}}}},
    "huge name": {"properties": {"a" * 1_000_000: {}}},
    "nan default": {"properties": {"a": {"default": float("nan")}, "b": {"default": float("inf")}}},
    "huge default": {"properties": {"a": {"default": list(range(100_000))}, "b": {"default": 10**5000}}},
    "deep default": {"properties": {"a": {"default": deep(10_000)}}},
    "a list": [],
    "nothing": None,
    "a number": 3,
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_schema_costs_little_and_gives_a_function(schema: Any, build: Build, recorder: Recorder) -> None:
    started = time.process_time()

    function = build(schema, output_schema=schema)
    function.__kwdefaults__ = None
    required = {
        name: 1
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    }
    function(**required)

    assert time.process_time() - started < 20
    assert len(recorder.sent) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=10,
)
keywords = st.sampled_from(
    ["type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "default",
     "description", "title", "additionalProperties", "patternProperties", "$defs", "pattern"]
)  # fmt: skip
schemas = st.recursive(
    json_values | st.sampled_from(["string", "object", "array", ["string", "null"], "#", "#/properties/a"]),
    lambda children: (
        st.dictionaries(keywords | st.text(max_size=5), children, max_size=5) | st.lists(children, max_size=4)
    ),
    max_leaves=25,
)
texts = st.text(st.characters(exclude_categories=[]))


@settings(max_examples=300, deadline=None)
@given(schema=schemas, output=schemas, name=texts, text=texts)
def test_any_schema_and_any_text_give_a_module_that_runs(schema: Any, output: Any, name: str, text: str) -> None:
    tool = ToolDescription(name=name, title=text, description=text, input_schema=schema, output_schema=output)

    module = generate_module(text, [tool])

    assert execute(module.source)[module.functions[0][1]].__doc__


@settings(max_examples=200, deadline=None)
@given(names=st.lists(texts, unique=True, max_size=12))
def test_any_property_names_are_sent_as_they_are(names: list[str]) -> None:
    from jupyter_agentbox.kernel import runtime

    schema: Any = {"type": "object", "properties": {name: {} for name in names}, "required": names}
    module = generate_module("shop", [ToolDescription(name="tool", input_schema=schema)])
    function = execute(module.source)["tool"]
    recorder = Recorder()
    runtime.use(recorder)  # type: ignore[arg-type]
    try:
        function(**{name: number for number, name in enumerate(inspect.signature(function).parameters)})
    finally:
        runtime.use(None)

    assert recorder.sent[0][2] == {name: number for number, name in enumerate(names)}


def test_default_shows_the_schemas_value(build: Build) -> None:
    function = build({"properties": {"a": {"default": [1, {"b": None}]}}})

    default = inspect.signature(function).parameters["a"].default
    assert isinstance(default, Default)
    assert repr(default) == "[1, {'b': None}]"


def test_documentation_names_parameters_types_and_wire_names(build: Build) -> None:
    function = build(
        {
            "properties": {
                "from": {"type": "string", "description": "Where from."},
                "items": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
            },
            "required": ["from"],
        },
        name="add-order",
        title="Add an order",
        description="Adds one.\n\nOnly one.",
        annotations={"destructiveHint": True, "readOnlyHint": "yes"},
    )

    assert inspect.getdoc(function) == inspect.cleandoc(
        """
        Add an order

        Adds one.

        Only one.

        The server says (a hint, not a promise): it may delete or overwrite.

        Parameters
        ----------
        from_ : str
            Where from.
            Sent as `from`.
        items : list[AddOrderItemsItem], optional

        Returns
        -------
        Any

        Types
        -----
        AddOrderItemsItem : dict
            sku: NotRequired[str]
        """
    )


def test_result_annotation_looks_through_the_wrapper(build: Build) -> None:
    wrapped: Any = {"type": "object", "properties": {"result": {"type": "array", "items": {"type": "integer"}}}}

    assert build(output_schema=wrapped).__annotations__["return"] == list[int]


def test_module_can_be_used_from_several_loops(build: Build, recorder: Recorder) -> None:
    function = build()

    assert [asyncio.run(function.aio()).sent for _ in range(2)] == [1, 2]
