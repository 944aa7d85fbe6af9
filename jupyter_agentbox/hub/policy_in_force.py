"""The policy in force: the current policy file or, if that cannot be used, its last good version."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.core.tools import ConfigurationProblem
from jupyter_agentbox.exceptions import StorageError

from .policy_file import PolicyFile, PolicyFileError, read_policy_file
from .policy_signing import PolicySigner

log = logging.getLogger(__name__)

#: Creates the signer of the policy for users' own servers; returns ``None`` if the file has no such part.
MakeSigner = Callable[[PolicyFile], PolicySigner | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """One version of the policy, with all that belongs to it. It is replaced as a whole.

    Parameters
    ----------
    policy : PolicyFile
        The contents of the file.
    since : datetime
        When it came into force.
    book : RuleBook
        Its rules.
    local_book : RuleBook
        Its rules for users' own tools.
    signer : PolicySigner or None
        Signs the part for users' own servers.
    """

    policy: PolicyFile
    since: datetime
    book: RuleBook
    local_book: RuleBook
    signer: PolicySigner | None = None


def digest_of_file(policy: PolicyFile) -> str:
    """Return the SHA-256 of the file. Its beginning names the version."""
    return hashlib.sha256(policy.text.encode()).hexdigest()


def _version(policy: PolicyFile) -> str:
    return digest_of_file(policy)[:12]


class PolicyInForce:
    """Follows the policy file. If the file becomes unusable, the last good version stays in force.

    Parameters
    ----------
    policy : PolicyFile
        The policy file as read at the start.
    environment : mapping
        The service's environment, for the variables of central servers.
    clock : Clock
        The time.
    """

    def __init__(self, policy: PolicyFile, environment: Mapping[str, str], *, clock: Clock) -> None:
        self._environment = environment
        self._clock = clock
        self._make_signer: MakeSigner = lambda _: None
        self._is_signing = False
        self._state = self._state_of(policy, None)
        self._problems: tuple[ConfigurationProblem, ...] = ()
        self._stamps = _stamps(policy.files)
        self._followers: list[Callable[[PolicyFile, PolicyFile], None]] = []
        self._turn = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None

    @property
    def current(self) -> PolicyFile:
        """The policy in force."""
        return self._state.policy

    @property
    def version(self) -> str:
        """The name of the version in force."""
        return _version(self.current)

    @property
    def signer(self) -> PolicySigner | None:
        """The signer of the part for users' own servers; ``None`` if there is no such part."""
        return self._state.signer

    @property
    def problems(self) -> Sequence[ConfigurationProblem]:
        """Why the current file is not in force; empty if it is."""
        return self._problems

    def begin_signing(self, make: MakeSigner) -> None:
        """Sign the policy in force and all later ones.

        Raises
        ------
        OSError, ValueError
            If the key or the number of the last version cannot be read or stored.
        """
        self._state = self._state_of(self.current, make(self.current), since=self._state.since)
        self._make_signer = make
        self._is_signing = True

    def follow(self, changed: Callable[[PolicyFile, PolicyFile], None]) -> None:
        """Add a function that is called at each change, with the previous and the new policy."""
        self._followers.append(changed)

    async def look(self) -> None:
        """Read the policy file again if it or a file of a secret has changed."""
        async with self._turn:
            stamps = await asyncio.to_thread(_stamps, self._watched)
            if stamps != self._stamps:
                await self._read()

    async def reload(self) -> None:
        """Read the policy file again, even if it has not changed."""
        async with self._turn:
            await self._read()

    def read_soon(self) -> None:
        """Read the policy file again in the background. Does nothing before `begin_signing`, which a check follows."""
        if not self._is_signing:
            return
        self._reading = in_background(self.reload(), what="reading the policy file")

    def to_json(self) -> JsonObject:
        """Return the version in force, since when, and the positions of mistakes in the file. Nothing is quoted."""
        places: list[JsonValue] = [{"line": one.line, "column": one.column} for one in self._problems]
        local = self.signer
        return {
            "version": self.version,
            "local_version": None if local is None else local.version,
            "in_force_since": json_time(self._state.since),
            "is_current": not self._problems,
            "problems": places,
        }

    # The interface by which `PolicyManager` reads rules.

    @property
    def is_writable(self) -> bool:
        """Whether rules can be written: no, only the administrator edits the file."""
        return False

    def load(self) -> RuleBook:
        """Return the rules in force."""
        return self._state.book

    def load_local(self) -> RuleBook:
        """Return the rules in force for users' own tools."""
        return self._state.local_book

    def write(
        self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None
    ) -> NoReturn:
        """Refuse to write."""
        del entries, revision, schema
        raise StorageError("only the administrator can change the policy, in its file")

    @property
    def _watched(self) -> Sequence[Path]:
        return self.current.files

    async def _read(self) -> None:
        path = self.current.path
        # Taken before reading, so that no change is missed.
        self._stamps = await asyncio.to_thread(_stamps, self._watched)
        try:
            policy = await asyncio.to_thread(read_policy_file, path, self._environment)
            signer = await self._sign(policy)
        except PolicyFileError as error:
            self._refuse(error.problems)
        except Exception as error:
            # The boundary of a task that must go on: the previous policy stays in force, and the problem is shown.
            log.exception("the policy file cannot be read")
            self._refuse([ConfigurationProblem(path=str(path), message=f"it cannot be read: {type(error).__name__}")])
        else:
            if policy.files != self._watched:
                self._stamps = await asyncio.to_thread(_stamps, policy.files)
            self._take(policy, signer)

    async def _sign(self, policy: PolicyFile) -> PolicySigner | None:
        try:
            return await asyncio.to_thread(self._make_signer, policy)
        except (OSError, ValueError) as error:
            problem = ConfigurationProblem(path=str(policy.path), message=f"it cannot be signed: {error}")
            raise PolicyFileError([problem]) from error

    def _refuse(self, problems: Sequence[ConfigurationProblem]) -> None:
        self._problems = tuple(problems)
        for problem in problems:
            log.error("the policy file cannot be used; version %s stays in force: %s", self.version, problem)

    def _take(self, policy: PolicyFile, signer: PolicySigner | None) -> None:
        before, self._problems = self.current, ()
        if policy == before:
            log.info("the policy file has not changed the policy: version %s is in force", self.version)
            return
        self._state = self._state_of(policy, signer)
        log.info("the policy has changed: version %s is in force, in place of %s", self.version, _version(before))
        for changed in self._followers:
            try:
                changed(before, policy)
            except Exception:
                # The other followers must still be called, and the file must be followed further.
                log.exception("version %s of the policy could not be applied everywhere", self.version)

    def _state_of(self, policy: PolicyFile, signer: PolicySigner | None, *, since: datetime | None = None) -> _State:
        book = RuleBook(rules=policy.policy.rules, version=_version(policy))
        local = RuleBook(rules=() if policy.local is None else policy.local.rules)
        since = since or self._clock.now()
        return _State(policy=policy, since=since, book=book, local_book=local, signer=signer)


def _stamps(paths: Sequence[Path]) -> tuple[tuple[int, ...] | None, ...]:
    """Return values that differ when a file has changed."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
