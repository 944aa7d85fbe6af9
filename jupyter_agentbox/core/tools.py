"""Tool descriptions, tool results, and the status of MCP servers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from enum import Enum
from math import isfinite
from typing import Final

from .calls import JsonObject, JsonValue, canonical_json
from .hub_reviews import HubReview

#: How many log messages of a running call a page shows; below, how many characters of each.
MOST_MESSAGES: Final = 5
LONGEST_MESSAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """A tool as its server describes it. All of it is untrusted text.

    Parameters
    ----------
    name : str
        The wire name.
    title, description : str
        For people; empty if the server gives none.
    input_schema : dict
        JSON Schema of the arguments; ``{"type": "object"}`` is added if the server omitted the type.
    output_schema : dict or None
        JSON Schema of the structured result, if the server gives one.
    annotations : dict
        MCP's hints (``readOnlyHint``, ``destructiveHint``, …) as sent. Hints, not promises.
    """

    name: str
    title: str = ""
    description: str = ""
    input_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default_factory=dict)
    _digest: str = field(default="", init=False, compare=False, repr=False)

    def to_json(self) -> JsonObject:
        """Return the description as the REST API and the kernel link send it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": self.annotations,
        }

    @property
    def defaults(self) -> JsonObject:
        """The server's declared defaults of arguments."""
        properties = self.input_schema.get("properties")
        if not isinstance(properties, dict):
            return {}
        return {name: one["default"] for name, one in properties.items() if isinstance(one, dict) and "default" in one}

    @property
    def digest(self) -> str:
        """SHA-256 of the server's entire description of the tool, in lower-case hex."""
        if not self._digest:  # computed once: a listed tool is immutable, and is looked up with each call
            text = canonical_json(self.to_json()).encode("utf-8", "surrogatepass")
            object.__setattr__(self, "_digest", hashlib.sha256(text).hexdigest())
        return self._digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call.

    Parameters
    ----------
    content : tuple of dict
        MCP content blocks as plain JSON, wire names (``type``, ``text``, ``mimeType``, ``data``, …).
    structured : JSON value or None
        ``structuredContent`` as sent, still in its wrapper.
    wrapped : bool
        Whether `structured` is ``{"result": value}`` because the server wraps results that are not objects.
    is_error : bool
        Whether the tool reports that it failed.
    meta : dict
        ``_meta`` of the result.
    review : HubReview or None
        Whom its server asked before it ran the tool, if it is one whose word on that counts. The kernel gets it in
        `meta` only.
    """

    content: tuple[JsonObject, ...] = ()
    structured: JsonValue = None
    wrapped: bool = False
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict)
    review: HubReview | None = None

    def to_json(self) -> JsonObject:
        """Return the result as the kernel link sends it."""
        return {
            "content": list(self.content),
            "structured": self.structured,
            "wrapped": self.wrapped,
            "is_error": self.is_error,
            "meta": self.meta,
        }

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress that a running tool reports.

    Parameters
    ----------
    progress : float
        The progress so far, in the tool's own unit.
    total : float or None
        The final value of `progress`, if known.
    message : str
        Untrusted text for people.
    review : HubReview or None
        How far the persons are whom its server asks before it runs it, if it says that it does.
    """

    progress: float
    total: float | None = None
    message: str = ""
    review: HubReview | None = None

    def to_json(self) -> JsonObject:
        """Return the progress as the REST API sends it; numbers that JSON cannot represent are left out."""
        total = self.total if self.total is not None and isfinite(self.total) else None
        return {"progress": self.progress if isfinite(self.progress) else 0, "total": total, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMessage:
    """A log notification from an MCP server.

    Parameters
    ----------
    level : str
        ``debug`` to ``emergency``, as sent by the server.
    logger : str
        The server's logger name; may be empty.
    text : str
        Untrusted text for people.
    """

    level: str
    logger: str
    text: str

    def __str__(self) -> str:
        return f"[{self.level}]{f' {self.logger}:' if self.logger else ''} {self.text}"

    def to_json(self) -> JsonObject:
        """Return the message as the REST API sends it."""
        return {"level": self.level, "logger": self.logger, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Progress and log messages of a running call, shown but never stored.

    Parameters
    ----------
    progress : Progress or None
        The last progress that the tool reported.
    messages : tuple of LogMessage
        What its server logged last, oldest first.
    review : HubReview or None
        How far the persons are whom its server asks, as it said last.
    """

    progress: Progress | None = None
    messages: tuple[LogMessage, ...] = ()
    review: HubReview | None = None

    def with_progress(self, progress: Progress) -> Activity:
        """Return the activity with the latest progress; a review stays until a newer one."""
        return replace(self, progress=progress, review=progress.review or self.review)

    def with_message(self, message: LogMessage) -> Activity:
        """Return it with one more message, dropping the oldest beyond the limit."""
        text = message.text
        if len(text) > LONGEST_MESSAGE:
            message = replace(message, text=text[: LONGEST_MESSAGE - 1] + "…")
        return replace(self, messages=(*self.messages, message)[-MOST_MESSAGES:])

    def to_json(self) -> JsonObject:
        """Return the activity as the REST API sends it."""
        progress = self.progress.to_json() if self.progress is not None else None
        messages: list[JsonValue] = [message.to_json() for message in self.messages]
        review = {} if self.review is None else {"review": self.review.to_json()}
        return {"progress": progress, "messages": messages, **review}


class ServerState(str, Enum):
    """The state of an MCP server."""

    NEEDS_CONFIGURATION = "needs_configuration"
    NEEDS_TRUST = "needs_trust"
    NEEDS_SIGN_IN = "needs_sign_in"
    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The status of a configured MCP server, for display. Contains no credentials.

    Parameters
    ----------
    name : str
        The name in the configuration.
    state : ServerState
        The server's state.
    transport : str
        ``"stdio"`` or ``"http"``.
    error : str
        Why it is not running and what to do; empty if nothing is wrong.
    protocol_version : str
        The negotiated version; empty until it has run.
    tool_count : int or None
        Number of its tools; ``None`` until it has run.
    log : tuple of str
        The last lines of its standard error, and of its standard output that were not MCP, without secrets.
    calls : int
        Number of calls sent to it since Jupyter started.
    last_error : str
        The last error of a start or call, even if it is running again; empty if there was none.
    is_signed_in : bool
        Whether its requests carry the token of a person's sign-in.
    is_of_project : bool
        Whether it is a server of the project's ``.mcp.json``, whether or not a person has trusted it.
    is_trusted : bool
        Whether it can be started because its entry is trusted, so that a person can stop trusting it.
    sign_in_url : str
        The Hub service's page on which the user has to sign in to it; empty if there is none.
    trust_key : str
        Its trust key; empty if it cannot be started.
    """

    name: str
    state: ServerState
    transport: str
    error: str = ""
    protocol_version: str = ""
    tool_count: int | None = None
    log: tuple[str, ...] = ()
    calls: int = 0
    last_error: str = ""
    is_signed_in: bool = False
    is_of_project: bool = False
    is_trusted: bool = False
    sign_in_url: str = ""
    trust_key: str = ""

    def to_json(self) -> JsonObject:
        """Return the status as the REST API sends it."""
        return {
            "name": self.name,
            "state": self.state.value,
            "transport": self.transport,
            "error": self.error,
            "protocol_version": self.protocol_version,
            "tool_count": self.tool_count,
            "log": list(self.log),
            "calls": self.calls,
            "last_error": self.last_error,
            "is_signed_in": self.is_signed_in,
            "is_of_project": self.is_of_project,
            "is_trusted": self.is_trusted,
            "sign_in_url": self.sign_in_url,
            "trust_key": self.trust_key,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationProblem:
    """An error in a configuration file that disables a server or the whole file.

    Parameters
    ----------
    path : str
        The file.
    message : str
        What is wrong and what to do.
    line, column : int or None
        1-based position in the file, if known.
    rule : int or None
        The number of the rule, from 1, if it is in one of a file of rules.
    """

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    rule: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None or self.column is None else f":{self.line}:{self.column}"
        return f"{self.path}{place}: {self.message}"

    def to_json(self) -> JsonObject:
        """Return the problem as the REST API sends it."""
        found: JsonObject = {"path": self.path, "message": self.message, "line": self.line, "column": self.column}
        return found if self.rule is None else {**found, "rule": self.rule}
