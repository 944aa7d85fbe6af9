"""Requests that carry a token and so follow no redirects to other addresses."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Any
from urllib.request import HTTPRedirectHandler, Request, build_opener


class NoRedirects(HTTPRedirectHandler):
    """Does not follow redirects: `urllib` would send the token to the new host."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse to follow a redirect. The answer becomes an error with its status code."""


def read_json(request: Request, *, timeout: float, most_bytes: int) -> Any:
    """Send a request and return the JSON of its answer, without quoting an answer that is none.

    Parameters
    ----------
    request : Request
        The request.
    timeout : float
        How long to wait for the answer, in seconds.
    most_bytes : int
        Maximum size of the answer, in bytes.

    Raises
    ------
    HTTPError, URLError
        From `urllib`: the answer has another status, or there is none.
    ValueError
        If it is not JSON.
    """
    with build_opener(NoRedirects).open(request, timeout=timeout) as answer:
        try:
            return json.loads(answer.read(most_bytes))
        except (ValueError, RecursionError, HTTPException):
            raise ValueError("the answer is not JSON") from None
