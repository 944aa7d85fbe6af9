"""The settings of a sandboxed kernel, validated, from JSON or from traits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, Final, Self

from jupyter_agentbox.exceptions import SandboxConfigError

from .egress_domains import DomainRules
from .isolation import Isolation
from .srt_settings import check_srt_settings, from_srt_file, is_srt_file

#: The available levels, in the order in which they are tried.
SANDBOX_LEVELS: Final = (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC, Isolation.LANDLOCK, Isolation.SRT)

#: Name of the kernel provisioner in kernelspecs of sandboxed kernels.
PROVISIONER: Final = "agentbox-sandbox"

#: HTTP reason phrase of responses that explain why no sandboxed kernel was started.
NO_SANDBOXED_KERNEL: Final = "No sandboxed kernel"


class Kind(Enum):
    """The type of a setting's values, as worded in error messages."""

    LEVELS = "a list of `bubblewrap`, `bubblewrap-host-proc`, `landlock` and `srt`"
    TEXT = "text"
    LIST = "a list of strings"
    LIMIT = "a whole number above 0, or null for no limit"
    OBJECT = "an object with the objects `network` and `filesystem`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The declaration of a setting.

    Parameters
    ----------
    kind : Kind
        The type of its values.
    help : str
        Help text of the command line.
    default : object
        Its default value.
    takes_away : bool
        Whether it lists what a kernel does not get: a longer list is stricter.
    """

    kind: Kind
    help: str
    default: Any
    takes_away: bool = False


def _declared(kind: Kind, help_: str, default: Any, *, takes_away: bool = False) -> Any:
    """Return the dataclass field of a setting."""
    declared = Setting(kind=kind, help=help_, default=default, takes_away=takes_away)
    metadata = {"setting": declared}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """The settings of a sandboxed kernel, with the same names as in traits and in JSON.

    This is their only declaration: names, types, defaults and help. The provisioner's traits are generated from it, and
    JSON is validated against it.
    """

    levels: tuple[str, ...] = _declared(
        Kind.LEVELS,
        "The acceptable levels of isolation, best first. If this machine offers none of them, no kernel is started.",
        tuple(level.value for level in SANDBOX_LEVELS),
    )
    work_dir: str = _declared(
        Kind.TEXT,
        "The work directory, the only directory that the kernel can write to. Default: the notebook's"
        " directory; a kernel that was started without a path gets an empty directory of its own.",
        "",
    )
    readable: tuple[str, ...] = _declared(
        Kind.LIST, "Further files and directories that the kernel can read and execute.", ()
    )
    writable: tuple[str, ...] = _declared(Kind.LIST, "Further directories that the kernel can write to.", ())
    hidden: tuple[str, ...] = _declared(Kind.LIST, "Files and directories hidden from the kernel.", (), takes_away=True)
    read_only: tuple[str, ...] = _declared(
        Kind.LIST,
        "Files and directories that the kernel cannot write to, even inside its work directory.",
        (),
        takes_away=True,
    )
    unprotected: tuple[str, ...] = _declared(
        Kind.LIST,
        "Names or patterns of files in the work directory that are protected because programs outside"
        " the sandbox act on them, but that the kernel may write to all the same: `.git` (so that it "
        "can commit), `AGENTS.md`, `.env`.",
        (),
    )
    environment: tuple[str, ...] = _declared(
        Kind.LIST, "Names or patterns of further environment variables that the kernel gets from the server.", ()
    )
    allowed_domains: tuple[str, ...] = _declared(
        Kind.LIST,
        "Domains that the kernel can reach through a proxy: `example.com`, `*.example.com` for all "
        "names below it, `example.com:8443` for a port other than 443 and 80. They must lead to "
        "public addresses. Needs bubblewrap.",
        (),
    )
    private_domains: tuple[str, ...] = _declared(
        Kind.LIST,
        "Domains, written as in `allowed_domains`, that may also lead to private addresses; those "
        "without `*` may lead to this machine, too: `*.intranet.example`, `localhost:11434`.",
        (),
    )
    memory_limit: int | None = _declared(
        Kind.LIMIT,
        "The largest address space of each process and the largest memory of all processes together, in bytes.",
        None,
    )
    process_limit: int | None = _declared(
        Kind.LIMIT, "The largest number of processes and threads in the sandbox.", None
    )
    file_size_limit: int | None = _declared(Kind.LIMIT, "The largest file that the kernel can write, in bytes.", None)
    temporary_limit: int | None = _declared(
        Kind.LIMIT, "The size of each in-memory file system (/tmp, the home directory, /dev/shm), in bytes.", 1 << 30
    )
    bubblewrap: str = _declared(Kind.TEXT, "The path of bwrap. Default: the one on PATH.", "")
    srt: str = _declared(Kind.TEXT, "The path of srt, for the level `srt`. Default: the one on PATH.", "")
    srt_settings: Mapping[str, Any] = _declared(
        Kind.OBJECT,
        "Further settings for srt, in the format of its own settings file, on top of those that every"
        " sandbox has. They need `levels` to be `srt` alone.",
        {},
    )

    @classmethod
    def from_mapping(cls, found: Mapping[str, Any], *, source: str = "the sandbox's settings") -> Self:
        """Validate settings and return them.

        Parameters
        ----------
        found : mapping
            Names and values, as in JSON. Missing settings have their defaults.
        source : str
            Description of the source, for errors.

        Raises
        ------
        SandboxConfigError
            If a name is unknown, or a value has the wrong type.
        """
        if is_srt_file(found):
            found = from_srt_file(found)
        if not isinstance(found, Mapping):
            raise SandboxConfigError(f"{source}: must be an object with keys from {_names()}")
        unknown = sorted(str(name) for name in found.keys() - SETTINGS.keys())
        if unknown:
            raise SandboxConfigError(
                f"{source}: `{'`, `'.join(unknown)}` is not a setting; the settings are {_names()}"
            )
        checked: dict[str, Any] = {}
        for name, value in found.items():
            kind = SETTINGS[name].kind
            if not _CHECKS[kind](value):
                raise SandboxConfigError(f"{source}: `{name}` must be {kind.value}, not `{value!r}`")
            checked[name] = tuple(value) if isinstance(value, list | tuple) else value
        settings = cls(**checked)
        try:
            DomainRules.of(settings.allowed_domains, settings.private_domains)
            check_srt_settings(settings.srt_settings)
        except ValueError as error:
            raise SandboxConfigError(f"{source}: {error}") from error
        if settings.srt_settings and settings.levels != (Isolation.SRT.value,):
            raise SandboxConfigError(
                f'{source}: `srt_settings` work only with the level `srt`: set `levels` to ["srt"]'
            )
        return settings

    def within(self, ceiling: Mapping[str, Any]) -> Self:
        """Return the settings, restricted to be nowhere looser than a ceiling.

        Parameters
        ----------
        ceiling : mapping
            The settings that may only be tightened, as in JSON; others are unchanged, except those that would grant by
            another name what the ceiling restricts.
        """
        implied = {name: () for name, bounds in _GRANTS.items() if not ceiling.keys().isdisjoint(bounds)}
        ceiling = {**implied, "srt_settings": _srt_within(self.srt_settings, ceiling), **ceiling}
        values = {name: _tighter(name, getattr(self, name), ceiling[name]) for name in SETTINGS if name in ceiling}
        return replace(self, **values)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _srt_within(found: Mapping[str, Any], ceiling: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return srt's settings without what they grant in areas that have a ceiling."""
    return {
        part: {key: one for key, one in value.items() if ceiling.keys().isdisjoint(_SRT_GRANTS.get(key, ()))}
        if isinstance(value, Mapping)
        else value
        for part, value in found.items()
    }


def _tighter(name: str, value: Any, ceiling: Any) -> Any:
    """Return a setting that is not looser than the ceiling of the same name."""
    if SETTINGS[name].takes_away:
        return tuple(dict.fromkeys((*ceiling, *value)))
    if SETTINGS[name].kind is Kind.LIMIT:
        return min((one for one in (value, ceiling) if one is not None), default=None)
    if isinstance(value, tuple):
        return tuple(one for one in value if _is_among(one, ceiling))
    return ceiling or value


def _is_among(one: str, ceiling: Iterable[str]) -> bool:
    if one in ceiling:
        return True
    if any(sign in one for sign in "*?["):
        return False  # a pattern is certainly as narrow as another only if it is the same
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


#: Setting of a site -> settings that would grant by another name what it restricts, and so are cleared.
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
_SRT_PARTS: Final = ("network", "filesystem")

_CHECKS: Final[Mapping[Kind, Callable[[object], bool]]] = {
    Kind.LEVELS: _is_levels,
    Kind.TEXT: _is_text,
    Kind.LIST: _is_list,
    Kind.LIMIT: _is_limit,
    Kind.OBJECT: _is_object,
}

#: Declarations by setting name.
SETTINGS: Final[Mapping[str, Setting]] = {one.name: one.metadata["setting"] for one in fields(SandboxSettings)}


def _names() -> str:
    return ", ".join(f"`{name}`" for name in SETTINGS)
