"""The settings of the server: who decides, what is kept and recorded, and what kernels and pages may do."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jupyter_core.paths import jupyter_data_dir
from traitlets import Bool, Dict, Enum, Float, HasTraits, Int, List, TraitError, Unicode, default, validate

from jupyter_agentbox.audit_sinks.settings import Addresses
from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditSettings, WhenDown
from jupyter_agentbox.core.content_security import check_sources
from jupyter_agentbox.core.redaction import SECRET_NAMES
from jupyter_agentbox.core.reviewers import Deciders, DecideWith
from jupyter_agentbox.paths import user_rules_path
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.database import JournalMode
from jupyter_agentbox.storage.retention import RetentionLimits


class ServerTraits(HasTraits):
    """The settings ``c.AgentBoxApp.…``, except those of MCP servers and agents."""

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
            " `scope`, anybody with the Hub's scope `custom:agentbox:decide` for it. Without a Hub: anybody who may"
            " use it."
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

    rules_path = Unicode(
        help=(
            "The path of the file of the user's rules. Default: agentbox_rules.json in Jupyter's configuration"
            " directory. The site's files are not set here."
        )
    ).tag(config=True)

    hub_service_url = Unicode(
        help=(
            "URL of the Hub service, such as `https://hub.example.org/services/agentbox/`. JupyterLab then shows this"
            " server's user what is waiting for them there, and whom the service asks about their central calls. The"
            " URLs of the central servers must begin with it. Default: none, and the service is not contacted."
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

    audit_sinks = Addresses(
        Unicode(),
        help=(
            "Audit sinks, outside this server, that get a record of whatever happens to a request: `file:///var/log/agentbox/"
            "{user}.jsonl`, `stdout:`, `syslog:///dev/log`, `syslog+tls://HOST`, `https://…`, `otlp+https://…/v1/logs`."
        ),
    ).tag(config=True)

    audit_when_down = Enum(
        [each.value for each in WhenDown],
        default_value=WhenDown.SPOOL.value,
        help=(
            "What happens to calls while an audit sink accepts no records: `spool`, they run, and the records wait on"
            " this server's disk; `deny`, none runs."
        ),
    ).tag(config=True)

    audit_arguments = Enum(
        [each.value for each in ArgumentsKept],
        default_value=ArgumentsKept.REDACTED.value,
        help="What audit records say about arguments: `full`, `redacted` (without secrets) or `digest` (nothing else).",
    ).tag(config=True)

    audit_token_file = Unicode(
        help="The path of a file with the bearer token for HTTP audit sinks. It is read each time."
    ).tag(config=True)

    audit_spool_bytes = Int(
        50_000_000,
        min=100_000,
        help="How many bytes of records may wait on this server's disk for each audit sink. Beyond that, no call runs.",
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

    keep_model_keys = Bool(
        False,
        help=(
            "Whether kernels of this server keep the environment variables that hold the keys of language models, such"
            " as `OPENAI_API_KEY`. The server itself and its terminals always do."
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

    @default("rules_path")
    def _default_rules_path(self) -> str:
        return str(user_rules_path())

    @default("database_url")
    def _default_database_url(self) -> str:
        return sqlite_url(str(Path(jupyter_data_dir()) / "agentbox" / "approvals.sqlite"))

    def journal(self) -> JournalMode:
        """Return SQLite's journal mode."""
        return "delete" if self.journal_mode == "delete" else "wal"

    def retention_limits(self) -> RetentionLimits:
        """Return how long the database keeps finished requests, and how many."""
        return RetentionLimits(
            days=self.history_days, bytes=self.history_bytes, long_arguments=self.long_arguments_bytes
        )

    def audit_settings(self) -> AuditSettings:
        """Return where records are sent outside this server, and what they contain."""
        return AuditSettings(
            sinks=tuple(self.audit_sinks),
            when_down=WhenDown(self.audit_when_down),
            arguments=ArgumentsKept(self.audit_arguments),
            token_file=self.audit_token_file,
            spool_bytes=self.audit_spool_bytes,
        )
