"""Builds the parts that every front end of a user needs: policy, approvals, calls, tools.

`hub.composition` builds those of a Hub service.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from jupyter_agentbox.codegen.modules import generate_module
from jupyter_agentbox.core.audit import digest_of
from jupyter_agentbox.core.audit_trail import AuditSettings
from jupyter_agentbox.core.calls import JsonObject, JsonValue, canonical_json
from jupyter_agentbox.core.changes import Facts
from jupyter_agentbox.core.policy import Layer, Policy
from jupyter_agentbox.core.ports import Announcer, Clock, RuleSource, ToolCaller, ToolCatalog
from jupyter_agentbox.core.redaction import SECRET_NAMES, Redaction
from jupyter_agentbox.core.reviewers import DecideWith
from jupyter_agentbox.core.site_policy import Feature, SitePolicy
from jupyter_agentbox.core.spawn_profile import profile_of
from jupyter_agentbox.core.tools import LogMessage, ToolDescription
from jupyter_agentbox.core.waiting_times import WaitingTimes
from jupyter_agentbox.mcp_client.arguments import JsonSchemaChecker
from jupyter_agentbox.mcp_client.configuration import where_to_look
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.hub_approvals import HubApprovals
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.own_servers import OwnServers, ReviewableServers
from jupyter_agentbox.mcp_client.project_servers import LayeredConfiguration, ProjectServers, TrustedServers
from jupyter_agentbox.mcp_client.registry import ServerRegistry
from jupyter_agentbox.mcp_client.seen_tools import SeenTools
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore, Place
from jupyter_agentbox.mcp_client.site_servers import FILE_NAME as SITE_SERVERS
from jupyter_agentbox.mcp_client.site_servers import SiteServers
from jupyter_agentbox.paths import audit_spool_path, hub_policy_path, keep_server, site_rules_paths
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.approvals.running_calls import RunningCalls
from jupyter_agentbox.services.audit.changes import ChangeRecorder
from jupyter_agentbox.services.audit.manager import AuditManager
from jupyter_agentbox.services.audit.recorded_store import RecordedStore
from jupyter_agentbox.services.audit.site_trail import SiteTrail
from jupyter_agentbox.services.audit.trails import made_trail
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.services.calls.manual_calls import ManualCalls
from jupyter_agentbox.services.calls.router import ToolRouter
from jupyter_agentbox.services.calls.thread_modes import ThreadModes
from jupyter_agentbox.services.cell_updates.manager import CellUpdateManager
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import PersonOf, PolicyManager, nobody_known
from jupyter_agentbox.services.questions.manager import Answerer, QuestionManager
from jupyter_agentbox.services.registrations.manager import RegistrationManager
from jupyter_agentbox.services.servers.sign_ins import SignInManager
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.database import JournalMode
from jupyter_agentbox.storage.group_commit import Timer, untimed
from jupyter_agentbox.storage.hub_policies import HubPolicies
from jupyter_agentbox.storage.protection import why_unprotected
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.storage.rule_files import RuleFiles, SitePlace
from jupyter_agentbox.system import RandomIds, SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a person or an administrator.

    Parameters
    ----------
    mcp_config_path : tuple of Path
        The files that configure MCP servers. If several files name a server, the first one counts.
    database_url : str
        The SQLAlchemy URL of the approval store.
    journal_mode : str
        SQLite's journal mode.
    tenant : str or None
        The JupyterHub user to whom the store has to belong.
    approval_timeout : float or None
        How long a request waits for a decision, in seconds; ``None`` for ever.
    longest_wait : float or None
        How long a request waits at most, in seconds, however often a person extends it; ``None`` for no limit.
    bounds_all : bool
        Whether `longest_wait` also limits `approval_timeout` and the timeouts of rules.
    most_pending : int or None
        The largest number of pending requests per kernel; ``None`` for no limit.
    decide_with : DecideWith
        Whose decisions count.
    added_servers : Path or None
        The file to which servers requested by programs are added; ``None`` to forbid that.
    project : Path or None
        The directory whose ``.mcp.json`` is read; ``None`` for none.
    trusted_servers : Path or None
        The file of the servers that a person trusts; required with a project, and for reviews.
    reviews_changed_servers : bool
        Whether a new or changed entry of `mcp_config_path` is used only after a person trusted it.
    seen_tools : Path or None
        The file of the tool definitions that a person has seen; ``None`` to keep them in memory.
    sign_ins : Path or None
        The file of sign-ins to MCP servers, used without a keyring; ``None`` if nobody can sign in.
    sign_in_storage : str
        ``auto``, ``file`` or ``memory``: see `LocalSignInStore`.
    hub_service : str
        The URL of the Hub service; empty for none.
    limits : ServerLimits
        The limits of MCP servers.
    retention : RetentionLimits
        How much of finished requests is kept, and for how long.
    secret_names : tuple of str
        Patterns of names whose values are never stored.
    audit : AuditSettings
        The audit sinks, which get records besides the store.
    """

    mcp_config_path: tuple[Path, ...]
    database_url: str
    journal_mode: JournalMode = "wal"
    tenant: str | None = None
    approval_timeout: float | None = 600.0
    longest_wait: float | None = 3600.0
    bounds_all: bool = False
    most_pending: int | None = 1000
    decide_with: DecideWith = DecideWith.ANY
    added_servers: Path | None = None
    project: Path | None = None
    trusted_servers: Path | None = None
    reviews_changed_servers: bool = False
    seen_tools: Path | None = None
    sign_ins: Path | None = None
    sign_in_storage: Place = "auto"
    hub_service: str = ""
    limits: ServerLimits = field(default_factory=ServerLimits)
    retention: RetentionLimits = field(default_factory=RetentionLimits)
    secret_names: tuple[str, ...] = SECRET_NAMES
    audit: AuditSettings = field(default_factory=AuditSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBox:
    """The parts, connected."""

    store: SqlApprovalStore
    tools: McpServers
    policies: PolicyManager
    grants: GrantManager
    approvals: ApprovalManager
    decisions: DecisionManager
    running_calls: RunningCalls
    audit: AuditManager
    changes: ChangeRecorder
    calls: CallManager
    cell_updates: CellUpdateManager
    modes: ThreadModes
    registrations: RegistrationManager
    manual_calls: ManualCalls
    questions: QuestionManager
    seen_tools: SeenTools
    sign_ins: SignInManager
    checker: JsonSchemaChecker
    trail: SiteTrail
    hub_approvals: HubApprovals
    own_servers: OwnServers | None

    async def start(self) -> None:
        """Close requests that servers which no longer run left open.

        Raises
        ------
        StorageError
            If the store cannot be opened. No call runs until it can.
        """
        self.trail.start()
        await self.store.open()
        await self.approvals.abandoned.recover()
        await self.grants.load()
        self.changes.start()
        if self.store.look_again is not None:
            self.approvals.abandoned.look_again(self.store.look_again, self.store.is_look_due)

    async def aclose(self) -> None:
        """Withdraw what this process started, orphan pending requests, stop the MCP servers, and close the store."""
        self.approvals.abandoned.stop_looking()
        self.approvals.unstored.stop()
        await self.changes.aclose()
        await self.registrations.aclose()
        await self.manual_calls.aclose()
        self.sign_ins.close()
        await self.approvals.orphan()
        await asyncio.gather(self.tools.aclose(), self.hub_approvals.aclose())
        self.checker.close()
        await self.approvals.recorded()
        await self.audit.aclose()
        await self.trail.aclose()
        self.grants.close()
        await self.store.aclose()


def build(
    settings: Settings,
    *,
    announcer: Announcer,
    policy: Policy | None = None,
    own_tools: Mapping[str, ToolCaller] | None = None,
    on_log: Callable[[str, LogMessage], None] = lambda _, __: None,
    rules: RuleSource | None = None,
    modes: ThreadModes | None = None,
    answerer: Answerer | None = None,
    person_of: PersonOf = nobody_known,
    hub_token: Callable[[], str] = lambda: os.environ.get("JUPYTERHUB_API_TOKEN", ""),
    store_timer: Timer = untimed,
) -> AgentBox:
    """Build and connect the parts. Opens and starts nothing.

    Parameters
    ----------
    settings : Settings
        The settings.
    announcer : Announcer
        Announces changes to the front end.
    policy : Policy, optional
        The program's own rules.
    own_tools : mapping, optional
        The callers of tools that belong to no MCP server, by server name.
    on_log : callable, optional
        Called with an MCP server's name and each log message that it sends.
    rules : RuleSource, optional
        Provides the rules of files; by default the site's.
    modes : ThreadModes, optional
        The approval modes of agents' threads, if several boxes share them.
    answerer : callable, optional
        Answers servers' questions if there is no page to show them.
    person_of : callable, optional
        Returns the person who made a call, with their groups, for rules with `groups`. By default, groups are unknown.
    hub_token : callable, optional
        Returns the token that the Hub gave this server, to ask the Hub service with; by default the environment's.
    store_timer : callable, optional
        Called with what each operation of the approval store was, and how long it took.

    Raises
    ------
    ValueError
        If an audit sink's address is invalid.
    """
    clock = SystemClock()
    redaction = Redaction(settings.secret_names)
    store = SqlApprovalStore(
        settings.database_url,
        clock=clock,
        journal_mode=settings.journal_mode,
        limits=settings.retention,
        redaction=redaction,
        tenant=settings.tenant,
        timer=store_timer,
    )
    rule_source = rules or rule_files(user=None)

    def site() -> SitePolicy:
        return rule_source.load().site

    trail = _trail(settings, site, clock)
    kept = RecordedStore(store, trail.current, trail.for_running)
    trusted = (
        None
        if settings.trusted_servers is None
        else TrustedServers(settings.trusted_servers, own=settings.mcp_config_path)
    )
    project, own = _project(settings, trusted), _own_servers(settings, trusted)
    sign_ins = (
        None if settings.sign_ins is None else LocalSignInStore(settings.sign_ins, place=settings.sign_in_storage)
    )
    tools = McpServers(
        source=_configuration(settings, own, project, site),
        limits=settings.limits,
        on_change=lambda: _all(announcer.servers_changed, changes.notice),
        on_log=on_log,
        sign_ins=sign_ins,
        hub_service=settings.hub_service,
        where_to_look=partial(where_to_look, has_panel=answerer is None),
    )
    checker = JsonSchemaChecker()
    grants = GrantManager(
        store=kept,
        clock=clock,
        ids=RandomIds(),
        trust_key=tools.trust_key,
        server_entry=tools.entry_text,
        list_tools=tools.list_tools,
        announce=announcer.grants_changed,
        decide_with=settings.decide_with,
    )
    policies = PolicyManager(policy=policy, source=rule_source, grants=grants, person_of=person_of)
    changes = ChangeRecorder(store=kept, clock=clock, ids=RandomIds(), look=lambda: _facts(policies, tools))
    policies.on_change = changes.notice
    waiting_times = _waiting_times(settings)
    approvals = ApprovalManager(
        store=kept,
        announcer=announcer,
        clock=clock,
        ids=RandomIds(),
        waiting_times=waiting_times,
        policies=policies,
        grants=grants,
        most_pending=settings.most_pending,
    )
    decisions = DecisionManager(
        approvals=approvals,
        clock=clock,
        waiting_times=waiting_times,
        policies=policies,
        grants=grants,
        checker=checker,
        decide_with=settings.decide_with,
    )
    running_calls = RunningCalls(requests=approvals.requests, announcer=announcer)
    questions = QuestionManager(
        running_calls=running_calls,
        announcer=announcer,
        clock=clock,
        ids=RandomIds(),
        timeout=waiting_times.timeout,
        checker=checker,
        redaction=redaction,
        decide_with=settings.decide_with,
        answerer=answerer,
    )
    modes = modes or ThreadModes()
    hub_approvals = HubApprovals(
        source=lambda: site().hub_policy,
        token=hub_token,
        limits=settings.limits,
        command_or_address_of=tools.command_or_address_of,
    )
    calls = CallManager(
        approvals=approvals,
        policies=policies,
        tools=ToolRouter(own_tools or {}, others=tools),
        checker=checker,
        modes=modes,
        questions=questions,
        running_calls=running_calls,
        decide_with=settings.decide_with,
        second_persons=hub_approvals,
    )
    return AgentBox(
        store=store,
        tools=tools,
        policies=policies,
        grants=grants,
        approvals=approvals,
        decisions=decisions,
        running_calls=running_calls,
        audit=AuditManager(
            log=SqlAuditLog(settings.database_url, tenant=settings.tenant), approvals=approvals, redaction=redaction
        ),
        changes=changes,
        calls=calls,
        cell_updates=CellUpdateManager(get=approvals.get, catalog=tools, redaction=redaction),
        modes=modes,
        registrations=RegistrationManager(
            calls=calls,
            registry=_registry(settings, tools, own, policy=site),
            reviewable=project if own is None else ReviewableServers(own, project),
            list_tools=tools.list_tools,
            changing=changes.recorded_elsewhere,
        ),
        manual_calls=ManualCalls(calls),
        questions=questions,
        seen_tools=SeenTools(settings.seen_tools),
        sign_ins=SignInManager(
            servers=tools,
            sign_ins=sign_ins or LocalSignInStore(None),
            ids=RandomIds(),
            on_change=announcer.servers_changed,
        ),
        checker=checker,
        trail=trail,
        hub_approvals=hub_approvals,
        own_servers=own,
    )


def _all(*calls: Callable[[], None]) -> None:
    for call in calls:
        call()


def _facts(policies: PolicyManager, tools: McpServers) -> Facts:
    """Return the facts whose changes are recorded."""
    book = policies.book
    site: list[JsonValue] = [rule.to_json() for rule in book.rules if rule.layer is Layer.SITE]
    features: JsonObject = {feature.value: book.site.lock(feature).value for feature in Feature}
    says_something = bool(site or book.site.features or book.site.allowed is not None or book.site.denied)
    return Facts(
        rules_file=book.user.path if book.user is not None else "",
        rules=book.user.revision if book.user is not None else "",
        site_rules=digest_of(
            [canonical_json({"rules": site, "features": features, "servers": book.site.servers_to_json()})]
        )
        if says_something
        else "",
        servers={status.name: tools.trust_key(status.name) for status in tools.servers()},
    )


def _trail(settings: Settings, site: Callable[[], SitePolicy], clock: Clock) -> SiteTrail:
    spool = settings.audit.spool or str(audit_spool_path())
    audit = replace(settings.audit, spool=spool, secret_names=settings.secret_names)
    make = partial(made_trail, clock=clock, ids=RandomIds(), environment=os.environ)
    return SiteTrail(audit, site=site, make=make)


def _configuration(
    settings: Settings, own: OwnServers | None, project: ProjectServers | None, site: Callable[[], SitePolicy]
) -> SiteServers:
    """Return the MCP servers of the user, of the project and of the site."""
    files = own or ConfigurationFiles(settings.mcp_config_path, os.environ)
    return SiteServers(
        files if project is None else LayeredConfiguration(files, project),
        policy=site,
        paths=[path.with_name(SITE_SERVERS) for path, _ in site_rules_paths()],
        why_unprotected=why_unprotected,
        environment=os.environ,
    )


def _waiting_times(settings: Settings) -> WaitingTimes:
    def duration(seconds: float | None) -> timedelta | None:
        return None if seconds is None else timedelta(seconds=seconds)

    return WaitingTimes(
        timeout=duration(settings.approval_timeout),
        longest=duration(settings.longest_wait),
        bounds_all=settings.bounds_all,
    )


def _project(settings: Settings, trusted: TrustedServers | None) -> ProjectServers | None:
    if settings.project is None or trusted is None:
        return None
    return ProjectServers(settings.project, os.environ, trusted)


def _own_servers(settings: Settings, trusted: TrustedServers | None) -> OwnServers | None:
    if not settings.reviews_changed_servers or trusted is None:
        return None
    return OwnServers(
        settings.mcp_config_path,
        os.environ,
        trusted,
        is_protected=lambda path: hasattr(os, "geteuid") and os.geteuid() != 0 and not why_unprotected(path),
    )


def rule_files(*, user: Path | None) -> HubPolicies:
    """Return the rules that apply: the site's, those of its Hub service and, if wanted, the user's."""
    files = RuleFiles(
        user=user,
        sites=[SitePlace(path=path, is_environments=is_environments) for path, is_environments in site_rules_paths()],
        profile=profile_of(os.environ),
    )
    user_of_hub = os.environ.get("JUPYTERHUB_USER", "")
    return HubPolicies(files, path=hub_policy_path(), user=user_of_hub, clock=SystemClock())


def _registry(
    settings: Settings, catalog: ToolCatalog, own: OwnServers | None, *, policy: Callable[[], SitePolicy]
) -> ServerRegistry | None:
    if settings.added_servers is None:
        return None
    added = settings.added_servers

    def keep(name: str, configuration: Mapping[str, JsonValue]) -> None:
        if own is not None:
            own.trust_new(added, name, configuration)
        keep_server(added, name, configuration)

    return ServerRegistry(
        known=lambda: [status.name for status in catalog.servers()],
        keep=keep,
        limits=settings.limits,
        policy=policy,
    )


def module_json(server: str, tools: Sequence[ToolDescription]) -> JsonObject:
    """Return the answer to a kernel that asks for a server's module."""
    module = generate_module(server, tools)
    described = {tool.name: tool for tool in tools}
    return {
        "source": module.source,
        "tools": [
            {
                "name": name,
                "function": function,
                "title": described[name].title,
                "description": described[name].description,
                "annotations": dict(described[name].annotations),
            }
            for name, function in module.functions
        ],
    }
