"""Builds the parts of the Hub service and connects them. This is the only place that does."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.audit_trail import AuditSettings, WhenDown
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.changes import Facts
from jupyter_agentbox.core.local_calls import is_local
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.ports import ApprovalStore, Clock, Ids
from jupyter_agentbox.core.redaction import SECRET_NAMES, Redaction
from jupyter_agentbox.core.reviewers import DecideWith
from jupyter_agentbox.core.service_claims import Process
from jupyter_agentbox.core.waiting_times import WaitingTimes
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
from jupyter_agentbox.storage.outbox import Outbox
from jupyter_agentbox.storage.reports import SqlReportLog
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.storage.service_claim import ServiceClaim
from jupyter_agentbox.storage.sign_ins import SqlSignInTable
from jupyter_agentbox.system import RandomIds, SystemClock

from .activity import ActivityRelay
from .announcing_store import AnnouncingStore
from .approver_groups import ApproverGroups
from .audit_sinks import make_forwarder, make_outbox
from .box import HubBox
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
    idle_timeout : float or None
        Seconds without use after which a user's own central servers, and shared ones that are programs, are stopped;
        ``None`` for never.
    most_processes : int or None
        The largest number of central servers that are programs and run at a time; ``None`` for no limit.
    memory_limit : int or None
        Maximum data size of each process of a central server, in bytes; ``None`` for no limit.
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
    idle_timeout: float | None
    retention: RetentionLimits
    most_processes: int | None = None
    memory_limit: int | None = None
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
class _Basis:
    """What most parts are built from, and what many of them share."""

    settings: Settings
    environment: Mapping[str, str]
    clock: Clock
    ids: Ids
    policy: PolicyInForce
    metrics: Metrics
    open_calls: OpenCalls
    announcer: RequestLog
    redaction: Redaction
    claim: ServiceClaim
    outbox: Outbox | None
    checker: JsonSchemaChecker


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
    basis = _basis(settings, policy, environment)
    store = _store(basis)
    # Parts follow changes of the policy in the order in which they are built.
    sign_ins = _sign_ins(basis)
    left_sign_ins = _left_sign_ins(basis, sign_ins)
    servers = _servers(basis, sign_ins)
    policies = HubPolicyManager(basis.policy, person_of=_caller_of)
    changes = _changes(basis, store)
    forwarder = _forwarder(basis)
    grants = GrantManager(
        store=store,
        clock=basis.clock,
        ids=basis.ids,
        trust_key=servers.trust_key,
        decide_with=DecideWith.PERSON,
    )
    approvals = _approvals(basis, _announcing(basis, store, forwarder), policies, grants)
    return HubBox(
        claim=basis.claim,
        store=store,
        servers=servers,
        approvals=approvals,
        reviews=_reviews(basis, approvals, policies, grants),
        calls=_central_calls(basis, approvals, policies, servers),
        open_calls=basis.open_calls,
        audit=AuditManager(log=SqlAuditLog(settings.database_url), approvals=approvals, redaction=basis.redaction),
        reports=_reports(basis),
        call_limiter=RateLimiter(settings.call_rate),
        # When connections break, up to `most_calls` callers come back at once, and none of them may be refused.
        return_limiter=RateLimiter(max(settings.call_rate, settings.most_calls / LONGEST)),
        request_limiter=RateLimiter(settings.call_rate),
        metrics=basis.metrics,
        checker=basis.checker,
        policy=basis.policy,
        approver_groups=ApproverGroups(basis.policy, on_failure=basis.metrics.hub_failed),
        changes=changes,
        sign_ins=sign_ins,
        left_sign_ins=left_sign_ins,
        sign_in_managers=SignInManagers(sign_ins, servers, ids=basis.ids, public_url=settings.public_url),
        forwarder=forwarder,
    )


def _basis(settings: Settings, policy: PolicyFile, environment: Mapping[str, str]) -> _Basis:
    clock, ids, metrics = SystemClock(), RandomIds(), Metrics()
    open_calls = OpenCalls(patience=settings.resume_timeout)
    redaction = Redaction(settings.secret_names)
    return _Basis(
        settings=settings,
        environment=environment,
        clock=clock,
        ids=ids,
        policy=PolicyInForce(policy, environment, clock=clock),
        metrics=metrics,
        open_calls=open_calls,
        announcer=RequestLog(metrics, on_change=open_calls.changed),
        redaction=redaction,
        claim=ServiceClaim(
            settings.database_url, process=_this_process(ids.new()), has_ended=has_ended, timeout=settings.claim_timeout
        ),
        outbox=make_outbox(settings.audit, clock=clock, redaction=redaction, environment=environment),
        checker=JsonSchemaChecker(),
    )


def _store(basis: _Basis) -> SqlApprovalStore:
    return SqlApprovalStore(
        basis.settings.database_url,
        clock=basis.clock,
        limits=basis.settings.retention,
        redaction=basis.redaction,
        service_claim=basis.claim,
        outbox=basis.outbox,
        timer=basis.metrics.stored,
    )


def _sign_ins(basis: _Basis) -> CentralSignIns:
    settings = basis.settings
    return CentralSignIns(
        SqlSignInTable(settings.database_url, clock=basis.clock, service_claim=basis.claim, timer=basis.metrics.stored),
        SignInKeys(settings.sign_in_key),
        policy=basis.policy,
        public_url=settings.public_url,
        keep_days=settings.sign_in_days,
    )


def _left_sign_ins(basis: _Basis, sign_ins: CentralSignIns) -> LeftSignIns:
    return LeftSignIns(
        sign_ins.table,
        sign_ins.keys,
        policy=basis.policy,
        environment=basis.environment,
        clock=basis.clock,
        grace_days=basis.settings.sign_in_grace_days,
    )


def _servers(basis: _Basis, sign_ins: CentralSignIns) -> CentralServers:
    return CentralServers(
        policy=basis.policy,
        environment=basis.environment,
        limits=ServerLimits(
            idle_timeout=basis.settings.idle_timeout,
            most_processes=basis.settings.most_processes,
            memory=basis.settings.memory_limit,
        ),
        sign_ins_of=sign_ins.of,
    )


def _changes(basis: _Basis, store: SqlApprovalStore) -> ChangeRecorder:
    """Return what records changes of the policy, as soon as they are in force."""

    def facts() -> Facts:
        return Facts(site_rules=digest_of_file(basis.policy.current))

    changes = ChangeRecorder(store=store, clock=basis.clock, ids=basis.ids, look=facts)
    basis.policy.follow(lambda _before, _now: changes.notice())
    return changes


def _forwarder(basis: _Basis) -> RecordForwarder | None:
    if basis.outbox is None:
        return None
    return make_forwarder(
        basis.settings.audit,
        basis.outbox,
        database_url=basis.settings.database_url,
        clock=basis.clock,
        ids=basis.ids,
        counter=basis.metrics,
        claim=basis.claim,
        timer=basis.metrics.stored,
    )


def _announcing(basis: _Basis, store: ApprovalStore, forwarder: RecordForwarder | None) -> ApprovalStore:
    """Return the store of requests: one that waits for the audit sinks if the site wants that."""
    if basis.outbox is None or forwarder is None or basis.settings.audit.when_down is not WhenDown.DENY:
        return store
    return AnnouncingStore(store, outbox=basis.outbox, forwarder=forwarder)


def _approvals(
    basis: _Basis, store: ApprovalStore, policies: HubPolicyManager, grants: GrantManager
) -> ApprovalManager:
    def keeps(request: ApprovalRequest) -> bool:
        basis.metrics.take_over(request)
        is_asked = policies.evaluate(request.call, request.tool).effect is Effect.ASK
        # The entry that its server had is not stored.
        if request.status is Status.APPROVED and request.evaluation.policy_version != basis.policy.version:
            return False
        return request.call.is_whole and is_asked and not _why_otherwise(request, basis.policy.current, policies)

    return ApprovalManager(
        store=store,
        announcer=basis.announcer,
        clock=basis.clock,
        ids=basis.ids,
        waiting_times=WaitingTimes(timeout=_waiting_time(basis)),
        policies=policies,
        grants=grants,
        keeps=keeps,
    )


def _reviews(
    basis: _Basis, approvals: ApprovalManager, policies: HubPolicyManager, grants: GrantManager
) -> ReviewManager:
    def why_otherwise(request: ApprovalRequest) -> str:
        return _why_otherwise(request, basis.policy.current, policies)

    decisions = DecisionManager(
        approvals=approvals,
        clock=basis.clock,
        waiting_times=WaitingTimes(timeout=_waiting_time(basis)),
        policies=policies,
        grants=grants,
        checker=basis.checker,
        decide_with=DecideWith.PERSON,
    )
    return ReviewManager(
        approvals=approvals, decisions=decisions, policy=basis.policy, why_otherwise=why_otherwise, clock=basis.clock
    )


def _central_calls(
    basis: _Basis, approvals: ApprovalManager, policies: HubPolicyManager, servers: CentralServers
) -> CentralCalls:
    running_calls = RunningCalls(
        requests=approvals.requests, announcer=basis.announcer, listener=ActivityRelay(basis.open_calls)
    )
    calls = CallManager(
        approvals=approvals,
        policies=policies,
        tools=servers.shared,
        checker=basis.checker,
        modes=ThreadModes(),
        questions=_questions(basis, running_calls),
        running_calls=running_calls,
        decide_with=DecideWith.PERSON,
    )
    return CentralCalls(
        calls=calls,
        servers=servers,
        most_calls=basis.settings.most_calls,
        kept=KeptRequests(approvals),
        patience=basis.settings.resume_timeout,
    )


def _questions(basis: _Basis, running_calls: RunningCalls) -> QuestionManager:
    """Return what relays the questions of central servers to callers."""
    return QuestionManager(
        running_calls=running_calls,
        announcer=basis.announcer,
        clock=basis.clock,
        ids=basis.ids,
        timeout=_waiting_time(basis),
        checker=basis.checker,
        redaction=basis.redaction,
        decide_with=DecideWith.PERSON,
        answerer=QuestionRelay(basis.open_calls),
        owner_of=asker_of,
        keeps_values=False,
        on_end=basis.metrics.question_ended,
    )


def _reports(basis: _Basis) -> ReportManager:
    settings = basis.settings
    return ReportManager(
        SqlReportLog(
            settings.database_url,
            clock=basis.clock,
            service_claim=basis.claim,
            outbox=basis.outbox,
            timer=basis.metrics.stored,
        ),
        basis.metrics,
        clock=basis.clock,
        ids=basis.ids,
        redaction=basis.redaction,
        per_minute=settings.report_rate,
        keep_days=settings.retention.days,
    )


def _waiting_time(basis: _Basis) -> timedelta:
    return timedelta(seconds=basis.settings.approval_timeout)


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
