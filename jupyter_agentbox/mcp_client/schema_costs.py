"""How long the check of arguments against a schema can take, known before it is compiled.

The check of a small schema takes, for each value, at most as many steps as the schema has parts, if it refers to itself
nowhere and its patterns are matched in linear time. Of any other schema nothing is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonValue

#: A schema of more parts, with what it refers to, is not small.
MOST_STEPS: Final = 10_000
#: The longest pattern of a small schema, in characters.
_LONGEST_PATTERN: Final = 1000
#: How many steps a character of a pattern is taken for, and a whole pattern at most: it may not become larger than that
#: when it is compiled, see `schemas`.
_STEPS_OF_CHARACTER: Final = 5
_STEPS_OF_PATTERN: Final = 2000
_REPEATS: Final = re.compile(r"\{\d{0,9},?(\d{1,9})\}")
_LARGE_CLASS: Final = re.compile(r"\\[wWDSpPbB]")
#: A reference to a definition that everybody reads alike: nothing in it is escaped, and one name is its whole way.
_PLAIN_REFERENCE: Final = re.compile(r"#/([\w$.-]+)/([\w$.-]+)", re.ASCII)
#: Keywords that let a reference lead elsewhere than its text says.
_OF_REFERENCES: Final = ("$id", "id", "$anchor", "$dynamicAnchor")
#: How many characters of text count as a part: they are copied, no more.
_CHARACTERS: Final = 50
_DEEPEST: Final = 60

#: Keywords that are checked in as many steps as they have parts, or that are not checked at all.
_FLAT: Final = frozenset(
    {
        *("$schema", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format"),
        *("deprecated", "readOnly", "writeOnly", "nullable", "type", "enum", "const", "required"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("minItems", "maxItems", "minProperties", "maxProperties"),
    }
)
_ONE_SCHEMA: Final = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "propertyNames"})
_LIST_OF_SCHEMAS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the check of one value costs at most.

    Parameters
    ----------
    parts : int
        How many parts of the schema it is checked against.
    steps : int
        How many steps that takes for each byte of it.
    """

    parts: int
    steps: int


class _UnknownCostError(Exception):
    pass


def cost_of(schema: Mapping[str, JsonValue]) -> Cost | None:
    """Return what the check of one value costs at most; ``None`` if that is not known to be little."""
    try:
        _measure(schema)
        parts = steps = 0
        waiting: list[tuple[object, int]] = [(schema, 0)]
        while waiting:
            node, depth = waiting.pop()
            parts += 1
            if isinstance(node, bool):
                continue
            if not isinstance(node, dict) or depth > _DEEPEST:
                return None
            parts += sum(map(_own_parts, node, node.values()))
            steps += _steps_of_pattern(node.get("pattern", ""))
            if parts + steps > MOST_STEPS:
                return None
            waiting += [(each, depth + 1) for each in _children(schema, node)]
        return Cost(parts=parts, steps=parts + steps)
    except _UnknownCostError:
        return None


def _own_parts(name: str, value: Any) -> int:
    if name in _FLAT or name.startswith("x-"):
        return 1 + (len(value) if isinstance(value, list) else 0)
    if name in ("properties", "$ref", "pattern") or name in _ONE_SCHEMA or name in _LIST_OF_SCHEMAS:
        return 1
    raise _UnknownCostError


def _steps_of_pattern(pattern: object) -> int:
    if not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
        raise _UnknownCostError
    if _LARGE_CLASS.search(pattern):
        return _STEPS_OF_PATTERN
    repeats = math.prod(max(1, int(each)) for each in _REPEATS.findall(pattern)[:10])
    return min(_STEPS_OF_PATTERN, _STEPS_OF_CHARACTER * len(pattern) * repeats)


def _children(schema: Mapping[str, JsonValue], node: Mapping[str, Any]) -> Iterator[object]:
    for name, value in node.items():
        if name == "properties" and isinstance(value, dict):
            yield from value.values()
        elif name in _LIST_OF_SCHEMAS and isinstance(value, list):
            yield from value
        elif name in _ONE_SCHEMA:
            yield value
        elif name == "$ref":
            yield _definition(schema, value)


def _definition(schema: Mapping[str, JsonValue], reference: object) -> object:
    """Return one of the schema's definitions, as nearly all references name one."""
    if isinstance(reference, str) and (parts := _PLAIN_REFERENCE.fullmatch(reference)) is not None:
        place, name = parts.groups()
        definitions = schema.get(place)
        if isinstance(definitions, dict) and name in definitions:
            return definitions[name]
    raise _UnknownCostError


def _measure(schema: Mapping[str, JsonValue]) -> None:
    """Raise if the whole document is too large to be compiled at once, or its references cannot be followed by name."""
    size = 0
    waiting: list[tuple[object, int]] = [(schema, 0)]
    while waiting:
        node, depth = waiting.pop()
        size += 1
        if isinstance(node, str):
            size += len(node) // _CHARACTERS
        elif isinstance(node, dict):
            if any(isinstance(node.get(name), str) for name in _OF_REFERENCES):
                raise _UnknownCostError
            size += len(node) + sum(map(len, node)) // _CHARACTERS
            waiting += [(each, depth + 1) for each in node.values()] if size <= MOST_STEPS else ()
        elif isinstance(node, list):
            size += len(node)
            waiting += [(each, depth + 1) for each in node] if size <= MOST_STEPS else ()
        if size > MOST_STEPS or depth > _DEEPEST:
            raise _UnknownCostError
