"""Validators for JSON Schemas from strangers: they end in time and fetch nothing.

A schema can refer to itself and to JSON Schema's own drafts only. Every keyword looks at the clock, so a schema whose
branches multiply ends with an error; one that nests too deeply ends at Python's recursion limit; what jsonschema does
in one long step is replaced here (``uniqueItems``, and regular expressions, for which see `patterns`).

One thing is let pass: a ``pattern`` in a dialect of regular expressions that Python does not have. The server knows its
own dialect, and it is the one that runs the tool.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, Final, TypeAlias

import attrs
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from jupyter_agentbox.core.calls import JsonValue, canonical_json

from . import patterns

#: Seconds that the check of a schema itself may take; after that it is used as it is.
_SCHEMA_TIME_LIMIT: Final = 0.25
#: How many problems of a schema are looked at to find the one that is worth telling.
_MOST_PROBLEMS: Final = 20
#: The length of the property names that a pattern must evidently be harmless for where it cannot be watched.
_LONG_NAME: Final = 1000

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

#: When the running check must end.
_deadline: ContextVar[float] = ContextVar("deadline")


class OutOfTimeError(Exception):
    """The check took too long."""


class UncheckableError(ValueError):
    """The schema cannot be used; the message says why."""


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Let validators that run inside raise `OutOfTimeError` after this long."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def compile_schema(schema: Mapping[str, JsonValue]) -> Validator:
    """Return a validator of the schema's draft, 2020-12 if it names none that is known. Call it inside `limit_time`.

    Raises
    ------
    UncheckableError
        If it is not a schema.
    """
    base = validator_for(schema, default=Draft202012Validator)
    limited = _LIMITED.get(base)
    if limited is None:
        limited = _LIMITED[base] = _limited_class(base)
    _check_schema(limited, base.META_SCHEMA, schema)
    if _mentions(schema, "unevaluatedProperties"):
        # jsonschema matches these patterns itself, out of our sight
        _check_patterns(schema)
    # an explicit registry: without one, jsonschema fetches what a `$ref` names
    validator: Validator = limited(schema, registry=REGISTRY)
    return validator


#: jsonschema's class for a draft -> ours.
_LIMITED: Final[dict[Any, Any]] = {}


def _limited_class(base: Any) -> Any:
    keywords = {name: _OWN.get(name, check) for name, check in base.VALIDATORS.items()}
    limited: Any = extend(base, {name: _limit(check) for name, check in keywords.items()})  # type: ignore[no-untyped-call]

    def evolve(self: Any, **changes: Any) -> Any:
        # jsonschema's own takes the class that a subschema's `$schema` names, and so would lose the limits
        for field in attrs.fields(limited):
            if field.init:
                changes.setdefault(field.alias, getattr(self, field.name))
        return limited(**changes)

    limited.evolve = evolve
    return limited


def _limit(check: _Keyword) -> _Keyword:
    def limited(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if time.monotonic() > _deadline.get():
            raise OutOfTimeError
        yield from check(validator, value, instance, schema) or ()

    return limited


def _check_schema(limited: Any, meta_schema: Any, schema: Mapping[str, JsonValue]) -> None:
    token = _deadline.set(min(_deadline.get(), time.monotonic() + _SCHEMA_TIME_LIMIT))
    try:
        problem = best_match(islice(limited(meta_schema, registry=REGISTRY).iter_errors(schema), _MOST_PROBLEMS))
    except (OutOfTimeError, RecursionError):
        return
    finally:
        _deadline.reset(token)
    if problem is not None:
        raise UncheckableError(f"{problem.json_path}: {problem.message}")


def is_plain(schema: Mapping[str, JsonValue], limit: int) -> bool:
    """Return whether a check takes at most `limit` steps for each value that is checked, whatever the values are.

    So it is with a small schema that refers to nothing and matches no pattern.
    """
    waiting: list[object] = [schema]
    steps = 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, bool):
            continue
        if not isinstance(node, dict) or not node.keys() <= _PLAIN:
            return False
        steps += len(node) + sum(len(each) for each in node.values() if isinstance(each, list | dict))
        if steps > limit:
            return False
        for name, value in node.items():
            if name == "properties" and isinstance(value, dict):
                waiting += value.values()
            elif name in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
                waiting += value
            elif name in ("items", "additionalProperties"):
                waiting.append(value)
    return True


def _mentions(schema: Mapping[str, JsonValue], keyword: str) -> bool:
    return f'"{keyword}"' in json.dumps(schema)


def _check_patterns(schema: object) -> None:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found = node.get("patternProperties")
            for pattern in found if isinstance(found, dict) else ():
                if not patterns.is_harmless(pattern, _LONG_NAME):
                    raise UncheckableError(f"the pattern {pattern!r:.100} may take too long to match")
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _matches(pattern: str, text: str) -> bool:
    return patterns.search(pattern, text, seconds=_deadline.get() - time.monotonic())


def _pattern(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "string"):
        return
    try:
        if not _matches(value, instance):
            yield ValidationError(f"{instance!r} does not match {value!r}")
    except re.error:
        return  # another dialect: the server's own check decides


def _pattern_properties(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in value.items():
        for name, content in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(content, subschema, path=name, schema_path=pattern)


def _additional(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    known = schema.get("properties", {})
    for name in instance:
        if name in known or any(_matches(pattern, name) for pattern in schema.get("patternProperties", {})):
            continue
        if validator.is_type(value, "object"):
            yield from validator.descend(instance[name], value, path=name)
        elif not value:
            choice = ", ".join(f"`{known_name}`" for known_name in known) or "none"
            problem = ValidationError(f"there is no such parameter (there are: {choice})")
            problem.path.appendleft(name)
            yield problem


def _unique_items(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not value or not validator.is_type(instance, "array"):
        return
    seen: set[str] = set()
    for item in instance:
        key = canonical_json(_plain(item))
        if key in seen:
            yield ValidationError("has equal items")
            return
        seen.add(key)


def _plain(value: Any) -> Any:
    """Return the value with ``1.0`` as ``1``, which JSON Schema takes as equal."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


#: Keywords whose check takes as many steps as they have parts.
_PLAIN: Final = frozenset(
    [
        "type",
        "title",
        "description",
        "default",
        "examples",
        "enum",
        "const",
        "format",
        "deprecated",
        "readOnly",
        "writeOnly",
        "required",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "properties",
        "items",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "allOf",
    ]
)
#: Keywords that are checked here and not by jsonschema.
_OWN: Final[dict[str, _Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "uniqueItems": _unique_items,
}
