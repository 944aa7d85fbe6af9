"""The Jupyter server extension: builds the parts of a server, starts and ends them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from jupyter_events import EventLogger
from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from traitlets import default

from jupyter_agentbox import __version__
from jupyter_agentbox.background import in_background
from jupyter_agentbox.bridge.isolation import IsolationLookup
from jupyter_agentbox.bridge.kernel_environment import keep_credentials_out
from jupyter_agentbox.bridge.kernel_exits import KernelExits
from jupyter_agentbox.bridge.kernelspecs import SandboxedKernels
from jupyter_agentbox.bridge.lifecycle import KernelLifecycle
from jupyter_agentbox.bridge.notebooks import SessionNotebooks
from jupyter_agentbox.bridge.renames import Renames
from jupyter_agentbox.composition import AgentBox, Settings, build, module_json, rule_files
from jupyter_agentbox.contents.kernel_directories import KernelDirectories
from jupyter_agentbox.contents.managers import harden_contents_manager
from jupyter_agentbox.contents.served_files import serve_no_links
from jupyter_agentbox.core.kernel_environment import without_credentials
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.reviewers import Deciders, DecideWith
from jupyter_agentbox.events import EventAnnouncer
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.mcp_client import project_servers
from jupyter_agentbox.mcp_client.credential_variables import credential_variables
from jupyter_agentbox.mcp_client.servers_file import ServersFile
from jupyter_agentbox.mcp_client.sign_ins import Place
from jupyter_agentbox.metrics import ServerMetrics
from jupyter_agentbox.paths import (
    seen_tools_path,
    sign_ins_path,
    trusted_servers_path,
)
from jupyter_agentbox.protocol.messages import Welcome
from jupyter_agentbox.sandbox.server.writable_directories import could_write, recorded_directories
from jupyter_agentbox.services.handlers import SETTINGS_KEY, Services
from jupyter_agentbox.services.health.manager import HealthManager
from jupyter_agentbox.services.hub_requests.manager import HubRequestManager
from jupyter_agentbox.services.kernel_connections.askers import KernelAskers, observed
from jupyter_agentbox.services.kernel_connections.manager import KernelConnectionManager, MemoryLimits
from jupyter_agentbox.services.kernels.manager import KernelExitManager
from jupyter_agentbox.services.pages.headers import protect_pages
from jupyter_agentbox.services.pages.manager import PageManager, PolicyMode, RemoteKernels
from jupyter_agentbox.services.policies.hub_groups import HubGroups
from jupyter_agentbox.services.policies.hub_policy_link import HubPolicyLink
from jupyter_agentbox.services.policies.manager import Person
from jupyter_agentbox.services.reviewers import (
    DECIDERS_KEY,
    hub_auth_of,
    sign_cookies_anew,
    who_am_i,
    why_no_scope_reaches_browsers,
)
from jupyter_agentbox.services.threads.turn_requests import TurnRequests
from jupyter_agentbox.system import RandomIds, SystemClock

from .agent_traits import AgentTraits
from .interrupt_signal import stop_on_interrupt
from .mcp_traits import McpTraits
from .notebook_agents import NotebookAgents
from .routes import ROUTES
from .server_traits import ServerTraits

if TYPE_CHECKING:
    from jupyter_agentbox.agent_composition import AgentSettings
    from jupyter_agentbox.core.calls import ToolCall

#: Seconds between two looks for MCP servers that nobody uses, at most.
_LONGEST_LOOK: Final = 60.0
#: Where the web application keeps how it connects a websocket to a kernel.
_CONNECTION_CLASS: Final = "kernel_websocket_connection_class"


class AgentBoxApp(ServerTraits, McpTraits, AgentTraits, ExtensionApp):
    """Approvals for tool calls made by code in this server's kernels."""

    name = "jupyter_agentbox"
    extension_url = "/lab"
    load_other_extensions = True
    handlers = ROUTES

    @default("decide_with")
    def _default_decide_with(self) -> str:
        can_tell = hub_auth_of(self._server()) is not None
        return str((DecideWith.PERSON if can_tell else DecideWith.ANY).value)

    @default("review_changed_servers")
    def _default_review_changed_servers(self) -> bool:
        return hub_auth_of(self._server()) is not None

    _preloading: asyncio.Task[None] | None = None
    _stopping_idle: asyncio.Task[None] | None = None

    def initialize_settings(self) -> None:
        """Build the parts and follow the server's kernels."""
        server = self._server()
        events = cast(EventLogger, server.event_logger)
        announcer = EventAnnouncer(events)
        directories = KernelDirectories(server.kernel_manager, events, recorded_directories)
        harden_contents_manager(server.contents_manager, directories)
        serve_no_links(server.web_app, directories)
        settings = self._settings_of_traits(directories)
        notebooks = SessionNotebooks(server.session_manager)
        self._build_box(settings, announcer)
        self._link_kernels(settings, notebooks)
        kernel_exits = KernelExitManager(
            notebooks=notebooks, announce=announcer.kernel_ended, clock=SystemClock(), ids=RandomIds()
        )
        self._kernel_exits = KernelExits(kernels=server.kernel_manager, events=events, listener=kernel_exits)
        self._renames = Renames(events, self._agents.follow_rename)
        self._protect_pages()
        self.settings[DECIDERS_KEY] = Deciders(self.deciders)
        self.settings[SETTINGS_KEY] = self._services(kernel_exits)

    def _build_box(self, settings: Settings, announcer: EventAnnouncer) -> None:
        """Build what decides and runs calls, the agents, and the links to the Hub."""
        server = self._server()
        self._metrics = ServerMetrics(announcer)
        requests = TurnRequests(self._metrics)
        rules = rule_files(user=Path(self.rules_path))
        policy = Policy(model_may_allow=tuple(self.agent_model_may_allow))
        self._box: AgentBox = build(
            settings,
            announcer=requests,
            policy=policy,
            rules=rules,
            person_of=self._owner,
            store_timer=self._metrics.stored,
        )
        self._agents = NotebookAgents(
            server=server,
            box=self._box,
            requests=requests,
            announcer=announcer,
            settings=self._settings_of_agents,
            context=self.agent_context,
        )
        self._hub_groups = self._made_hub_groups()
        self._metrics.publish(self._box.tools.servers, waiting_records=lambda: self._box.trail.waiting)
        hub_auth = hub_auth_of(server)
        token_of_server = lambda: "" if hub_auth is None else hub_auth.api_token  # noqa: E731
        self._hub_policy = HubPolicyLink(rules, token=token_of_server)
        self._hub_requests = HubRequestManager(self.hub_service_url, token=token_of_server)

    def _link_kernels(self, settings: Settings, notebooks: SessionNotebooks) -> None:
        """Answer the kernels that the server starts, and keep credentials from them."""
        server = self._server()
        self._askers = KernelAskers(lambda kernel_id: kernel_id in cast(Any, server.kernel_manager))
        self._links = KernelConnectionManager(
            calls=self._box.calls,
            approvals=self._box.approvals,
            policies=self._box.policies,
            grants=self._box.grants,
            catalog=self._box.tools,
            notebooks=notebooks,
            generate=module_json,
            welcome=self._welcome,
            limits=MemoryLimits(kernel=self.max_waiting_bytes, total=self.max_total_waiting_bytes),
            turn_of=self._agents.turn_of,
            agents=self._agents.cell_turns,
            saves_arguments=self.save_arguments,
            askers_of=self._askers.of,
            servers_file=str(self.servers_file()),
        )
        self._box.tools.follow(self._links.servers_changed)
        keep_credentials_out(server.kernel_manager, partial(self._kernel_environment, settings))
        self._lifecycle = KernelLifecycle(
            kernels=server.kernel_manager,
            events=cast(EventLogger, server.event_logger),
            listener=self._links,
            load_kernel_side=self.load_kernel_side,
        )

    def _protect_pages(self) -> None:
        """Give pages their Content-Security-Policy."""
        server = self._server()
        sandboxed = SandboxedKernels(
            cast(Any, server.kernel_spec_manager), server.kernel_manager, with_remote=not self.trust_remote_outputs
        )
        self._pages = PageManager(
            has_sandboxed_kernels=sandboxed.exist,
            mode=cast(PolicyMode, self.content_security_policy),
            sources=self.content_security_policy_sources,
            has_hub_service=lambda: self._hub_requests.has_service,
            remote=RemoteKernels(label=self.remote_kernels, are_trusted=self.trust_remote_outputs),
        )
        protect_pages(server.web_app, self._pages)
        self._pages.configure(self.settings)

    def _services(self, kernel_exits: KernelExitManager) -> Services:
        """Return what the handlers call."""
        box = self._box
        return Services(
            approvals=box.approvals,
            decisions=box.decisions,
            running_calls=box.running_calls,
            health=HealthManager(
                check_store=box.store.check_writable, audit_problem=box.trail.problem, catalog=box.tools
            ),
            cell_updates=box.cell_updates,
            audit=box.audit,
            changes=box.changes,
            grants=box.grants,
            questions=box.questions,
            catalog=box.tools,
            registrations=box.registrations,
            manual_calls=box.manual_calls,
            servers_file=ServersFile(
                self.servers_file(),
                known=lambda: box.tools.names,
                environment=os.environ,
                trust=None if box.own_servers is None else box.own_servers.trust_new,
            ),
            seen_tools=box.seen_tools,
            sign_ins=box.sign_ins,
            policies=box.policies,
            isolation=IsolationLookup(self._server().kernel_manager),
            kernel_exits=kernel_exits,
            pages=self._pages,
            hub_requests=self._hub_requests,
            saves_arguments=self.save_arguments,
            threads=self._agents.threads,
        )

    async def _start_jupyter_server_extension(self, _serverapp: ServerApp) -> None:
        stop_on_interrupt(self._server())
        sign_cookies_anew(self._server())  # not before: each extension writes the settings back that it began with
        self._check_deciders()
        await self._hub_policy.start()
        await self._hub_groups.start()
        try:
            await self._box.start()
        except StorageError as error:
            # Jupyter must start all the same. Every call fails with this error until the store works.
            self.log.error("jupyter_agentbox: %s", error)
        # Again: an extension that was initialized later, a Hub's for one, may have put its own hook there.
        self._pages.configure(self._server().web_app.settings)
        self._observe_askers(self._server().web_app.settings)
        await self._lifecycle.attach_running()
        self._kernel_exits.watch_running()
        if self._box.tools.servers():
            # The MCP SDK takes a second to import: let that pass before somebody waits for a first call.
            self._preloading = in_background(self._box.tools.preload(), what="loading the MCP SDK")
        self._stopping_idle = in_background(self._stop_idle_servers(), what="stopping MCP servers that nobody uses")

    async def stop_extension(self) -> None:
        """Interrupt agents, orphan what is pending and stop the MCP servers."""
        for task in (self._preloading, self._stopping_idle):
            if task is not None:
                task.cancel()
        await self._agents.stop()  # first: what its turns wait for is withdrawn, and recorded
        self._hub_requests.close()
        await self._hub_policy.aclose()
        await self._hub_groups.aclose()
        self._metrics.withdraw()
        await self._links.aclose()
        await self._lifecycle.aclose()
        await self._kernel_exits.aclose()
        await self._box.aclose()
        self._agents.close()

    async def _stop_idle_servers(self) -> None:
        if self.mcp_idle_timeout is not None:
            while True:
                await asyncio.sleep(min(_LONGEST_LOOK, self.mcp_idle_timeout))
                await self._box.tools.stop_idle()

    def _server(self) -> ServerApp:
        return cast(ServerApp, self.serverapp)

    def _settings_of_traits(self, directories: KernelDirectories) -> Settings:
        added = self.added_servers()
        return Settings(
            mcp_config_path=(self.servers_file(), *((added,) if added is not None else ())),
            added_servers=added,
            project=Path(self._server().root_dir) if self.read_project_servers and added is not None else None,
            trusted_servers=trusted_servers_path(),
            reviews_changed_servers=self.review_changed_servers,
            seen_tools=seen_tools_path(),
            sign_ins=sign_ins_path(),
            sign_in_storage=cast(Place, self.sign_in_storage),
            hub_service=self.hub_service_url,
            database_url=self.database_url,
            journal_mode=self.journal(),
            tenant=self._tenant(),
            approval_timeout=self.approval_timeout,
            longest_wait=self.longest_wait,
            bounds_all=hub_auth_of(self._server()) is not None,  # what waits keeps a server from being culled
            most_pending=self.max_pending,
            decide_with=DecideWith(self.decide_with),
            retention=self.retention_limits(),
            secret_names=tuple(self.secret_names),
            audit=self.audit_settings(),
            limits=self.server_limits(lambda directory: directories.holds(directory) or could_write(directory)),
        )

    def _settings_of_agents(self) -> AgentSettings:
        return self.agent_settings(database_url=self.database_url, journal_mode=self.journal(), tenant=self._tenant())

    def _observe_askers(self, settings: dict[str, Any]) -> None:
        """Make the connections to kernels record who sends code."""
        settings[_CONNECTION_CLASS] = observed(settings[_CONNECTION_CLASS], self._askers)

    def _check_deciders(self) -> None:
        """Log a warning if the Hub is set up so that nobody can decide."""
        if Deciders(self.deciders) is Deciders.SCOPE and hub_auth_of(self._server()) is not None:
            why = why_no_scope_reaches_browsers(os.environ)
            if why:
                self.log.error("jupyter_agentbox: %s", why)

    def _made_hub_groups(self) -> HubGroups:
        hub_auth = hub_auth_of(self._server())
        return HubGroups(
            ask=None if hub_auth is None else partial(who_am_i, hub_auth),
            are_needed=lambda: self._box.policies.has_groups,
            owner=self._tenant() or "",
        )

    def _owner(self, _call: ToolCall | None) -> Person:
        """Return the owner of the calls that run here, for rules: the JupyterHub user whose server this is."""
        return Person(groups=self._hub_groups.known)

    def _tenant(self) -> str | None:
        """Return the JupyterHub user whose server this is."""
        return None if hub_auth_of(self._server()) is None else os.environ.get("JUPYTERHUB_USER")

    def _kernel_environment(self, settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the part of the server's environment that its kernels get."""
        project = () if settings.project is None else (settings.project / project_servers.FILE_NAME,)
        return without_credentials(
            environment,
            of_mcp_servers=credential_variables((*settings.mcp_config_path, *project)),
            kept=self.kernel_credentials,
            keeps_model_keys=self.keep_model_keys,
        )

    def _welcome(self) -> Welcome:
        return Welcome(server_version=__version__, url=self._public_url())

    def _public_url(self) -> str:
        """Return the URL at which people find this server, without a token; only its path if the host is unknown."""
        server = self._server()
        url = server.custom_display_url or os.environ.get("JUPYTERHUB_PUBLIC_URL")
        if not url:
            # Behind a Hub's proxy, people do not reach the address that the server listens on.
            url = server.connection_url if hub_auth_of(server) is None else server.base_url
        return str(url).partition("?")[0]
