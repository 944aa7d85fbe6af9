"""Puts the parts of the Hub service together. Nothing else builds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from jupyter_agentbox.core.questions import OpenQuestion, QuestionAction, QuestionAnswer
from jupyter_agentbox.core.redaction import SECRET_NAMES, Redaction
from jupyter_agentbox.core.reviewers import DecideWith
from jupyter_agentbox.mcp_client.arguments import JsonSchemaChecker
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.audit.manager import AuditManager
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.services.calls.modes import ThreadModes
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.services.questions.manager import QuestionManager
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.system import RandomIds, SystemClock

from .calls import CentralCalls
from .central_servers import CentralServers
from .logs import RequestLog
from .metrics import Metrics
from .policy_file import PolicyFile
from .reviews import ReviewManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an administrator may set beside the policy.

    Parameters
    ----------
    database_url : str
        SQLAlchemy URL of the store.
    approval_timeout : float
        Seconds that a request waits whose rule does not say how long.
    most_calls : int
        The largest number of calls of one user that wait or run.
    idle_timeout : float
        Seconds after which a user's own servers are stopped that nobody used.
    retention : RetentionLimits
        How much is kept of requests that ended, and for how long.
    """

    database_url: str
    approval_timeout: float
    most_calls: int
    idle_timeout: float
    retention: RetentionLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class HubBox:
    """The parts, put together."""

    store: SqlApprovalStore
    servers: CentralServers
    approvals: ApprovalManager
    reviews: ReviewManager
    calls: CentralCalls
    audit: AuditManager
    metrics: Metrics
    checker: JsonSchemaChecker

    async def start(self) -> None:
        """Open the store, and close what a service that is gone left open.

        Raises
        ------
        StorageError
        """
        await self.store.open()
        await self.approvals.recover()

    async def is_ready(self) -> None:
        """Do nothing if the store can be read.

        Raises
        ------
        StorageError
        """
        await self.store.grants()

    async def aclose(self) -> None:
        """Withdraw what waits, stop the central servers, and close the store."""
        await self.calls.aclose()
        await self.approvals.orphan()
        await self.servers.aclose()
        self.checker.close()
        await self.approvals.recorded()
        await self.audit.aclose()
        await self.store.aclose()


def build(settings: Settings, policy: PolicyFile, environment: Mapping[str, str]) -> HubBox:
    """Put the parts together. Opens and starts nothing.

    Parameters
    ----------
    settings : Settings
        What the administrator set.
    policy : PolicyFile
        The policy of the site.
    environment : mapping
        The service's environment, for the variables of central servers.
    """
    clock, ids, metrics = SystemClock(), RandomIds(), Metrics()
    announcer = RequestLog(metrics)
    redaction = Redaction(SECRET_NAMES)
    store = SqlApprovalStore(settings.database_url, clock=clock, limits=settings.retention, redaction=redaction)
    servers = CentralServers(
        policy=policy, environment=environment, limits=ServerLimits(), idle_timeout=settings.idle_timeout
    )
    checker = JsonSchemaChecker()
    policies = PolicyManager(policy=policy.policy)
    approvals = ApprovalManager(
        store=store,
        announcer=announcer,
        clock=clock,
        ids=ids,
        timeout=timedelta(seconds=settings.approval_timeout),
        policies=policies,
        grants=GrantManager(store=store, clock=clock, ids=ids, decide_with=DecideWith.PERSON),
        checker=checker,
        decide_with=DecideWith.PERSON,
    )
    calls = CallManager(
        approvals=approvals,
        policies=policies,
        tools=servers.shared,
        checker=checker,
        modes=ThreadModes(),
        questions=QuestionManager(
            approvals=approvals,
            announcer=announcer,
            clock=clock,
            ids=ids,
            timeout=None,
            checker=checker,
            redaction=redaction,
            decide_with=DecideWith.PERSON,
            answerer=_cancel,
        ),
    )
    return HubBox(
        store=store,
        servers=servers,
        approvals=approvals,
        reviews=ReviewManager(approvals=approvals, auditors=policy.auditors),
        calls=CentralCalls(calls=calls, servers=servers, most_calls=settings.most_calls),
        audit=AuditManager(log=SqlAuditLog(settings.database_url), approvals=approvals, redaction=redaction),
        metrics=metrics,
        checker=checker,
    )


async def _cancel(_question: OpenQuestion) -> QuestionAnswer:
    """Answer a question of a central server: the service puts none to anybody."""
    return QuestionAnswer(action=QuestionAction.CANCEL)
