"""Requests that carry a token go to the address that they are for, and nowhere else."""

from __future__ import annotations

from typing import Any
from urllib.request import HTTPRedirectHandler


class NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: `urllib` would send the token along, to whatever host it names."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse to follow; the answer is then an error with its status code."""
