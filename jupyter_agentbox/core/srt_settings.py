"""The settings file of Anthropic's sandbox runtime, ``srt``: the part that a sandboxed kernel can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: The supported settings. All others would open another way out, or run a program.
_TAKEN: Final[Mapping[str, frozenset[str]]] = {
    "network": frozenset(
        ("allowedDomains", "deniedDomains", "deniedDomainReasons", "deniedResolvedAddresses", "strictAllowlist")
    ),
    "filesystem": frozenset(("denyRead", "allowRead", "allowWrite", "denyWrite")),
}
_PATTERN: Final = frozenset("*?[]{}")


def is_srt_file(found: object) -> bool:
    """Whether JSON is a settings file of ``srt``, not one of ours."""
    return isinstance(found, Mapping) and ("network" in found or "filesystem" in found)


def from_srt_file(found: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a settings file of ``srt`` to sandbox settings."""
    return {"levels": ["srt"], "srt_settings": dict(found)}


def check_srt_settings(found: Mapping[str, Any]) -> None:
    """Validate settings for ``srt``.

    Raises
    ------
    ValueError
        If a setting is not supported; the message names it.
    """
    for name, value in found.items():
        if name in _TAKEN and isinstance(value, Mapping):
            for key, one in value.items():
                if key not in _TAKEN[name]:
                    _refuse_unless_empty(f"{name}.{key}", one)
        elif name != "ignoreViolations":
            _refuse_unless_empty(name, value)
    for key, entries in found.get("filesystem", {}).items():
        if not isinstance(entries, list | tuple):
            raise ValueError(f"`filesystem.{key}` must be a list of paths")
        for entry in entries if key.startswith("allow") else ():
            path_of(entry)


def taken(found: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return the supported settings in ``network`` or ``filesystem``."""
    return {key: value for key, value in found.get(part, {}).items() if key in _TAKEN[part]}


def is_pattern(text: str) -> bool:
    """Whether ``srt`` treats a path as a pattern."""
    return not _PATTERN.isdisjoint(text)


def path_of(entry: object) -> str:
    """Return the path in an entry of ``allowRead`` or ``allowWrite``.

    Raises
    ------
    ValueError
        If it is a pattern, or not a valid entry.
    """
    if isinstance(entry, Mapping) and isinstance(entry.get("path"), str) and entry.get("literal") is True:
        return str(entry["path"])
    if not isinstance(entry, str) or not entry or "\0" in entry:
        raise ValueError(f"`{entry!r}` is not a path")
    if is_pattern(entry):
        raise ValueError(f"`{entry}` is a pattern; name each path that a sandboxed kernel can read or write")
    return entry


def _refuse_unless_empty(name: str, value: object) -> None:
    if value not in (None, False, "", [], {}):
        raise ValueError(f"`{name}` is not available in a kernel's sandbox; remove it from srt's settings")
