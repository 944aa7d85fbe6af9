"""Parameters of a tool's function, derived from its input schema."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.names import python_names

from .annotations import Annotations, Spelling, class_part, describe_values
from .literals import literal

#: Number of properties above which the function accepts any keyword.
_MOST: Final = 1000
_LONGEST_NAME: Final = 500
_MOST_PARTS: Final = 200
_COMBINING: Final = ("allOf", "anyOf", "oneOf")
#: Names used in the functions' bodies.
_RESERVED: Final = frozenset({"_call", "extra"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter.

    Parameters
    ----------
    wire_name : str
        The property's name in the schema, which is sent.
    name : str
        The Python parameter.
    annotation : str
        Source of its annotation.
    required : bool
        Whether it is required.
    default : str or None
        Source of the schema's default; ``None`` if it has none.
    description : str
        The schema's description, untrusted.
    """

    wire_name: str
    name: str
    annotation: str
    required: bool
    default: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of a function, required ones first.

    Parameters
    ----------
    named : tuple of Parameter
        The properties of the schema.
    extra : bool
        Whether other keywords are accepted, and sent under their own names.
    """

    named: tuple[Parameter, ...] = ()
    extra: bool = False

    @property
    def positional(self) -> Parameter | None:
        """The parameter that may be passed by position: the first, if it is the only required one."""
        required = [each for each in self.named if each.required]
        return required[0] if len(required) == 1 else None


@dataclass(slots=True)
class _Found:
    """The combined content of the parts of a schema."""

    properties: dict[str, JsonValue] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    extra: bool = False
    seen: set[int] = field(default_factory=set)


def read_parameters(schema: JsonValue, annotations: Annotations, class_prefix: str) -> Parameters:
    """Return the parameters of a tool; for an invalid input schema, any keyword.

    Parameters
    ----------
    schema : JSON value
        The tool's input schema, untrusted.
    annotations : Annotations
        Generates the annotations.
    class_prefix : str
        Prefix of the names of the parameters' classes.
    """
    found = _Found()
    _collect(schema, annotations, found)
    properties = found.properties
    if len(properties) > _MOST or any(len(name) > _LONGEST_NAME for name in properties):
        return Parameters(extra=True)
    names = python_names(properties, reserved=_RESERVED, prefix="p", public=False)
    named = [
        _parameter(wire, names[wire], properties[wire], wire in found.required, annotations, class_prefix)
        for wire in properties
    ]
    return Parameters(named=tuple(sorted(named, key=lambda each: not each.required)), extra=found.extra)


def function_parameters(schema: JsonValue) -> Parameters:
    """Return the parameters of a tool's function, to use their names only; classes in their annotations are unnamed.

    Parameters
    ----------
    schema : JSON value
        The tool's input schema, untrusted.
    """
    return read_parameters(schema, Annotations(schema, Spelling(()), str), "")


def _parameter(
    wire: str, name: str, schema: JsonValue, required: bool, annotations: Annotations, class_prefix: str
) -> Parameter:
    target = annotations.resolve(schema)
    described = [part for part in (schema, target) if isinstance(part, dict)]
    default = next((part["default"] for part in described if "default" in part), None)
    has_default = any("default" in part for part in described)
    texts = [part["description"] for part in described if isinstance(part.get("description"), str)]
    notes = describe_values(target)
    return Parameter(
        wire_name=wire,
        name=name,
        annotation=annotations.annotate(schema, class_prefix + class_part(wire)),
        required=required,
        default=literal(default) if has_default else None,
        description="\n".join(filter(None, [*map(str, texts[:1]), notes])),
    )


def _collect(schema: JsonValue, annotations: Annotations, found: _Found) -> None:
    target = annotations.resolve(schema)
    if not isinstance(target, dict) or len(found.seen) >= _MOST_PARTS:
        found.extra = True
        return
    if id(target) in found.seen:
        return
    found.seen.add(id(target))
    properties = target.get("properties")
    if isinstance(properties, dict):
        for name, value in properties.items():
            found.properties.setdefault(name, value)
    elif target.get("additionalProperties") is not False and not any(_parts(target, key) for key in _COMBINING):
        found.extra = True
    found.extra |= bool(target.get("additionalProperties")) or isinstance(target.get("patternProperties"), dict)
    for part in _parts(target, "allOf"):
        _collect(part, annotations, found)
    for part in (*_parts(target, "anyOf"), *_parts(target, "oneOf")):
        # Only one of these must apply, so what one of them requires is not required in every call.
        _collect(part, annotations, option := replace(found, required=set(), extra=False))
        found.extra |= option.extra and "properties" in target
    required = target.get("required")
    for item in required if isinstance(required, list) else []:
        if isinstance(item, str):
            found.properties.setdefault(item, {})
            found.required.add(item)


def _parts(schema: JsonObject, key: str) -> list[JsonValue]:
    parts = schema.get(key)
    return parts[:50] if isinstance(parts, list) else []
