"""Ports: Protocols for what the core and the services need from outside. Adapters implement them, tests fake them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from .approvals import ApprovalRequest, OutcomeState, Status
from .audit_search import AuditPage, AuditQuery
from .calls import JsonObject, JsonValue, ToolCall
from .grant_uses import Void
from .grants import Grant
from .isolation import Isolation
from .model_reviews import Review
from .questions import QuestionAnswer, ServerQuestion
from .rule_book import RuleBook
from .threads import Thread, Turn, TurnSummary
from .tools import ConfigurationProblem, LogMessage, Progress, ServerStatus, ToolDescription, ToolResult


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time, with time zone."""


class Ids(Protocol):
    """A source of ids."""

    def new(self) -> str:
        """Return a new unguessable, URL-safe id."""


class ToolCatalog(Protocol):
    """The configured MCP servers with their status and tools. Calls no tool."""

    def servers(self) -> Sequence[ServerStatus]:
        """Return all configured servers, running or not, in configuration order."""

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return the problems in the configuration files."""

    def known_tools(self, server: str) -> Sequence[ToolDescription] | None:
        """Return the server's tools as last listed; ``None`` if not listed yet. Starts nothing.

        Raises
        ------
        UnknownServerError
        """

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return the server's tools, starting it if necessary.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """

    async def start(self, name: str) -> ServerStatus:
        """Start the server unless it is running. Return its new status.

        Raises
        ------
        UnknownServerError
        """

    async def stop(self, name: str) -> ServerStatus:
        """Stop the server until its next use; running calls are cut off.

        Raises
        ------
        UnknownServerError
        """

    async def restart(self, name: str) -> ServerStatus:
        """Stop and start the server; running calls are cut off. Return its new status.

        Raises
        ------
        UnknownServerError
        """


class RuleSource(Protocol):
    """The current rules of all files."""

    @property
    def is_writable(self) -> bool:
        """Whether the user's rules can be written."""

    def load(self) -> RuleBook:
        """Return the rules; the same object as last time if nothing changed."""

    def write(self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None) -> None:
        """Replace the user's rules.

        Raises
        ------
        InvalidRulesError, PolicyConflictError, StorageError
        """


class CallListener(Protocol):
    """Listener for progress, log messages and questions of a running call. All of them are untrusted."""

    @property
    def request_id(self) -> str:
        """The request of the call."""

    def progressed(self, progress: Progress) -> None:
        """Handle the tool's progress."""

    def logged(self, message: LogMessage) -> None:
        """Handle a log message of the tool's server."""

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        """Ask a person the server's question. Cancelled if the answer is no longer needed."""


class ActivityListener(Protocol):
    """Listener for the progress and log messages of all running calls, by their requests. All of them are untrusted."""

    def progressed(self, request_id: str, progress: Progress) -> None:
        """Handle the progress of a call's tool."""

    def logged(self, request_id: str, message: LogMessage) -> None:
        """Handle a log message of a call's server."""


class ToolCaller(Protocol):
    """Calls tools, with credentials that the calling code never sees."""

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return a tool's description, starting the server if necessary.

        Raises
        ------
        UnknownServerError, UnknownToolError, ServerConfigurationError, ToolServerError
        """

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Run the call once. Cancelling the task cancels the call on the server.

        Raises
        ------
        ToolServerError, ToolCallInterruptedError
            A tool that itself fails does not raise: its result has `is_error`.
        """


class SecondPersons(Protocol):
    """Asks other people than this server's user for the approval of a call, where a rule names approvers."""

    async def ask(self, call: ToolCall, tool: ToolDescription, *, listener: CallListener) -> ToolResult:
        """Ask, and wait for the decision. If the call was not approved, the result is an error that says why.

        Raises
        ------
        ToolServerError
            They could not be asked; the call did not run.
        """


class ArgumentChecker(Protocol):
    """Validates arguments against a tool's input schema."""

    async def check(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> None:
        """Validate the arguments.

        Raises
        ------
        ToolArgumentsError
            With the parameter's name in `parameter`.
        """


class CallReviewer(Protocol):
    """A model that reviews calls instead of a person."""

    @property
    def name(self) -> str:
        """The model's name, for the record."""

    async def review(self, call: ToolCall, tool: ToolDescription) -> Review:
        """Return the model's review of a call. Any exception means that a person must decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuery:
    """Criteria for requests to list; ``None`` matches any.

    Parameters
    ----------
    statuses : tuple of Status
        Empty matches any.
    ids : tuple of str
        Empty matches any; if given, requests that another server process must end are included.
    limit : int
        Page size, 1 to 500.
    cursor : str or None
        The `next` of the previous page.
    """

    statuses: tuple[Status, ...] = ()
    ids: tuple[str, ...] = ()
    kernel_id: str | None = None
    notebook_path: str | None = None
    limit: int = 100
    cursor: str | None = None

    @property
    def page_size(self) -> int:
        """`limit`, kept within 1 to 500."""
        return min(max(self.limit, 1), 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPage:
    """A page of requests, newest first, and the cursor of the next page."""

    approvals: tuple[ApprovalRequest, ...]
    next: str | None = None


class ApprovalStore(Protocol):
    """Storage of approval requests.

    Written data survives this process; a person's decision also survives a power failure.

    Every method raises `StorageError` if the store cannot be read or written.
    """

    async def add(self, request: ApprovalRequest) -> bool:
        """Store a new request and, atomically, count it as a use of the grant that answered it.

        Return whether it was stored: not if that grant has ended, is void or is used up.
        """

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return a request.

        Raises
        ------
        UnknownApprovalError
        """

    async def replace_if(
        self, request: ApprovalRequest, *, status: Status, outcome: OutcomeState | None, grant: Grant | None = None
    ) -> bool:
        """Write the request if the stored one still has this status and outcome state; return whether it was written.

        A pending request is also not written if the stored one has a vote that it lacks.

        `grant`, which the decision gives, is stored atomically with it. Without one, a decision by a grant counts as a
        use of that grant, and nothing is written if it is used up.
        """

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first. Long arguments may be omitted.

        Raises
        ------
        ValueError
            If the cursor is invalid.
        """

    async def adopt_abandoned(self) -> Sequence[ApprovalRequest]:
        """Take over and return the pending and running requests of server processes that are gone.

        The grants for kernels of those processes end.
        """


class GrantStore(Protocol):
    """Storage of grants; an `ApprovalStore` adds them and counts their uses, atomically with the requests.

    Every method raises `StorageError` if the store cannot be read or written.
    """

    async def grants(self) -> Sequence[Grant]:
        """Return the grants for all kernels and those for this process's kernels, oldest first."""

    async def end_grants(self, ids: Sequence[str]) -> None:
        """Delete grants, in all processes."""

    async def void_grant(self, grant_id: str, void: Void) -> None:
        """Mark a grant as void, with the reason."""


class AuditLog(Protocol):
    """Read access to the record of all calls, concurrent with its writers."""

    async def search(self, query: AuditQuery) -> AuditPage:
        """Return a page of records, newest first.

        Raises
        ------
        ValueError
            If the cursor is invalid.
        StorageError
        """

    async def aclose(self) -> None:
        """Close the record."""


class AuditSink(Protocol):
    """An audit sink: a receiver of audit records outside this server."""

    @property
    def name(self) -> str:
        """The sink's display name, without secrets."""

    async def send(self, lines: Sequence[bytes]) -> None:
        """Deliver records, in order; return when all are accepted.

        Raises
        ------
        OSError
            Not all records were accepted; they will be sent again.
        RecordsRejectedError
            The sink permanently refuses some of them.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadQuery:
    """Criteria for threads to list.

    Parameters
    ----------
    is_archived : bool
        Whether to list archived threads instead of the others.
    notebook_path : str or None
        The notebook of the threads; ``None`` matches any.
    limit : int
        Page size, 1 to 500.
    cursor : str or None
        The `next` of the previous page.
    """

    is_archived: bool = False
    notebook_path: str | None = None
    limit: int = 50
    cursor: str | None = None

    @property
    def page_size(self) -> int:
        """`limit`, kept within 1 to 500."""
        return min(max(self.limit, 1), 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """A page of threads without their turns, most recently changed first, and the cursor of the next page."""

    threads: tuple[Thread, ...]
    next: str | None = None


class ThreadStore(Protocol):
    """Storage of agents' threads. Written data survives this process.

    Every method raises `StorageError` if the store cannot be read or written, and `UnknownThreadError` if there is no
    such thread.
    """

    async def put(self, thread: Thread) -> None:
        """Store a new thread, without its turns."""

    async def change(self, thread_id: str, changes: Mapping[str, object]) -> Thread:
        """Change some fields of a thread atomically; return the thread."""

    async def get(self, thread_id: str, *, include_turns: bool = False) -> Thread:
        """Return a thread. A turn whose server process is gone is marked as interrupted."""

    async def list(self, query: ThreadQuery) -> ThreadPage:
        """Return a page of threads, most recently changed first.

        Raises
        ------
        ValueError
            The cursor does not belong to this list.
        """

    async def delete(self, thread_id: str) -> None:
        """Delete a thread and its turns.

        Raises
        ------
        ThreadBusyError
            One of its turns is in progress.
        """

    async def begin(self, turn: Turn, changes: Mapping[str, object] | None = None) -> None:
        """Store a new turn, the last of its thread, together with changes of the thread.

        Raises
        ------
        ThreadBusyError
            Another turn is in progress.
        """

    async def put_turn(self, turn: Turn, history: bytes) -> None:
        """Update a turn that this process began, with the messages to and from the model."""

    async def move(self, old_path: str, new_path: str) -> Sequence[str]:
        """Move the threads of a notebook, or of all notebooks in a directory, to a new path; return their ids."""

    async def get_turn(self, turn_id: str) -> Turn:
        """Return a turn. One whose server process is gone is marked as interrupted."""

    async def summaries(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[TurnSummary]]:
        """Return summaries of the turns of threads, by thread id, oldest first."""

    async def histories(self, thread_id: str) -> Sequence[bytes]:
        """Return the messages to and from the model in each turn, oldest first."""

    async def copy(self, thread_id: str, copied: Thread, turn_ids: Mapping[str, str]) -> None:
        """Store a new thread with copies of another's turns; `turn_ids` maps each turn's id to its copy's."""


class Announcer(Protocol):
    """Notifies pages of changes: ids and statuses, never arguments."""

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Announce a new or changed request."""

    def servers_changed(self) -> None:
        """Announce that an MCP server's status, or the configuration, changed."""

    def grants_changed(self) -> None:
        """Announce that a grant was given, used or ended."""

    def questions_changed(self) -> None:
        """Announce that an MCP server's question was asked or has ended."""


class KernelChannel(Protocol):
    """The control channel to one kernel."""

    @property
    def isolation(self) -> Isolation:
        """The kernel's level of isolation."""

    @property
    def has_own_settings(self) -> bool:
        """Whether the kernel's sandbox has settings that its user chose, where an administrator could have."""

    @property
    def is_lossy(self) -> bool:
        """Whether messages can be lost while both ends are alive."""

    def send(self, comm_id: str, message: JsonObject) -> None:
        """Queue a message of `jupyter_agentbox.protocol` for the kernel's end of this comm."""


class IsolationFinder(Protocol):
    """Looks up the isolation of kernels, without asking them."""

    def level_of(self, kernel_id: str) -> Isolation | None:
        """Return a kernel's level; ``None`` if there is no such kernel, or its level is unknown."""

    def has_own_settings(self, kernel_id: str) -> bool:
        """Whether a kernel's sandbox has settings that its user chose, where an administrator could have."""


class NotebookFinder(Protocol):
    """Looks up the document of a kernel."""

    async def path_of(self, kernel_id: str) -> str | None:
        """Return the document's path relative to the server's root; ``None`` if the kernel has none."""
