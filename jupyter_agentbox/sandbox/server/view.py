"""What a sandboxed kernel sees of the file system: one list of mounts, the same for every level."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from jupyter_agentbox.exceptions import SandboxRefusedError

from . import repositories
from .interpreter import readable_of
from .protected_paths import ALWAYS_THERE, OBEYED, RUN_LATER, SECRETS, Protected, inside, literal, way_to
from .settings import ExtraPaths

#: What programs need of the system. Linked directories (``/bin``) stay links.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")

#: What programs need of ``/etc``: no passwords, no keys, no host names, no other user.
SYSTEM_SETTINGS = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/fonts", "/etc/localtime"),
    *("/etc/timezone", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates"),
    *("/etc/mime.types", "/etc/magic", "/etc/os-release", "/etc/debian_version", "/etc/protocols", "/etc/services"),
    *("/etc/bash.bashrc", "/etc/profile", "/etc/inputrc", "/etc/terminfo", "/etc/matplotlibrc", "/etc/papersize"),
    *("/etc/R", "/etc/texmf", "/etc/ImageMagick-6", "/etc/ImageMagick-7", "/etc/OpenCL", "/etc/odbcinst.ini"),
)

#: Below each prefix: Jupyter's settings may hold passwords, tokens and the MCP servers of a site.
SITE_SETTINGS = ("etc/jupyter", "etc/jupyterhub", "share/jupyter/runtime")

#: Of what programs outside obey, what can be kept in one directory: each is a mount, and a kernel can make them.
MOST_OBEYED: Final = 1_000


class Access(IntEnum):
    """How a path is seen. If two apply to one path, the higher number wins."""

    WRITE = 0
    READ = 1
    PRIVATE = 2
    """An empty directory in memory that the kernel can write."""
    HIDDEN = 3


@dataclass(frozen=True, slots=True)
class Mount:
    """A path inside, and what is seen there.

    Parameters
    ----------
    place : Path
        The path inside.
    access : Access
        How it is seen.
    source : Path or None
        What is seen there, if it is not what has the same path outside.
    """

    place: Path
    access: Access
    source: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that a kernel sees.

    Parameters
    ----------
    mounts : tuple of Mount
        Outer paths before inner ones.
    work : Path
        The work directory.
    home : Path
        The home directory.
    kept : tuple of Path
        Paths, without links, that must not be written, even inside a writable directory.
    """

    mounts: tuple[Mount, ...]
    work: Path
    home: Path
    kept: tuple[Path, ...] = ()

    def access(self, path: Path) -> Access | None:
        """Return how a path is seen; ``None`` if it is not seen at all.

        Parameters
        ----------
        path : Path
            Without links; what it names may be missing.
        """
        by_place = {mount.place: mount for mount in self.mounts}
        for mount in (by_place.get(one) for one in (path, *path.parents)):
            if mount is not None and _is_mounted(mount):
                return mount.access
        return None


def _is_mounted(mount: Mount) -> bool:
    return mount.access is Access.PRIVATE or os.path.lexists(mount.source or mount.place)


def make_view(
    *, work: Path, protected: Protected, prefixes: Sequence[Path], extra: ExtraPaths, files: Iterable[Mount]
) -> View:
    """Return what a kernel sees.

    Parameters
    ----------
    work : Path
        The work directory, checked.
    protected : Protected
        What is to be kept from the kernel.
    prefixes : sequence of Path
        Where the kernel's Python has its files.
    extra : ExtraPaths
        What settings add, without links.
    files : iterable of Mount
        The run directory's.
    """
    home = protected.home.resolve()
    mounts = [Mount(Path(one), Access.READ) for one in (*SYSTEM, *SYSTEM_SETTINGS)]
    mounts += [Mount(Path("/tmp"), Access.PRIVATE), Mount(home, Access.PRIVATE)]  # noqa: S108  # a place inside
    readable = [
        path for prefix in prefixes for one in {prefix, prefix.resolve()} for path in readable_of(one, home=home)
    ]
    readable += extra.readable
    mounts += [Mount(path, Access.READ) for path in readable if path != home]
    mounts += [Mount(path, Access.WRITE) for path in extra.writable]
    roots = [path for path in readable if path != home]
    mounts += [Mount(path, Access.HIDDEN) for root in (*roots, Path("/usr"), Path("/usr/local")) for path in site(root)]
    mounts += list(files)
    mounts += _work_mounts(work, home, protected)
    shown = [work, *roots, *extra.writable]
    hidden = [*protected.secrets, *protected.covered, *extra.hidden]
    mounts += [Mount(path, Access.HIDDEN) for root in shown for path in {*inside(hidden, root), *_at(hidden, root)}]
    kept = [way_to(path) for path in (*protected.configuration, *extra.read_only)]
    mounts += [Mount(path, Access.READ) for root in shown for path in _at_or_inside([real for real, _ in kept], root)]
    obeyed = [one for root in (work, *extra.writable) for one in _obeyed(root, home, extra.unprotected)]
    # What is elsewhere is not shown: a kernel could have made the link, or the setting, that leads there.
    written = (work, *extra.writable)
    mounts += [Mount(path, Access.READ) for root in written for path in _inside([real for real, _ in obeyed], root)]
    mounts += _anchors(mounts)
    view = View(
        mounts=_ordered(mounts, work=work, home=home),
        work=work,
        home=home,
        kept=tuple(real for real, _ in (*kept, *map(way_to, extra.readable))),
    )
    for real, links in (*kept, *obeyed):
        _check_held(view, real, links)
    return view


def _obeyed(root: Path, home: Path, unprotected: Sequence[str]) -> list[tuple[Path, list[Path]]]:
    """Return the files in a writable directory that programs outside obey, with the links that lead there."""
    if not root.is_dir():
        return []
    trees = [root, *(entry.parent for entry in repositories.find(root) if root in entry.parents)]
    names = [name for name in OBEYED if name not in unprotected]
    found = [path for tree in trees for path in _named_in(tree, names)]
    found = [path for path in found if not any(fnmatchcase(path.name, one) for one in unprotected)]
    # Of a link among them (`CLAUDE.md` to `AGENTS.md`), the target is kept; the link itself can be replaced.
    kept: list[tuple[Path, list[Path]]] = [(real, []) for path in found if root in (real := path.resolve()).parents]
    kept += repositories.hold(repositories.obeyed(root, home=home, is_open=".git" in unprotected), root)
    if len(kept) > MOST_OBEYED:
        raise SandboxRefusedError(
            f"`{root}` holds {len(kept):,} files and directories that programs outside obey, of which {MOST_OBEYED:,}"
            " can be kept from the kernel; remove what a kernel left there, or choose another directory"
        )
    return kept


def _named_in(tree: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield a directory's entries of these names and patterns; for patterns, only a limited number is read."""
    yield from (path for name in names if "*" not in name and os.path.exists(path := tree / name))  # noqa: PTH110  # a directory that cannot be entered has none
    patterns = [name for name in names if "*" in name]
    with suppress(OSError), os.scandir(tree) as entries:
        for entry in islice(entries, repositories.MOST_ENTRIES):
            if any(fnmatchcase(entry.name, pattern) for pattern in patterns):
                yield tree / entry.name


def _inside(paths: Iterable[Path], root: Path) -> list[Path]:
    return [path for path in _at_or_inside(paths, root) if path != root]


def _at_or_inside(paths: Iterable[Path], root: Path) -> list[Path]:
    return [path for path in paths if (root == path or root in path.parents) and path.exists()]


def _check_held(view: View, path: Path, links: Iterable[Path]) -> None:
    """Refuse a view in which a kernel could create its own settings, or replace a link that leads to them."""
    for link in links:
        if view.access(link) is Access.WRITE:
            raise SandboxRefusedError(
                f"`{link}` leads to settings that a kernel must not write, and is a link that it could replace; name"
                " the file itself, or move the link out of where the kernel can write"
            )
    if view.access(path) is Access.WRITE:
        raise SandboxRefusedError(
            f"`{path}` decides what is allowed or what starts, is missing, and lies where the kernel could make it;"
            " make it, or move it to another place"
        )


def site(prefix: Path) -> list[Path]:
    """Return the directory in which a prefix keeps Jupyter's settings."""
    return [prefix / name for name in SITE_SETTINGS]


def _at(hidden: Iterable[Path], root: Path) -> list[Path]:
    return [path.resolve() for path in hidden if path.resolve() == root]


def _work_mounts(work: Path, home: Path, protected: Protected) -> list[Mount]:
    found = [Mount(work, Access.WRITE)]
    found += [Mount(path, Access.READ) for path in inside(protected.read_only, work)]
    names: list[str] = []
    if work == home:
        names += RUN_LATER
        for name in ALWAYS_THERE:
            (home / name).mkdir(mode=0o700, exist_ok=True)
        found += [Mount(path, Access.HIDDEN) for name in SECRETS if (path := literal(home / name))]
    return found + [Mount(path, Access.READ) for name in names if (path := literal(work / name))]


def _anchors(mounts: Sequence[Mount]) -> list[Mount]:
    """Return mounts that pin the directories above what is kept or hidden in a writable place.

    A directory that holds a mount can be renamed, and another put in its place: only a mount itself cannot.
    """
    kept = {mount.place for mount in mounts if mount.access is not Access.WRITE}
    writable = {mount.place for mount in mounts if mount.access is Access.WRITE}
    found = []
    for place in kept:
        above: list[Path] = []
        for directory in place.parents:
            if directory in writable:
                found += [Mount(one, Access.WRITE) for one in above]
                break
            if directory in kept:
                break
            above.append(directory)
    return found


def _ordered(mounts: Iterable[Mount], *, work: Path, home: Path) -> tuple[Mount, ...]:
    """Return one mount for each path, outer before inner. Only a home directory that is the work directory is shown."""
    chosen: dict[Path, Mount] = {}
    for mount in mounts:
        if mount.place == home == work and mount.access is Access.PRIVATE:
            continue
        known = chosen.get(mount.place)
        if known is None or mount.access > known.access:
            chosen[mount.place] = mount
    return tuple(sorted(chosen.values(), key=lambda mount: len(mount.place.parts)))
