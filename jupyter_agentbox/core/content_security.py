"""The Content-Security-Policy of pages that show kernel output: nothing is loaded from other origins.

Source: https://www.w3.org/TR/CSP3/
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_OWN: Final = ("'self'", "blob:", "data:")

#: Directive -> the sources that JupyterLab itself needs. It creates code and styles at run time, and `blob:` workers.
DIRECTIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "default-src": _OWN,
    "script-src": (*_OWN, "'unsafe-inline'", "'unsafe-eval'"),
    "style-src": (*_OWN, "'unsafe-inline'"),
    "img-src": _OWN,
    "media-src": _OWN,
    "font-src": _OWN,
    "connect-src": _OWN,
    "frame-src": _OWN,
    "worker-src": _OWN,
    "object-src": _OWN,
    "manifest-src": ("'self'",),
    "form-action": ("'self'",),
    "base-uri": ("'self'",),
}

#: A host with an optional port, as sent by browsers.
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")
_SOURCE: Final = re.compile(r"[^\s;,]+")


def check_sources(sources: Mapping[str, Sequence[str]]) -> None:
    """Check a site's additions to the policy.

    Parameters
    ----------
    sources : dict
        Directive to additional sources: ``{"img-src": ["https://images.example.org"]}``.

    Raises
    ------
    ValueError
        If a directive is not one of `DIRECTIVES`, or a source is not a single source.
    """
    for directive, added in sources.items():
        if directive not in DIRECTIVES:
            raise ValueError(f"`{directive}` is not one of {', '.join(DIRECTIVES)}")
        if isinstance(added, str):
            raise ValueError(f"the sources of `{directive}` must be a list")
        for source in added:
            if not _SOURCE.fullmatch(source):
                raise ValueError(f"`{source}` is not a source of `{directive}`: it must have no space, `;` or `,`")


def content_security_policy(host: str, sources: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the policy's header value.

    Parameters
    ----------
    host : str
        The page's host, with its port. Its WebSockets are listed explicitly: in some browsers ``'self'`` does not
        include them.
    sources : dict, optional
        Directive to additional sources.
    """
    found = {directive: [*own, *(sources or {}).get(directive, ())] for directive, own in DIRECTIVES.items()}
    if _HOST.fullmatch(host):
        found["connect-src"] += [f"ws://{host}", f"wss://{host}"]
    return "; ".join(" ".join([directive, *values]) for directive, values in found.items())
