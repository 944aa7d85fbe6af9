"""Shared by all REST handlers: identity, parsing of bodies, mapping of errors to status codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async
from tornado import web

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import IsolationFinder, ToolCatalog
from jupyter_agentbox.core.unique_keys import with_unique_keys
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    AgentConfigurationError,
    InvalidRequestError,
    InvalidRulesError,
    InvalidTransitionError,
    LockedError,
    NeedsPersonError,
    NotAuthorizedError,
    NotDeciderError,
    PolicyConflictError,
    ReportRefusedError,
    ServerConfigurationError,
    SignInError,
    SignInRequiredError,
    StaleDigestError,
    StorageError,
    ThreadError,
    ToolArgumentsError,
    ToolCallRejectedError,
    ToolServerError,
    TooManyRequestsError,
    UnknownApprovalError,
    UnknownGrantError,
    UnknownQuestionError,
    UnknownReviewerError,
    UnknownServerError,
    UnknownThreadError,
    UnknownToolError,
)
from jupyter_agentbox.mcp_client.seen_tools import SeenTools
from jupyter_agentbox.mcp_client.servers_file import ServersFile
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.approvals.running_calls import RunningCalls
from jupyter_agentbox.services.audit.changes import ChangeRecorder
from jupyter_agentbox.services.audit.manager import AuditManager
from jupyter_agentbox.services.calls.manual_calls import ManualCalls
from jupyter_agentbox.services.cell_updates.manager import CellUpdateManager
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.health.manager import HealthManager
from jupyter_agentbox.services.hub_requests.manager import HubRequestManager
from jupyter_agentbox.services.json_answers import answer_text
from jupyter_agentbox.services.kernels.manager import KernelExitManager
from jupyter_agentbox.services.pages.manager import PageManager
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.services.questions.manager import QuestionManager
from jupyter_agentbox.services.registrations.manager import RegistrationManager
from jupyter_agentbox.services.reviewers import no_scope
from jupyter_agentbox.services.servers.sign_ins import SignInManager

if TYPE_CHECKING:
    from jupyter_agentbox.services.threads.manager import NotebookThreads

#: The key of `Services` in the web application's settings.
SETTINGS_KEY: Final = "jupyter_agentbox_services"

#: Error class -> status code; the first match applies.
STATUS_CODES: Final[tuple[tuple[type[AgentBoxError], int], ...]] = (
    (UnknownApprovalError, 404),
    (UnknownGrantError, 404),
    (UnknownQuestionError, 404),
    (UnknownServerError, 404),
    (UnknownToolError, 404),
    (UnknownThreadError, 404),
    (ReportRefusedError, 409),
    (ThreadError, 409),
    (AgentConfigurationError, 409),
    (NeedsPersonError, 403),
    (NotDeciderError, 403),
    (NotAuthorizedError, 403),
    (LockedError, 403),
    (InvalidTransitionError, 409),
    (StaleDigestError, 409),
    (InvalidRequestError, 422),
    (InvalidRulesError, 422),
    (PolicyConflictError, 409),
    (ToolArgumentsError, 422),
    (ToolCallRejectedError, 422),
    (ServerConfigurationError, 409),
    (SignInRequiredError, 409),
    (SignInError, 403),
    (ToolServerError, 502),
    (TooManyRequestsError, 429),
    (StorageError, 503),
    (UnknownReviewerError, 503),
    (AgentBoxError, 500),
)


def status_code_of(error: AgentBoxError) -> int:
    """Return the HTTP status code for an error."""
    return next(code for kind, code in STATUS_CODES if isinstance(error, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that handlers use.

    Attributes
    ----------
    saves_arguments : bool
        Whether notebooks may have the arguments of calls.
    threads : callable
        Returns the manager of agents' threads, created on first use, because most servers use no agent.
    """

    approvals: ApprovalManager
    decisions: DecisionManager
    running_calls: RunningCalls
    cell_updates: CellUpdateManager
    health: HealthManager
    audit: AuditManager
    changes: ChangeRecorder
    grants: GrantManager
    questions: QuestionManager
    catalog: ToolCatalog
    registrations: RegistrationManager
    manual_calls: ManualCalls
    servers_file: ServersFile
    seen_tools: SeenTools
    sign_ins: SignInManager
    policies: PolicyManager
    isolation: IsolationFinder
    kernel_exits: KernelExitManager
    pages: PageManager
    hub_requests: HubRequestManager
    saves_arguments: bool
    threads: Callable[[], NotebookThreads]


class AgentBoxHandler(APIHandler):
    """Base of all handlers of this extension."""

    #: The scope whose absence made `ScopeAuthorizer` refuse the last check; empty if that was not the reason.
    missing_scope = ""

    @property
    def services(self) -> Services:
        """The managers, as the app built them."""
        services: Services = self.settings[SETTINGS_KEY]
        return services

    def json_object(self) -> JsonObject:
        """Parse and return the request's body.

        Raises
        ------
        InvalidRequestError
            If it is not a JSON object, or has duplicate keys.
        """
        try:
            return read_json_object(self.request.body)
        except ValueError as error:
            raise InvalidRequestError(str(error)) from None

    async def may_read(self, resource: str) -> bool:
        """Whether the client may read a resource: those who may change it need not be allowed to read it."""
        return await self._may("read", resource)

    async def may_write(self, resource: str) -> bool:
        """Whether the client may also change another resource."""
        return await self._may("write", resource)

    async def _may(self, action: str, resource: str) -> bool:
        self.missing_scope = ""
        return bool(await ensure_async(self.authorizer.is_authorized(self, self.current_user, action, resource)))

    async def require_write(self, resource: str, what: str) -> None:
        """Require the right to change another resource, too.

        Raises
        ------
        NotAuthorizedError
            If the client lacks it. The message says `what` requires it.
        """
        if not await self.may_write(resource):
            if self.missing_scope:
                raise no_scope(self.missing_scope, what)
            raise NotAuthorizedError(f"{what} requires a right that you do not have here.")

    def update_api_activity(self) -> None:
        """Count people's actions as activity, but not a page's periodic polling."""
        if self.request.method not in ("GET", "HEAD"):
            super().update_api_activity()

    def finish_json(self, value: JsonObject) -> None:
        """Respond with JSON that must not be cached."""
        self.finish_text(answer_text(value))

    def finish_text(self, text: str) -> None:
        """Respond with serialized JSON that must not be cached."""
        self.set_header("Cache-Control", "no-store")
        self.finish(text)

    def error_details(self, error: AgentBoxError) -> JsonObject:
        """Return the fields of an error response other than its message and reason."""
        return {"parameter": error.parameter} if isinstance(error, ToolArgumentsError) else {}

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Respond with the error's message, its code as `reason`, and its details."""
        error = self.error_in(kwargs)
        if not isinstance(error, AgentBoxError):
            super().write_error(status_code, **kwargs)
            return
        self.set_status(status_code_of(error))
        self.set_header("Content-Type", "application/json")
        self.finish_json({"message": str(error), "reason": error.code, **self.error_details(error)})

    def error_in(self, kwargs: Mapping[str, Any]) -> BaseException | None:
        """Return the error to respond with: if the authorizer named the scope that is missing, one that says so.

        Parameters
        ----------
        kwargs : mapping
            The keyword arguments of `write_error`.
        """
        error: BaseException | None = kwargs.get("exc_info", (None, None, None))[1]
        is_refusal = isinstance(error, web.HTTPError) and error.status_code == 403
        return no_scope(self.missing_scope) if is_refusal and self.missing_scope else error

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log an `AgentBoxError` as one line: it is a response, not a defect."""
        if isinstance(value, AgentBoxError):
            self.log.info("%s %s: %s", self.request.method, self.request.path, value.code)
        else:
            super().log_exception(typ, value, tb)

    def bad_query(self, message: str) -> web.HTTPError:
        """Return the error for an invalid query parameter."""
        return web.HTTPError(422, message)


def read_json_object(body: bytes) -> JsonObject:
    """Parse the body of a request.

    Raises
    ------
    ValueError
        If it is not a JSON object, or has duplicate keys. The message says which.
    """
    try:
        found = json.loads(body, object_pairs_hook=with_unique_keys)
    except (ValueError, RecursionError):
        raise ValueError("the body must be JSON, and no object may have a key twice") from None
    if not isinstance(found, dict):
        raise ValueError("the body must be a JSON object")
    return found
