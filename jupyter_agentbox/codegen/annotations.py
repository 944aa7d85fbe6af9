"""Python annotations for JSON Schemas: what is unambiguous becomes a type, anything else ``Any``.

Schemas are untrusted. They may be cyclic, 10,000 levels deep, huge, or not schemas at all. So the number and depth of
visited nodes are limited, only references within the document are followed, and nothing is raised.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.text import one_line, visible

from .literals import literal, scalar

_DEEPEST: Final = 10
_MOST_NODES: Final = 1500
_MOST_FIELDS: Final = 200
_MOST_VALUES: Final = 60
_MOST_REFERENCES: Final = 20
_LONGEST: Final = 3000
_LONGEST_KEY: Final = 200
_BUILTINS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedDictSource:
    """A ``TypedDict``: its fields for documentation, and its source."""

    name: str
    fields: tuple[str, ...]
    source: str


class Spelling:
    """How a module refers to names that its own functions may hide.

    Parameters
    ----------
    taken : collection of str
        Names of the module's functions.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = frozenset(taken)
        self.used: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """Return the name, or an alias; `used` records which to import."""
        self.used[name] = f"_{name}" if name in self._taken else name
        return self.used[name]


class Annotations:
    """Generates the annotations for a document, and the ``TypedDict`` classes that they need.

    Parameters
    ----------
    document : JSON value
        The document that ``#`` in references refers to.
    spell : Spelling
        How to refer to built-in and typing names.
    class_name : callable
        Returns a free class name in the module for a proposed one.
    """

    def __init__(self, document: JsonValue, spell: Spelling, class_name: Callable[[str], str]) -> None:
        self.classes: list[TypedDictSource] = []
        self._document = document
        self._spell = spell
        self._class_name = class_name
        self._nodes = 0
        self._open: list[int] = []
        self._by_schema: dict[int, str] = {}

    def annotate(self, schema: JsonValue, name: str) -> str:
        """Return the annotation for a schema as source.

        Parameters
        ----------
        schema : JSON value
            Any value.
        name : str
            Proposed class name, in case the schema needs a class.
        """
        self._nodes += 1
        target = self.resolve(schema)
        if (
            not isinstance(target, dict)
            or self._nodes > _MOST_NODES
            or len(self._open) >= _DEEPEST
            or id(target) in self._open
        ):
            return self._spell("Any")
        self._open.append(id(target))
        try:
            text = self._annotate(target, name)
        finally:
            self._open.pop()
        return text if len(text) <= _LONGEST else self._spell("Any")

    def resolve(self, schema: JsonValue) -> JsonValue:
        """Follow local references; return ``None`` for one that is broken, circular, or external."""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            schema = self._point(schema["$ref"])
        return None

    def _point(self, reference: JsonValue) -> JsonValue:
        if not isinstance(reference, str) or not reference.startswith("#") or len(reference) > 500:
            return None
        found = self._document
        for part in reference[1:].split("/")[1:]:
            step = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdecimal() and len(step) < 6 and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found

    def _annotate(self, schema: JsonObject, name: str) -> str:
        if "const" in schema:
            return self._literal([schema["const"]])
        if isinstance(values := schema.get("enum"), list) and values:
            return self._literal(values)
        for key in ("anyOf", "oneOf"):
            if isinstance(options := schema.get(key), list) and options:
                return self._union(self.annotate(option, name) for option in options[:_MOST_VALUES])
        if isinstance(parts := schema.get("allOf"), list) and parts:
            return self.annotate(parts[0], name) if len(parts) == 1 else self._spell("Any")
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._union(self._of_type(item, schema, name) for item in kind[:_MOST_VALUES])
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else None
        return self._of_type(kind, schema, name)

    def _of_type(self, kind: JsonValue, schema: JsonObject, name: str) -> str:
        if kind == "null":
            return "None"
        if isinstance(kind, str) and kind in _BUILTINS:
            return self._spell(_BUILTINS[kind])
        if kind == "array":
            items = schema.get("items")
            inner = self.annotate(items, f"{name}Item") if isinstance(items, dict) else self._spell("Any")
            return f"{self._spell('list')}[{inner}]"
        return self._object(schema, name) if kind == "object" else self._spell("Any")

    def _literal(self, values: list[JsonValue]) -> str:
        if len(values) <= _MOST_VALUES:
            texts = [scalar(value) for value in values]
            if None not in texts and sum(len(text or "") for text in texts) <= 2000:
                return f"{self._spell('Literal')}[{', '.join(dict.fromkeys(map(str, texts)))}]"
        return self._union(self._type_of(value) for value in values[:_MOST_VALUES])

    def _type_of(self, value: JsonValue) -> str:
        if value is None:
            return "None"
        return self._spell(type(value).__name__) if isinstance(value, str | bool | int | float) else self._spell("Any")

    def _union(self, options: Iterable[str]) -> str:
        found = dict.fromkeys(options)
        if not found or self._spell("Any") in found:
            return self._spell("Any")
        # ``None | None`` is not a type, and ``None`` reads best at the end.
        return " | ".join(sorted(found, key=lambda option: option == "None"))

    def _object(self, schema: JsonObject, name: str) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not _can_be_fields(properties):
            extra = schema.get("additionalProperties")
            inner = self.annotate(extra, f"{name}Value") if isinstance(extra, dict) and extra else self._spell("Any")
            return f"{self._spell('dict')}[{self._spell('str')}, {inner}]"
        if id(schema) not in self._by_schema:
            self._by_schema[id(schema)] = self._typed_dict(schema, properties, name)
        return self._by_schema[id(schema)]

    def _typed_dict(self, schema: JsonObject, properties: Mapping[str, JsonValue], name: str) -> str:
        required = schema.get("required")
        needed = {item for item in required if isinstance(item, str)} if isinstance(required, list) else set()
        fields = {
            key: text if key in needed else f"{self._spell('NotRequired')}[{text}]"
            for key, text in ((key, self.annotate(field, name + class_part(key))) for key, field in properties.items())
        }
        class_name = self._class_name(name)
        base = self._spell("TypedDict")
        if all(_is_field(key) for key in fields):
            body = "\n".join(f"    {key}: {text}" for key, text in fields.items())
            source = f"class {class_name}({base}):\n{body}\n"
        else:
            pairs = ", ".join(f"{key!r}: {text}" for key, text in fields.items())
            source = f"{class_name} = {base}({class_name!r}, {{{pairs}}})\n"
        lines = tuple(f"{one_line(key)}: {text}" for key, text in fields.items())
        self.classes.append(TypedDictSource(name=class_name, fields=lines, source=source))
        return class_name


def class_part(name: str) -> str:
    """Return a name as part of a class name: ``line_items`` becomes ``LineItems``."""
    words = re.findall(r"[A-Za-z0-9]+", name[:60])
    return "".join(word[:1].upper() + word[1:] for word in words)


def describe_values(schema: JsonValue) -> str:
    """Return a line about values that the annotation does not show: a long enumeration, a long default."""
    if not isinstance(schema, dict):
        return ""
    notes = []
    values = schema.get("enum")
    if isinstance(values, list) and len(values) > _MOST_VALUES:
        shown = ", ".join(text for text in map(literal, values[:5]) if text)
        notes.append(f"One of {len(values)} values: {visible(shown)}, …")
    if schema.get("default") is not None and literal(schema["default"]) is None:
        notes.append("The server's default is too long to show.")
    if isinstance(pattern := schema.get("pattern"), str):
        notes.append(f"Pattern: {one_line(pattern)}")
    return "\n".join(notes)


def _can_be_fields(properties: JsonObject) -> bool:
    return 0 < len(properties) <= _MOST_FIELDS and len(max(properties, key=len)) <= _LONGEST_KEY


def _is_field(key: str) -> bool:
    # A name that starts with two underscores would be mangled in a class body.
    return key.isascii() and key.isidentifier() and not keyword.iskeyword(key) and not key.startswith("__")
