"""The Jupyter server extension."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from jupyter_core.paths import jupyter_config_dir, jupyter_data_dir
from jupyter_events import EventLogger
from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import ensure_async
from traitlets import Bool, Dict, Enum, Float, Int, List, TraitError, Unicode, default, validate

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
from jupyter_agentbox.contents.managers import KernelDirectories, harden_contents_manager
from jupyter_agentbox.contents.served_files import serve_no_links
from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditSettings, WhenDown
from jupyter_agentbox.core.content_security import check_sources
from jupyter_agentbox.core.kernel_environment import without_credentials
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.redaction import SECRET_NAMES
from jupyter_agentbox.core.reviewers import Deciders, DecideWith
from jupyter_agentbox.events import EventAnnouncer
from jupyter_agentbox.exceptions import StorageError, ThreadError
from jupyter_agentbox.mcp_client import project_servers
from jupyter_agentbox.mcp_client.credential_variables import credential_variables
from jupyter_agentbox.mcp_client.limits import ServerLimits, safe_working_directory
from jupyter_agentbox.mcp_client.servers_file import ServersFile
from jupyter_agentbox.mcp_client.sign_ins import Place
from jupyter_agentbox.metrics import ServerMetrics
from jupyter_agentbox.paths import (
    added_servers_path,
    seen_tools_path,
    sign_ins_path,
    trusted_servers_path,
    user_rules_path,
)
from jupyter_agentbox.protocol.messages import Welcome
from jupyter_agentbox.sandbox.server.writable_directories import could_write, recorded_directories
from jupyter_agentbox.services.approvals import handlers as approval_handlers
from jupyter_agentbox.services.audit import handlers as audit_handlers
from jupyter_agentbox.services.cell_updates import handlers as cell_update_handlers
from jupyter_agentbox.services.grants import handlers as grant_handlers
from jupyter_agentbox.services.handlers import SETTINGS_KEY, Services
from jupyter_agentbox.services.health import handlers as health_handlers
from jupyter_agentbox.services.health.manager import HealthManager
from jupyter_agentbox.services.hub_requests import handlers as hub_request_handlers
from jupyter_agentbox.services.hub_requests.manager import HubRequestManager
from jupyter_agentbox.services.kernel_connections.askers import KernelAskers, observed
from jupyter_agentbox.services.kernel_connections.manager import KernelConnectionManager, MemoryLimits
from jupyter_agentbox.services.kernels import handlers as kernel_handlers
from jupyter_agentbox.services.kernels.manager import KernelExitManager
from jupyter_agentbox.services.pages.headers import protect_pages
from jupyter_agentbox.services.pages.manager import PageManager, PolicyMode, RemoteKernels
from jupyter_agentbox.services.policies import handlers as policy_handlers
from jupyter_agentbox.services.policies.hub_groups import HubGroups
from jupyter_agentbox.services.policies.hub_policy_link import HubPolicyLink
from jupyter_agentbox.services.policies.manager import Person
from jupyter_agentbox.services.questions import handlers as question_handlers
from jupyter_agentbox.services.registrations import handlers as registration_handlers
from jupyter_agentbox.services.reviewers import (
    DECIDERS_KEY,
    hub_auth_of,
    sign_cookies_anew,
    who_am_i,
    why_no_scope_reaches_browsers,
)
from jupyter_agentbox.services.servers import configuration_handlers as server_configuration_handlers
from jupyter_agentbox.services.servers import handlers as server_handlers
from jupyter_agentbox.services.servers import sign_in_handlers
from jupyter_agentbox.services.threads import handlers as thread_handlers
from jupyter_agentbox.services.threads.cell_kernels import CellKernels
from jupyter_agentbox.services.threads.notebook_cells import NotebookCells
from jupyter_agentbox.services.threads.turn_requests import TurnRequests
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.storage.thread_retention import ThreadLimits
from jupyter_agentbox.system import RandomIds, SystemClock

if TYPE_CHECKING:
    from jupyter_agentbox.analysis.analyzer import CodeAnalyzer
    from jupyter_agentbox.core.calls import ToolCall, TurnRef
    from jupyter_agentbox.services.threads.cell_turns import CellTurns
    from jupyter_agentbox.services.threads.manager import NotebookThreads

#: Seconds between two looks for MCP servers that nobody uses, at most.
_LONGEST_LOOK: Final = 60.0
#: Where the web application keeps how it connects a websocket to a kernel.
_CONNECTION_CLASS: Final = "kernel_websocket_connection_class"


class AgentBoxApp(ExtensionApp):
    """Approvals for tool calls made by code in this server's kernels."""

    name = "jupyter_agentbox"
    extension_url = "/lab"
    load_other_extensions = True
    handlers = [  # noqa: RUF012  # a base's trait
        *approval_handlers.default_handlers,
        *cell_update_handlers.default_handlers,
        *audit_handlers.default_handlers,
        *grant_handlers.default_handlers,
        *question_handlers.default_handlers,
        *server_handlers.default_handlers,
        *server_configuration_handlers.default_handlers,
        *sign_in_handlers.default_handlers,
        *health_handlers.default_handlers,
        *hub_request_handlers.default_handlers,
        *kernel_handlers.default_handlers,
        *registration_handlers.default_handlers,
        *policy_handlers.default_handlers,
        *thread_handlers.default_handlers,
    ]

    approval_timeout = Float(
        600.0,
        allow_none=True,
        help="How long a request waits for a decision before it expires, in seconds. None: it never expires.",
    ).tag(config=True)

    longest_wait = Float(
        3600.0,
        allow_none=True,
        help="How long a request waits at most, in seconds, however often a person asks that it wait longer; on a "
        "JupyterHub, where what waits keeps the server from being culled, also whatever `approval_timeout` and rules "
        "say. None: no bound.",
    ).tag(config=True)

    max_pending = Int(
        1000,
        min=1,
        allow_none=True,
        help="The largest number of pending requests per kernel; further calls fail at once. None: no limit.",
    ).tag(config=True)

    decide_with = Enum(
        [each.value for each in DecideWith],
        help=(
            "Who may decide a request: `person`, only somebody logged in with a browser; `any`, also "
            "a client with a token. Default: `person` on a JupyterHub server, which can tell the two "
            "apart; otherwise `any`."
        ),
    ).tag(config=True)

    deciders = Enum(
        [each.value for each in Deciders],
        default_value=Deciders.OWNER.value,
        help=(
            "Who may decide at a JupyterHub server, of those who may use it: `owner`, the user whose server it is;"
            " `scope`, who has the Hub's scope `custom:agentbox:decide` for it. Without a Hub: who may use it."
        ),
    ).tag(config=True)

    max_waiting_bytes = Int(
        128_000_000,
        min=1,
        allow_none=True,
        help=(
            "The approximate memory, in bytes, that the unanswered calls of one kernel may take; "
            "further calls fail at once. None: no limit."
        ),
    ).tag(config=True)

    max_total_waiting_bytes = Int(
        512_000_000,
        min=1,
        allow_none=True,
        help=("The same for the calls of all kernels together; calls below 64 KB are always accepted. None: no limit."),
    ).tag(config=True)

    load_kernel_side = Bool(
        True,
        help=(
            "Whether Python kernels load the kernel extension (with the %agentbox magic) when they "
            "start. Otherwise, load it with `%load_ext jupyter_agentbox`."
        ),
    ).tag(config=True)

    save_arguments = Bool(
        True,
        help="Whether the line that a tool call leaves in a notebook has its arguments. Either way it says what was "
        "called, who decided, and when.",
    ).tag(config=True)

    mcp_config_path = Unicode(
        help="The path of the file that lists the MCP servers. Default: mcp.json in Jupyter's configuration directory."
    ).tag(config=True)

    read_project_servers = Bool(
        True,
        help="Whether the file .mcp.json in the server's root directory is read as well, if `mcp_config_path` has its "
        "default. No MCP server of it is started before a person has looked at its entry and trusted it.",
    ).tag(config=True)

    rules_path = Unicode(
        help=(
            "The path of the file of the user's rules. Default: agentbox_rules.json in Jupyter's configuration"
            " directory. The site's files are not set here."
        )
    ).tag(config=True)

    hub_service_url = Unicode(
        help=(
            "Where the Hub service is, such as `https://hub.example.org/services/agentbox/`. JupyterLab then shows what"
            " waits there for the user whose server this is. Default: none, and nothing is asked."
        )
    ).tag(config=True)

    database_url = Unicode(
        help=(
            "The SQLAlchemy URL of the database of approval requests. Default: "
            "agentbox/approvals.sqlite in Jupyter's data directory."
        )
    ).tag(config=True)

    journal_mode = Enum(
        ["wal", "delete"],
        default_value="wal",
        help="SQLite's journal mode. Choose `delete` if the database is on a network file system, "
        "where WAL does not work.",
    ).tag(config=True)

    history_days = Float(
        None,
        allow_none=True,
        help="How many days the database keeps finished requests. None: for ever.",
    ).tag(config=True)

    history_bytes = Int(
        1_000_000_000,
        allow_none=True,
        help=(
            "The largest total size, in bytes, of the requests in the database. Above it, finished "
            "requests are removed: first those that were withdrawn or expired, then those that a rule"
            " denied, then those that a rule allowed, then those that a person decided; the oldest "
            "first within each group. None: no limit."
        ),
    ).tag(config=True)

    long_arguments_bytes = Int(
        100_000_000,
        allow_none=True,
        help=(
            "The largest total size, in bytes, of the long arguments kept for decided requests. The "
            "latest are kept, and those that a person decided before those that a rule allowed; of "
            "the others, the digest and the beginning remain. None: no limit."
        ),
    ).tag(config=True)

    secret_names = List(
        Unicode(),
        default_value=list(SECRET_NAMES),
        help=(
            "Names whose values are never written to the database, as patterns: of arguments, of keys within them, of"
            " headers and variables; `apiKey` and `API-KEY` are compared as `api_key`. Without any, nothing is"
            " redacted. What runs and what a person decides on is not changed."
        ),
    ).tag(config=True)

    audit_sinks = List(
        Unicode(),
        help=(
            "Places outside this server that get a record of whatever happens to a request: `file:///var/log/agentbox/"
            "{user}.jsonl`, `stdout:`, `syslog:///dev/log`, `syslog+tls://HOST`, `https://…`, `otlp+https://…/v1/logs`."
        ),
    ).tag(config=True)

    audit_when_down = Enum(
        [each.value for each in WhenDown],
        default_value=WhenDown.SPOOL.value,
        help=(
            "What becomes of calls while such a place does not take records: `spool`, they run, and the records wait on"
            " this server's disk; `deny`, none runs."
        ),
    ).tag(config=True)

    audit_arguments = Enum(
        [each.value for each in ArgumentsKept],
        default_value=ArgumentsKept.REDACTED.value,
        help="What these records say of arguments: `full`, `redacted` (without secrets) or `digest` (nothing else).",
    ).tag(config=True)

    audit_token_file = Unicode(
        help="The path of the file with the bearer token for places that are reached over HTTP. It is read each time."
    ).tag(config=True)

    audit_spool_bytes = Int(
        50_000_000,
        min=100_000,
        help="How many bytes of records may wait on this server's disk for each place. Beyond that, no call runs.",
    ).tag(config=True)

    mcp_start_timeout = Float(60.0, help="How long an MCP server may take to start, in seconds.").tag(config=True)

    mcp_call_timeout = Float(
        600.0,
        help="How long a tool may run, in seconds, unless mcp.json sets its own limit. Waiting"
        " for a decision does not count.",
    ).tag(config=True)

    mcp_log_lines = Int(200, help="How many lines of each MCP server's log are kept: the last ones.").tag(config=True)

    mcp_message_cap = Int(
        256_000_000,
        help="The largest message that an MCP server may send, in bytes. A larger one fails the call "
        "that it answers, and no other.",
    ).tag(config=True)

    mcp_idle_timeout = Float(
        1800.0,
        min=1.0,
        allow_none=True,
        help="After how many seconds an MCP server that is a program is stopped if nobody used it. Its next use starts "
        "it. None: never.",
    ).tag(config=True)

    mcp_most_processes = Int(
        20,
        min=1,
        allow_none=True,
        help="How many MCP servers that are programs run at a time. For one more, the one is stopped that was not used "
        "for longest; if all are in use, the call fails. None: no limit.",
    ).tag(config=True)

    mcp_memory_limit = Int(
        None,
        min=64_000_000,
        allow_none=True,
        help="How many bytes of data each process of an MCP server may have, on Linux (RLIMIT_DATA). None: no limit.",
    ).tag(config=True)

    remote_kernels = Unicode(
        help=(
            "What kernels behind a gateway, and on other machines, are: a few words for people who decide about their"
            " calls, as `one pod for each user, no network`. The card says it; no rule takes them for sandboxed."
        )
    ).tag(config=True)

    trust_remote_outputs = Bool(
        False,
        help=(
            "Whether outputs of kernels behind a gateway, and on other machines, may run code in the page as those of a"
            " plain kernel may. Such code can decide in the place of the person who looks at it."
        ),
    ).tag(config=True)

    content_security_policy = Enum(
        ["auto", "always", "never"],
        default_value="auto",
        help=(
            "Whether a Content-Security-Policy keeps this server's pages from loading anything from "
            "other origins. `auto`: if a sandboxed kernel is installed or running."
        ),
    ).tag(config=True)

    content_security_policy_sources = Dict(
        key_trait=Unicode(),
        value_trait=List(Unicode()),
        help='Other origins that pages may load from, by directive: {"img-src": ["https://images.example.org"]}.',
    ).tag(config=True)

    agent_model = Unicode(
        help=(
            "The language model of agents: `openai:NAME`, `openai-chat:NAME` or `anthropic:NAME`. Default: none; each"
            " thread must name one."
        )
    ).tag(config=True)

    agent_base_url = Unicode(
        help=(
            "The address of another server that speaks the interface of the model's maker, such as Ollama, vLLM or a"
            " gateway. Default: the maker's. The model's key is sent there."
        )
    ).tag(config=True)

    agent_review_model = Unicode(
        help=(
            "The language model that reviews calls in threads whose approval mode is `auto_review`. Default: the"
            " thread's own."
        )
    ).tag(config=True)

    agent_model_may_allow = List(
        Unicode(),
        help=(
            "What a reviewing model may allow in the place of a person, in threads whose approval mode is"
            ' `auto_review`: ["notebook.run_code", "shop.list_*"]. Default: nothing.'
        ),
    ).tag(config=True)

    agent_context = Enum(
        ["none", "cells", "outputs"],
        default_value="none",
        help="What agents may read of the notebook that asks them: nothing, its cells, or also their outputs.",
    ).tag(config=True)

    agent_steps = Int(
        50, min=1, allow_none=True, help="How often a model may be asked in one turn of an agent. None: no limit."
    ).tag(config=True)

    agent_tokens = Int(
        2_000_000, min=1, allow_none=True, help="How many tokens one turn may use, in and out. None: no limit."
    ).tag(config=True)

    agent_seconds = Float(
        1800.0,
        min=0.0,
        allow_none=True,
        help="How long one turn may work, in seconds. Waiting for a decision does not count. None: no limit.",
    ).tag(config=True)

    agent_hourly_requests = Int(
        600,
        min=1,
        allow_none=True,
        help="How often models may be asked in an hour, by all agents of this server. None: no limit.",
    ).tag(config=True)

    agent_hourly_tokens = Int(
        20_000_000,
        min=1,
        allow_none=True,
        help="How many tokens all agents of this server may use in an hour, in and out. None: no limit.",
    ).tag(config=True)

    agent_history_days = Float(
        None,
        min=0.0,
        allow_none=True,
        help="After how many days without a change an agent's thread is removed from the database. Default: never.",
    ).tag(config=True)

    agent_history_threads = Int(
        5_000,
        min=0,
        allow_none=True,
        help=(
            "How many threads of agents the database keeps: those that changed last, with those that were archived."
            " None: no limit."
        ),
    ).tag(config=True)

    keep_model_keys = Bool(
        False,
        help=(
            "Whether kernels of this server keep the environment variables that hold the keys of language models, such"
            " as `OPENAI_API_KEY`. The server itself and its terminals always do."
        ),
    ).tag(config=True)

    sign_in_storage = Enum(
        ["auto", "file", "memory"],
        default_value="auto",
        help=(
            "Where the tokens of people's sign-ins to remote MCP servers are kept: `auto`, in the keyring of the"
            " operating system if there is one and else in a file that only this user can read; `file`; or `memory`,"
            " until the server stops."
        ),
    ).tag(config=True)

    kernel_credentials = List(
        Unicode(),
        help=(
            "Names of environment variables that kernels of this server keep although they hold a credential: a token"
            " of the server or of JupyterHub, or what `mcp.json` hands to an MCP server. Default: none. Dask Gateway,"
            ' for one, needs ["JUPYTERHUB_API_TOKEN"] in the kernel.'
        ),
    ).tag(config=True)

    @validate("content_security_policy_sources")
    def _check_sources(self, proposal: Any) -> Any:
        try:
            check_sources(proposal["value"])
        except ValueError as error:
            raise TraitError(f"AgentBoxApp.content_security_policy_sources: {error}") from None
        return proposal["value"]

    @validate("hub_service_url")
    def _check_hub_service_url(self, proposal: Any) -> Any:
        parts = urlsplit(proposal["value"])
        if proposal["value"] and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise TraitError(
                "AgentBoxApp.hub_service_url: name the whole address, such as"
                " `https://hub.example.org/services/agentbox/`"
            )
        return proposal["value"]

    @default("decide_with")
    def _default_decide_with(self) -> str:
        can_tell = hub_auth_of(self._server()) is not None
        return str((DecideWith.PERSON if can_tell else DecideWith.ANY).value)

    @default("mcp_config_path")
    def _default_mcp_config_path(self) -> str:
        return str(Path(jupyter_config_dir()) / "mcp.json")

    @default("rules_path")
    def _default_rules_path(self) -> str:
        return str(user_rules_path())

    @default("database_url")
    def _default_database_url(self) -> str:
        return sqlite_url(str(Path(jupyter_data_dir()) / "agentbox" / "approvals.sqlite"))

    _preloading: asyncio.Task[None] | None = None
    _stopping_idle: asyncio.Task[None] | None = None
    _threads: NotebookThreads | None = None
    _cell_turns: tuple[CellTurns, CodeAnalyzer] | None = None
    _is_stopping = False

    def initialize_settings(self) -> None:
        """Build the parts and follow the server's kernels."""
        server = self._server()
        events = cast(EventLogger, server.event_logger)
        self._announcer = announcer = EventAnnouncer(events)
        self._cell_kernels = CellKernels()
        directories = KernelDirectories(server.kernel_manager, events, recorded_directories)
        harden_contents_manager(server.contents_manager, directories)
        serve_no_links(server.web_app, directories)
        settings = self._settings_of_traits(directories)
        policy = Policy(model_may_allow=tuple(self.agent_model_may_allow))
        self._metrics = ServerMetrics(announcer)
        self._requests = TurnRequests(self._metrics)
        rules = rule_files(user=Path(self.rules_path))
        self._box: AgentBox = build(
            settings, announcer=self._requests, policy=policy, rules=rules, person_of=self._owner
        )
        self._hub_groups = self._made_hub_groups()
        self._metrics.publish(self._box.tools.servers)
        hub_auth = hub_auth_of(server)
        token_of_server = lambda: "" if hub_auth is None else hub_auth.api_token  # noqa: E731
        self._hub_policy = HubPolicyLink(rules, token=token_of_server)
        self._hub_requests = HubRequestManager(self.hub_service_url, token=token_of_server)
        notebooks = SessionNotebooks(server.session_manager)
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
            turn_of=self._turn_of,
            agents=self._made_cell_turns,
            saves_arguments=self.save_arguments,
            askers_of=self._askers.of,
        )
        keep_credentials_out(server.kernel_manager, partial(self._kernel_environment, settings))
        self._lifecycle = KernelLifecycle(
            kernels=server.kernel_manager,
            events=events,
            listener=self._links,
            load_kernel_side=self.load_kernel_side,
        )
        kernel_exits = KernelExitManager(
            notebooks=notebooks, announce=announcer.kernel_ended, clock=SystemClock(), ids=RandomIds()
        )
        self._kernel_exits = KernelExits(kernels=server.kernel_manager, events=events, listener=kernel_exits)
        self._renames = Renames(events, self._follow_rename)
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
        self.settings[DECIDERS_KEY] = Deciders(self.deciders)
        self.settings[SETTINGS_KEY] = Services(
            approvals=self._box.approvals,
            health=HealthManager(check_store=self._box.store.check_writable, catalog=self._box.tools),
            cell_updates=self._box.cell_updates,
            audit=self._box.audit,
            changes=self._box.changes,
            grants=self._box.grants,
            questions=self._box.questions,
            catalog=self._box.tools,
            registrations=self._box.registrations,
            manual_calls=self._box.manual_calls,
            servers_file=ServersFile(
                Path(self.mcp_config_path),
                known=lambda: [status.name for status in self._box.tools.servers()],
                environment=os.environ,
            ),
            seen_tools=self._box.seen_tools,
            sign_ins=self._box.sign_ins,
            policies=self._box.policies,
            isolation=IsolationLookup(server.kernel_manager),
            kernel_exits=kernel_exits,
            pages=self._pages,
            hub_requests=self._hub_requests,
            threads=self._made_threads,
        )

    async def _start_jupyter_server_extension(self, _serverapp: ServerApp) -> None:
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
        self._is_stopping = True
        for task in (self._preloading, self._stopping_idle):
            if task is not None:
                task.cancel()
        if self._threads is not None:
            await self._threads.aclose()  # first: what its turns wait for is withdrawn, and recorded
        self._hub_requests.close()
        await self._hub_policy.aclose()
        await self._hub_groups.aclose()
        self._metrics.withdraw()
        await self._links.aclose()
        await self._lifecycle.aclose()
        await self._kernel_exits.aclose()
        await self._box.aclose()
        if self._cell_turns is not None:
            self._cell_turns[1].close()

    async def _stop_idle_servers(self) -> None:
        if self.mcp_idle_timeout is not None:
            while True:
                await asyncio.sleep(min(_LONGEST_LOOK, self.mcp_idle_timeout))
                await self._box.tools.stop_idle()

    def _made_threads(self) -> NotebookThreads:
        """Return the agents' threads, made at the first call: a server starts without them."""
        from jupyter_agentbox import agent_composition  # noqa: PLC0415
        from jupyter_agentbox.agents.threads.limits import TurnLimits  # noqa: PLC0415

        if self._threads is None:
            if self._is_stopping:
                raise ThreadError("the server is being stopped")
            limits = TurnLimits(
                steps=self.agent_steps,
                tokens=self.agent_tokens,
                seconds=self.agent_seconds,
                requests_per_hour=self.agent_hourly_requests,
                tokens_per_hour=self.agent_hourly_tokens,
            )
            settings = agent_composition.AgentSettings(
                database_url=self.database_url,
                journal_mode="delete" if self.journal_mode == "delete" else "wal",
                tenant=self._tenant(),
                model=self.agent_model,
                base_url=self.agent_base_url or None,
                review_model=self.agent_review_model,
                limits=limits,
                kept=ThreadLimits(days=self.agent_history_days, count=self.agent_history_threads),
            )
            self._threads = agent_composition.build_threads(
                settings,
                kernels=self._cell_kernels,
                modes=self._box.modes,
                announce=self._announcer.thread_changed,
                site=lambda: self._box.policies.site,
            )
        return self._threads

    async def _follow_rename(self, old_path: str, new_path: str) -> None:
        if not self._is_stopping:
            await self._made_threads().follow_rename(old_path, new_path)  # also those of earlier servers

    def _made_cell_turns(self) -> CellTurns:
        """Return what works on the turns of cells, made at the first call."""
        from jupyter_agentbox import agent_composition  # noqa: PLC0415  # as above

        if self._cell_turns is None:
            server = self._server()
            self._cell_turns = agent_composition.build_cell_turns(
                self._box,
                requests=self._requests,
                threads=self._made_threads,
                interrupt=self._interrupt_kernel,
                read_cells=NotebookCells(server.contents_manager).read,
                context=self.agent_context,
            )
        return self._cell_turns[0]

    def _turn_of(self, kernel_id: str) -> TurnRef | None:
        return self._cell_turns[0].turn_of(kernel_id) if self._cell_turns is not None else None

    async def _interrupt_kernel(self, kernel_id: str) -> None:
        kernels: Any = self._server().kernel_manager
        if kernel_id in kernels:
            await ensure_async(kernels.interrupt_kernel(kernel_id))

    def _server(self) -> ServerApp:
        return cast(ServerApp, self.serverapp)

    def _settings_of_traits(self, directories: KernelDirectories) -> Settings:
        added = self._added_servers()
        return Settings(
            mcp_config_path=(Path(self.mcp_config_path), *((added,) if added is not None else ())),
            added_servers=added,
            project=Path(self._server().root_dir) if self.read_project_servers and added is not None else None,
            trusted_servers=trusted_servers_path(),
            seen_tools=seen_tools_path(),
            sign_ins=sign_ins_path(),
            sign_in_storage=cast(Place, self.sign_in_storage),
            database_url=self.database_url,
            journal_mode="delete" if self.journal_mode == "delete" else "wal",
            tenant=self._tenant(),
            approval_timeout=self.approval_timeout,
            longest_wait=self.longest_wait,
            bounds_all=hub_auth_of(self._server()) is not None,  # what waits keeps a server from being culled
            most_pending=self.max_pending,
            decide_with=DecideWith(self.decide_with),
            retention=RetentionLimits(
                days=self.history_days, bytes=self.history_bytes, long_arguments=self.long_arguments_bytes
            ),
            secret_names=tuple(self.secret_names),
            audit=AuditSettings(
                sinks=tuple(self.audit_sinks),
                when_down=WhenDown(self.audit_when_down),
                arguments=ArgumentsKept(self.audit_arguments),
                token_file=self.audit_token_file,
                spool_bytes=self.audit_spool_bytes,
            ),
            limits=ServerLimits(
                start_timeout=self.mcp_start_timeout,
                call_timeout=self.mcp_call_timeout,
                message_cap=self.mcp_message_cap,
                log_lines=self.mcp_log_lines,
                idle_timeout=self.mcp_idle_timeout,
                most_processes=self.mcp_most_processes,
                memory=self.mcp_memory_limit,
                default_cwd=partial(
                    safe_working_directory, lambda directory: directories.holds(directory) or could_write(directory)
                ),
            ),
        )

    def _observe_askers(self, settings: dict[str, Any]) -> None:
        """Have connections to kernels note who sends code."""
        settings[_CONNECTION_CLASS] = observed(settings[_CONNECTION_CLASS], self._askers)

    def _check_deciders(self) -> None:
        """Say in the log if the Hub is set up so that nobody can decide."""
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
        """Return whose calls run here, for rules: the user of JupyterHub whose server this is."""
        return Person(groups=self._hub_groups.known)

    def _tenant(self) -> str | None:
        """Return the user of JupyterHub whose server this is."""
        return None if hub_auth_of(self._server()) is None else os.environ.get("JUPYTERHUB_USER")

    def _kernel_environment(self, settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what of the server's environment its kernels get."""
        project = () if settings.project is None else (settings.project / project_servers.FILE_NAME,)
        return without_credentials(
            environment,
            of_mcp_servers=credential_variables((*settings.mcp_config_path, *project)),
            kept=self.kernel_credentials,
            keeps_model_keys=self.keep_model_keys,
        )

    def _added_servers(self) -> Path | None:
        """Return the file of servers that programs may add; none where somebody chose another `mcp_config_path`."""
        return added_servers_path() if self.mcp_config_path == self._default_mcp_config_path() else None

    def _welcome(self) -> Welcome:
        return Welcome(server_version=__version__, url=self._public_url())

    def _public_url(self) -> str:
        """Return where people find this server, without a token: only the path where the host is not known."""
        server = self._server()
        url = server.custom_display_url or os.environ.get("JUPYTERHUB_PUBLIC_URL")
        if not url:
            # Behind a Hub's proxy, people do not reach the address that the server listens on.
            url = server.connection_url if hub_auth_of(server) is None else server.base_url
        return str(url).partition("?")[0]
