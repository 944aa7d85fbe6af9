"""Trust keys: hashes that identify an MCP server by its command or address."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from .calls import canonical_json


def trust_key(
    *,
    transport: str,
    command: str = "",
    args: Iterable[str] = (),
    cwd: str | None = None,
    env_names: Iterable[str] = (),
    url: str = "",
    header_names: Iterable[str] = (),
    headers_helper: Iterable[str] = (),
) -> str:
    """Return the SHA-256, in lower-case hex, of a server's command or address. Secret values are not included.

    Parameters
    ----------
    transport : str
        ``stdio`` or ``http``.
    command : str
        The program.
    args : iterable of str
        Its arguments.
    cwd : str or None
        Its working directory.
    env_names : iterable of str
        Names of the variables that its configuration sets.
    url : str
        The endpoint.
    header_names : iterable of str
        Names of the headers sent to it, in any case.
    headers_helper : iterable of str
        The program that prints headers, with its arguments; empty for none.
    """
    helper = [*headers_helper]
    value = {
        "transport": transport,
        "command": command,
        "args": [*args],
        "cwd": cwd,
        "env": sorted(env_names),
        "url": url,
        "headers": sorted(name.lower() for name in header_names),
        **({"headers_helper": helper} if helper else {}),  # keys of servers without one stay as they were
    }
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
