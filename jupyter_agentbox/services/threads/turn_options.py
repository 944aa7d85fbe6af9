"""`TurnOptions`: the validated options in the first line of an `%%agent` cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.core.threads import ApprovalMode, TurnBackend
from jupyter_agentbox.exceptions import ThreadError

NAMES: Final = ("thread", "new", "mode", "model", "backend", "steps", "context")
BACKENDS: Final = tuple(one.value for one in TurnBackend)
CONTEXTS: Final = ("none", "cells", "outputs")
#: Maximum length of a name, in characters.
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """The options of a turn.

    Parameters
    ----------
    thread : str or None
        The thread to continue, by name or id.
    is_new : bool
        Whether to start a new thread.
    mode : ApprovalMode or None
        The thread's new approval mode.
    model : str or None
        The thread's new model.
    backend : TurnBackend
        The method of the turn.
    steps : int or None
        Maximum number of requests to the model in this turn.
    context : str or None
        What the agent may read of the notebook.
    """

    thread: str | None = None
    is_new: bool = False
    mode: ApprovalMode | None = None
    model: str | None = None
    backend: TurnBackend = TurnBackend.LOOP
    steps: int | None = None
    context: str | None = None


def read_options(options: JsonObject) -> TurnOptions:
    """Validate the options sent by a kernel.

    Raises
    ------
    ThreadError
        An option or its value is unknown.
    """
    unknown = next((name for name in options if name not in NAMES), None)
    if unknown is not None:
        raise ThreadError(
            f"%%agent has no option `--{one_line(unknown)}`; it has {', '.join(f'--{one}' for one in NAMES)}"
        )
    mode = _choice("--mode", options.get("mode"), [one.value for one in ApprovalMode])
    backend = _choice("--backend", options.get("backend"), BACKENDS)
    return TurnOptions(
        thread=_name("thread", options.get("thread")),
        is_new=options.get("new") is True,
        mode=ApprovalMode(mode) if mode is not None else None,
        model=_name("model", options.get("model")),
        backend=TurnBackend(backend) if backend is not None else TurnBackend.LOOP,
        steps=_steps(options.get("steps")),
        context=_choice("--context", options.get("context"), CONTEXTS),
    )


def read_mode(value: str) -> ApprovalMode:
    """Parse an approval mode.

    Raises
    ------
    ThreadError
        There is no such mode.
    """
    return ApprovalMode(_choice("mode", value, [one.value for one in ApprovalMode]))


def _choice(option: str, value: JsonValue, known: list[str] | tuple[str, ...]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in known:
        raise ThreadError(f"`{option} {one_line(str(value))}` is not known: it can be {', '.join(known)}")
    return value


def _name(name: str, value: JsonValue) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise ThreadError(f"`--{name}` must have 1 to {_LONGEST} characters")
    return value.strip()


def _steps(value: JsonValue) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ThreadError("`--steps` must be a number from 1")
    return value
