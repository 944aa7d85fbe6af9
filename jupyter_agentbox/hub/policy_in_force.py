"""The policy that holds: what the file says now, or the last thing that could be understood of it."""

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

#: Makes what signs the policy for users' own servers; ``None`` if it says nothing of these.
MakeSigner = Callable[[PolicyFile], PolicySigner | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What holds together: all of it is replaced at once.

    Parameters
    ----------
    policy : PolicyFile
        The file.
    since : datetime
        When it came into force.
    book : RuleBook
        Its rules.
    signer : PolicySigner or None
        Signs the part for users' own servers.
    """

    policy: PolicyFile
    since: datetime
    book: RuleBook
    signer: PolicySigner | None = None


def digest_of_file(policy: PolicyFile) -> str:
    """Return the SHA-256 of the file; its beginning is what a version is called."""
    return hashlib.sha256(policy.text.encode()).hexdigest()


def _version(policy: PolicyFile) -> str:
    return digest_of_file(policy)[:12]


class PolicyInForce:
    """Follows the policy file. A file that cannot be used changes nothing, and says why it is not in force.

    Parameters
    ----------
    policy : PolicyFile
        What was read at the start.
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
        """What holds."""
        return self._state.policy

    @property
    def version(self) -> str:
        """What the version that holds is called."""
        return _version(self.current)

    @property
    def signer(self) -> PolicySigner | None:
        """What signs the part for users' own servers; ``None`` if there is none."""
        return self._state.signer

    @property
    def problems(self) -> Sequence[ConfigurationProblem]:
        """Why the file as it is now does not hold; empty if it does."""
        return self._problems

    def begin_signing(self, make: MakeSigner) -> None:
        """Sign what holds, and all that will.

        Raises
        ------
        OSError, ValueError
            The key or the last version cannot be read or kept.
        """
        self._state = self._state_of(self.current, make(self.current), since=self._state.since)
        self._make_signer = make
        self._is_signing = True

    def follow(self, changed: Callable[[PolicyFile, PolicyFile], None]) -> None:
        """Have it called with the policy before and the one that holds from now on."""
        self._followers.append(changed)

    async def look(self) -> None:
        """Read the file again if it, or a file of a secret, has changed."""
        async with self._turn:
            stamps = await asyncio.to_thread(_stamps, self._watched)
            if stamps != self._stamps:
                await self._read()

    async def reload(self) -> None:
        """Read the file again, whether it has changed or not."""
        async with self._turn:
            await self._read()

    def read_soon(self) -> None:
        """Read the file again, in the background. Before it is known what signs, nothing is read: a look follows."""
        if not self._is_signing:
            return
        self._reading = in_background(self.reload(), what="reading the policy file")

    def to_json(self) -> JsonObject:
        """Return which version holds, since when, and where the file is wrong that does not. Nothing is quoted."""
        places: list[JsonValue] = [{"line": one.line, "column": one.column} for one in self._problems]
        local = self.signer
        return {
            "version": self.version,
            "local_version": None if local is None else local.version,
            "in_force_since": json_time(self._state.since),
            "is_current": not self._problems,
            "problems": places,
        }

    # The rules, as `PolicyManager` takes those of files.

    @property
    def is_writable(self) -> bool:
        """Whether rules can be written: nobody but who owns the file does that."""
        return False

    def load(self) -> RuleBook:
        """Return the rules that hold."""
        return self._state.book

    def write(
        self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None
    ) -> NoReturn:
        """Refuse to write."""
        del entries, revision, schema
        raise StorageError("the policy is the administrator's to write")

    @property
    def _watched(self) -> Sequence[Path]:
        return self.current.files

    async def _read(self) -> None:
        path = self.current.path
        self._stamps = await asyncio.to_thread(_stamps, self._watched)  # before it is read, so that nothing is missed
        try:
            policy = await asyncio.to_thread(read_policy_file, path, self._environment)
            signer = await self._sign(policy)
        except PolicyFileError as error:
            self._refuse(error.problems)
        except Exception as error:
            # The boundary of a task that must go on: what held still holds, and the file is said not to be in force.
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
            log.error("the policy file cannot be used, version %s stays in force: %s", self.version, problem)

    def _take(self, policy: PolicyFile, signer: PolicySigner | None) -> None:
        before, self._problems = self.current, ()
        if policy == before:
            log.info("the policy file says what is in force: version %s", self.version)
            return
        self._state = self._state_of(policy, signer)
        log.info("the policy has changed: version %s is in force; before, it was %s", self.version, _version(before))
        for changed in self._followers:
            try:
                changed(before, policy)
            except Exception:
                # Others follow, too, and the file is looked at again.
                log.exception("not everything follows version %s of the policy", self.version)

    def _state_of(self, policy: PolicyFile, signer: PolicySigner | None, *, since: datetime | None = None) -> _State:
        book = RuleBook(rules=policy.policy.rules, version=_version(policy))
        return _State(policy=policy, since=since or self._clock.now(), book=book, signer=signer)


def _stamps(paths: Sequence[Path]) -> tuple[tuple[int, ...] | None, ...]:
    """Return what changes when files do."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
