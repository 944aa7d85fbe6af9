"""Untrusted JSON Schemas, compiled with ``jsonschema_rs``: validation and error messages.

Nothing is fetched. The time taken is bounded elsewhere, see `schema_costs` and `schema_worker`. One thing is not
checked: a ``pattern`` that cannot be compiled. The server knows its own dialect, and runs the tool.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kind

from jupyter_agentbox.core.calls import JsonValue

#: Maximum size of a compiled regular expression in the Jupyter server's process, in bytes.
_SMALL_PATTERN: Final = 64 * 1024
#: The same, and the backtracking limit with look-around, in a process that can be killed.
_LARGE_PATTERN: Final = 50 * 1024 * 1024
_MOST_BACKTRACKING: Final = 1_000_000_000
#: Maximum length of a pattern, in characters.
LONGEST_PATTERN: Final = 10_000
#: Maximum number of a schema's patterns that are left to the server.
_MOST_LEFT_OUT: Final = 100
#: Our keyword that replaces a reference to outside the schema.
_UNRESOLVED: Final = "x-jupyter-agentbox-unresolved"
#: Keywords whose subschemas apply to the same value as the enclosing schema.
_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_LONGEST_VALUE: Final = 100


class UncheckableError(ValueError):
    """The schema is unusable; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A validation error.

    Parameters
    ----------
    path : tuple of str or int
        Its position: the parameter's name, and the path in its value. Empty if it concerns the whole.
    message : str
        The error message.
    """

    path: tuple[str | int, ...]
    message: str


class CompiledSchema:
    """A compiled schema for validating arguments.

    Parameters
    ----------
    schema : mapping
        The server's schema. Its draft is the declared one, or else 2020-12.
    is_small : bool
        Whether to refuse regular expressions that are large or have look-around.

    Raises
    ------
    UncheckableError
    """

    def __init__(self, schema: Mapping[str, JsonValue], *, is_small: bool) -> None:
        self._schema: dict[str, Any] = dict(schema)
        self._options: dict[str, Any] = {
            "pattern_options": (
                jsonschema_rs.RegexOptions(size_limit=_SMALL_PATTERN)
                if is_small
                else jsonschema_rs.FancyRegexOptions(backtrack_limit=_MOST_BACKTRACKING, size_limit=_LARGE_PATTERN)
            ),
            "validate_formats": False,  # annotations only, as in JSON Schema since 2019
            "offline": True,
            "keywords": {_UNRESOLVED: self._make_unresolved, "contentEncoding": _Note, "contentMediaType": _Note},
        }
        self._met: list[str] = []
        self._validator = self._compile() if is_small else self._compile_repaired()

    def fits(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether the arguments are valid.

        Raises
        ------
        UncheckableError
            If that depends on something outside the schema.
        """
        self._met.clear()
        result = self._validator.is_valid(arguments)
        self._look_at_references()
        return result

    def explain(self, arguments: Mapping[str, JsonValue]) -> Problem:
        """Return the error in invalid arguments.

        Raises
        ------
        UncheckableError
        """
        self._met.clear()
        errors = list(self._validator.iter_errors(arguments))
        self._look_at_references()
        if any(isinstance(each.kind, Kind.BacktrackLimitExceeded | Kind.RegexEngineFailure) for each in errors):
            raise UncheckableError("has a pattern that takes too long to match")
        return self._problem(min(errors, key=_rank))

    def _compile(self) -> jsonschema_rs.Validator:
        try:
            return _draft(self._schema)(self._schema, **self._options)
        except jsonschema_rs.ValidationError as error:
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
            raise _BrokenError(f"is broken: {('$' + place + ': ') if place else ''}{error.message}", error) from None
        except (ValueError, OverflowError) as error:
            raise UncheckableError(
                "is nested too deeply to be checked" if "ecursion" in str(error) else f"is broken: {error}"
            ) from None

    def _compile_repaired(self) -> jsonschema_rs.Validator:
        if any(_in_circles(self._schema)):
            raise UncheckableError("refers to itself endlessly")
        for pattern in _patterns(self._schema):
            if len(pattern) > LONGEST_PATTERN:
                raise UncheckableError(f"has a pattern of {len(pattern)} characters, which takes too long to check")
        for _ in range(_MOST_LEFT_OUT):
            try:
                return self._compile()
            except _BrokenError as error:
                if not self._leave_out(error.cause):
                    raise
        raise UncheckableError(f"has more than {_MOST_LEFT_OUT} patterns that are not regular expressions")

    def _leave_out(self, error: jsonschema_rs.ValidationError) -> bool:
        """Remove from the schema what the engine cannot compile; return whether that is possible."""
        if isinstance(error.kind, Kind.Referencing):
            return self._mark_references()
        if not (isinstance(error.kind, Kind.Format) and error.instance_path[-1:] == ["pattern"]):
            return False
        self._schema = copy.deepcopy(self._schema)
        return _at(self._schema, error.instance_path[:-1]).pop("pattern", None) is not None

    def _mark_references(self) -> bool:
        """Replace each reference to outside the schema by our keyword."""
        self._schema = copy.deepcopy(self._schema)
        found = False
        for node in _nodes(self._schema):
            reference = node.get("$ref")
            if isinstance(reference, str) and _target(self._schema, reference) is None:
                del node["$ref"]
                node[_UNRESOLVED] = reference
                found = True
        return found

    def _make_unresolved(self, _schema: object, reference: object, _path: object) -> _Unresolved:
        return _Unresolved(str(reference), self._met)

    def _look_at_references(self) -> None:
        if self._met:
            raise UncheckableError(f"refers to {self._met[0]!r:.200}, which would have to be loaded from elsewhere")

    def _problem(self, error: jsonschema_rs.ValidationError) -> Problem:
        path = tuple(error.instance_path)
        kind: Any = error.kind
        match kind:
            case Kind.Required():
                return Problem(path=(*path, kind.property), message="is required")
            case Kind.AdditionalProperties() | Kind.UnevaluatedProperties():
                known = _at(self._schema, error.schema_path[:-1]).get("properties")
                choice = ", ".join(f"`{name}`" for name in known) if isinstance(known, dict) else ""
                message = f"there is no such parameter (there are: {choice or 'none'})"
                return Problem(path=(*path, *kind.unexpected[:1]), message=message)
            case Kind.Type():
                return Problem(path=path, message=_not_of_type(error, kind.types))
            case Kind.FalseSchema():
                return Problem(path=path, message="is not allowed")
            case Kind.UniqueItems():
                return Problem(path=path, message="has equal items")
            case Kind.PropertyNames():
                return Problem(path=path, message=f"has a name that is not allowed: {kind.error.message}")
            case Kind.AnyOf() | Kind.OneOfNotValid():
                return self._problem_of_branches(error, kind.context)
        return Problem(path=path, message=error.message)

    def _problem_of_branches(
        self, error: jsonschema_rs.ValidationError, branches: list[list[jsonschema_rs.ValidationError]]
    ) -> Problem:
        path = error.instance_path
        of_type: list[str] = []
        meant: list[list[jsonschema_rs.ValidationError]] = []
        for branch in branches:
            wrong_type = next((e for e in branch if isinstance(e.kind, Kind.Type) and e.instance_path == path), None)
            if wrong_type is None:
                meant.append(branch)
            elif isinstance(wrong_type.kind, Kind.Type):
                of_type += [name for name in wrong_type.kind.types if name not in of_type]
        if len(meant) == 1 and meant[0]:  # the only branch for values of this type
            return self._problem(min(meant[0], key=_rank))
        if not meant and of_type:
            return Problem(path=tuple(path), message=_not_of_type(error, of_type))
        return Problem(path=tuple(path), message=f"{_shown(error)} does not match any of the allowed values")


class _BrokenError(UncheckableError):
    def __init__(self, message: str, cause: jsonschema_rs.ValidationError) -> None:
        super().__init__(message)
        self.cause = cause


class _Unresolved:
    """Validator for a reference to outside the schema, which records that it was reached."""

    def __init__(self, reference: str, met: list[str]) -> None:
        self._reference = reference
        self._met = met

    def validate(self, _instance: object) -> None:
        self._met.append(self._reference)


class _Note:
    """Validator for a keyword that is an annotation since 2019, but that jsonschema_rs enforces."""

    def __init__(self, _schema: object, _value: object, _path: object) -> None:
        return

    def validate(self, _instance: object) -> None:
        return


def _draft(schema: dict[str, Any]) -> type[jsonschema_rs.Validator]:
    return jsonschema_rs.validator_cls_for(schema)


def _rank(error: jsonschema_rs.ValidationError) -> tuple[int, bool]:
    """Sort key for errors: those about the whole first, and specific ones before those of alternatives."""
    return len(error.instance_path), isinstance(error.kind, Kind.AnyOf | Kind.OneOfNotValid | Kind.OneOfMultipleValid)


def _not_of_type(error: jsonschema_rs.ValidationError, types: list[str]) -> str:
    return f"{_shown(error)} is not of type {' or '.join(repr(name) for name in types)}"


def _shown(error: jsonschema_rs.ValidationError) -> str:
    text = json.dumps(error.instance, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} …"


def _at(schema: Any, path: list[str | int]) -> dict[str, Any]:
    """Return the part of the schema at a path; empty if there is none."""
    for part in path:
        try:
            schema = schema[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return schema if isinstance(schema, dict) else {}


def _nodes(schema: object) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _patterns(schema: object) -> Iterator[str]:
    for node in _nodes(schema):
        if isinstance(pattern := node.get("pattern"), str):
            yield pattern
        if isinstance(by_pattern := node.get("patternProperties"), dict):
            yield from by_pattern


def _target(schema: object, reference: str) -> object:
    """Return the target of a reference within the schema, if there is one."""
    if reference == "#":
        return schema
    if not reference.startswith("#/"):
        return None
    node = schema
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node


def _in_circles(schema: object) -> Iterator[object]:
    """Yield parts of the schema that refer back to themselves for the same value."""
    done: set[int] = set()
    for start in _nodes(schema):
        if "$ref" not in start or id(start) in done:
            continue
        way: list[tuple[int, Iterator[object]]] = [(id(start), _of_same_value(schema, start))]
        on_way = {id(start)}
        while way:
            following = next(way[-1][1], None)
            if following is None:
                gone = way.pop()[0]
                on_way.discard(gone)
                done.add(gone)
            elif id(following) in on_way:
                yield following
                return
            elif id(following) not in done:
                on_way.add(id(following))
                way.append((id(following), _of_same_value(schema, following)))


def _of_same_value(schema: object, node: object) -> Iterator[object]:
    if not isinstance(node, dict):
        return
    if isinstance(reference := node.get("$ref"), str) and isinstance(target := _target(schema, reference), dict):
        yield target
    for keyword in _SAME_VALUE:
        value = node.get(keyword)
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, dict))
        elif isinstance(value, dict):
            yield from ([value] if keyword != "dependentSchemas" else value.values())
