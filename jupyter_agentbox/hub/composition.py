"""Builds the parts of the Hub service and connects them. This is the only place that does."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_trail import AuditSettings, WhenDown
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.changes import Facts
from jupyter_agentbox.core.local_calls import is_local
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.ports import ApprovalStore
from jupyter_agentbox.core.redaction import SECRET_NAMES, Redaction
from jupyter_agentbox.core.reviewers import DecideWith
from jupyter_agentbox.core.service_claims import Process
from jupyter_agentbox.core.waiting_times import WaitingTimes
from jupyter_agentbox.exceptions import DatabaseHeldError, StorageError
from jupyter_agentbox.mcp_client.arguments import JsonSchemaChecker
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.processes.identity import has_ended, machine_of_this_process, start_of
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.kept_requests import KeptRequests
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.approvals.running_calls import RunningCalls
from jupyter_agentbox.services.audit.changes import ChangeRecorder
from jupyter_agentbox.services.audit.manager import AuditManager
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.services.calls.thread_modes import ThreadModes
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import Person, PolicyManager
from jupyter_agentbox.services.questions.manager import QuestionManager
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.reports import SqlReportLog
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.storage.service_claim import ServiceClaim
from jupyter_agentbox.storage.sign_ins import SqlSignInTable
from jupyter_agentbox.system import RandomIds, SystemClock

from .activity import ActivityRelay
from .announcing_store import AnnouncingStore
from .approver_groups import ApproverGroups
from .audit_sinks import make_forwarder, make_outbox
from .callers import asker_of
from .calls import CentralCalls
from .central_servers import CentralServers
from .forwarding import RecordForwarder
from .left_sign_ins import LeftSignIns
from .local_calls import HubPolicyManager
from .logs import RequestLog
from .metrics import Metrics
from .open_calls import OpenCalls
from .policy_file import PolicyFile
from .policy_in_force import PolicyInForce, digest_of_file
from .questions import QuestionRelay
from .rate_limits import LONGEST, RateLimiter
from .reports import ReportManager
from .reviews import ReviewManager, approvers_of
from .sign_in_keys import SignInKeys
from .sign_in_managers import SignInManagers
from .sign_ins import CentralSignIns

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The administrator's settings, besides the policy.

    Parameters
    ----------
    database_url : str
        The SQLAlchemy URL of the database.
    approval_timeout : float
        Seconds that a request waits if its rule has no `timeout`.
    most_calls : int
        The largest number of one user's calls that may wait or run at a time.
    idle_timeout : float
        Seconds without use after which a user's own servers are stopped.
    retention : RetentionLimits
        How much of finished requests is kept, and for how long.
    resume_timeout : float
        Seconds that a waiting call is kept for its caller to come back, after its connection or the service ended.
    report_rate : int
        How many records of local calls one user's servers may report per minute.
    call_rate : float
        How many messages one user may send per second.
    claim_timeout : float
        Seconds without a heartbeat after which another service may take over the database.
    secret_names : sequence of str
        Patterns of the names whose values are not written to the database.
    public_url : str
        The service's address for people, with a slash at the end.
    sign_in_key : Path
        The file with the keys that encrypt users' sign-ins in the database.
    sign_in_days : float or None
        How many days a sign-in is kept after it was made or last renewed; ``None`` for ever.
    sign_in_grace_days : float
        How many days a sign-in is kept after its server has left the policy, or changed its address there.
    audit : AuditSettings
        Where the record is sent, and what of it.
    """

    database_url: str
    approval_timeout: float
    most_calls: int
    idle_timeout: float
    retention: RetentionLimits
    resume_timeout: float = 120.0
    report_rate: int = 6000
    call_rate: float = 10.0
    claim_timeout: float = 20.0
    secret_names: Sequence[str] = SECRET_NAMES
    public_url: str = ""
    sign_in_key: Path = Path("agentbox_hub_sign_in_key")
    sign_in_days: float | None = 90.0
    sign_in_grace_days: float = 7.0
    audit: AuditSettings = field(default_factory=AuditSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubBox:
    """The parts of the service, connected."""

    claim: ServiceClaim
    store: SqlApprovalStore
    servers: CentralServers
    approvals: ApprovalManager
    reviews: ReviewManager
    calls: CentralCalls
    open_calls: OpenCalls
    audit: AuditManager
    reports: ReportManager
    call_limiter: RateLimiter
    return_limiter: RateLimiter
    request_limiter: RateLimiter
    metrics: Metrics
    checker: JsonSchemaChecker
    policy: PolicyInForce
    approver_groups: ApproverGroups
    changes: ChangeRecorder
    sign_ins: CentralSignIns
    left_sign_ins: LeftSignIns
    sign_in_managers: SignInManagers
    forwarder: RecordForwarder | None

    async def start(self) -> None:
        """Open the store. Requests that waited when a service ended are kept for their callers; others are closed.

        Raises
        ------
        DatabaseHeldError
            If another service uses the database.
        StorageError
        """
        await self.claim.take()
        await self._begin()

    async def start_in_turn(self, stopped: asyncio.Event) -> bool:
        """Start as soon as no other service uses the database; return ``False`` if `stopped` was set before that.

        Raises
        ------
        StorageError
        """
        if not await self.claim.take_in_turn(stopped):
            return False
        await self._begin()
        return True

    async def _begin(self) -> None:
        self.sign_ins.read_keys()
        await self.store.open()
        if self.forwarder is not None:
            await self.forwarder.start()
        await self.approvals.abandoned.recover()
        self.changes.start()
        if self.store.look_again is not None:
            self.approvals.abandoned.look_again(self.store.look_again, self.store.is_look_due)
        await self.withdraw_lost()

    async def withdraw_lost(self) -> None:
        """Close the kept requests whose callers did not come back in time."""
        await self.calls.withdraw_lost()

    async def is_ready(self) -> str | None:
        """Check that the database can be read and written; return since when this process has held it.

        Raises
        ------
        StorageError
        """
        await self.store.check_writable()
        return self.claim.since

    async def aclose(self) -> None:
        """Leave waiting requests to the next process, cancel the rest, stop the central servers and close the store."""
        if self.claim.since is None:  # this process never held the database
            self.checker.close()
            await self.claim.aclose()
            return
        await self.approver_groups.aclose()
        self.approvals.abandoned.stop_looking()
        await self.calls.leave()
        await self.changes.aclose()
        if not self.claim.lost.is_set():  # otherwise another process decides what becomes of them
            await self.approvals.orphan()
        self.sign_in_managers.close()
        await self.servers.aclose()
        await self.left_sign_ins.aclose()
        await self.sign_ins.aclose()
        self.checker.close()
        await self.approvals.recorded()
        await self.audit.aclose()
        await self.reports.aclose()
        if self.forwarder is not None:
            await self.forwarder.aclose(has_database=not self.claim.lost.is_set())
        try:
            await self.store.leave()
        except DatabaseHeldError as error:
            log.debug("another service holds the database: %s", error)
        except StorageError:
            log.exception("the database could not be released: the next process has to wait for `claim_timeout`")
        await self.store.aclose()
        await self.claim.aclose()


def build(settings: Settings, policy: PolicyFile, environment: Mapping[str, str]) -> HubBox:
    """Build and connect the parts. Opens and starts nothing.

    Parameters
    ----------
    settings : Settings
        The administrator's settings.
    policy : PolicyFile
        The site's policy.
    environment : mapping
        The service's environment, for the variables of central servers.

    Raises
    ------
    ValueError
        If the address of an audit sink is invalid.
    """
    clock, ids = SystemClock(), RandomIds()
    in_force = PolicyInForce(policy, environment, clock=clock)
    metrics = Metrics()
    open_calls = OpenCalls(patience=settings.resume_timeout)
    announcer = RequestLog(metrics, on_change=open_calls.changed)
    redaction = Redaction(settings.secret_names)
    claim = ServiceClaim(
        settings.database_url, process=_this_process(ids.new()), has_ended=has_ended, timeout=settings.claim_timeout
    )
    outbox = make_outbox(settings.audit, clock=clock, redaction=redaction, environment=environment)
    store = SqlApprovalStore(
        settings.database_url,
        clock=clock,
        limits=settings.retention,
        redaction=redaction,
        service_claim=claim,
        outbox=outbox,
    )
    sign_ins = CentralSignIns(
        SqlSignInTable(settings.database_url, clock=clock, service_claim=claim),
        SignInKeys(settings.sign_in_key),
        policy=in_force,
        public_url=settings.public_url,
        keep_days=settings.sign_in_days,
    )
    left_sign_ins = LeftSignIns(
        sign_ins.table,
        sign_ins.keys,
        policy=in_force,
        environment=environment,
        clock=clock,
        grace_days=settings.sign_in_grace_days,
    )
    servers = CentralServers(
        policy=in_force,
        environment=environment,
        limits=ServerLimits(),
        idle_timeout=settings.idle_timeout,
        sign_ins_of=sign_ins.of,
    )
    checker = JsonSchemaChecker()
    policies = HubPolicyManager(in_force, person_of=_caller_of)

    def facts() -> Facts:
        return Facts(site_rules=digest_of_file(in_force.current))

    changes = ChangeRecorder(store=store, clock=clock, ids=ids, look=facts)
    in_force.follow(lambda _before, _now: changes.notice())

    def why_otherwise(request: ApprovalRequest) -> str:
        return _why_otherwise(request, in_force.current, policies)

    def keeps(request: ApprovalRequest) -> bool:
        metrics.take_over(request)
        is_asked = policies.evaluate(request.call, request.tool).effect is Effect.ASK
        return request.call.is_whole and is_asked and not why_otherwise(request)

    forwarder = None
    if outbox is not None:
        forwarder = make_forwarder(
            settings.audit,
            outbox,
            database_url=settings.database_url,
            clock=clock,
            ids=ids,
            counter=metrics,
            claim=claim,
        )
    requests: ApprovalStore = store
    if outbox is not None and forwarder is not None and settings.audit.when_down is WhenDown.DENY:
        requests = AnnouncingStore(store, outbox=outbox, forwarder=forwarder)
    grants = GrantManager(store=store, clock=clock, ids=ids, decide_with=DecideWith.PERSON)
    waiting_time = timedelta(seconds=settings.approval_timeout)
    waiting_times = WaitingTimes(timeout=waiting_time)
    approvals = ApprovalManager(
        store=requests,
        announcer=announcer,
        clock=clock,
        ids=ids,
        waiting_times=waiting_times,
        policies=policies,
        grants=grants,
        keeps=keeps,
    )
    decisions = DecisionManager(
        approvals=approvals,
        clock=clock,
        waiting_times=waiting_times,
        policies=policies,
        grants=grants,
        checker=checker,
        decide_with=DecideWith.PERSON,
    )
    running_calls = RunningCalls(requests=approvals.requests, announcer=announcer, listener=ActivityRelay(open_calls))
    calls = CallManager(
        approvals=approvals,
        policies=policies,
        tools=servers.shared,
        checker=checker,
        modes=ThreadModes(),
        questions=QuestionManager(
            running_calls=running_calls,
            announcer=announcer,
            clock=clock,
            ids=ids,
            timeout=waiting_time,
            checker=checker,
            redaction=redaction,
            decide_with=DecideWith.PERSON,
            answerer=QuestionRelay(open_calls),
            owner_of=asker_of,
            keeps_values=False,
            on_end=metrics.question_ended,
        ),
        running_calls=running_calls,
        decide_with=DecideWith.PERSON,
    )
    return HubBox(
        claim=claim,
        store=store,
        servers=servers,
        approvals=approvals,
        reviews=ReviewManager(
            approvals=approvals, decisions=decisions, policy=in_force, why_otherwise=why_otherwise, clock=clock
        ),
        calls=CentralCalls(
            calls=calls,
            servers=servers,
            most_calls=settings.most_calls,
            kept=KeptRequests(approvals),
            patience=settings.resume_timeout,
        ),
        open_calls=open_calls,
        audit=AuditManager(log=SqlAuditLog(settings.database_url), approvals=approvals, redaction=redaction),
        reports=ReportManager(
            SqlReportLog(settings.database_url, clock=clock, service_claim=claim, outbox=outbox),
            metrics,
            clock=clock,
            ids=ids,
            per_minute=settings.report_rate,
            keep_days=settings.retention.days,
        ),
        call_limiter=RateLimiter(settings.call_rate),
        # When connections break, up to `most_calls` callers come back at once, and none of them may be refused.
        return_limiter=RateLimiter(max(settings.call_rate, settings.most_calls / LONGEST)),
        request_limiter=RateLimiter(settings.call_rate),
        metrics=metrics,
        checker=checker,
        policy=in_force,
        approver_groups=ApproverGroups(in_force),
        changes=changes,
        sign_ins=sign_ins,
        left_sign_ins=left_sign_ins,
        sign_in_managers=SignInManagers(sign_ins, servers, ids=ids, public_url=settings.public_url),
        forwarder=forwarder,
    )


def _this_process(id: str) -> Process:
    pid = os.getpid()
    return Process(
        id=id,
        host=socket.gethostname(),
        pid=pid,
        machine=machine_of_this_process(),
        started=start_of(pid),
    )


def _caller_of(call: ToolCall | None) -> Person:
    """Return the user who made a call, with the groups that the Hub reported then; without a call, nobody."""
    if call is None:
        return Person()
    return Person(groups=call.origin.groups, name=call.origin.kernel_id or "")


def _why_otherwise(request: ApprovalRequest, policy: PolicyFile, policies: PolicyManager) -> str:
    """Return why a waiting request can no longer be allowed; empty if the current policy would ask the same people."""
    if request.call.server not in policy.servers and not is_local(request.call):
        return f"`{request.call.server}` is no longer a central server"
    today = policies.evaluate(request.call, request.tool)
    if today.effect is Effect.DENY:
        rule = today.rule
        return f"a rule now denies it: {rule.reason or rule}" if rule is not None else "it is denied now"
    if today.effect is Effect.ASK and (None if today.rule is None else today.rule.approvers) != approvers_of(request):
        return "the policy has changed since the request was made, and other people have to approve it"
    return ""
