"""``jupyter agentbox hub``: the Hub service's process, started by JupyterHub or by an administrator."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuth
from tornado.httpserver import HTTPServer
from traitlets import TraitError
from traitlets.config import Application

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.audit_trail import AuditSettings, WhenDown
from jupyter_agentbox.core.text import counted, did_you_mean, visible
from jupyter_agentbox.exceptions import DatabaseHeldError, StorageError
from jupyter_agentbox.storage.sign_ins import SqlSignInTable
from jupyter_agentbox.storage.signed_policies import public_key_of
from jupyter_agentbox.system import SystemClock

from .approver_groups import notes_on_groups
from .audit_sinks import AuditSinksError, notes_of_sinks, sinks_of
from .box import HubBox
from .calls import LOOK_EVERY
from .composition import build
from .gc_pauses import kept_short
from .group_members import HubGroupMembers
from .logs import log_as_json
from .policy_file import PolicyFile, PolicyFileError, read_policy_file
from .policy_notes import notes_of
from .policy_signing import PolicySigner, read_key, version_of
from .sign_in_keys import SignInKeys
from .standby import Front, make_standby_application
from .traits import HubTraits
from .web_application import make_application

log = logging.getLogger(__name__)

#: Exit codes.
OK: Final = 0
#: The service could not start, for a reason other than its command line, configuration or policy.
FAILED: Final = 1
#: The command line, the configuration or the policy is wrong.
USAGE: Final = 2

#: The largest HTTP request, in bytes.
_MOST_BYTES: Final = 16_000_000
#: Old records are removed at every `_OLD`-th look.
_OLD: Final = 60
#: At every `_NOTED`-th, the audit chain is made to cover the records that users' servers reported.
_NOTED: Final = 10


class HubService(HubTraits, Application):
    """Keeps what users must not control: central MCP servers, the policy, second persons' decisions and the record."""

    name = "jupyter-agentbox-hub"
    description = __doc__

    aliases = {  # noqa: RUF012  # as traitlets declares them
        "policy": "HubService.policy",
        "config": "HubService.config_file",
        "forget-sign-ins-of": "HubService.forget_sign_ins_of",
        "log-level": "Application.log_level",
    }
    flags = {  # noqa: RUF012
        "check-config": (
            {"HubService": {"check_config": True}},
            "Check the configuration and the policy file, print what is wrong, and exit.",
        ),
        "standby": (
            {"HubService": {"standby": True}},
            "Wait while another replica of this service holds the database, and take over when that one ends.",
        ),
        "show-policy-key": (
            {"HubService": {"show_policy_key": True}},
            "Print the public key with which users' servers verify this service's policy, and exit.",
        ),
    }

    def _log_level_default(self) -> int:
        return logging.INFO

    def run(self, argv: Sequence[str]) -> int:
        """Check the configuration and the policy, serve until a signal arrives, and return the exit code."""
        try:
            self.parse_command_line(list(argv))
            self._check_command_line()
            if self.config_file:
                self._read_config(Path(self.config_file))
                self.parse_command_line(list(argv))  # the command line wins
            if self.show_policy_key:
                sys.stdout.write(f"{public_key_of(read_key(Path(self.policy_key)))}\n")
                return OK
            if self.forget_sign_ins_of:
                return self._forget_sign_ins(self.forget_sign_ins_of)
            policy = self._read_policy()
            audit = self.settings().audit
            sinks_of(audit)
            self._check_keys(policy)
        except (TraitError, ValueError, OSError) as error:
            return _fail(error)
        notes = [
            *notes_of(policy, os.environ, timeout=self.approval_timeout, public_url=self.public_url),
            *notes_of_sinks(audit),
        ]
        if self.check_config:
            _tell(policy, audit, [*notes, *self._notes_on_groups(policy)])
            return OK
        log_as_json(cast("int | str", self.log_level))
        for note in notes:
            log.warning("%s", note)
        try:
            hub_auth = self._hub_auth()
            with kept_short():
                return asyncio.run(self._serve(policy, hub_auth))
        except ValueError as error:
            return _fail(error)
        except DatabaseHeldError as error:
            log.critical("%s", error)
            return FAILED
        except (StorageError, OSError) as error:
            # What the store says is for people; of other errors, the place tells more.
            log.critical("the service cannot run: %s", error, exc_info=not isinstance(error, StorageError))
            return FAILED

    def _check_keys(self, policy: PolicyFile) -> None:
        """Check the files with keys that exist. The start makes the others.

        Raises
        ------
        OSError, ValueError
            If one cannot be used.
        """
        if policy.local is not None and os.path.lexists(self.policy_key):
            read_key(Path(self.policy_key))
        if policy.sign_in_servers and os.path.lexists(self.sign_in_key):
            SignInKeys(Path(self.sign_in_key)).read()

    def _forget_sign_ins(self, user: str) -> int:
        try:
            removed = asyncio.run(_remove_sign_ins(self.database_url, user))
        except StorageError as error:
            sys.stderr.write(visible(f"jupyter agentbox hub: {error}\n"))
            return FAILED
        sys.stdout.write(visible(f"{user}: {counted(removed, 'sign-in')} deleted\n"))
        return OK

    def _check_command_line(self) -> None:
        """Refuse what traitlets only logs and ignores.

        Raises
        ------
        ValueError
            If an option does not exist.
        """
        known = self.trait_names(config=True)
        for name in self.cli_config.get("HubService", {}):
            if name not in known:
                raise ValueError(f"there is no option `--HubService.{name}`{did_you_mean(name, known)}")
        aliases = [*(str(alias) for alias in self.aliases), *(str(flag) for flag in self.flags)]
        for name in (key for key in self.cli_config if not key[:1].isupper()):
            raise ValueError(f"there is no option `--{name}`{did_you_mean(name, aliases)}")
        if self.extra_args:
            raise ValueError(f"`{self.extra_args[0]}` is not an option: there are no other arguments")

    def _read_config(self, path: Path) -> None:
        """Load the configuration file. traitlets only logs what is wrong, and would go on with the defaults.

        Raises
        ------
        ValueError
            If the file does not exist, cannot be run, or sets something that the service does not have.
        """
        if path.suffix not in (".py", ".json") or not path.is_file():
            raise ValueError(f"the configuration file `{path}` does not exist, or is neither a .py nor a .json file")
        self.raise_config_file_errors = True
        try:
            self.load_config_file(path.name, path=str(path.parent.absolute()))
        except TraitError:
            raise
        except Exception as error:  # the file is code, which can raise anything
            kind = type(error).__name__
            raise ValueError(f"the configuration file `{path}` cannot be used: {kind}: {error}") from error
        known = self.trait_names(config=True)
        for name in self.config.get("HubService", {}):
            if name not in known:
                raise ValueError(
                    f"the configuration file `{path}` sets `HubService.{name}`, which does not exist"
                    f"{did_you_mean(name, known)}"
                )

    def _read_policy(self) -> PolicyFile:
        if not self.policy:
            raise ValueError("no policy file is given: add --policy FILE")
        return read_policy_file(Path(self.policy), os.environ)

    def _notes_on_groups(self, policy: PolicyFile) -> Sequence[str]:
        """Ask the Hub about the groups that the policy names, where this process has a token for it."""
        hub_auth = HubOAuth(parent=self)
        return asyncio.run(notes_on_groups(policy, HubGroupMembers(hub_auth))) if hub_auth.api_token else ()

    def _hub_auth(self) -> HubOAuth:
        hub_auth = HubOAuth(parent=self)
        if not hub_auth.api_token:
            raise ValueError(
                "JUPYTERHUB_API_TOKEN is not set: let JupyterHub start this service, or give it a token of the Hub"
            )
        if not hub_auth.access_scopes:
            raise ValueError(
                "JUPYTERHUB_SERVICE_NAME is not set: set it, so that the service knows which scope people need"
            )
        if not urlsplit(self.service_url).port:
            raise ValueError(
                "JUPYTERHUB_SERVICE_URL has no port: set the `url` of this service in JupyterHub's configuration"
            )
        return hub_auth

    def _signer(self, policy: PolicyFile) -> PolicySigner | None:
        local = policy.policy_to_sign(os.environ, waits=self.approval_timeout)
        if local is None:
            return None
        path, clock = Path(self.policy_key), SystemClock()
        key = read_key(path)
        version = version_of(path.with_name(f"{path.name}.version"), local, clock.now())
        log.info("the policy for users' own tools has version %d", version)
        return PolicySigner(policy=local, version=version, key=key, clock=clock)

    async def _serve(self, policy: PolicyFile, hub_auth: HubOAuth) -> int:
        box = build(self.settings(), policy, os.environ)
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, box.policy.read_soon)
        front = Front(make_standby_application(hub_auth.base_url, lambda: box.claim.other_since))
        server = HTTPServer(front, max_buffer_size=_MOST_BYTES)
        try:
            if self.standby:
                self._listen(server)
                if not await box.start_in_turn(stopped):
                    return OK
                await box.policy.look()  # this replica may have waited for days
            else:
                await box.start()
            box.policy.begin_signing(self._signer)  # it counts versions, so only the holder of the database may begin
            front.application = make_application(box, hub_auth, self.public_url)
            box.approver_groups.begin_asking(HubGroupMembers(hub_auth))
            if self.standby:
                log.info("this replica has held the database since %s, and answers", box.claim.since)
            else:
                self._listen(server)
            watching = in_background(_set_with(box.claim.lost, stopped), what="watching the claim on the database")
            following = in_background(self._follow(box), what="following the policy file")
            try:
                await _until(stopped, box)
            finally:
                watching.cancel()
                following.cancel()
            server.stop()
            if box.claim.lost.is_set():
                log.critical(
                    "another service has taken over the database, because this one had stalled: this one exits"
                )
                return FAILED
            log.info("the service is stopping; waiting requests go on waiting if it is back soon")
        finally:
            await box.aclose()
        return OK

    def _listen(self, server: HTTPServer) -> None:
        address = urlsplit(self.service_url)
        server.listen(address.port or 0, address.hostname or "127.0.0.1")
        log.info("the service listens at %s", self.service_url)

    async def _follow(self, box: HubBox) -> None:
        while True:
            await asyncio.sleep(self.policy_check)
            await box.policy.look()


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    return HubService().run(argv)


async def _set_with(one: asyncio.Event, other: asyncio.Event) -> None:
    await one.wait()
    other.set()


async def _until(stopped: asyncio.Event, box: HubBox) -> None:
    """Wait for `stopped`. Meanwhile, stop idle servers, close lost requests, and look after the record."""
    looks = 0
    while not stopped.is_set():
        try:
            async with asyncio.timeout(LOOK_EVERY):
                await stopped.wait()  # also set if the claim on the database is lost
        except TimeoutError:
            await box.servers.stop_idle()
            await _now_or_later(box.withdraw_lost(), "requests whose callers did not come back will be closed later")
            if looks % _OLD == 0:
                await _now_or_later(box.reports.remove_old(), "old records of users' servers will be removed later")
                await _now_or_later(box.sign_ins.remove_old(), "old sign-ins will be removed later")
                box.left_sign_ins.begin()
            if looks % _NOTED == 0:
                await _now_or_later(box.reports.note_heads(), "the audit chain will cover the last reports later")
                box.approver_groups.begin()  # members come and go
            looks += 1


async def _now_or_later(work: Awaitable[object], what_is_later: str) -> None:
    """Wait for work that the next look repeats if the database cannot be used now."""
    try:
        await work
    except StorageError as error:
        log.warning("%s: %s", what_is_later, error)


async def _remove_sign_ins(database_url: str, user: str) -> int:
    table = SqlSignInTable(database_url, clock=SystemClock(), must_exist=True)
    try:
        return await table.remove_all_of(user)
    finally:
        await table.aclose()


def _tell(policy: PolicyFile, audit: AuditSettings, notes: Sequence[str]) -> None:
    """Print the notes on a configuration that can be used, and a summary of its policy and audit sinks."""
    sys.stderr.writelines(visible(f"note: {note}\n") for note in notes)
    rules = counted(len(policy.policy.rules), "rule")
    servers = counted(len(policy.servers), "central server")
    local = "" if policy.local is None else ", a policy for users' own tools"
    receivers = f", {counted(len(audit.sinks), 'audit sink')}" if audit.sinks else ""
    if audit.sinks and audit.when_down is WhenDown.DENY:
        receivers += " without which no call runs"
    verdict = f"no errors, {counted(len(notes), 'note')}" if notes else "nothing is wrong"
    sys.stdout.write(visible(f"{policy.path}: {rules}, {servers}{local}{receivers}; {verdict}\n"))


def _fail(error: Exception) -> int:
    problems = error.problems if isinstance(error, (PolicyFileError, AuditSinksError)) else (error,)
    sys.stderr.write("".join(f"jupyter agentbox hub: {visible(str(problem))}\n" for problem in problems))
    return USAGE
