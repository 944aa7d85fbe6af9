"""What can be said of a sandbox: the settings of one kernel, from JSON or from traits, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from jupyter_agentbox.exceptions import SandboxConfigError

from .isolation import Isolation

#: The levels that can be reached, in the order in which they are tried.
SANDBOX_LEVELS: Final = (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC, Isolation.LANDLOCK)

#: The reason of an HTTP answer that says why no kernel was started in a sandbox.
NO_SANDBOXED_KERNEL: Final = "No sandboxed kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """The settings of a sandboxed kernel, under the names that they have in traits and in JSON.

    Parameters
    ----------
    levels : tuple of str
        The levels of isolation that will do, the best first.
    work_dir : str
        The work directory; empty for the one that the kernel is started for.
    readable, writable, hidden : tuple of str
        Files and directories that the kernel can read, that it can write, and that it must not see.
    environment : tuple of str
        Names or patterns of further environment variables that it gets.
    memory_limit, process_limit, file_size_limit, temporary_limit : int or None
        Bytes of address space of each process, processes and threads, bytes of the largest file, and bytes of each file
        system in memory. ``None`` is no limit.
    bubblewrap : str
        The path of ``bwrap``; empty to look for it.
    """

    levels: tuple[str, ...] = tuple(level.value for level in SANDBOX_LEVELS)
    work_dir: str = ""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    memory_limit: int | None = None
    process_limit: int | None = None
    file_size_limit: int | None = None
    temporary_limit: int | None = 1 << 30
    bubblewrap: str = ""

    @classmethod
    def from_mapping(cls, found: Mapping[str, Any], *, source: str = "the sandbox's settings") -> Self:
        """Check settings and return them.

        Parameters
        ----------
        found : mapping
            Names and values, as JSON has them. What is missing has its default.
        source : str
            What errors call it.

        Raises
        ------
        SandboxConfigError
            If a name is not known, or a value is not of its kind.
        """
        if not isinstance(found, Mapping):
            raise SandboxConfigError(f"{source}: an object is needed, with keys of {_names()}")
        unknown = sorted(str(name) for name in found.keys() - _CHECKS.keys())
        if unknown:
            raise SandboxConfigError(f"{source}: `{'`, `'.join(unknown)}` is not known; the keys are {_names()}")
        checked: dict[str, Any] = {}
        for name, value in found.items():
            check, needed = _CHECKS[name]
            if not check(value):
                raise SandboxConfigError(f"{source}: `{name}` must be {needed}, not `{value!r}`")
            checked[name] = tuple(value) if isinstance(value, list | tuple) else value
        return cls(**checked)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON has them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(_is_text(one) and one for one in value)


def _is_levels(value: object) -> bool:
    return _is_list(value) and bool(value) and set(value) <= {level.value for level in SANDBOX_LEVELS}  # type: ignore[call-overload]  # a list of text


def _is_limit(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


_LEVELS: Final = (_is_levels, "a list of `bubblewrap`, `bubblewrap-host-proc` and `landlock`")
_TEXT: Final = (_is_text, "text")
_LIST: Final = (_is_list, "a list of texts")
_LIMIT: Final = (_is_limit, "a whole number above 0, or null for no limit")

_CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "levels": _LEVELS,
    "work_dir": _TEXT,
    "readable": _LIST,
    "writable": _LIST,
    "hidden": _LIST,
    "environment": _LIST,
    "memory_limit": _LIMIT,
    "process_limit": _LIMIT,
    "file_size_limit": _LIMIT,
    "temporary_limit": _LIMIT,
    "bubblewrap": _TEXT,
}


def _names() -> str:
    return ", ".join(f"`{name}`" for name in _CHECKS)
