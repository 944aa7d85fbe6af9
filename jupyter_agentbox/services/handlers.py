"""What all REST handlers share: who asks, how bodies are read, and how errors become status codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async
from tornado import web

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.ports import IsolationFinder, ToolCatalog
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    AgentConfigurationError,
    InvalidDecisionError,
    InvalidRulesError,
    InvalidTransitionError,
    LockedError,
    NeedsPersonError,
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
from jupyter_agentbox.services.calls.manual import ManualCalls
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
from jupyter_agentbox.services.servers.sign_ins import SignInManager

if TYPE_CHECKING:
    from jupyter_agentbox.services.threads.manager import NotebookThreads

#: The key of `Services` in the web application's settings.
SETTINGS_KEY: Final = "jupyter_agentbox_services"

#: Error -> status code; the first class that fits.
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
    (LockedError, 403),
    (InvalidTransitionError, 409),
    (StaleDigestError, 409),
    (InvalidDecisionError, 422),
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
    """Return the status code of HTTP that an error is answered with."""
    return next(code for kind, code in STATUS_CODES if isinstance(error, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the handlers speak for.

    Attributes
    ----------
    threads : callable
        Returns the agents' threads: made at the first call, because most servers use no agent.
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
    threads: Callable[[], NotebookThreads]


class AgentBoxHandler(APIHandler):
    """Base of all handlers of this extension."""

    @property
    def services(self) -> Services:
        """The managers, as the app built them."""
        services: Services = self.settings[SETTINGS_KEY]
        return services

    def json_object(self) -> JsonObject:
        """Return the request's body.

        Raises
        ------
        InvalidDecisionError
            If it is not a JSON object, or says a thing twice.
        """
        try:
            body = json.loads(self.request.body, object_pairs_hook=_one_of_each)
        except (ValueError, RecursionError):
            raise InvalidDecisionError("the body must be JSON") from None
        if not isinstance(body, dict):
            raise InvalidDecisionError("the body must be a JSON object")
        return body

    async def may_read(self, resource: str) -> bool:
        """Whether who asks may read a resource: who may change a thing need not be allowed to read it."""
        return await self._may("read", resource)

    async def may_write(self, resource: str) -> bool:
        """Whether who asks may change another resource as well."""
        return await self._may("write", resource)

    async def _may(self, action: str, resource: str) -> bool:
        return bool(await ensure_async(self.authorizer.is_authorized(self, self.current_user, action, resource)))

    def update_api_activity(self) -> None:
        """Count what somebody does as activity, and not that a page looks, which it does again and again by itself."""
        if self.request.method not in ("GET", "HEAD"):
            super().update_api_activity()

    def finish_json(self, value: JsonObject) -> None:
        """Answer with JSON that no cache keeps."""
        self.finish_text(answer_text(value))

    def finish_text(self, text: str) -> None:
        """Answer with JSON that was written already, and that no cache keeps."""
        self.set_header("Cache-Control", "no-store")
        self.finish(text)

    def error_details(self, error: AgentBoxError) -> JsonObject:
        """Return what an error's answer has beside its message and reason."""
        return {"parameter": error.parameter} if isinstance(error, ToolArgumentsError) else {}

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with the error's message, its code as `reason`, and its details."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if not isinstance(error, AgentBoxError):
            super().write_error(status_code, **kwargs)
            return
        self.set_status(status_code_of(error))
        self.set_header("Content-Type", "application/json")
        self.finish_json({"message": str(error), "reason": error.code, **self.error_details(error)})

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log an `AgentBoxError` as one line: it is an answer, not a defect."""
        if isinstance(value, AgentBoxError):
            self.log.info("%s %s: %s", self.request.method, self.request.path, value.code)
        else:
            super().log_exception(typ, value, tb)

    def bad_query(self, message: str) -> web.HTTPError:
        """Return the error for a query parameter that cannot be read."""
        return web.HTTPError(422, message)


def _one_of_each(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    """Refuse a repeated key: readers differ in which of the two they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found
