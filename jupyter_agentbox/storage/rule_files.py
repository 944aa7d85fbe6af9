"""The files of rules on disk: all are read again when they change; the user's can also be written."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final, TypeAlias

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.policy import Layer, Rule
from jupyter_agentbox.core.rule_book import RuleBook, UserRules, refusal
from jupyter_agentbox.core.rule_text import MAX_BYTES, RuleText, read_text, write_text
from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.core.tools import ConfigurationProblem
from jupyter_agentbox.exceptions import InvalidRulesError, PolicyConflictError, StorageError
from jupyter_agentbox.loop_turn import LoopTurn
from jupyter_agentbox.private_files import replace_file

from .protection import why_unprotected

log = logging.getLogger(__name__)

#: What changes when a file does, as far as the file system tells; ``None`` for no file.
FileStamp: TypeAlias = tuple[int, ...] | None

#: Nanoseconds for which a change may leave no trace in a file's times, in the coarsest file system.
_COARSE: Final = 2_000_000_000
#: How often a file is read that is written meanwhile.
_TRIES: Final = 3
_OPEN: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlace:
    """A path at which a file of rules is the site's.

    Parameters
    ----------
    path : Path
        The file, which may be missing.
    is_environments : bool
        Whether it belongs to a Python environment. Users can have their own environments, so a file there that the user
        can change is not the site's, and does not count.
    """

    path: Path
    is_environments: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """A file's rules or problems, and the digest of its bytes, which is empty if there is no file."""

    text: RuleText
    revision: str = ""
    does_count: bool = True


class RuleFiles:
    """The user's file of rules, and those of the site.

    A broken file is not ignored: if it is the user's, all calls ask; if it is the site's, all calls are denied.

    Parameters
    ----------
    user : Path or None
        The user's file; ``None`` to leave it out.
    sites : sequence of SitePlace
        Where the site's files may be.
    profile : RuleText or None
        Rules from variables of the server's environment, treated as another file of the site.
    """

    def __init__(self, *, user: Path | None, sites: Sequence[SitePlace] = (), profile: RuleText | None = None) -> None:
        self._profile = () if profile is None else (_Found(profile),)
        self._user = None if user is None else _WatchedFile(user, _read_user)
        self._sites = [_WatchedFile(place.path, _reader_of(place)) for place in sites]
        self._files = [*self._sites, *([] if self._user is None else [self._user])]
        self._parts: list[_Found] | None = None
        self._looked = LoopTurn()
        self._book = RuleBook()

    def load(self) -> RuleBook:
        """Return the rules; the same object as last time if no file changed.

        It costs one or two ``stat`` calls for each file, and only the first call in each turn of the event loop.
        """
        if self._looked.is_same:
            return self._book
        parts = [file.load() for file in self._files]
        if self._parts is None or any(map(_is_other, parts, self._parts)):
            self._parts = parts
            self._book = self._read(parts)
        self._looked.begin()
        return self._book

    def _read(self, parts: Sequence[_Found]) -> RuleBook:
        sites, users = (*parts[: len(self._sites)], *self._profile), parts[len(self._sites) :]
        problems = tuple(problem for part in (*sites, *users) for problem in part.text.problems)
        for problem in problems:
            log.warning("rules: %s", problem)
        return RuleBook(
            rules=(*_rules(sites, Layer.SITE), *_rules(users, Layer.USER)),
            problems=problems,
            user=self._user_rules(users),
            site=reduce(SitePolicy.with_stricter, map(_site_policy, sites), SitePolicy()),
        )

    def _user_rules(self, users: Sequence[_Found]) -> UserRules | None:
        if self._user is None:
            return None
        (found,) = users
        return UserRules(
            path=str(self._user.path),
            entries=found.text.entries,
            revision=found.revision,
            schema=found.text.schema,
        )

    @property
    def is_writable(self) -> bool:
        """Whether the user's rules can be written."""
        if self._user is None:
            return False
        place = _target(self._user.path).parent
        while not place.exists() and place != place.parent:
            place = place.parent
        return os.access(place, os.W_OK)

    def write(self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None) -> None:
        """Write the user's rules atomically; only the user can read the file.

        Parameters
        ----------
        entries : sequence of JSON values
            The rules.
        revision : str or None
            The revision that they replace; ``None`` for any.
        schema : str or None
            The new ``$schema``; by default it stays as it is.

        Raises
        ------
        InvalidRulesError
            The rules are invalid; nothing is written.
        PolicyConflictError
            The file has changed since that revision.
        StorageError
            The file cannot be written.
        """
        if self._user is None:
            raise StorageError("there is no file of rules to write")
        path = self._user.path
        found = self._user.load()
        try:
            text = write_text(entries, schema=schema or found.text.schema)
        except ValueError as error:
            raise InvalidRulesError(f"the rules are not JSON: {error}") from None
        _check(text, str(path))
        if revision is not None and revision != found.revision:
            raise PolicyConflictError(f"`{path}` has changed meanwhile: load it again", revision=found.revision)
        try:
            replace_file(_target(path), text.encode(), is_synced=True)
        except OSError as error:
            raise StorageError(f"`{path}` cannot be written: {error.strerror}") from error
        self._user.forget()
        self._looked.end()


def _check(text: str, path: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidRulesError(f"the rules take more than {MAX_BYTES:,} bytes")
    problems = read_text(text, path=path, layer=Layer.USER).problems
    if problems:
        first = problems[0]
        # The lines are those of a text that nobody has seen; everybody can count rules.
        where = "" if first.rule is None else f"rule {first.rule}: "
        told = [problem.to_json() for problem in problems]
        raise InvalidRulesError(f"these rules cannot be saved: {where}{first.message}", problems=told)


def _target(path: Path) -> Path:
    """Return the path to replace: the target of a link, so that the link stays. It must be a regular file."""
    target = Path(os.path.realpath(path))
    return path if target.exists() and not target.is_file() else target


def _is_other(one: _Found, other: _Found) -> bool:
    return one is not other


def _site_policy(part: _Found) -> SitePolicy:
    """Return what a site's file says besides rules; if it is broken, that everything is off."""
    if part.does_count and part.text.problems:
        return SitePolicy.closed(part.text.problems[0].path)
    return part.text.site


def _rules(parts: Sequence[_Found], layer: Layer) -> list[Rule]:
    """Return the rules of a layer's files, and a rule for each broken file."""
    rules: list[Rule] = []
    for part in parts:
        if part.does_count and part.text.problems:
            rules.append(refusal(part.text.problems[0], layer))
        rules += part.text.rules
    return rules


class _WatchedFile:
    """A file that is read again when it changes.

    Parameters
    ----------
    path : Path
        The file.
    read : callable
        Returns what is in the file, given its path and its bytes or the reason why they cannot be read.
    """

    def __init__(self, path: Path, read: Callable[[Path, bytes | str | None], _Found]) -> None:
        self.path = path
        self._read = read
        self._name, self._directory = str(path), str(path.parent)
        self._stamp: tuple[FileStamp, FileStamp] | None = None
        self._is_settled = False
        self._rights: tuple[tuple[int, ...], FileStamp] = (), None
        self._bytes: bytes | str | None = b""
        self._found: _Found | None = None

    def forget(self) -> None:
        """Read the file again at the next use, whether or not it changed."""
        self._stamp = None

    def load(self) -> _Found:
        own = file_stamp(self._name)  # where there is no file, it does not matter who could put one there
        stamp = own, None if own is None else _stamp_of_directory(self._directory)
        if self._found is not None and self._is_settled and stamp == self._stamp:
            return self._found
        rights = _rights(stamp[0]), stamp[1]
        # the stamp was taken first: a change while we read is seen next time
        self._stamp = stamp
        now = time.time_ns()
        self._is_settled = stamp[0] is None or all(abs(now - changed) > _COARSE for changed in stamp[0][:2])
        content = _content(self.path)
        if self._found is None or rights != self._rights or content != self._bytes:
            self._bytes, self._rights = content, rights
            self._found = self._read(self.path, content)
        return self._found


def _content(path: Path) -> bytes | str | None:
    """Return the bytes of a file, the reason in words why they cannot be read, or ``None`` if there is no file."""
    try:
        for _ in range(_TRIES):
            content = _read_once(path)
            if content is not None:
                return content
    except FileNotFoundError:
        return "it is a link to nothing" if path.is_symlink() else None
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return "it is being written"


def _read_once(path: Path) -> bytes | str | None:
    """Return the bytes, or what is wrong; ``None`` if the file changed while it was being read."""
    if not stat.S_ISREG(path.stat().st_mode):  # opening something else could do anything, or wait
        return "it is not a file"
    descriptor = os.open(path, _OPEN)
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return "it is not a file"
        content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            return f"it has more than {MAX_BYTES:,} bytes"
        after = os.fstat(descriptor)
    return content if _stamp_of(before) == _stamp_of(after) else None


def _read_user(path: Path, content: bytes | str | None) -> _Found:
    found = _parsed(path, content, Layer.USER)
    problem = _why_not_users(path) if found.revision else ""
    return _Found(_refused(path, problem), found.revision) if problem else found


def _reader_of(place: SitePlace) -> Callable[[Path, bytes | str | None], _Found]:
    def read(path: Path, content: bytes | str | None) -> _Found:
        if content is None:
            return _Found(RuleText())
        if place.is_environments and (why := why_unprotected(path.parent)):
            return _Found(_refused(path, f"{why}: its rules do not count"), does_count=False)
        why = why_unprotected(path)
        return _Found(_refused(path, why)) if why else _parsed(path, content, Layer.SITE)

    return read


def _parsed(path: Path, content: bytes | str | None, layer: Layer) -> _Found:
    if content is None:
        return _Found(RuleText())
    if isinstance(content, str):
        return _Found(_refused(path, content), hashlib.sha256(content.encode()).hexdigest())
    revision = hashlib.sha256(content).hexdigest()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _Found(_refused(path, f"it is not UTF-8 text: byte {error.start + 1}"), revision)
    return _Found(read_text(text, path=str(path), layer=layer), revision)


def _refused(path: Path, message: str) -> RuleText:
    return RuleText(problems=(ConfigurationProblem(path=str(path), message=message),))


def _why_not_users(path: Path) -> str:
    """Return why a file does not belong to the user; empty if it does."""
    if not hasattr(os, "geteuid"):
        return ""
    try:
        found = path.stat()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if found.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    return "every user can write it: `chmod go-w` makes it yours" if found.st_mode & stat.S_IWOTH else ""


def file_stamp(path: str) -> FileStamp:
    """Return what changes with a file; ``None`` if there is none. Every call waits for this; it is one system call."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return 0, 0, error.errno or 0
    try:
        return _stamp_of(os.stat(path) if stat.S_ISLNK(found.st_mode) else found)  # noqa: PTH116
    except OSError as error:
        return 0, 0, error.errno or 0


def _stamp_of(found: os.stat_result) -> tuple[int, ...]:
    return (
        *(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev),
        *(found.st_mode, found.st_uid),
    )


def _rights(stamp: FileStamp) -> tuple[int, ...]:
    return () if stamp is None else stamp[5:]


def _stamp_of_directory(path: str) -> FileStamp:
    """Return what tells who can put another file there."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_mode, found.st_uid


def read_file(path: Path) -> RuleText:
    """Read a user's file of rules once.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    content = _content(path)
    if content is None:
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    return _parsed(path, content, Layer.USER).text
