"""Keeps requests that carry a token from following redirects to other addresses."""

from __future__ import annotations

from typing import Any
from urllib.request import HTTPRedirectHandler


class NoRedirects(HTTPRedirectHandler):
    """Does not follow redirects: `urllib` would send the token to the new host."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse to follow a redirect. The answer becomes an error with its status code."""
