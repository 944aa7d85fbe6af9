"""Downloads of records for auditors: their formats, and how they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tornado import iostream, web
from tornado.http1connection import HTTP1Connection

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.otlp import export_request
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.services.json_answers import answer_text

from .handlers import JsonHandler

Row = TypeVar("Row")

#: The service's name in OpenTelemetry logs and for syslog.
SERVICE: Final = "jupyter-agentbox-hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat(Generic[Row]):
    """A format of a download.

    Parameters
    ----------
    media : str
        Its media type.
    suffix : str
        The suffix of the file's name.
    write : callable
        Returns a page of rows as text.
    header : str
        The text before the first row.
    """

    media: str
    suffix: str
    write: Callable[[Sequence[Row]], str]
    header: str = ""


class ExportHandler(JsonHandler):
    """Base of the handlers that send records to auditors."""

    asks_anew = True

    def read_format(self, formats: Mapping[str, ExportFormat[Row]]) -> ExportFormat[Row]:
        """Return the requested format, JSON Lines by default."""
        name = self.get_query_argument("format", "jsonl")
        if name not in formats:
            raise self.bad_query(f"`format` must be one of {', '.join(formats)}")
        return formats[name]

    def check_parameters(self, known: Collection[str]) -> None:
        """Refuse parameters that do not exist: without the filter, the file would have more than was asked for."""
        if unknown := self.request.query_arguments.keys() - {*known, "format", "token"}:
            name = one_line(min(unknown), 60)
            raise self.bad_query(f"`{name}` is not a parameter here; use {', '.join((*known, 'format'))}")

    def bad_query(self, message: str) -> web.HTTPError:
        """Return the error for an invalid parameter."""
        return web.HTTPError(400, message)

    async def send_file(self, name: str, form: ExportFormat[Row], pages: AsyncIterator[Sequence[Row]]) -> None:
        """Send rows as a file, page by page, with only one page in memory."""
        self.set_header("Content-Type", form.media)
        self.set_header("Content-Disposition", f'attachment; filename="{name}.{form.suffix}"')
        self.write(form.header)
        try:
            async for page in pages:
                self.write(await asyncio.to_thread(form.write, page))
                await self.flush()
        except iostream.StreamClosedError:
            return  # the client has disconnected
        except Exception:
            self._break_off()
            raise

    def _break_off(self) -> None:
        """Close the connection if a part of the file was sent, so that nobody takes that part for the whole file."""
        connection = self.request.connection
        if self._headers_written and isinstance(connection, HTTP1Connection):
            connection.close()


def otlp_line(logs: Sequence[JsonObject]) -> str:
    """Return log records as a line of OTLP's JSON; empty without any."""
    return f"{answer_text(export_request(logs, service=SERVICE))}\n" if logs else ""
