"""Validation of arguments against a tool's untrusted input schema, before anybody is asked.

A check known to be fast runs in this process, any other in a separate process, which is killed on timeout. A schema
that is broken, or exceeds its limits, refuses the call: unknown means no.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ToolArgumentsError

from .schema_costs import Cost, cost_of
from .schema_process import OutOfTimeError, SchemaProcess
from .schemas import CompiledSchema, Problem, UncheckableError

#: Timeout of one check, and of the first compilation of its schema, in seconds.
TIME_LIMIT: Final = 2.0
#: How long a schema is refused after a check against it timed out, in seconds.
_REST: Final = 60.0
#: How many compiled schemas are cached.
_KEPT_SCHEMAS: Final = 512
#: Maximum cost of a check in this process: steps per byte, times bytes of arguments; about 10 ms.
_MOST_STEPS: Final = 5_000_000
#: Maximum cost of an explanation in this process: parts of the schema, times values.
_MOST_PROBLEMS: Final = 20_000
_LONGEST_MESSAGE: Final = 300
_JSON: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
#: Stands for the result of a check that is left to the separate process.
_LEFT: Final = Problem(path=(), message="")


@dataclass(slots=True, kw_only=True)
class _Known:
    """Cached facts about a schema.

    It keeps the schema alive, so that its id is not reused.
    """

    schema: Mapping[str, JsonValue]
    key: int
    cost: Cost | None = None
    compiled: CompiledSchema | None = None
    #: Why the schema is refused; below, until when.
    refusal: str = ""
    refused_until: float = 0.0


class JsonSchemaChecker:
    """Validates arguments without blocking the event loop (implements `ArgumentChecker`).

    Parameters
    ----------
    time_limit : float
        Timeout of one check, in seconds.
    clock : callable
        Monotonic clock, in seconds.
    """

    def __init__(self, *, time_limit: float = TIME_LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        self._time_limit = time_limit
        self._clock = clock
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._keys = count(1)
        self._process = SchemaProcess()
        # one thread, so that checks queue here and not in the shared thread pool
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jupyter-agentbox-schemas")

    async def check(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> None:
        """Validate the arguments.

        Raises
        ------
        ToolArgumentsError
            With the top-level parameter's name in `parameter`.
        """
        encoded = _encode(arguments)
        known = self._known.get(id(tool.input_schema)) or self._learn(tool.input_schema)
        try:
            problem = self._check_here(known, dict(arguments), encoded)
            if problem is None:
                return
            if problem is _LEFT:
                problem = await self._check_apart(known, encoded)
        except UncheckableError as error:
            raise _refusal(tool, str(error)) from None
        if problem is not None:
            raise _complaint(problem)

    @property
    def worker(self) -> int | None:
        """Id of the process for slow checks; ``None`` if it is not running."""
        return self._process.pid

    def close(self) -> None:
        """Stop the process for slow checks, if it is running."""
        self._process.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _learn(self, schema: Mapping[str, JsonValue]) -> _Known:
        # by identity: the schema of a listed tool stays the same object until the list is read again, and hashing it
        # would cost more than the check
        known = _Known(schema=schema, key=next(self._keys))
        known.cost = cost_of(schema)
        if known.cost is not None:
            with contextlib.suppress(UncheckableError):  # the process reports why, or can do it
                known.compiled = CompiledSchema(schema, is_small=True)
        self._known[id(schema)] = known
        if len(self._known) > _KEPT_SCHEMAS:
            self._known.popitem(last=False)
        return known

    def _check_here(self, known: _Known, arguments: dict[str, JsonValue], encoded: bytes) -> Problem | None:
        if known.compiled is None or known.cost is None or known.cost.steps * len(encoded) > _MOST_STEPS:
            return _LEFT
        if known.compiled.fits(arguments):
            return None
        # each value except the outermost follows one of these
        values = 1 + sum(map(encoded.count, (b",", b":", b"[")))
        return known.compiled.explain(arguments) if known.cost.parts * values <= _MOST_PROBLEMS else _LEFT

    async def _check_apart(self, known: _Known, arguments: bytes) -> Problem | None:
        if known.refusal and self._clock() < known.refused_until:
            raise UncheckableError(known.refusal)
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(self._thread, self._ask, known, arguments)
        except OutOfTimeError:
            known.refusal = f"takes more than {self._time_limit:g} s to check, or too much memory"
            known.refused_until = self._clock() + _REST
            raise UncheckableError(known.refusal) from None
        except RecursionError:
            raise UncheckableError("is nested too deeply to be checked") from None
        if "refusal" in answer:
            raise UncheckableError(_shorten(str(answer["refusal"])))
        return None if answer.get("fits") else Problem(path=tuple(answer["path"]), message=str(answer["message"]))

    def _ask(self, known: _Known, arguments: bytes) -> dict[str, Any]:
        """Ask the process, in its thread."""
        if known.refusal and self._clock() < known.refused_until:  # set while this was queued
            raise OutOfTimeError
        seconds = self._time_limit
        answer = self._process.check("check", known.key, arguments, seconds=seconds)
        if not answer:
            answer = self._process.compile(known.key, known.schema, seconds=seconds)
            if "refusal" in answer:
                return answer
            answer = self._process.check("check", known.key, arguments, seconds=seconds)
        if answer.get("fits") is not False:
            return answer
        try:
            return self._process.check("explain", known.key, arguments, seconds=seconds)
        except OutOfTimeError:
            return {"path": [], "message": "they do not fit the tool's input schema"}


def check_is_json(arguments: Mapping[str, JsonValue]) -> None:
    """Check that the arguments can be sent as JSON in UTF-8.

    Raises
    ------
    ToolArgumentsError
        If one cannot: NaN, an infinity, or a lone surrogate.
    """
    _encode(arguments)


def _encode(arguments: Mapping[str, JsonValue]) -> bytes:
    try:
        return _JSON.encode(arguments if isinstance(arguments, dict) else dict(arguments)).encode()
    except (ValueError, TypeError, RecursionError):
        raise _not_json(arguments) from None


def _not_json(arguments: Mapping[str, JsonValue]) -> ToolArgumentsError:
    for name, value in arguments.items():
        try:
            _JSON.encode([name, value]).encode()
        except (ValueError, TypeError, RecursionError) as error:
            reason = "a value that JSON cannot express"
            if isinstance(error, (UnicodeError, RecursionError)):
                reason = "text that is not Unicode" if isinstance(error, UnicodeError) else "it is nested too deeply"
            shown = name.encode("utf-8", "replace").decode()
            return ToolArgumentsError(f"`{shown}`: {reason}", parameter=shown)
    return ToolArgumentsError("the arguments are nested too deeply", parameter=None)


def _complaint(problem: Problem) -> ToolArgumentsError:
    message = _shorten(problem.message)
    if not problem.path:
        return ToolArgumentsError(message, parameter=None)
    return ToolArgumentsError(f"`{_shorten(_place(problem.path))}`: {message}", parameter=str(problem.path[0]))


def _place(path: tuple[str | int, ...]) -> str:
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
