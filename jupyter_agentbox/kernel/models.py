"""Runtime of generated packages: JSON objects with attributes, and the calls that use them.

No data model library is used: importing one takes longer than the rest of a first call in the kernel. The server
validates arguments against the tool's schema before it asks anyone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from inspect import get_annotations
from types import UnionType
from typing import Any, ClassVar, Self, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

from jupyter_agentbox.exceptions import ToolArgumentsError, ToolServerError

from . import runtime
from .results import CallResult, Record, Text

T = TypeVar("T")


class _Optional:
    """Marks an optional field; `value` is shown, but never sent."""

    def __init__(self, value: Any) -> None:
        self.value = value


def optional(value: Any = None) -> Any:
    """Return the default of an optional field.

    Parameters
    ----------
    value : object
        The server's declared default, if any.
    """
    return _Optional(value)


@dataclass_transform(kw_only_default=True, field_specifiers=(optional,))
class Model:
    """A JSON object whose fields are attributes.

    Parameters
    ----------
    root : mapping, optional
        The fields, for a tool whose schema declares none.
    **values
        The fields, under their Python or JSON names.

    Attributes
    ----------
    raw : CallResult
        For a result: the tool's whole result, unless a field has that name.

    Raises
    ------
    ToolArgumentsError
        If a field is missing or unknown. It is also a `ValueError`.
    """

    __slots__ = ("__dict__", "_answer")

    #: Attribute -> JSON name, if different.
    _names: ClassVar[Mapping[str, str]] = {}
    #: Field name in packages of earlier versions -> attribute.
    _older: ClassVar[Mapping[str, str]] = {}
    #: Alias of an attribute, from the wire or earlier versions -> attribute.
    _also: ClassVar[Mapping[str, str]] = {}
    #: Whether additional fields are allowed.
    _extra: ClassVar[bool] = False
    _fields: ClassVar[Mapping[str, _Optional | None]] = {}

    def __init_subclass__(cls) -> None:
        cls._fields = {name: cls.__dict__.get(name) for name in get_annotations(cls)}
        also = {**cls._older, **{wire: name for name, wire in cls._names.items()}}
        cls._also = {name: now for name, now in also.items() if name not in cls._fields}
        for name, default in cls._fields.items():
            if default is not None:
                setattr(cls, name, default.value)

    def __init__(self, root: Mapping[str, Any] | None = None, /, **values: Any) -> None:
        values = {**(root or {}), **values}
        values = {self._also.get(name, name): value for name, value in values.items()}
        for name in values:
            if name not in self._fields and not self._extra:
                raise ToolArgumentsError(f"`{type(self).__name__}` has no field `{name}`", parameter=name)
        for name, default in self._fields.items():
            if default is None and name not in values:
                raise ToolArgumentsError(f"`{type(self).__name__}` needs the field `{name}`", parameter=name)
        self.__dict__.update(values)

    @classmethod
    def model_validate(cls, value: Mapping[str, Any]) -> Self:
        """Create an instance from a JSON object, recursively. Values that do not fit are kept unchanged."""
        hints = get_type_hints(cls)
        attributes = {wire: name for name, wire in cls._names.items()}
        made = cls.__new__(cls)
        for wire, item in value.items():
            name = attributes.get(wire, wire)
            made.__dict__[name] = _shaped(hints.get(name), item)
        return made

    def model_dump(
        self,
        *,
        mode: str = "json",  # noqa: ARG002 - there is one
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        by_alias: bool | None = None,
        exclude_unset: bool = False,  # noqa: ARG002 - so it is always
        exclude_defaults: bool = False,  # noqa: ARG002 - what was not given is never there
        exclude_none: bool = False,
    ) -> dict[str, Any]:
        """Return the JSON object: the fields that were given, without optional ``None`` values.

        The parameters match pydantic's.

        Parameters
        ----------
        include, exclude : collection of str, optional
            The fields to include or exclude.
        by_alias : bool, optional
            ``False`` for Python field names; by default, the JSON names.
        exclude_none : bool
            Whether to leave out required ``None`` values, too.
        mode, exclude_unset, exclude_defaults
            Ignored.
        """
        return {
            name if by_alias is False else self._names.get(name, name): _plain(value, exclude_none, by_alias)
            for name, value in self.__dict__.items()
            if (value is not None or (self._fields.get(name) is None and not exclude_none))
            and (include is None or name in include)
            and (exclude is None or name not in exclude)
        }

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """Return the JSON object as text. The options are those of `model_dump`."""
        return json.dumps(self.model_dump(**options), indent=indent)

    @property
    def model_fields_set(self) -> set[str]:
        """The fields that were given."""
        return set(self.__dict__)

    def __getattr__(self, name: str) -> Any:
        if (now := type(self)._also.get(name)) is not None:
            return getattr(self, now)
        if name == "raw":
            with suppress(AttributeError):
                return object.__getattribute__(self, "_answer")
        raise AttributeError(f"`{type(self).__name__}` has no field `{name}`")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # its fields can be changed

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.__dict__.items())


class FreeForm(Record):
    """A JSON object without declared fields: a dict whose items are also attributes."""

    @classmethod
    def model_validate(cls, value: Mapping[str, Any]) -> Self:
        """Create an instance from a JSON object."""
        return cls(value)

    def model_dump(self, *, exclude_none: bool = False, **_: Any) -> dict[str, Any]:
        """Return a plain copy."""
        return {key: _plain(value, exclude_none) for key, value in self.items()}

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """Return the JSON object as text."""
        return json.dumps(self.model_dump(**options), indent=indent)

    @property
    def root(self) -> Any:
        """The object itself, or its item of that name."""
        return self.get("root", self)


def call(server: str, tool: str, params: Model, result: type[T] | None) -> Any:
    """Call a tool and wait for its result.

    Parameters
    ----------
    server, tool : str
        Wire names.
    params : Model
        The arguments.
    result : type or None
        A `Model`; another type for a result that is returned unchanged; ``None`` for the result's text.
    """
    return _result(runtime.link().call(server, tool, params.model_dump()), f"{server}.{tool}", result)


async def call_async(server: str, tool: str, params: Model, result: type[T] | None) -> Any:
    """Call a tool like `call`, without blocking the event loop."""
    return _result(await runtime.link().call_async(server, tool, params.model_dump()), f"{server}.{tool}", result)


def _result(answer: CallResult, what: str, result: type[T] | None) -> Any:
    if result is None:
        return _text(answer)
    if answer.structured is None:
        raise ToolServerError(f"`{what}` ran, but its answer lacks the structured result that its schema promises")
    value = _shaped(result, answer.structured)
    if isinstance(value, Model):
        object.__setattr__(value, "_answer", answer)  # in a slot, because it is not a field
    elif isinstance(value, FreeForm):
        value.__dict__["raw"] = answer
    return value


def _text(answer: CallResult) -> Any:
    """Return the text of a result, with the whole result in ``.raw``; without text, its other value or ``None``."""
    if text := answer.text:
        value = Text(text)
        value.raw = answer
        return value
    return answer.value if any(block.get("type") != "text" for block in answer.content) else None


def _shaped(hint: Any, value: Any) -> Any:
    """Return the value with its JSON objects converted to the annotated models."""
    if isinstance(hint, type) and issubclass(hint, Model | FreeForm):
        return hint.model_validate(value) if isinstance(value, Mapping) else value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is list and isinstance(value, list):
        return [_shaped(arguments[0], item) for item in value]
    if origin is dict and isinstance(value, Mapping):
        return {key: _shaped(arguments[1], item) for key, item in value.items()}
    if origin in (Union, UnionType):
        return _shaped(_chosen(arguments, value), value)
    return value


def _chosen(options: tuple[Any, ...], value: Any) -> Any:
    """Return the value as the first option that it matches."""
    for option in options:
        if isinstance(option, type) and issubclass(option, Model) and isinstance(value, Mapping):
            wire = [option._names.get(name, name) for name, default in option._fields.items() if default is None]
            if all(name in value for name in wire):
                return option
        elif get_origin(option) is type(value):
            return option
    return None


def _plain(value: Any, exclude_none: bool, by_alias: bool | None = None) -> Any:
    if isinstance(value, Model):
        return value.model_dump(exclude_none=exclude_none, by_alias=by_alias)
    if isinstance(value, Mapping):
        return {key: _plain(item, exclude_none, by_alias) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, exclude_none, by_alias) for item in value]
    return value.value if isinstance(value, Enum) else value
