"""The settings of the Hub service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from traitlets import Bool, Enum, Float, HasTraits, Integer, List, Unicode, validate

from jupyter_agentbox.audit_sinks.settings import Addresses
from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditSettings, WhenDown
from jupyter_agentbox.core.redaction import SECRET_NAMES
from jupyter_agentbox.storage.retention import RetentionLimits

from .composition import Settings


class HubTraits(HasTraits):
    """The settings ``c.HubService.…``."""

    policy = Unicode("", help="The path of the policy file.").tag(config=True)
    policy_check = Float(
        2.0, min=0.1, help="How often the policy file and the files of secrets are checked for changes, in seconds."
    ).tag(config=True)
    check_config = Bool(False, help="Check the configuration and the policy file, print what is wrong, and exit.").tag(
        config=True
    )
    config_file = Unicode("", help="The path of a traitlets configuration file for this service.").tag(config=True)
    database_url = Unicode(
        "sqlite:///agentbox_hub.sqlite",
        help="The SQLAlchemy URL of the database: SQLite to try the service, `postgresql+psycopg://…` for a site.",
    ).tag(config=True)
    approval_timeout = Float(
        3600.0,
        min=1.0,
        help="How long a request waits for a decision, in seconds, if its rule has no `timeout`, and how long a"
        " question of a central server waits for an answer.",
    ).tag(config=True)
    most_calls = Integer(
        50, min=1, help="The largest number of calls that may wait or run at a time for one user."
    ).tag(config=True)
    call_rate = Float(
        10.0,
        min=0.1,
        help="How many MCP messages one user may send per second. Messages that come faster wait for their turn.",
    ).tag(config=True)
    idle_timeout = Float(
        1800.0,
        min=1.0,
        allow_none=True,
        help="After how many seconds without use a central server is stopped that runs for one user, or that is a"
        " program. Its next use starts it. None: never.",
    ).tag(config=True)
    most_processes = Integer(
        200,
        min=1,
        allow_none=True,
        help="How many central servers that are programs run at a time, those of all users together. For one more, the"
        " one is stopped that was not used for longest; if all are in use, the call fails. None: no limit.",
    ).tag(config=True)
    memory_limit = Integer(
        None,
        min=64_000_000,
        allow_none=True,
        help="How many bytes of data each process of a central server may have, on Linux (RLIMIT_DATA). None: no"
        " limit.",
    ).tag(config=True)
    resume_timeout = Float(
        120.0,
        min=1.0,
        help="How long a waiting call is kept after its connection or the service ended, in seconds, for its caller to"
        " come back.",
    ).tag(config=True)
    keep_days = Float(
        None, min=1.0, allow_none=True, help="How many days finished requests are kept. None: for ever."
    ).tag(config=True)
    report_rate = Integer(
        6000, min=60, help="How many records of local calls the servers of one user may report per minute."
    ).tag(config=True)
    claim_timeout = Float(
        20.0,
        min=1.0,
        help="After how many seconds without a heartbeat of this service another one may take over its database.",
    ).tag(config=True)
    standby = Bool(
        False,
        help="Wait while another replica of this service holds the database, and take over when that one ends.",
    ).tag(config=True)
    policy_key = Unicode(
        "agentbox_hub_policy_key",
        help="The path of the private key that signs the part of the policy sent to users' servers. The file is created"
        " if it does not exist. A second file, with `.version` added to its name, keeps the last version's number.",
    ).tag(config=True)
    show_policy_key = Bool(
        False, help="Print the public key of `policy_key`, for the site's rules file on users' servers, and exit."
    ).tag(config=True)
    sign_in_key = Unicode(
        "agentbox_hub_sign_in_key",
        help="The path of the file with the key that encrypts users' sign-ins to central servers in the database. It is"
        " created if it does not exist. All replicas need the same file. The first line encrypts; further lines are"
        " older keys.",
    ).tag(config=True)
    sign_in_days = Float(
        90.0,
        min=1.0,
        allow_none=True,
        help="How many days a user's sign-in to a central server is kept after the user signed in or the provider"
        " renewed it. None: for ever.",
    ).tag(config=True)
    sign_in_grace_days = Float(
        7.0,
        min=0.0,
        help="How many days a user's sign-in to a central server is kept after the policy no longer has the server, or"
        " has it at another address, so that a mistaken edit loses none.",
    ).tag(config=True)
    forget_sign_ins_of = Unicode(
        "", help="Delete a user's sign-ins to central servers from the database, and exit."
    ).tag(config=True)
    service_url = Unicode(
        help="The URL at which the service listens: `http://host:port/…`. Default: the one that JupyterHub sets."
    ).tag(config=True)
    public_url = Unicode(
        help="The URL that people open. Default: the one that JupyterHub sets, or else its path on the Hub."
    ).tag(config=True)
    secret_names = List(
        Unicode(),
        default_value=list(SECRET_NAMES),
        help=(
            "Names whose values are omitted from the record, also from what users' servers report, as patterns: of"
            " arguments, of keys within them, of headers and variables; `apiKey` and `API-KEY` are compared as"
            " `api_key`. This replaces the default, so repeat what of it you need. Approvers see the values as long as"
            " a request waits."
        ),
    ).tag(config=True)
    audit_sinks = Addresses(
        Unicode(),
        help=(
            "Audit sinks, to which the service sends its record: the events of each central call, what users' servers"
            " reported, and its own notes. `syslog+tls://HOST`, `syslog:///dev/log`, `file:///PATH`, `stdout:`,"
            " `https://…`, `otlp+https://…/v1/logs`. They are not in the policy file: like the database, they belong to"
            " the place where the service runs, and what the policy says under `local` is about users' servers."
        ),
    ).tag(config=True)
    audit_when_down = Enum(
        [each.value for each in WhenDown],
        default_value=WhenDown.SPOOL.value,
        help=(
            "What happens while an audit sink accepts no records: `spool`, everything goes on, and the records wait in"
            " the service's database; `deny`, nothing is decided and no central call starts."
        ),
    ).tag(config=True)
    audit_arguments = Enum(
        [ArgumentsKept.REDACTED.value, ArgumentsKept.DIGEST.value],
        default_value=ArgumentsKept.REDACTED.value,
        help="What the service's own records say about arguments: `redacted` (all but secrets and long ones) or"
        " `digest` (nothing but the call's digest).",
    ).tag(config=True)
    audit_token_file = Unicode(
        help="The path of the file with the bearer token for HTTP audit sinks. It is read each time."
    ).tag(config=True)

    def _service_url_default(self) -> str:
        return os.environ.get("JUPYTERHUB_SERVICE_URL", "")

    def _public_url_default(self) -> str:
        return os.environ.get("JUPYTERHUB_PUBLIC_URL") or os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/")

    @validate("public_url")
    def _end_with_slash(self, proposal: Any) -> str:
        """Add the slash to which the addresses of pages are appended."""
        return f"{str(proposal['value']).rstrip('/')}/"

    def settings(self) -> Settings:
        """Return the settings that the traits hold."""
        return Settings(
            database_url=self.database_url,
            approval_timeout=self.approval_timeout,
            most_calls=self.most_calls,
            idle_timeout=self.idle_timeout,
            most_processes=self.most_processes,
            memory_limit=self.memory_limit,
            resume_timeout=self.resume_timeout,
            report_rate=self.report_rate,
            call_rate=self.call_rate,
            claim_timeout=self.claim_timeout,
            secret_names=tuple(self.secret_names),
            public_url=self.public_url,
            sign_in_key=Path(self.sign_in_key),
            sign_in_days=self.sign_in_days,
            sign_in_grace_days=self.sign_in_grace_days,
            retention=RetentionLimits(days=self.keep_days, bytes=None, long_arguments=None),
            audit=AuditSettings(
                sinks=tuple(self.audit_sinks),
                when_down=WhenDown(self.audit_when_down),
                arguments=ArgumentsKept(self.audit_arguments),
                token_file=self.audit_token_file,
            ),
        )
