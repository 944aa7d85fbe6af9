"""What the core and the services need from outside, as Protocols. Adapters implement them; tests use fakes."""

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
from .questions import QuestionAnswer, ServerQuestion
from .reviews import Review
from .rule_book import RuleBook
from .threads import Thread, Turn, TurnSummary
from .tools import ConfigurationProblem, LogMessage, Progress, ServerStatus, ToolDescription, ToolResult


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Return the present time, with time zone."""


class Ids(Protocol):
    """Makes ids."""

    def new(self) -> str:
        """Return a new unguessable id, URL-safe."""


class ToolCatalog(Protocol):
    """The configured MCP servers: how they are doing and what tools they have. It calls none of the tools."""

    def servers(self) -> Sequence[ServerStatus]:
        """Return all configured servers, running or not, in the order of the configuration."""

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return what is wrong with the configuration files."""

    def known_tools(self, server: str) -> Sequence[ToolDescription] | None:
        """Return the server's tools as it listed them last; ``None`` if it has not yet. Starts nothing.

        Raises
        ------
        UnknownServerError
        """

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return the server's tools; starts it if need be.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """

    async def start(self, name: str) -> ServerStatus:
        """Start the server unless it runs. Return how that went.

        Raises
        ------
        UnknownServerError
        """

    async def stop(self, name: str) -> ServerStatus:
        """Stop the server until its next use; its running calls are cut off.

        Raises
        ------
        UnknownServerError
        """

    async def restart(self, name: str) -> ServerStatus:
        """Stop the server and start it anew; its running calls are cut off. Return how that went.

        Raises
        ------
        UnknownServerError
        """


class RuleSource(Protocol):
    """Has the rules of files, as they are now."""

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
    """Hears what is said while a call runs. All of it is untrusted."""

    @property
    def request_id(self) -> str:
        """The request of the call."""

    def progressed(self, progress: Progress) -> None:
        """Hear how far the tool says it is."""

    def logged(self, message: LogMessage) -> None:
        """Hear what the tool's server logs."""

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        """Put a question of the server to a person. Cancelled if the answer is not wanted any more."""


class ToolCaller(Protocol):
    """Calls tools, with credentials that the calling code never sees."""

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return one tool; starts the server if need be.

        Raises
        ------
        UnknownServerError, UnknownToolError, ServerConfigurationError, ToolServerError
        """

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Run the call once. Cancelling the task cancels the call on the server.

        Raises
        ------
        ToolServerError, ToolCallInterruptedError
            A tool that fails by itself does not raise: its result has `is_error`.
        """


class ArgumentChecker(Protocol):
    """Validates arguments against a tool's input schema."""

    async def check(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> None:
        """Do nothing if the arguments fit.

        Raises
        ------
        ToolArgumentsError
            With the parameter's name in `parameter`.
        """


class CallReviewer(Protocol):
    """A model that reviews calls in the place of a person."""

    @property
    def name(self) -> str:
        """The model's name, for the record."""

    async def review(self, call: ToolCall, tool: ToolDescription) -> Review:
        """Return what the model says of a call. Whatever it raises means that a person has to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuery:
    """Which requests to list; ``None`` means any.

    Parameters
    ----------
    statuses : tuple of Status
        Empty means any.
    ids : tuple of str
        Empty means any; if there are some, also those that another server process has to end.
    limit : int
        Rows in a page, 1 to 500.
    cursor : str or None
        What the last page's `next` said.
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
    """Keeps approval requests. What it wrote when a method returns outlives this process; a decision, a power cut too.

    Every method raises `StorageError` if the store cannot be read or written.
    """

    async def add(self, request: ApprovalRequest) -> bool:
        """Keep a new request, and count it as a use of the grant that answered it, in one step.

        Return whether it was kept: it is not if that grant has ended, is void, or has no use left.
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
        """Write the request if the stored one still has this status and outcome state; say whether it was written.

        A request that waits is not written either if the stored one has a vote that it has not.

        With it, in one step, `grant` is kept, which its decision gives. Without one, a decision by a grant is a use of
        that grant, and nothing is written if there is none left.
        """

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first. Long arguments may be left out.

        Raises
        ------
        ValueError
            If the cursor is none that this store gave.
        """

    async def adopt_abandoned(self) -> Sequence[ApprovalRequest]:
        """Return the requests, pending or running, of server processes that are gone, now owned by this one.

        The grants for kernels of those processes end.
        """


class GrantStore(Protocol):
    """Keeps grants; an `ApprovalStore` adds them and counts their uses, in one step with the requests.

    Every method raises `StorageError` if the store cannot be read or written.
    """

    async def grants(self) -> Sequence[Grant]:
        """Return those for all kernels, and those of kernels of this process, the oldest first."""

    async def end_grants(self, ids: Sequence[str]) -> None:
        """Remove grants: they answer nothing more, in any process."""

    async def void_grant(self, grant_id: str, void: Void) -> None:
        """Note that a grant no longer holds, and why."""


class AuditLog(Protocol):
    """Reads the record of all calls, beside those who write it."""

    async def search(self, query: AuditQuery) -> AuditPage:
        """Return a page of records, newest first.

        Raises
        ------
        ValueError
            If the cursor is none that an earlier page gave.
        StorageError
        """

    async def aclose(self) -> None:
        """Let go of the record."""


class AuditSink(Protocol):
    """A place outside this server that takes records of what happens to requests."""

    @property
    def name(self) -> str:
        """What people call it; without secrets."""

    async def send(self, lines: Sequence[bytes]) -> None:
        """Hand over records, in their order; done when it has all of them.

        Raises
        ------
        OSError
            It does not have them, or only some; they will be sent again.
        RecordsRejectedError
            It refuses them, or one of them, for what they are.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadQuery:
    """Which threads to list.

    Parameters
    ----------
    is_archived : bool
        Whether to list those that were archived, instead of all others.
    notebook_path : str or None
        The notebook whose threads to list; ``None`` means any.
    limit : int
        Threads in a page, 1 to 500.
    cursor : str or None
        What the last page's `next` said.
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
    """A page of threads without their turns, the last changed first, and the cursor of the next page."""

    threads: tuple[Thread, ...]
    next: str | None = None


class ThreadStore(Protocol):
    """Keeps agents' threads. What it wrote when a method returns outlives this process.

    Every method raises `StorageError` if the store cannot be read or written, and `UnknownThreadError` if there is no
    such thread.
    """

    async def put(self, thread: Thread) -> None:
        """Keep a new thread, without its turns."""

    async def change(self, thread_id: str, changes: Mapping[str, object]) -> Thread:
        """Change some fields of a thread, in one step that other changes do not come between; return it."""

    async def get(self, thread_id: str, *, include_turns: bool = False) -> Thread:
        """Return a thread. A turn whose server process is gone is interrupted."""

    async def list(self, query: ThreadQuery) -> ThreadPage:
        """Return a page of threads, the last changed first.

        Raises
        ------
        ValueError
            The cursor is none of this list.
        """

    async def delete(self, thread_id: str) -> None:
        """Remove a thread and its turns.

        Raises
        ------
        ThreadBusyError
            A turn of it is in progress.
        """

    async def begin(self, turn: Turn, changes: Mapping[str, object] | None = None) -> None:
        """Keep a new turn, the last of its thread, together with changes of the thread.

        Raises
        ------
        ThreadBusyError
            Another one is in progress.
        """

    async def put_turn(self, turn: Turn, history: bytes) -> None:
        """Keep what became of a turn that this process began, with what the model was sent and answered."""

    async def move(self, old_path: str, new_path: str) -> Sequence[str]:
        """Give the threads of a notebook, or of all notebooks in a directory, its new path; return their ids."""

    async def get_turn(self, turn_id: str) -> Turn:
        """Return a turn. One whose server process is gone is interrupted."""

    async def summaries(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[TurnSummary]]:
        """Return what lists say of the turns of some threads, by the thread's id, the oldest first."""

    async def histories(self, thread_id: str) -> Sequence[bytes]:
        """Return what the model was sent and answered in each turn, the oldest first."""

    async def copy(self, thread_id: str, copied: Thread, turn_ids: Mapping[str, str]) -> None:
        """Keep a new thread with copies of some turns of another: by the id of each turn, the id of its copy."""


class Announcer(Protocol):
    """Tells pages that something changed. Says which and what status, never arguments."""

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Announce a new or changed request."""

    def servers_changed(self) -> None:
        """Announce that an MCP server's status, or the configuration, changed."""

    def grants_changed(self) -> None:
        """Announce that a grant was given, used or ended."""

    def questions_changed(self) -> None:
        """Announce that an MCP server asks a person something, or that such a question is over."""


class KernelChannel(Protocol):
    """The way back into one kernel: its control channel."""

    @property
    def isolation(self) -> Isolation:
        """How far the kernel is kept from the rest of the machine."""

    @property
    def is_lossy(self) -> bool:
        """Whether messages may be lost though both ends live."""

    def send(self, comm_id: str, message: JsonObject) -> None:
        """Queue a message of `jupyter_agentbox.protocol` for the kernel side that owns this comm."""


class IsolationFinder(Protocol):
    """Knows how far each kernel is kept from the rest of the machine. Never asks the kernel."""

    def level_of(self, kernel_id: str) -> Isolation | None:
        """Return a kernel's level; ``None`` if there is no such kernel, or its level is not known now."""


class NotebookFinder(Protocol):
    """Knows which document a kernel belongs to."""

    async def path_of(self, kernel_id: str) -> str | None:
        """Return the document's path relative to the server's root; ``None`` if the kernel has none."""
