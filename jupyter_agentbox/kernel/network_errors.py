"""Explains, below the error of a cell, that the kernel's sandbox has stopped a connection."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

from jupyter_agentbox.core.network_hints import SANDBOX_DOMAINS, network_hint

#: What connecting fails with where there is no network.
_NO_NETWORK: Final = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EAFNOSUPPORT))
#: What making a socket fails with where sockets are forbidden.
_FORBIDDEN: Final = frozenset((errno.EPERM, errno.EACCES))
#: What the sandbox's proxy says of a domain that is not allowed.
_REFUSED: Final = "(see allowed_domains)"
#: What the proxy of Anthropic's sandbox runtime says of it, in a header.
_SRT_REFUSED: Final = "blocked-by-allowlist"
#: How many errors behind one error are looked at.
_MOST: Final = 30


def after_cell(result: Any) -> None:
    """Write the hint if a cell of this sandboxed kernel failed because of the network (IPython's ``post_run_cell``)."""
    domains = os.environ.get(SANDBOX_DOMAINS)
    error = getattr(result, "error_in_exec", None)
    if domains is not None and isinstance(error, BaseException) and is_network_error(error):
        sys.stderr.write(network_hint([name for name in domains.split(",") if name]) + "\n")


def is_network_error(error: BaseException) -> bool:
    """Whether an error, or one behind it, is what a connection fails with that a sandbox does not allow."""
    return any(map(_is_blocked, _behind(error)))


def _behind(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it, also as libraries for HTTP keep them."""
    found: list[BaseException] = [error]
    for one in found:
        yield one
        kept = (one.__cause__, one.__context__, getattr(one, "reason", None), *one.args)
        known = {id(each) for each in found}
        new = [each for each in kept if isinstance(each, BaseException) and id(each) not in known]
        found += new[: _MOST - len(found)]


def _is_blocked(error: BaseException) -> bool:
    if _REFUSED in _text_of(error) or _is_refused_by_srt(error):
        return True
    if not isinstance(error, OSError):
        return False
    if isinstance(error, socket.gaierror) or error.errno in _NO_NETWORK:
        return True
    return error.errno in _FORBIDDEN and error.filename is None and _is_from_socket(error)


def _is_refused_by_srt(error: BaseException) -> bool:
    """Whether an error is an answer of the proxy of Anthropic's sandbox runtime, as `urllib` keeps it."""
    try:
        return bool(error.headers.get("X-Proxy-Error") == _SRT_REFUSED)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001  # it has no headers, or they are the cell's own code
        return False


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # it is the cell's own code that fails
        return ""


def _is_from_socket(error: BaseException) -> bool:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and PurePath(place.tb_frame.f_code.co_filename).name == "socket.py"
