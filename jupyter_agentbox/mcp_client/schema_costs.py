"""Estimates the cost of validating arguments against a schema, before the schema is compiled.

Validation against a small schema takes, for each value, at most as many steps as the schema has parts, provided that
it has no recursive references and its patterns match in linear time. For other schemas there is no estimate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonValue

#: Maximum number of parts of a small schema, including its references.
MOST_STEPS: Final = 10_000
#: Maximum length of a pattern in a small schema, in characters.
_LONGEST_PATTERN: Final = 1000
#: Assumed steps per character of a pattern; below, the maximum for a pattern, which must not become larger when
#: compiled, see `schemas`.
_STEPS_OF_CHARACTER: Final = 5
_STEPS_OF_PATTERN: Final = 2000
_REPEATS: Final = re.compile(r"\{\d{0,9},?(\d{1,9})\}")
_LARGE_CLASS: Final = re.compile(r"\\[wWDSpPbB]")
#: A reference to a definition that all validators resolve alike: unescaped, with a single-name path.
_PLAIN_REFERENCE: Final = re.compile(r"#/([\w$.-]+)/([\w$.-]+)", re.ASCII)
#: Keywords that can make a reference lead elsewhere than its text says.
_OF_REFERENCES: Final = ("$id", "id", "$anchor", "$dynamicAnchor")
#: How many characters of text count as one part: they are only copied.
_CHARACTERS: Final = 50
_DEEPEST: Final = 60

#: Keywords that take at most as many steps as they have parts, or are not validated.
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
    """Upper bound on the cost of validating a value.

    Parameters
    ----------
    parts : int
        Number of parts of the schema.
    steps : int
        Steps for each byte of the value.
    """

    parts: int
    steps: int


class _UnknownCostError(Exception):
    pass


def cost_of(schema: Mapping[str, JsonValue]) -> Cost | None:
    """Return the maximum cost of validating a value; ``None`` if it is not known to be small."""
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
    """Return the definition in the schema that a simple reference names."""
    if isinstance(reference, str) and (parts := _PLAIN_REFERENCE.fullmatch(reference)) is not None:
        place, name = parts.groups()
        definitions = schema.get(place)
        if isinstance(definitions, dict) and name in definitions:
            return definitions[name]
    raise _UnknownCostError


def _measure(schema: Mapping[str, JsonValue]) -> None:
    """Raise if the document is too large to be compiled at once, or its references cannot be resolved by name."""
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
