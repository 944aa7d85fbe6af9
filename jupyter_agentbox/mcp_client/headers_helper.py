"""Headers from a program: the `headersHelper` of an HTTP server, which prints a token that nobody has to keep."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx2

from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.exceptions import ToolServerError
from jupyter_agentbox.processes.environment import process_environment
from jupyter_agentbox.processes.process import Command, OwnedProcess

from .configuration import HttpServer, secrets_in
from .configuration_entries import EntryError, check_headers
from .limits import ServerLimits
from .logs import LogRing, Redactor
from .response_body import drop_body

_log = logging.getLogger(__name__)

#: Seconds that the program may take.
_PATIENCE: Final = 10.0
#: Maximum size of its output, in bytes.
_MOST_BYTES: Final = 64 * 1024
#: Seconds between asking a program that is still running to end and killing it.
_GRACE: Final = 1.0
#: Maximum number of headers and words in them: each is a secret to look for in all that is logged.
_MOST_SECRETS: Final = 100
#: Separates the words of an output that is not a JSON object of headers. Each word may be a secret.
_BETWEEN_WORDS: Final = re.compile(r"""[\s"',:{}\[\]\\]+""")


class HelperHeaders(httpx2.Auth):
    """Sends the headers that a server's `headersHelper` prints; runs it anew once when the server refuses them.

    Parameters
    ----------
    server : HttpServer
        The server.
    limits : ServerLimits
        The memory and the working directory of the program.
    on_secrets : callable
        Called with the values and their words, which may be secrets.
    log : LogRing
        Gets what the program writes to its standard error. So does this process's log, but no error message: those are
        also read by people who have nothing to do with the program.
    """

    def __init__(
        self,
        server: HttpServer,
        *,
        limits: ServerLimits,
        on_secrets: Callable[..., None],
        log: LogRing,
    ) -> None:
        self._server = server
        self._limits = limits
        self._on_secrets = on_secrets
        self._log = log
        self._lock = asyncio.Lock()
        self._headers: Mapping[str, str] = {}

    async def load(self) -> None:
        """Run the program.

        Raises
        ------
        ToolServerError
            If it fails, takes too long, or does not print headers.
        """
        self._headers = await self._printed()

    async def async_auth_flow(self, request: httpx2.Request) -> Any:
        """Send a request with the headers, in place of configured ones of the same name."""
        used = self._headers
        request.headers.update(used)
        response = yield request
        if response.status_code != 401:
            return
        renewed = await self._renewed(used)
        if renewed != used:
            await drop_body(response)
            request.headers.update(renewed)
            yield request  # the server did not recognize the client, and so did nothing

    async def _renewed(self, used: Mapping[str, str]) -> Mapping[str, str]:
        """Return new headers in place of refused ones; the same ones if there are no others."""
        async with self._lock:
            if self._headers is used:
                try:
                    self._headers = await self._printed()
                except ToolServerError:
                    self._headers = {**used}  # as if it had printed these: calls that wait do not try again
            return self._headers

    async def _printed(self) -> Mapping[str, str]:
        output, errors = bytearray(), bytearray()
        try:
            status = await self._run(output, errors)
            headers = self._read(bytes(output), status)
        except ToolServerError as error:
            self._note(errors, logging.WARNING, str(error), _without_words_of(output))
            raise
        self._on_secrets(*secrets_in(headers))
        self._note(errors, logging.DEBUG, "its `headersHelper` printed headers")
        return headers

    def _note(
        self, errors: bytearray, level: int, happened: str, clean: Callable[[str], str] = lambda text: text
    ) -> None:
        """Log what happened, with what the program wrote to its standard error, which may repeat what it printed."""
        if len(errors) == _MOST_BYTES and not errors[-1:].isspace():
            del errors[-len(errors.split()[-1]) :]  # the last word may be the beginning of a secret
        wrote = ""
        if text := errors.decode("utf-8", "replace").strip():
            line = self._log.add_unquoted(Redaction().text(clean(text)))
            wrote = f", and wrote to its standard error: {visible(line)}"
        _log.log(level, "the MCP server %s: %s%s", self._server.name, happened, wrote)

    async def _run(self, output: bytearray, errors: bytearray) -> int:
        """Run the program and return its exit status; add its output, and the beginning of its standard error."""
        closed = asyncio.Event()

        def take(chunk: bytes) -> None:
            output.extend(chunk[: _MOST_BYTES + 1 - len(output)])

        def take_error(chunk: bytes) -> None:
            errors.extend(chunk[: _MOST_BYTES - len(errors)])

        names = {"MCP_SERVER_NAME": self._server.name, "MCP_SERVER_URL": self._server.url}
        command = Command(
            argv=self._server.headers_helper,
            env=process_environment(os.environ, names),
            cwd=self._limits.default_cwd(),
            memory=self._limits.memory,
        )
        process = OwnedProcess(command, grace=_GRACE, on_output=take, on_error_output=take_error, on_closed=closed.set)
        try:
            async with asyncio.timeout(_PATIENCE):
                await process.start()
                await closed.wait()
                await process.wait(None)
        except TimeoutError:
            raise ToolServerError(f"its `headersHelper` took more than {_PATIENCE:g} s") from None
        except OSError as error:
            raise ToolServerError(f"its `headersHelper` could not be started: {error.strerror}") from None
        finally:
            await process.stop(patience=0)
        return process.returncode or 0

    def _read(self, output: bytes, status: int) -> Mapping[str, str]:
        """Return the headers in the program's output, which is in no message: it holds secrets."""
        if status:
            raise ToolServerError(f"its `headersHelper` ended with status {status}")
        if len(output) > _MOST_BYTES:
            raise ToolServerError(f"its `headersHelper` printed more than {_MOST_BYTES:,} bytes")
        try:
            found = json.loads(output)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise ToolServerError("its `headersHelper` did not print a JSON object of strings")
        if len(secrets_in(found)) > _MOST_SECRETS:
            raise ToolServerError(f"its `headersHelper` printed more than {_MOST_SECRETS} headers and words")
        try:
            return check_headers(found)
        except EntryError as error:
            raise ToolServerError(f"its `headersHelper` printed something other than headers: {error}") from None


def _without_words_of(output: bytearray) -> Callable[[str], str]:
    """Return a function that hides in a text each word that the program printed in place of headers."""
    words = {*_BETWEEN_WORDS.split(output.decode("utf-8", "replace"))}
    if len(words) > _MOST_SECRETS:
        return lambda _: "(not shown, because it may repeat what the program printed, which is too much)"
    return Redactor(words)
