"""Receivers over HTTP: JSON Lines by POST, and OpenTelemetry logs (OTLP/HTTP in JSON)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.core.otlp import export_request, read_log_record
from jupyter_agentbox.core.text import counted
from jupyter_agentbox.exceptions import RecordsRejectedError

#: Seconds that a receiver may take.
_PATIENCE: Final = 10.0
#: What the Hub service answers to records that it refuses for what they are.
_REFUSED_BY_SERVICE: Final = frozenset({409, 413, 422})
#: What a receiver answers that is about now and not about the records: log in, wait, send less, send again.
_PASSING: Final = frozenset({401, 407, 408, 421, 425, 429})


class HttpSink:
    """Takes records as the lines of a POST, ``application/x-ndjson``. An `AuditSink`.

    Parameters
    ----------
    url : str
        Where records are sent.
    token_file : str
        The file that has the bearer token; read each time, because tokens are renewed. Empty for none.
    """

    def __init__(self, url: str, *, token_file: str = "") -> None:
        self._url = url
        self._token_file = token_file
        self.name = f"`{urlsplit(url).hostname}` over HTTP"  # of an address that may have a secret

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send records; done when the receiver said so."""
        await self._post(b"".join(line + b"\n" for line in lines), "application/x-ndjson")

    def _is_refusal(self, code: int) -> bool:
        """Whether a status says that the same records will be refused again."""
        return 400 <= code < 500 and code not in _PASSING

    async def _headers(self) -> dict[str, str]:
        """Return what says who sends."""
        if not self._token_file:
            return {}
        token = await in_thread(Path(self._token_file).read_text, "utf-8")
        return {"Authorization": f"Bearer {token.strip()}"}

    async def _post(self, body: bytes, kind: str) -> HTTPResponse:
        headers = {"Content-Type": kind, **await self._headers()}
        request = HTTPRequest(
            self._url,
            method="POST",
            body=body,
            headers=headers,
            connect_timeout=_PATIENCE,
            request_timeout=_PATIENCE,
            follow_redirects=False,  # the token is for this address
        )
        try:
            return await AsyncHTTPClient().fetch(request)
        except HTTPClientError as error:
            kind_of_error = RecordsRejectedError if self._is_refusal(error.code) else OSError
            raise kind_of_error(f"it answered {error.code}") from error
        except (OSError, ValueError) as error:
            raise OSError(f"it cannot be reached: {error}") from error


class HubServiceSink(HttpSink):
    """Takes records as reports of this user's server, in the name that JupyterHub says. An `AuditSink`.

    Parameters
    ----------
    url : str
        Where the Hub service is.
    token : str
        The server's own token of the Hub; empty if it has none.
    """

    def __init__(self, url: str, *, token: str) -> None:
        super().__init__(f"{url.rstrip('/')}/api/reports")
        self._token = token
        self.name = f"the Hub service at `{urlsplit(url).hostname}`"

    def _is_refusal(self, code: int) -> bool:
        # all else is about its place behind the proxy, or about this server's token, which the Hub takes back with it
        return code in _REFUSED_BY_SERVICE

    async def _headers(self) -> dict[str, str]:
        if not self._token:
            raise OSError("this server has no token of JupyterHub: the next one that has one hands these records over")
        return {"Authorization": f"Bearer {self._token}"}


class OtlpSink(HttpSink):
    """Takes records as OpenTelemetry logs. An `AuditSink`.

    Parameters
    ----------
    url, token_file
        As of `HttpSink`; the path is usually ``/v1/logs``.
    """

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send records; done when the receiver took all of them."""
        now = datetime.now(UTC)
        body = export_request([read_log_record(line, observed_at=now) for line in lines], service="jupyter-agentbox")
        answer = await self._post(json.dumps(body).encode(), "application/json")
        rejected = _rejected(answer.body)
        if rejected:
            raise RecordsRejectedError(f"it rejected {counted(rejected, 'record')}")


def _rejected(body: bytes) -> int:
    try:
        found = json.loads(body or b"{}").get("partialSuccess", {}).get("rejectedLogRecords", 0)
        return int(found)
    except (ValueError, AttributeError, TypeError):  # it answered 200, in other words than expected
        return 0
