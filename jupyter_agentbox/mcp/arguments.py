"""Arguments are validated against a tool's input schema, which is untrusted, before anybody is asked.

What that can cost is bounded, see `schemas`. A schema that is broken, or that cannot be checked within its limits,
refuses the call: unknown means no.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Final, TypeAlias

from jsonschema.exceptions import SchemaError, UndefinedTypeCheck, UnknownType, ValidationError, best_match
from jsonschema.protocols import Validator
from referencing.exceptions import Unresolvable

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolArgumentsError

from .patterns import PatternTimeoutError
from .schemas import OutOfTimeError, UncheckableError, compile_schema, is_plain, limit_time

#: Seconds that one check may take, with the schema's own check the first time.
TIME_LIMIT: Final = 2.0
#: How many schemas are kept compiled.
_KEPT_SCHEMAS: Final = 512
#: How many problems are looked at to find the one that is worth telling.
_MOST_PROBLEMS: Final = 20
_LONGEST_MESSAGE: Final = 300
#: How many arguments, and how many steps for each, are checked on the spot.
_FEW: Final = 100
_JSON: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


#: For schemas that say no more: the Python types that each named argument surely may have, and what is required.
_Simple: TypeAlias = tuple[Mapping[str, frozenset[type]], frozenset[str]]

_SURE_TYPES: Final[Mapping[object, frozenset[type]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
}
_OF_OBJECTS: Final = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})
_OF_VALUES: Final = frozenset({"type", "title", "description", "default"})


class JsonSchemaChecker:
    """Validates arguments. May be used from several threads.

    Parameters
    ----------
    time_limit : float
        Seconds that one check may take. `check` blocks its thread as long; ordinary schemas take well under 1 ms.
    """

    def __init__(self, *, time_limit: float = TIME_LIMIT) -> None:
        self._time_limit = time_limit
        self._validators: OrderedDict[int, tuple[Mapping[str, JsonValue], Validator, bool, _Simple | None]] = (
            OrderedDict()
        )

    def check(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> None:
        """Do nothing if the arguments fit.

        Raises
        ------
        ToolArgumentsError
            With the top-level parameter's name in `parameter`.
        """
        check_is_json(arguments)
        if self._evidently_fits(tool.input_schema, arguments):
            return
        try:
            with limit_time(self._time_limit):
                validator = self._validator(tool.input_schema)
                problem = best_match(islice(validator.iter_errors(dict(arguments)), _MOST_PROBLEMS))
        except (OutOfTimeError, PatternTimeoutError):
            raise _refusal(tool, f"takes more than {self._time_limit:g} s to check") from None
        except RecursionError:
            raise _refusal(tool, "nests too deeply to be checked") from None
        except Unresolvable as error:
            raise _refusal(tool, f"refers to {error.ref!r:.200}, which is not loaded from elsewhere") from None
        except (UncheckableError, UnknownType, UndefinedTypeCheck, SchemaError) as error:
            text = error.message if isinstance(error, SchemaError) else str(error)
            raise _refusal(tool, f"is broken: {_shorten(text)}") from None
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, re.error) as error:
            # what jsonschema raises over a schema that is not one and got past the schema's own check
            raise _refusal(tool, f"is broken ({type(error).__name__})") from None
        if problem is not None:
            raise _complaint(problem)

    def is_quick(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether `check` takes no longer than handing it to a thread and back would."""
        if len(arguments) > _FEW or any(isinstance(value, dict | list) for value in arguments.values()):
            return False
        kept = self._validators.get(id(tool.input_schema))
        return kept is not None and kept[2]

    def _evidently_fits(self, schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a schema that was compiled, and says no more than types and names, is met by these types."""
        kept = self._validators.get(id(schema))
        if kept is None or kept[3] is None:
            return False
        types, required = kept[3]
        return required <= arguments.keys() and all(
            name in types and type(value) in types[name] for name, value in arguments.items()
        )

    def _validator(self, schema: Mapping[str, JsonValue]) -> Validator:
        # by identity: the schema of a listed tool stays the same object until the list is read again, and hashing it
        # would cost more than the check; the entry keeps the object alive, so its id is not given to another one
        key = id(schema)
        kept = self._validators.get(key)
        if kept is not None:
            return kept[1]
        validator = compile_schema(schema)
        self._validators[key] = (schema, validator, is_plain(schema, _FEW), _simple(schema))
        if len(self._validators) > _KEPT_SCHEMAS:
            self._validators.popitem(last=False)
        return validator


class ThreadedChecker:
    """A `JsonSchemaChecker` that keeps no event loop waiting (the port `ArgumentChecker`).

    Parameters
    ----------
    time_limit : float
        Seconds that one check may take.
    """

    def __init__(self, *, time_limit: float = TIME_LIMIT) -> None:
        self._checker = JsonSchemaChecker(time_limit=time_limit)

    async def check(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> None:
        """Do nothing if the arguments fit.

        Raises
        ------
        ToolArgumentsError
            With the top-level parameter's name in `parameter`.
        """
        if self._checker.is_quick(tool, arguments):
            self._checker.check(tool, arguments)
        else:
            await asyncio.to_thread(self._checker.check, tool, arguments)


def _simple(schema: Mapping[str, JsonValue]) -> _Simple | None:
    """Return what a compiled schema of a few arguments with plain types asks for; ``None`` if it says more."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if not schema.keys() <= _OF_OBJECTS or schema.get("type") != "object" or not isinstance(required, list):
        return None
    if not isinstance(properties, dict):
        return None
    types: dict[str, frozenset[type]] = {}
    for name, value in properties.items():
        if isinstance(value, dict) and value.keys() <= _OF_VALUES and isinstance(value.get("type"), str):
            types[name] = _SURE_TYPES.get(value["type"], frozenset())
    return types, frozenset(str(name) for name in required)


def check_is_json(arguments: Mapping[str, JsonValue]) -> None:
    """Do nothing if the arguments can be sent as JSON in UTF-8.

    Raises
    ------
    ToolArgumentsError
        If one cannot: NaN, an infinity, or half of a surrogate pair.
    """
    if _is_json(arguments):
        return
    for name, value in arguments.items():
        try:
            _JSON.encode([name, value]).encode()
        except (ValueError, TypeError, RecursionError) as error:
            reason = "a value that JSON does not have"
            if isinstance(error, (UnicodeError, RecursionError)):
                reason = "text that is not Unicode" if isinstance(error, UnicodeError) else "it nests too deeply"
            shown = name.encode("utf-8", "replace").decode()
            raise ToolArgumentsError(f"`{shown}`: {reason}", parameter=shown) from None


def _is_json(arguments: Mapping[str, JsonValue]) -> bool:
    try:
        _JSON.encode(dict(arguments)).encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _complaint(problem: ValidationError) -> ToolArgumentsError:
    path = list(problem.absolute_path)
    required, instance = problem.validator_value, problem.instance
    if problem.validator == "required" and isinstance(instance, dict) and isinstance(required, list):
        missing = [name for name in required if name not in instance]
        # one problem for each missing name; this one's message starts with it
        path.append(next((name for name in missing if problem.message.startswith(repr(name))), missing[0]))
        message = "is required"
    else:
        message = _shorten(problem.message)
    if not path:
        return ToolArgumentsError(message, parameter=None)
    return ToolArgumentsError(f"`{_place(path)}`: {message}", parameter=str(path[0]))


def _place(path: list[str | int]) -> str:
    first, *rest = path
    return str(first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)


def _refusal(tool: ToolDescription, reason: str) -> ToolArgumentsError:
    return ToolArgumentsError(
        f"the arguments of `{tool.name}` cannot be checked, so it is not called: its input schema {reason}",
        parameter=None,
    )


def _shorten(text: str) -> str:
    return (
        text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE // 2]} … {text[-_LONGEST_MESSAGE // 2 :]}"
    )
