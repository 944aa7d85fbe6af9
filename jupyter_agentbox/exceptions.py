"""Every error that jupyter_agentbox raises.

::

    AgentBoxError
    ├── NoServerError             no Jupyter server with jupyter_agentbox answers this kernel
    ├── ToolCallRejectedError     a person or a rule rejected the call
    │   └── NobodyToAskError      no rule decides, and nobody is available to ask
    ├── ApprovalExpiredError      nobody decided in time
    ├── ApprovalCancelledError    the request was withdrawn, or its kernel went away
    ├── TooManyRequestsError      the kernel has too many pending requests; nobody was asked
    ├── ToolArgumentsError        the arguments do not fit the tool's schema
    ├── ToolError                 the tool ran and answered with an error
    ├── ToolServerError           the MCP server is missing, misconfigured, dead or too slow
    │   ├── UnknownServerError    no server of that name is configured
    │   ├── UnknownToolError      the server has no tool of that name
    │   ├── ServerConfigurationError   the server's configuration is incomplete or broken
    │   ├── SignInRequiredError   the server wants a person to sign in first
    │   └── ToolCallInterruptedError   the call was cut off; it may have had an effect
    ├── ApprovalError             a request cannot be changed that way
    │   ├── UnknownApprovalError  no such approval request
    │   ├── InvalidTransitionError     the request's status does not allow this answer
    │   ├── StaleDigestError      the decision was made about other arguments than the stored ones
    │   ├── NotAnApproverError    the request is for other persons to decide
    │   ├── InvalidDecisionError  the decision itself is malformed; also an InvalidRequestError
    │   ├── UnknownGrantError     no such grant, or it has ended
    │   ├── UnknownQuestionError  no such question of an MCP server
    │   ├── NeedsPersonError      the decision must come from a person's browser session
    │   ├── NotDeciderError       the sender may use the server but not decide there
    │   └── UnknownReviewerError  it is not known whether the reviewer may still decide
    ├── InvalidRequestError       what the REST API was sent is malformed
    ├── NotAuthorizedError        the client lacks the right to do this
    ├── SignInError               a sign-in to a server was not completed
    ├── LockedError               the site's administrator has disabled this
    ├── InvalidRulesError         the submitted rules are invalid
    ├── PolicyConflictError       the rules file has changed since it was read
    ├── PolicyRefusedError        the submitted signed policy is refused
    ├── CodeGenerationError       a code generator produced no code
    │   └── CodeGeneratorConfigurationError   it cannot until a person fixes its configuration
    ├── ThreadError               an agent's thread cannot be used that way
    │   ├── UnknownThreadError    no such thread, or no such turn in it
    │   └── ThreadBusyError       a turn is in progress in the thread
    ├── AgentTurnError            a turn of an agent failed
    ├── AgentConfigurationError   the agent is misconfigured: a library, key or model is missing
    ├── SandboxRefusedError       a sandboxed kernel cannot be started as asked; none was started
    │   └── SandboxConfigError    the sandbox's settings are invalid
    ├── RecordsRejectedError      an audit sink permanently refuses these records
    ├── ReportRefusedError        the Hub service refuses a record that a server reports
    └── StorageError              the approval store cannot be read or written; nothing runs
        └── AuditError            a required audit sink does not accept a record; nothing runs
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

#: How many lines of the user's code an error shows: the cell's, and the one that called the tool.
_MOST_PLACES: Final = 2
#: Longest such line, in characters.
_LONGEST_LINE: Final = 200
#: Top-level packages whose frames lie between a cell and a tool and are not the user's code.
_NOT_OF_USER: Final = frozenset({"jupyter_agentbox", "IPython"})
_STANDARD_LIBRARY: Final = linecache.__file__.removesuffix("linecache.py")


class AgentBoxError(Exception):
    """Base of all errors of this package.

    Attributes
    ----------
    code : str
        The error's name on the wire: stable, lower case with underscores.
    request_id : str or None
        The approval request that the error is about, if there is one.
    """

    code = "error"

    def __init__(self, message: str = "", *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id

    def _render_traceback_(self) -> list[str]:
        """Return the short traceback that IPython shows: the user's lines and the message.

        With ``%tb``, which shows an error that is no longer being handled, return all frames.
        """
        return short_traceback(self)


def short_traceback(error: BaseException) -> list[str]:
    """Return the traceback that IPython shows of an error: the user's lines and the message.

    Parameters
    ----------
    error : BaseException
        The error. When it is no longer being handled, as with ``%tb``, the traceback has all frames.
    """
    shell = sys.modules["IPython"].get_ipython()
    if sys.exc_info()[1] is not error:
        return list(shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__))
    places = list(_places_of_user(error.__traceback__, shell))
    shown = places if len(places) <= _MOST_PLACES else [places[0], places[-1]]
    hint = ["(%tb shows the whole traceback)"] if shown else []
    return [*shown, *hint, f"{type(error).__name__}: {error}"]


class NoServerError(AgentBoxError):
    """No Jupyter server with jupyter_agentbox answers this kernel, so nothing ran."""

    code = "no_server"


class ToolCallRejectedError(AgentBoxError):
    """A person or a rule rejected the call; the tool did not run.

    Attributes
    ----------
    reason : str
        What the person wrote; empty if they gave no reason.
    """

    code = "rejected"

    def __init__(self, message: str = "", *, request_id: str | None = None, reason: str = "") -> None:
        super().__init__(message, request_id=request_id)
        self.reason = reason


class NobodyToAskError(ToolCallRejectedError):
    """No rule decides the call and nobody is available to ask: it failed at once, without running.

    Attributes
    ----------
    reason : str
        Why nobody could be asked, and what to do.
    """

    code = "nobody_to_ask"


class ApprovalExpiredError(AgentBoxError):
    """Nobody decided in time; the tool did not run. This is not a rejection."""

    code = "expired"


class ApprovalCancelledError(AgentBoxError):
    """The request was withdrawn before a decision; the tool did not run."""

    code = "cancelled"


class TooManyRequestsError(AgentBoxError):
    """The kernel has reached its limit of pending requests; nobody was asked and nothing ran."""

    code = "too_many_requests"


class ToolArgumentsError(AgentBoxError, ValueError):
    """The arguments do not fit the tool's input schema; nobody was asked and nothing ran.

    Attributes
    ----------
    parameter : str or None
        The invalid parameter, as named in the schema; ``None`` if the argument object as a whole is invalid.
    """

    code = "invalid_arguments"

    def __init__(self, message: str = "", *, request_id: str | None = None, parameter: str | None = None) -> None:
        super().__init__(message, request_id=request_id)
        self.parameter = parameter


class ToolError(AgentBoxError):
    """The tool ran and answered with an error (``isError``).

    Attributes
    ----------
    result : object
        The whole result; in a kernel a `jupyter_agentbox.kernel.results.CallResult`.
    """

    code = "tool_error"

    def __init__(self, message: str = "", *, request_id: str | None = None, result: object = None) -> None:
        super().__init__(message, request_id=request_id)
        self.result = result


class ToolServerError(AgentBoxError):
    """The MCP server did not answer the call: it is dead, hangs, or sends invalid messages."""

    code = "server_error"


class UnknownServerError(ToolServerError):
    """No MCP server of that name is configured."""

    code = "unknown_server"


class UnknownToolError(ToolServerError):
    """The MCP server has no tool of that name."""

    code = "unknown_tool"


class ServerConfigurationError(ToolServerError):
    """The server's configuration is incomplete or broken; it was not started."""

    code = "server_configuration"


class SignInRequiredError(ToolServerError):
    """The server requires a person to sign in, or to sign in again; nothing ran, and the call does not wait for it.

    Attributes
    ----------
    lacks_rights : bool
        Whether somebody is signed in but lacks the required scopes.
    advice : str
        Why the server requires it, and what people do.
    url : str
        The Hub service's page on which the user signs in; empty if that is done in JupyterLab.
    """

    code = "sign_in_required"
    lacks_rights = False
    advice = ""
    url = ""


class ToolCallInterruptedError(ToolServerError):
    """The call was cut off while it ran. Whether it had an effect is unknown; it is not retried."""

    code = "interrupted"


class InvalidRequestError(AgentBoxError, ValueError):
    """The body or a parameter of a request to the REST API is invalid; nothing was changed."""

    code = "invalid_request"


class ApprovalError(AgentBoxError):
    """An approval request cannot be read or changed that way."""

    code = "approval_error"


class UnknownApprovalError(ApprovalError):
    """There is no approval request with that id."""

    code = "unknown_approval"


class InvalidTransitionError(ApprovalError):
    """The request is final, or its status does not allow this transition."""

    code = "not_pending"


class StaleDigestError(ApprovalError):
    """The digest in the decision differs from the stored call's."""

    code = "stale_digest"


class InvalidDecisionError(ApprovalError, InvalidRequestError):
    """The decision is malformed: an unknown answer, or arguments where none are allowed."""

    code = "invalid_decision"


class NotAnApproverError(ApprovalError):
    """The reviewer is not among those who may decide this request; it is still pending."""

    code = "not_an_approver"


class UnknownGrantError(ApprovalError):
    """There is no such grant, or it has ended."""

    code = "unknown_grant"


class UnknownQuestionError(ApprovalError):
    """There is no such question of an MCP server, or it was answered long ago."""

    code = "unknown_question"


class NeedsPersonError(ApprovalError):
    """A program sent the decision, but only a person may decide; the request is still pending."""

    code = "needs_person"


class NotDeciderError(ApprovalError):
    """The sender may use the JupyterHub server but not decide there; the request is still pending."""

    code = "not_a_decider"


class UnknownReviewerError(ApprovalError):
    """JupyterHub does not say whether the reviewer may still decide, so the request is still pending."""

    code = "unknown_reviewer"


class NotAuthorizedError(AgentBoxError):
    """The client may use the server, but lacks the right to do this; nothing was changed."""

    code = "not_authorized"


class SignInError(AgentBoxError):
    """A sign-in to an MCP server failed: it ended, was begun elsewhere, or was denied. Nothing is stored."""

    code = "sign_in"


class LockedError(AgentBoxError):
    """The site's administrator has disabled this; nothing was changed."""

    code = "locked"


class InvalidRulesError(AgentBoxError, ValueError):
    """The submitted rules are invalid. The rules in force are unchanged.

    Attributes
    ----------
    problems : tuple of dict
        What is wrong and where, as the REST API sends it.
    """

    code = "invalid_rules"

    def __init__(
        self, message: str = "", *, problems: Sequence[Mapping[str, Any]] = (), request_id: str | None = None
    ) -> None:
        super().__init__(message, request_id=request_id)
        self.problems = tuple(dict(problem) for problem in problems)


class PolicyConflictError(AgentBoxError):
    """The rules file has changed since the revision to be replaced. The rules in force are unchanged.

    Attributes
    ----------
    revision : str
        The current revision.
    """

    code = "policy_conflict"

    def __init__(self, message: str = "", *, revision: str = "", request_id: str | None = None) -> None:
        super().__init__(message, request_id=request_id)
        self.revision = revision


class PolicyRefusedError(AgentBoxError):
    """The submitted policy of a Hub service is refused; the last good one stays in force."""

    code = "policy_refused"


class CodeGenerationError(AgentBoxError):
    """A code generator produced no code. Another attempt may succeed."""

    code = "code_generation"


class CodeGeneratorConfigurationError(CodeGenerationError, ValueError):
    """A code generator is missing, or cannot work until a person fixes its configuration; it is not retried."""

    code = "code_generator_configuration"


class ThreadError(AgentBoxError):
    """An agent's thread cannot be used that way."""

    code = "thread"


class UnknownThreadError(ThreadError):
    """There is no such thread, or no such turn in it."""

    code = "unknown_thread"


class ThreadBusyError(ThreadError):
    """A turn is in progress in the thread: wait for its end, or interrupt it."""

    code = "thread_busy"


class AgentConfigurationError(AgentBoxError):
    """The agent is misconfigured: a library, key or model is missing. Nothing was sent to the model."""

    code = "agent_configuration"


class AgentTurnError(AgentBoxError):
    """An agent's turn failed, though code in it may have run; or an hourly limit kept it from starting.

    Attributes
    ----------
    reason : str
        Why it failed, in one word: `limit`, `model`, `kernel` or `internal`.
    """

    code = "agent_turn"

    def __init__(self, message: str = "", *, request_id: str | None = None, reason: str = "") -> None:
        super().__init__(message, request_id=request_id)
        self.reason = reason


class SandboxRefusedError(AgentBoxError):
    """A sandboxed kernel cannot be started as asked, so none was started: a sandbox never degrades silently."""

    code = "sandbox_refused"


class SandboxConfigError(SandboxRefusedError, ValueError):
    """The settings of a sandbox are invalid, so no kernel was started."""

    code = "sandbox_config"


class StorageError(AgentBoxError):
    """The approval store cannot be read or written, so nothing runs."""

    code = "storage"


class DatabaseHeldError(StorageError):
    """Another Hub service uses the database. Nothing was written."""

    code = "database_held"


class AuditError(StorageError):
    """A required audit sink does not accept a record, so nothing runs."""

    code = "audit"


class ReportRefusedError(AgentBoxError):
    """The Hub service refuses a record: it is malformed, belongs to another user, or its number is taken."""

    code = "report_refused"


class RecordsRejectedError(AgentBoxError, OSError):
    """An audit sink refuses these records, or one of them, and would do so on every retry."""

    code = "records_rejected"


def _subclasses(cls: type[AgentBoxError]) -> list[type[AgentBoxError]]:
    return [cls, *(found for child in cls.__subclasses__() for found in _subclasses(child))]


#: Wire code -> class, with which a kernel rebuilds what the server raised.
ERRORS_BY_CODE: dict[str, type[AgentBoxError]] = {cls.code: cls for cls in _subclasses(AgentBoxError)}


def _is_between(file: str, module: str) -> bool:
    """Whether a frame is not the user's: of this package, of IPython, or of the standard library."""
    is_standard = file.startswith((_STANDARD_LIBRARY, "<frozen ")) and "site-packages" not in file
    return is_standard or module.partition(".")[0] in _NOT_OF_USER


def _places_of_user(traceback: TracebackType | None, shell: Any) -> Iterator[str]:
    """Yield the places in the user's code, outermost first, without frames of IPython or of this package."""
    is_in_cell = False
    while traceback is not None:
        frame, number, traceback = traceback.tb_frame, traceback.tb_lineno, traceback.tb_next
        file = frame.f_code.co_filename
        cell = shell.compile.format_code_name(file)
        is_in_cell = is_in_cell or cell is not None  # frames above the cell are IPython's
        if is_in_cell and not _is_between(file, str(frame.f_globals.get("__name__"))):
            where = " ".join(cell) if cell is not None else f"File {file}"
            line = linecache.getline(file, number).strip()
            shown = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
            yield f"{where}, line {number}: {shown}".removesuffix(": ")
