"""Class names of generated packages, after the rules of datamodel-code-generator, which ipybox uses.

A class is named after its property, in camel case: ``sort_by`` becomes ``SortBy``. The items of an array have the
singular: those of ``entities`` become `Entity`; if there is no singular, ``Item`` or ``Enum`` is appended. A definition
has its name under ``$defs``. Duplicates are numbered: outer objects come before inner ones, definitions last.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue

#: Attributes of pydantic's models, which are not used as field names.
SHADOWED: Final = frozenset(
    {
        "construct",
        "copy",
        "dict",
        "from_orm",
        "json",
        "parse_file",
        "parse_obj",
        "parse_raw",
        "schema",
        "schema_json",
        "update_forward_refs",
        "validate",
        "model_computed_fields",
        "model_config",
        "model_construct",
        "model_copy",
        "model_dump",
        "model_dump_json",
        "model_extra",
        "model_fields",
        "model_fields_set",
        "model_json_schema",
        "model_parametrized_name",
        "model_post_init",
        "model_rebuild",
        "model_validate",
        "model_validate_json",
        "model_validate_strings",
    }
)
#: Names with another meaning in generated modules.
_KEPT: Final = frozenset({"Any", "Literal", "None", "True", "False"})
#: A name that enumeration members cannot have.
_OF_ENUM: Final = frozenset({"mro"})
_KINDS: Final = {bool: "boolean", int: "integer", float: "number"}
_DEEPEST: Final = 10
_MOST_NODES: Final = 1500
_MOST_VALUES: Final = 1000
_LONGEST: Final = 80
_NOT_WORD: Final = re.compile(r"\W")
_NOT_ASCII: Final = re.compile(r"\W", re.ASCII)

_IRREGULAR: Final = {
    "children": "child",
    "criteria": "criterion",
    "data": "datum",
    "metadata": "metadatum",
    "ties": "tie",
    "pies": "pie",
    "elves": "elf",
    "feet": "foot",
    "halves": "half",
    "leaves": "leaf",
    "lives": "life",
    "men": "man",
    "women": "woman",
    "people": "person",
    "phenomena": "phenomenon",
    "shelves": "shelf",
    "knives": "knife",
    "wolves": "wolf",
    "movies": "movie",
    "cookies": "cookie",
    "series": "series",
    "species": "species",
    "news": "news",
    "pois": "pois",
    "caches": "cache",
    "axes": "axe",
    "indices": "indice",
}
#: Words that end like a plural, but that the original library does not consider one.
_NO_PLURAL: Final = re.compile(r"ss\Z|status\Z")
#: The first matching ending is replaced.
_ENDINGS: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"([^aeiou])ies\Z", r"\1y"),
        (r"(ss|sh|ch|x|tz)es\Z", r"\1"),
        (r"(stat|vir|bon|foc|camp)uses\Z", r"\1us"),
        (r"([^hnt])oes\Z", r"\1o"),
        (r"s\Z", ""),
    )
)


def singular(name: str, suffix: str = "Item") -> str:
    """Return the singular of a name in camel case; if it is not a plural, append the suffix."""
    head, word = _last_word(name)
    lower = word.lower()
    found = _IRREGULAR.get(lower)
    if found is None and not _NO_PLURAL.search(lower):
        for ending, replacement in _ENDINGS:
            found, count = ending.subn(replacement, lower)
            if count:
                break
        else:
            found = None
    if not found:
        return name + suffix
    return head + (word[:1] + found[1:] if word[:1].isupper() else found)


def _last_word(name: str) -> tuple[str, str]:
    start = max((place for place, char in enumerate(name) if char.isupper()), default=0)
    return name[:start], name[start:]


def class_name(name: str) -> str:
    """Return the class name for a property's name: ``line_items`` becomes ``LineItems``."""
    words = identifier(name).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) or "Model"


def identifier(name: str, *, reserved: Iterable[str] = ()) -> str:
    """Return the identifier of a field or enumeration member: ``$meta`` becomes ``field_meta``."""
    # Python normalizes identifiers to this form.
    text = _NOT_WORD.sub("_", unicodedata.normalize("NFKC", name[: 4 * _LONGEST]))[:_LONGEST]
    if not f"_{text}".isidentifier():  # a word character that identifiers may not contain, such as U+00B2
        text = _NOT_ASCII.sub("_", text)
    if not text:
        return "field_"
    if not text[0].isidentifier():
        text = f"field_{text}"
    if text.startswith("_"):
        text = f"field{text}"
    return f"{text}_" if keyword.iskeyword(text) or text in reserved else text


def identifiers(names: Iterable[str], *, reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return unique identifiers for names; the second of two equal ones ends with ``_1``.

    Names that are identifiers stay unchanged, so that no value passed by name reaches another field.
    """
    wire = list(names)
    first = sorted(wire, key=lambda name: identifier(name, reserved=reserved) != name)
    found = dict(zip(first, _numbered(first, reserved), strict=True))
    return {name: found[name] for name in wire}


def _numbered(names: Iterable[str], reserved: Iterable[str]) -> list[str]:
    taken: dict[str, None] = {}
    for name in names:
        stem = free = identifier(name, reserved=reserved)
        number = 0
        while free in taken:
            number += 1
            free = f"{stem}_{number}"
        taken[free] = None
    return list(taken)


class UniqueNames:
    """Makes class names unique by adding a number. A name has at most 80 characters, plus the number.

    Parameters
    ----------
    taken : set of str
        The names that are taken; those that are given out are added.
    """

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._numbers: dict[str, int] = {}

    def __call__(self, wanted: str) -> str:
        """Return this name or, if it is taken, the name with the lowest free number."""
        wanted = wanted[:80]
        name = wanted
        while name in self._taken:
            self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            name = f"{wanted}{self._numbers[wanted]}"
        self._taken.add(name)
        return name


@dataclass(frozen=True, slots=True)
class EnumClass:
    """An enumeration: its name, and the members' names and values."""

    name: str
    members: Mapping[str, JsonValue]

    @property
    def source(self) -> str:
        """The class."""
        lines = "".join(f"    {name} = {value!r}\n" for name, value in self.members.items())
        return f"class {self.name}(_Enum):\n{lines}"


@dataclass(slots=True)
class ClassNames:
    """The names of one document's classes.

    Parameters
    ----------
    objects : dict
        `id` of each schema, mapped to its class name.
    enums : dict
        `id` of each schema, mapped to its enumeration.
    """

    objects: dict[int, str] = field(default_factory=dict)
    enums: dict[int, EnumClass] = field(default_factory=dict)
    schemas: dict[str, JsonObject] = field(default_factory=dict)

    def without(self, names: Iterable[str]) -> ClassNames:
        """Return the names except for these."""
        gone = set(names)
        gone |= _KEPT
        return ClassNames(
            objects={key: name for key, name in self.objects.items() if name not in gone},
            enums={key: each for key, each in self.enums.items() if each.name not in gone},
            schemas={name: schema for name, schema in self.schemas.items() if name not in gone},
        )


def read_class_names(document: JsonValue, top: str, resolve: Callable[[JsonValue], JsonValue]) -> ClassNames:
    """Return the class names for a document.

    Parameters
    ----------
    document : JSON value
        A tool's schema, untrusted.
    top : str
        The name of the outermost class.
    resolve : callable
        Follows a reference.
    """
    walk = _Walk(resolve, taken={top})
    if isinstance(target := resolve(document), dict):
        walk.seen.add(id(target))
        walk.visit_fields(target, 0)
        while walk.later:
            schema, name = walk.later.pop(0)
            walk.define(schema, name)
    return walk.names


class _Walk:
    """Visits the schemas of a document in the order in which classes are named."""

    def __init__(self, resolve: Callable[[JsonValue], JsonValue], taken: set[str]) -> None:
        self.names = ClassNames()
        self.later: list[tuple[JsonObject, str]] = []
        self.seen: set[int] = set()
        self._resolve = resolve
        self._taken = taken
        self._nodes = 0

    def visit(self, schema: JsonValue, name: str, depth: int, *, in_array: bool = False) -> None:
        """Name the classes of a schema and its subschemas."""
        self._nodes += 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self._nodes > _MOST_NODES:
            return
        options = _parts(schema, "anyOf") or _parts(schema, "oneOf")
        if "$ref" in schema:
            self._refer(schema)
        elif schema.get("type") == "array" or (isinstance(schema.get("items"), dict) and "properties" not in schema):
            self._visit_items(schema, name, depth)
        elif options and len(values := _constants(options)) == len(options):
            self._name_enum(schema, self._class(name, "Enum", in_array=in_array), values)
        elif options:
            for option in options:
                self.visit(option, name, depth + 1)
        else:
            self._visit_plain(schema, name, depth, in_array=in_array)

    def _visit_plain(self, schema: JsonObject, name: str, depth: int, *, in_array: bool) -> None:
        values = schema.get("enum")
        if len(parts := _parts(schema, "allOf")) == 1:
            self.visit(parts[0], name, depth + 1, in_array=in_array)
        elif isinstance(schema.get("properties"), dict) and schema["properties"]:
            self._name_object(schema, self._class(name, "Item", in_array=in_array), depth)
        elif isinstance(extra := schema.get("additionalProperties"), dict):
            self.visit(extra, name, depth + 1)
        elif "const" not in schema and isinstance(values, list):
            self._name_enum(schema, self._class(name, "Enum", in_array=in_array), values)

    def visit_fields(self, schema: JsonObject, depth: int) -> None:
        """Name the classes of the properties of an object."""
        properties = schema.get("properties")
        if isinstance(properties, dict):
            names = identifiers(properties, reserved=SHADOWED)
            for wire, value in properties.items():
                self.visit(value, names[wire], depth + 1)

    def define(self, schema: JsonObject, name: str) -> None:
        """Name the classes within a definition."""
        if isinstance(schema.get("properties"), dict):
            self.visit_fields(schema, 0)
        elif isinstance(values := schema.get("enum"), list):
            self._name_enum(schema, name, values)
        elif schema.get("type") == "array":
            self._visit_items(schema, name, 0)

    def _visit_items(self, schema: JsonObject, name: str, depth: int) -> None:
        items = schema.get("items")
        for item in items if isinstance(items, list) else [items]:
            self.visit(item, name, depth + 1, in_array=True)

    def _refer(self, schema: JsonObject) -> None:
        target = self._resolve(schema)
        reference = schema["$ref"]
        if not isinstance(target, dict) or not isinstance(reference, str) or id(target) in self.seen:
            return
        self.seen.add(id(target))
        name = self._free(class_name(reference.rsplit("/", 1)[-1]))
        if isinstance(target.get("properties"), dict):
            self.names.objects[id(target)] = name
            self.names.schemas[name] = target
        self.later.append((target, name))

    def _name_object(self, schema: JsonObject, name: str, depth: int) -> None:
        if id(schema) in self.seen:
            return
        self.seen.add(id(schema))
        self.names.objects[id(schema)] = name
        self.names.schemas[name] = schema
        self.visit_fields(schema, depth)

    def _name_enum(self, schema: JsonObject, name: str, values: list[JsonValue]) -> None:
        if len(values) > _MOST_VALUES:
            return
        found = [value for value in values if value is not None]
        if not found or not all(isinstance(value, str | int | float) for value in found):
            return
        members = _numbered([_member(schema, value) for value in found], reserved=_OF_ENUM)
        self.names.enums[id(schema)] = EnumClass(name=name, members=dict(zip(members, found, strict=True)))
        self.names.schemas[name] = schema

    def _class(self, name: str, suffix: str, *, in_array: bool) -> str:
        wanted = class_name(name)
        return self._free(singular(wanted, suffix) if in_array else wanted)

    def _free(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}{number}"
        self._taken.add(name)
        return name


def _member(schema: JsonObject, value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    kind = schema.get("type")
    if not isinstance(kind, str):
        kind = _KINDS[type(value)] if "enum" not in schema else type(value).__name__
    return f"{kind}_{value}"


def _constants(options: list[JsonValue]) -> list[JsonValue]:
    return [option["const"] for option in options if isinstance(option, dict) and "const" in option]


def _parts(schema: JsonObject, key: str) -> list[JsonValue]:
    parts = schema.get(key)
    return parts[:60] if isinstance(parts, list) else []
