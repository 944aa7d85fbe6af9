"""The rules of files, combined with the policy that a Hub service signed for this user."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.policy import Effect, Layer, Rule
from jupyter_agentbox.core.ports import Clock, RuleSource
from jupyter_agentbox.core.rule_book import HubPolicyStatus, RuleBook
from jupyter_agentbox.core.site_policy import HubPolicySource, SitePolicy
from jupyter_agentbox.core.tools import ConfigurationProblem
from jupyter_agentbox.exceptions import PolicyRefusedError

from .rule_files import FileStamp, file_stamp
from .signed_policies import MOST_BYTES, SignedPolicy, read_signed

log = logging.getLogger(__name__)

#: How far a clock of a Hub service may be ahead, in seconds.
_AHEAD: Final = 300.0


@dataclass(frozen=True, slots=True)
class _Held:
    """An accepted policy, and its contents."""

    signed: SignedPolicy
    rules: tuple[Rule, ...]
    site: SitePolicy


class HubPolicies:
    """Rules of files and, where a site's file names a Hub service, its policy. The strictest of all wins.

    Without a valid policy everything is denied: deleting the file in which it is stored, or cutting the network, gains
    nothing. The user's server fetches and stores the policy; the user's other programs read the stored one.

    Parameters
    ----------
    files : RuleSource
        The rules of files.
    path : Path
        The file in which the last good policy is stored.
    user : str
        The user of JupyterHub whose server this is; empty if it belongs to none.
    clock : Clock
        The time, which decides whether a policy is valid.
    """

    def __init__(self, files: RuleSource, *, path: Path, user: str, clock: Clock) -> None:
        self._files = files
        self._path = path
        self._user = user
        self._clock = clock
        self._source: HubPolicySource | None = None
        self._held: _Held | None = None
        self._stamp: FileStamp = None
        self._problem = ""
        self._parts: tuple[object, ...] = ()
        self._book = RuleBook()

    @property
    def is_writable(self) -> bool:
        """Whether the user's rules can be written."""
        return self._files.is_writable

    def write(self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None) -> None:
        """Replace the user's rules, as `RuleSource.write` does."""
        self._files.write(entries, revision=revision, schema=schema)

    def load(self) -> RuleBook:
        """Return all rules; the same object as last time if nothing changed."""
        book = self._files.load()
        source = book.site.hub_policy
        if source != self._source:
            self._begin(source)
        if source is None:
            return book
        self._follow(source)
        held = self._held if self._held is not None and self._holds(self._held.signed) else None
        parts = (book, held, self._held, self._problem)
        if len(parts) != len(self._parts) or any(
            one is not other for one, other in zip(parts, self._parts, strict=True)
        ):
            self._parts = parts
            self._book = self._open(book, held, source) if held is not None else self._closed(book, source)
        return self._book

    @property
    def source(self) -> HubPolicySource | None:
        """Where the policy comes from; ``None`` if no file of the site names a Hub service."""
        return self.load().site.hub_policy

    def accept(self, data: bytes) -> None:
        """Accept and store a received policy if it is valid and not older than the last good one.

        Raises
        ------
        PolicyRefusedError
            If it is not; the policy in force stays in force.
        """
        source = self.source
        if source is None:
            raise PolicyRefusedError("no file of the site names a Hub service")
        try:
            held = self._checked(data, source)
        except PolicyRefusedError as error:
            self._note(f"a policy was refused: {error}")
            raise
        is_new = self._held is None or self._held.signed.version != held.signed.version
        self._held, self._problem = held, ""
        if is_new:
            log.info("%s holds until %s", held.signed.name, held.signed.expires_at)
        self._keep(data)

    def fail(self, problem: str) -> None:
        """Record why no policy was received; an empty text if the one in force is the service's current one."""
        self.load()  # what is noted is about the present source
        self._note(problem)

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            if problem:
                log.warning("the policy of the Hub service: %s", problem)

    def _begin(self, source: HubPolicySource | None) -> None:
        self._source, self._held, self._stamp, self._parts = source, None, None, ()
        self._problem = "" if source is None else "none has come yet; this user's server asks for it while it runs"

    def _follow(self, source: HubPolicySource) -> None:
        """Use a newer policy from the file, where another program of this user may have stored it."""
        stamp = file_stamp(str(self._path))
        if stamp is None or stamp == self._stamp:  # without the file, what was read before holds until it expires
            return
        self._stamp = stamp
        try:
            with self._path.open("rb") as file:
                kept = self._checked(file.read(MOST_BYTES + 1), source)
        except FileNotFoundError:
            return
        except (OSError, PolicyRefusedError) as error:
            self._note(f"what `{self._path}` keeps cannot be used: {error}")
            return
        if self._held is None or kept.signed.order > self._held.signed.order:
            self._held, self._problem = kept, ""

    def _checked(self, data: bytes, source: HubPolicySource) -> _Held:
        signed = read_signed(data, source.public_key)
        if signed.hub != source.hub:
            raise PolicyRefusedError(f"it is for `{signed.hub}`, and this server belongs to `{source.hub}`")
        if not self._user or signed.user != self._user:
            raise PolicyRefusedError(f"it is for the user `{signed.user}`, and this server is that of `{self._user}`")
        if self._held is not None and signed.order < self._held.signed.order:
            raise PolicyRefusedError(
                f"version {signed.version} of {signed.issued_at} is older than version {self._held.signed.version} of"
                f" {self._held.signed.issued_at}, which this server already had"
            )
        if (signed.issued_at - self._clock.now()).total_seconds() > _AHEAD:
            raise PolicyRefusedError(f"it was signed in the future, at {signed.issued_at}: is a clock wrong?")
        if not self._holds(signed):
            raise PolicyRefusedError(f"it expired at {signed.expires_at}")
        rules, site = signed.rules()
        return _Held(signed, rules, site)

    def _holds(self, signed: SignedPolicy) -> bool:
        return self._clock.now() < signed.expires_at

    def _open(self, book: RuleBook, held: _Held, source: HubPolicySource) -> RuleBook:
        return self._joined(book, held.rules, held.site, self._status(source, held.signed))

    def _closed(self, book: RuleBook, source: HubPolicySource) -> RuleBook:
        problem = self._problem
        if self._held is not None:
            problem = f"the last one expired at {self._held.signed.expires_at}" + (f"; {problem}" if problem else "")
        status = replace(self._status(source, None), problem=problem)
        denial = Rule(
            server="*",
            tool="*",
            effect=Effect.DENY,
            layer=Layer.SITE,
            reason=f"the policy of {source.hub} cannot be had, and until then everything is denied: {status.problem}",
            file=source.url,
        )
        return self._joined(book, (denial,), _all_off(source), status)

    def _joined(self, book: RuleBook, rules: tuple[Rule, ...], site: SitePolicy, status: HubPolicyStatus) -> RuleBook:
        problem = ConfigurationProblem(path=status.url, message=f"the policy of the Hub service: {status.problem}")
        return replace(
            book,
            rules=(*rules, *book.rules),
            problems=(*book.problems, problem) if status.problem else book.problems,
            site=book.site.with_stricter(site),
            hub_policy=status,
        )

    def _status(self, source: HubPolicySource, signed: SignedPolicy | None) -> HubPolicyStatus:
        return HubPolicyStatus(
            hub=source.hub,
            url=source.url,
            version=None if signed is None else signed.version,
            issued_at=None if signed is None else signed.issued_at,
            expires_at=None if signed is None else signed.expires_at,
            problem=self._problem,
        )

    def _keep(self, data: bytes) -> None:
        """Write the policy to the file atomically; only this user can read it."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, draft = tempfile.mkstemp(dir=self._path.parent, prefix=".agentbox-policy-")
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(draft).replace(self._path)
        except OSError as error:
            log.warning("the policy of the Hub service cannot be kept in `%s`: %s", self._path, error.strerror)


def _all_off(source: HubPolicySource) -> SitePolicy:
    """Return what is in force without a policy. The site's files say where records go, and stay in force."""
    return replace(SitePolicy.closed(f"the policy of {source.hub}"), is_closed=False)
