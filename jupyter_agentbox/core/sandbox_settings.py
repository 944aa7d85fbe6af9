"""What can be said of a sandbox: the settings of one kernel, from JSON or from traits, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Self

from jupyter_agentbox.exceptions import SandboxConfigError

from .isolation import Isolation
from .sandbox_domains import DomainRules
from .srt_settings import check_srt_settings, from_srt_file, is_srt_file

#: The levels that can be reached, in the order in which they are tried.
SANDBOX_LEVELS: Final = (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC, Isolation.LANDLOCK, Isolation.SRT)

#: The kernel provisioner of sandboxed kernels, as kernelspecs name it.
PROVISIONER: Final = "agentbox-sandbox"

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
    readable, writable, hidden, read_only : tuple of str
        Files and directories that the kernel can read, that it can write, that it must not see, and that it must not
        write wherever they lie.
    unprotected : tuple of str
        Names or patterns of what programs outside obey in the work directory, and the kernel can write all the same.
    environment : tuple of str
        Names or patterns of further environment variables that it gets.
    allowed_domains : tuple of str
        Domains that it can reach through a proxy, on the internet; see `DomainRule.parse`.
    private_domains : tuple of str
        Domains that it can reach through a proxy, also where they lead to private addresses.
    memory_limit, process_limit, file_size_limit, temporary_limit : int or None
        Bytes of address space of each process and of memory of all together, processes and threads, bytes of the
        largest file, and bytes of each file system in memory. ``None`` is no limit.
    bubblewrap, srt : str
        The paths of ``bwrap`` and ``srt``; empty to look for them.
    srt_settings : mapping
        What ``srt`` is told beside what every sandbox has, in the form of its own settings file.
    """

    levels: tuple[str, ...] = tuple(level.value for level in SANDBOX_LEVELS)
    work_dir: str = ""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()
    private_domains: tuple[str, ...] = ()
    memory_limit: int | None = None
    process_limit: int | None = None
    file_size_limit: int | None = None
    temporary_limit: int | None = 1 << 30
    bubblewrap: str = ""
    srt: str = ""
    srt_settings: Mapping[str, Any] = field(default_factory=dict)

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
        if is_srt_file(found):
            found = from_srt_file(found)
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
        settings = cls(**checked)
        try:
            DomainRules.of(settings.allowed_domains, settings.private_domains)
            check_srt_settings(settings.srt_settings)
        except ValueError as error:
            raise SandboxConfigError(f"{source}: {error}") from error
        if settings.srt_settings and settings.levels != (Isolation.SRT.value,):
            raise SandboxConfigError(f'{source}: `srt_settings` are for `srt` only; set `levels` to ["srt"]')
        return settings

    def within(self, ceiling: Mapping[str, Any]) -> Self:
        """Return settings that are nowhere looser than others.

        Parameters
        ----------
        ceiling : mapping
            Those settings that may only be tightened, as JSON has them; others are left as they are, but for those that
            would grant by another name what one of these bounds.
        """
        implied = {name: () for name, bounds in _GRANTS.items() if not ceiling.keys().isdisjoint(bounds)}
        ceiling = {**implied, "srt_settings": _srt_within(self.srt_settings, ceiling), **ceiling}
        values = {name: _tighter(name, getattr(self, name), ceiling[name]) for name in _CHECKS if name in ceiling}
        return replace(self, **values)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON has them."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _srt_within(found: Mapping[str, Any], ceiling: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what srt is told without what it grants of what has a ceiling."""
    return {
        part: {key: one for key, one in value.items() if ceiling.keys().isdisjoint(_SRT_GRANTS.get(key, ()))}
        if isinstance(value, Mapping)
        else value
        for part, value in found.items()
    }


def _tighter(name: str, value: Any, ceiling: Any) -> Any:
    """Return a setting that is not looser than another of the same name."""
    if name in _FORBIDDING:
        return tuple(dict.fromkeys((*ceiling, *value)))
    if name.endswith("_limit"):
        return min((one for one in (value, ceiling) if one is not None), default=None)
    if isinstance(value, tuple):
        return tuple(one for one in value if _is_among(one, ceiling))
    return ceiling or value


def _is_among(one: str, ceiling: Iterable[str]) -> bool:
    if one in ceiling:
        return True
    if any(sign in one for sign in "*?["):
        return False  # a pattern is as narrow as another only if it is the same
    above = () if ".." in one.split("/") else tuple(f"{top.rstrip('/')}/" for top in ceiling if "/" in top)
    return one.startswith(above) or any(fnmatchcase(one, top) for top in ceiling if "/" not in top)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(_is_text(one) and one for one in value)


def _is_levels(value: object) -> bool:
    return _is_list(value) and bool(value) and set(value) <= {level.value for level in SANDBOX_LEVELS}  # type: ignore[call-overload]  # a list of text


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(name, {}), Mapping) for name in _SRT_PARTS)


def _is_limit(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


#: Settings that grant by another name what a site that sets one of those bounds: nothing of them is left.
_GRANTS: Final[Mapping[str, frozenset[str]]] = {
    "allowed_domains": frozenset(("private_domains",)),
    "private_domains": frozenset(("allowed_domains",)),
    "writable": frozenset(("readable",)),
}
_SRT_GRANTS: Final[Mapping[str, frozenset[str]]] = {
    "allowedDomains": frozenset(("allowed_domains", "private_domains")),
    "allowRead": frozenset(("readable",)),
    "allowWrite": frozenset(("readable", "writable")),
}
#: Lists that take away: the longer, the tighter.
_FORBIDDING: Final = ("hidden", "read_only")
_SRT_PARTS: Final = ("network", "filesystem")
_LEVELS: Final = (_is_levels, "a list of `bubblewrap`, `bubblewrap-host-proc`, `landlock` and `srt`")
_OBJECT: Final = (_is_object, "an object with the objects `network` and `filesystem`")
_TEXT: Final = (_is_text, "text")
_LIST: Final = (_is_list, "a list of texts")
_LIMIT: Final = (_is_limit, "a whole number above 0, or null for no limit")

_CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "levels": _LEVELS,
    "work_dir": _TEXT,
    "readable": _LIST,
    "writable": _LIST,
    "hidden": _LIST,
    "read_only": _LIST,
    "unprotected": _LIST,
    "environment": _LIST,
    "allowed_domains": _LIST,
    "private_domains": _LIST,
    "memory_limit": _LIMIT,
    "process_limit": _LIMIT,
    "file_size_limit": _LIMIT,
    "temporary_limit": _LIMIT,
    "bubblewrap": _TEXT,
    "srt": _TEXT,
    "srt_settings": _OBJECT,
}


def _names() -> str:
    return ", ".join(f"`{name}`" for name in _CHECKS)
