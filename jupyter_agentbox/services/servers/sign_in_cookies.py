"""What the browser carries in a sign-in: the cookie with its key, and the provider's answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from tornado import web

from .sign_ins import Begun, ProviderAnswer

#: Lifetime of the cookie, in seconds.
_AGE: Final = 600
_LONGEST: Final = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInCookie:
    """The cookie with the key of the browser in which a sign-in began. Each sign-in has its own.

    Parameters
    ----------
    prefix : str
        The start of its name.
    path : str
        The path to which it is limited: the page to which the provider sends the person back.
    """

    prefix: str
    path: str

    def set(self, handler: web.RequestHandler, begun: Begun, *, secure: bool) -> None:
        """Set the cookie in the browser; with ``secure``, the browser sends it over https only."""
        handler.set_cookie(
            self._name_of(begun.state),
            begun.browser_key,
            path=self.path,
            max_age=_AGE,
            httponly=True,
            secure=secure,
            samesite="Lax",  # not Strict: it is sent when a page of the provider redirects here
        )

    def read(self, handler: web.RequestHandler, state: str) -> str:
        """Return the key that the browser sent for a sign-in; empty if it sent none."""
        return handler.get_cookie(self._name_of(state)) or ""

    def clear(self, handler: web.RequestHandler, state: str) -> None:
        """Remove the cookie of a sign-in from the browser."""
        handler.clear_cookie(self._name_of(state), path=self.path)

    def _name_of(self, state: str) -> str:
        return f"{self.prefix}-{hashlib.sha256(state.encode()).hexdigest()[:16]}"


def read_answer(handler: web.RequestHandler) -> ProviderAnswer:
    """Read the provider's answer from the parameters of a request, each cut to 8,000 characters."""

    def argument(name: str) -> str:
        return (handler.get_query_argument(name, "", strip=False) or "")[:_LONGEST]

    return ProviderAnswer(
        state=argument("state"), code=argument("code"), issuer=argument("iss") or None, error=argument("error")
    )
