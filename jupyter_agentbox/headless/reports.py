"""Progress and log messages of tools and MCP servers, for programs."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Final

from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.core.tools import LogMessage, Progress

#: The longest text of a report, in characters.
LONGEST: Final = 2_000
_LONGEST_NAME: Final = 100


@dataclass(frozen=True)
class ToolProgress:
    """The progress that a running tool reports.

    Parameters
    ----------
    server_name, tool_name : str
        The tool that runs.
    progress : float
        In the tool's own unit.
    total : float or None
        The value of `progress` at the end, if the tool knows it.
    message : str
        What the tool says; may be empty. Untrusted text, one line of at most 2,000 characters.
    request_id : str
        The call's id in the approval store.
    """

    server_name: str
    tool_name: str
    progress: float
    total: float | None
    message: str
    request_id: str

    def __str__(self) -> str:
        total = f" of {self.total:g}" if self.total is not None else ""
        message = f": {self.message}" if self.message else ""
        return f"{self.server_name}.{self.tool_name}: {self.progress:g}{total}{message}"


@dataclass(frozen=True)
class ServerLogMessage:
    """A log message that an MCP server sends as a notification.

    Parameters
    ----------
    server_name : str
        The server's name in ``mcp.json``.
    level : str
        ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``, ``alert`` or ``emergency``, if the server
        keeps to MCP.
    logger : str
        The part of the server that says it; may be empty.
    text : str
        Untrusted text of at most 2,000 characters, without the secrets of the server's configuration.
    """

    server_name: str
    level: str
    logger: str
    text: str

    def __str__(self) -> str:
        return f"{self.server_name}: {LogMessage(level=self.level, logger=self.logger, text=self.text)}"


#: What `CodeExecutor.stream` yields of what is said while a call runs.
Report = ToolProgress | ServerLogMessage


def progress_of(request: StoredRequest, progress: Progress) -> ToolProgress:
    """Return a call's progress, safe to display."""
    total = progress.total
    return ToolProgress(
        server_name=request.effective_call.server,
        tool_name=request.effective_call.tool,
        progress=progress.progress if isfinite(progress.progress) else 0,
        total=total if total is not None and isfinite(total) else None,
        message=one_line(progress.message, LONGEST),
        request_id=request.id,
    )


def log_message_of(server: str, message: LogMessage) -> ServerLogMessage:
    """Return a server's log message, safe to display."""
    text = visible(message.text)
    return ServerLogMessage(
        server_name=server,
        level=one_line(message.level, _LONGEST_NAME),
        logger=one_line(message.logger, _LONGEST_NAME),
        text=text if len(text) <= LONGEST else text[: LONGEST - 1] + "…",
    )
