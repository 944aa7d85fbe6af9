"""Audit sinks of installed packages, found by their entry points."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final
from urllib.parse import SplitResult

from jupyter_agentbox.core.ports import AuditSink

#: The group of entry points: each one's name is the scheme of addresses, and its object makes a sink for one of them.
ENTRY_POINTS: Final = "jupyter_agentbox.audit_sinks"


def installed_schemes() -> Sequence[str]:
    """Return the schemes for which packages have audit sinks, in order."""
    return sorted({point.name for point in entry_points(group=ENTRY_POINTS)})


def installed_sink(address: str, parts: SplitResult, *, token_file: str, service: str) -> AuditSink | None:
    """Return the sink of an installed package for an address; ``None`` if no package has one for its scheme.

    Parameters
    ----------
    address : str
        The address.
    parts : SplitResult
        Its parts.
    token_file : str
        File with a bearer token, for sinks that need one; empty for none.
    service : str
        The sender's name.

    Raises
    ------
    ValueError
        If the package's sink cannot be loaded or made, or is none; the error does not contain the address.
    """
    found = [point for point in entry_points(group=ENTRY_POINTS) if point.name == parts.scheme]
    if not found:
        return None
    if len({point.value for point in found}) > 1:
        packages = ", ".join(sorted(map(_package_of, found)))
        raise ValueError(f"several packages have an audit sink for `{parts.scheme}:`: {packages}. Keep one of them")
    which = f"the audit sink for `{parts.scheme}:` of {_package_of(found[0])}"
    try:
        make = found[0].load()
    except Exception as error:  # whatever the package's own code raises when it is imported
        raise ValueError(f"{which} cannot be loaded: {type(error).__name__}: {error}") from error
    try:
        sink = make(address, token_file=token_file, service=service)
    except Exception as error:  # noqa: BLE001  # as above; its text may contain the address, also in parts
        raise ValueError(f"{which} refuses this address ({type(error).__name__})") from None
    if not _is_sink(sink):
        raise ValueError(f"what {which} makes is none: it needs a `name`, which is a string, and an `async def send`")
    return sink  # type: ignore[no-any-return]  # as far as that can be checked


def _is_sink(sink: Any) -> bool:
    is_named = isinstance(getattr(sink, "name", None), str)
    return is_named and inspect.iscoroutinefunction(getattr(sink, "send", None))


def _package_of(point: EntryPoint) -> str:
    return f"the package `{point.dist.name}`" if point.dist is not None else f"`{point.value}`"
