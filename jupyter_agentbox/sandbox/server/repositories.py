"""The files that git, outside a sandbox, obeys in the repositories below a directory that a kernel can write.

The next git command obeys everything in ``.git``: ``config`` and ``hooks``, but also ``commondir``,
``config.worktree``, ``rebase-merge`` and ``sequencer``, which need not exist yet, and every file that git writes
through a link (``COMMIT_EDITMSG``, ``MERGE_MSG``, ``logs``). So all of it is kept. Git's configuration names further
paths: ``core.hooksPath``, included files, and programs in the working tree.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from jupyter_agentbox.exceptions import SandboxRefusedError

from .programs import path_without
from .protected_paths import way_to

#: How far repositories are looked for below a directory: levels, directories, repositories.
MOST_LEVELS: Final = 6
MOST_DIRECTORIES: Final = 5_000
MOST_REPOSITORIES: Final = 200
#: Entries of directories that are looked at, files of settings that are read, and bytes of the largest of those: a
#: kernel can make as many, and as large, as it likes.
MOST_ENTRIES: Final = 1_000_000
MOST_SETTINGS_FILES: Final = 1_000
MOST_SETTINGS_BYTES: Final = 1_000_000
#: Of a ``.git`` that settings open: what of it is kept still, where it is there.
KEPT_OF_OPEN: Final = (
    *("config", "config.worktree", "commondir", "gitdir", "hooks", "info", "modules", "worktrees"),
    *("rebase-merge", "rebase-apply", "sequencer"),
)
#: Settings of git that name a directory with programs.
_DIRECTORIES: Final = ("core.hookspath", "init.templatedir")
#: The last word of settings of git whose value is run, or is a file that is obeyed.
_RUN: Final = re.compile(
    r"(command|cmd|driver|textconv|clean|smudge|process|fsmonitor|editor|pager|program|helper|askpass|external|update"
    r"|path|attributesfile|excludesfile|variant)$"
)
_INCLUDE: Final = re.compile(r"include(if\..*)?\.path$")
_MOST_FILES: Final = 50
_TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree.

    Parameters
    ----------
    tree : Path
        The tree's directory.
    directories : tuple of Path
        The directory of its repository, and the directory that it shares with other working trees.
    """

    tree: Path
    directories: tuple[Path, ...]

    @classmethod
    def of(cls, entry: Path) -> Repository:
        """Return the repository of a ``.git``: a directory, or a file that names one."""
        directory = entry
        if entry.is_file():
            named = _first_line(entry).removeprefix("gitdir:").strip()
            directory = entry.parent / named if named else entry
        common = _first_line(directory / "commondir").strip()
        found = (directory, *((directory / common,) if common else ()))
        return cls(entry.parent, tuple(Path(os.path.abspath(one)) for one in found))  # noqa: PTH100  # keeps links


def find(directory: Path) -> list[Path]:
    """Return each ``.git`` in and below a directory, and the nearest one above it, to which the directory belongs.

    Parameters
    ----------
    directory : Path
        Without links. No link below is followed.

    Raises
    ------
    SandboxRefusedError
        If there are too many to look through.
    """
    found = [one for one in (above / ".git" for above in directory.parents) if os.path.lexists(one)][:1]
    waiting, left = deque([(directory, 0)]), MOST_ENTRIES
    for _ in range(MOST_DIRECTORIES):
        if not waiting:
            break
        place, level = waiting.popleft()
        if os.path.lexists(entry := place / ".git"):
            found.append(entry)
        if level < MOST_LEVELS and len(waiting) < MOST_DIRECTORIES:
            inner, seen = _directories_in(place, left)
            left -= seen
            waiting += [(place / name, level + 1) for name in inner]
    if len(found) > MOST_REPOSITORIES:
        raise SandboxRefusedError(
            f"`{directory}` holds more than {MOST_REPOSITORIES} git repositories, which cannot all be kept from the"
            " kernel; choose a directory below it"
        )
    return found


def _directories_in(place: Path, most: int) -> tuple[list[str], int]:
    """Return the directories among a limited number of a directory's entries, and how many entries were read."""
    found: list[str] = []
    seen = 0
    with suppress(OSError), os.scandir(place) as entries:
        for entry in islice(entries, most):
            seen += 1
            if entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                found.append(entry.name)
    return sorted(found), seen


def obeyed(directory: Path, *, home: Path, is_open: bool) -> Iterator[Path]:
    """Yield what git obeys for the repositories in a directory, including what lies elsewhere.

    Parameters
    ----------
    directory : Path
        A path without links.
    home : Path
        The user's home directory, with git's own settings.
    is_open : bool
        Whether settings open ``.git`` to the kernel, so that it can commit.

    Raises
    ------
    SandboxRefusedError
        If there are too many repositories.
    """
    entries = find(directory)
    if not entries:
        return
    reader = _Reader([directory], home)
    general = list(reader.read([home / ".gitconfig", home / ".config" / "git" / "config", Path("/etc/gitconfig")]))
    for entry in entries:
        repository = Repository.of(entry)
        if is_open and not entry.is_file():
            yield from (entry / name for name in KEPT_OF_OPEN if os.path.lexists(entry / name))
        else:
            yield entry
            yield from repository.directories
            yield from _linked(repository.directories)
        names = ("config", "config.worktree")
        own = list(reader.read(one / name for one in repository.directories for name in names))
        yield from _named(repository.tree, [*general, *own], home)


def _linked(directories: Iterable[Path]) -> Iterator[Path]:
    """Yield the links in a repository's directory, such as the tool `repo` makes."""
    for directory in directories:
        if directory.is_dir():
            yield from (one for one in directory.iterdir() if one.is_symlink())


@dataclass(frozen=True, slots=True)
class _Setting:
    file: Path
    key: str
    value: str


class _Reader:
    """Reads git's configuration with git itself, outside any repository, where it runs nothing that it reads."""

    def __init__(self, directories: Sequence[Path], home: Path) -> None:
        path = path_without(directories)
        self._git = shutil.which("git", path=path)
        self._left = MOST_SETTINGS_FILES
        self._env = {"PATH": path, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}

    def read(self, files: Iterable[Path]) -> Iterator[_Setting]:
        """Yield the settings in files, and in the files that they include under any condition."""
        waiting, seen = deque(files), set[Path]()
        while waiting and len(seen) < _MOST_FILES:
            file = waiting.popleft()
            if file in seen or not file.is_file():
                continue
            seen.add(file)
            for setting in self._read(file):
                yield setting
                if _INCLUDE.match(setting.key):
                    waiting.append(_path(setting.value, file.parent, Path(self._env["HOME"])))

    def _read(self, file: Path) -> Iterator[_Setting]:
        if self._git is None:
            return
        content = _beginning(file, MOST_SETTINGS_BYTES + 1)
        self._left -= 1
        if len(content) > MOST_SETTINGS_BYTES or self._left < 0:
            raise SandboxRefusedError(
                f"there are too many settings of git to keep what they name from the kernel, or too long ones, as"
                f" `{file}`; remove what a kernel left there, or choose another directory"
            )
        command = [self._git, "config", "--file", "-", "--no-includes", "--null", "--list"]
        try:
            done = subprocess.run(
                command, cwd="/", env=self._env, input=content, capture_output=True, check=False, timeout=_TIMEOUT
            )
        except (OSError, subprocess.SubprocessError):
            return
        for part in done.stdout.decode("utf-8", "surrogateescape").split("\0"):
            key, _, value = part.partition("\n")
            if key:
                section, _, name = key.rpartition(".")
                yield _Setting(file, f"{section}.{name}".lower() if _is_plain(section) else key, value)


def _is_plain(section: str) -> bool:
    return "." not in section


def _named(tree: Path, settings: Iterable[_Setting], home: Path) -> Iterator[Path]:
    """Yield the files and directories that git's settings name, including missing ones."""
    for setting in settings:
        if _INCLUDE.match(setting.key):
            yield _path(setting.value, setting.file.parent, home)
        elif setting.key in _DIRECTORIES:
            yield _path(setting.value, tree, home)
        elif setting.key.startswith("alias.") or _RUN.search(setting.key):
            for word in _words(setting.value.removeprefix("!")):
                path = _path(word, tree, home)
                if word and path.is_file():
                    yield path


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _path(text: str, base: Path, home: Path) -> Path:
    text = f"{home}{text[1:]}" if text.startswith("~/") else text
    return Path(os.path.normpath(base / text))


def _first_line(file: Path) -> str:
    return _beginning(file, 4096).decode("utf-8", "surrogateescape").partition("\n")[0]


def _beginning(file: Path, most: int) -> bytes:
    """Return the beginning of a file; empty for a pipe and whatever else is not a regular file."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        with os.fdopen(fd, "rb", closefd=False) as opened:
            return opened.read(most)
    except OSError:
        return b""
    finally:
        os.close(fd)


def hold(paths: Iterable[Path], directory: Path) -> list[tuple[Path, list[Path]]]:
    """Return those of the paths that can be reached from a directory, with the links that lead there.

    Parameters
    ----------
    paths : iterable of Path
        What `obeyed` yields.
    directory : Path
        Where the kernel can write.
    """
    found = []
    for path in dict.fromkeys(paths):
        real, links = way_to(path)
        if directory in real.parents or any(directory in link.parents for link in links):
            found.append((real, links))
    return found
