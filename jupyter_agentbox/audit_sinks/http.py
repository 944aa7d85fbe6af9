"""Audit sinks over HTTP: JSON Lines by POST, and OpenTelemetry logs (OTLP/HTTP in JSON)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tornado.httpclient import HTTPClientError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.core.otlp import export_request, read_log_record
from jupyter_agentbox.core.text import counted
from jupyter_agentbox.exceptions import RecordsRejectedError

#: Maximum response time of a receiver, in seconds.
_PATIENCE: Final = 10.0
#: Maximum size of a receiver's response, in bytes.
_LONGEST_RESPONSE: Final = 1_000_000
#: A token; empty, if the receiver needs none.
_TOKEN: Final = re.compile(r"[!-~]*")
#: The Hub service's status for records whose content it refuses.
_REFUSED_BY_SERVICE: Final = frozenset({409, 413, 422})
#: Statuses that do not concern the records themselves: log in, wait, send less, retry.
_PASSING: Final = frozenset({401, 407, 408, 421, 425, 429})


class HttpSink:
    """An `AuditSink` that posts records as lines of ``application/x-ndjson``.

    Parameters
    ----------
    url : str
        The URL to which records are posted.
    token_file : str
        File with the bearer token, read each time because tokens are renewed; empty for none.
    """

    def __init__(self, url: str, *, token_file: str = "") -> None:
        self._url = url
        self._token_file = token_file
        self.name = f"`{urlsplit(url).hostname}` over HTTP"  # the address may contain a secret

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send records; return when the receiver has confirmed them."""
        await self._post(b"".join(line + b"\n" for line in lines), "application/x-ndjson")

    def _is_refusal(self, code: int) -> bool:
        """Whether, after this status, the same records would be refused again."""
        return 400 <= code < 500 and code not in _PASSING

    async def _headers(self) -> dict[str, str]:
        """Return the headers that identify the sender."""
        if not self._token_file:
            return {}
        token = (await in_thread(Path(self._token_file).read_text, "utf-8")).strip()
        if not _TOKEN.fullmatch(token):  # an error about the header would contain it
            raise OSError(f"`{self._token_file}` does not contain one line with a token, and nothing else")
        return {"Authorization": f"Bearer {token}"}

    async def _post(self, body: bytes, kind: str) -> HTTPResponse:
        headers = {"Content-Type": kind, **await self._headers()}
        request = HTTPRequest(
            self._url,
            method="POST",
            body=body,
            headers=headers,
            connect_timeout=_PATIENCE,
            request_timeout=_PATIENCE,
            follow_redirects=False,  # the token is only for this address
            decompress_response=False,  # a small response may be huge when decompressed
        )
        # A client of its own: the shared one limits how many requests there are at once, and reads long responses.
        client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=_LONGEST_RESPONSE)
        try:
            return await client.fetch(request)
        except HTTPClientError as error:
            kind_of_error = RecordsRejectedError if self._is_refusal(error.code) else OSError
            raise kind_of_error(f"it answered {error.code}") from error
        except (OSError, ValueError) as error:
            raise OSError(f"it cannot be reached: {error}") from error
        finally:
            client.close()


class HubServiceSink(HttpSink):
    """An `AuditSink` that sends records to the Hub service as reports of this user's server, identified by JupyterHub.

    Parameters
    ----------
    url : str
        The Hub service's URL.
    token : str
        The server's own JupyterHub token; empty if it has none.
    """

    def __init__(self, url: str, *, token: str) -> None:
        super().__init__(f"{url.rstrip('/')}/api/reports")
        self._token = token
        self.name = f"the Hub service at `{urlsplit(url).hostname}`"

    def _is_refusal(self, code: int) -> bool:
        # Anything else concerns the service's route behind the proxy, or this server's token.
        return code in _REFUSED_BY_SERVICE

    async def _headers(self) -> dict[str, str]:
        if not self._token:
            raise OSError("this server has no JupyterHub token; the next server that has one will send these records")
        return {"Authorization": f"Bearer {self._token}"}


class OtlpSink(HttpSink):
    """An `AuditSink` that sends records as OpenTelemetry logs.

    Parameters
    ----------
    url, token_file
        As for `HttpSink`; the path is usually ``/v1/logs``.
    service : str
        The resource's ``service.name``.
    """

    def __init__(self, url: str, *, token_file: str = "", service: str = "jupyter-agentbox") -> None:
        super().__init__(url, token_file=token_file)
        self._service = service

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send records; return when the receiver has accepted all of them."""
        # In a thread: reading records of very many values would block the loop.
        answer = await self._post(await in_thread(self._body_of, lines), "application/json")
        rejected = _rejected(answer.body)
        if rejected:
            raise RecordsRejectedError(f"it rejected {counted(rejected, 'record')}")

    def _body_of(self, lines: Sequence[bytes]) -> bytes:
        now = datetime.now(UTC)
        body = export_request([read_log_record(line, observed_at=now) for line in lines], service=self._service)
        return json.dumps(body).encode()


def _rejected(body: bytes) -> int:
    try:
        found = json.loads(body or b"{}").get("partialSuccess", {}).get("rejectedLogRecords", 0)
        return int(found)
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):  # an unexpected body
        return 0
