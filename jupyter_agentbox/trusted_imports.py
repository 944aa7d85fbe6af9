"""Imports that take no module from the work directory, for what we do in a kernel that no cell asked for.

In a kernel the work directory stands on `sys.path`, before the installed packages. What a cell imports from there is
the affair of its author. But the server has code of its own run in every kernel, also in one whose user has run nothing
yet; if that took its modules from the work directory, whoever left a file there would run code. The server sends the
source of this file ahead of such code (`in_kernel`), so it imports only what a kernel has loaded before its first cell.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class TrustedImports:
    """A context in which this thread's imports take no module from the work directory.

    Other threads import as ever meanwhile, and `sys.path` stays as it is. What is loaded already is not looked up.
    """

    def __init__(self) -> None:
        self._thread = get_ident()
        self._work = _work_directories()
        self._known: frozenset[str] | None = None
        self._path = [entry for entry in sys.path if self._is_trusted(entry)]

    def __enter__(self) -> TrustedImports:
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module as Python would without the work directory. One of a package is found by its package."""
        if path is not None or get_ident() != self._thread:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            found = finder.find_spec(name, self._path if finder is PathFinder else None, target)
            # a finder of somebody else's may look at `sys.path` itself
            if found is not None and self._is_spec_trusted(found):
                return found
        raise ModuleNotFoundError(f"No module named {name!r} is installed", name=name)

    def check_origin(self, name: str) -> None:
        """Make sure that a package, if it is loaded already, is the one that would be imported now.

        Raises
        ------
        ImportError
            If it is another one, or is not there.
        """
        spec, loaded = self.find_spec(name), sys.modules.get(name)
        wanted = spec.origin if spec is not None else None
        found = getattr(loaded, "__file__", None) if loaded is not None else wanted
        if wanted is None or found is None or _real(wanted) != _real(found):
            raise ImportError(f"`{name}` was imported from {found}, where it is not installed", name=name)

    def _is_spec_trusted(self, spec: ModuleSpec) -> bool:
        if not spec.has_location and not spec.submodule_search_locations:
            return True  # built in, frozen, or made of nothing
        places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or ())
        return all(self._is_trusted(place) for place in places)

    def _is_trusted(self, place: Any) -> bool:
        """Say whether a place is out of the work directory, or belongs to an environment that lies in it."""
        if not isinstance(place, str) or not os.path.isabs(place):
            return False
        real = _real(place)
        return not _is_below(real, self._work) or _is_below(real, self._installed)

    @property
    def _installed(self) -> frozenset[str]:
        if self._known is None:
            self._known = _installed()
        return self._known


def in_kernel(statements: str) -> str:
    """Return code for a kernel that runs statements with trusted imports, and leaves no name behind.

    Parameters
    ----------
    statements : str
        Python; ``get_ipython`` is there.
    """
    with open(__file__, encoding="utf-8") as file:
        source = file.read()
    indented = "".join(f"    {line}\n" for line in statements.splitlines())
    names = "{'__name__': 'jupyter_agentbox_in_kernel', 'get_ipython': get_ipython}"
    whole = f"{source}\n\nwith TrustedImports() as trusted:\n    trusted.check_origin('jupyter_agentbox')\n{indented}"
    return f"exec({whole!r}, {names})"


def _work_directories() -> frozenset[str]:
    """Return where this process works, where it was started, and what `PYTHONPATH` names relative to that."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", _nothing)()
    start = getattr(shell, "starting_dir", None)
    places = [start] if isinstance(start, str) else []
    with suppress(OSError):  # it was removed, so nothing is imported from there
        places.append(os.getcwd())
    relative = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not os.path.isabs(one)]
    return frozenset(_real(os.path.join(place, one)) for place in places for one in ["", *relative])


def _installed() -> frozenset[str]:
    """Return the directories of the standard library and of installed packages, with those of editable ones."""
    sites = frozenset(_real(one) for one in _site_directories())
    library = os.path.dirname(_real(os.__file__))
    return sites | {library} | frozenset(path for site in sites for path in _editable(site))


def _site_directories() -> Iterator[str]:
    site: Any = sys.modules.get("site")
    if site is not None:
        yield from site.getsitepackages()
        if site.ENABLE_USER_SITE:
            yield site.getusersitepackages()


def _editable(site: str) -> Iterator[str]:
    """Yield the paths that `.pth` files name: https://docs.python.org/3/library/site.html."""
    try:
        names = [name for name in os.listdir(site) if name.endswith(".pth")]
    except OSError:
        return
    for name in names:
        try:
            with open(os.path.join(site, name), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        paths = (line.strip() for line in lines if not line.startswith(("#", "import ", "import\t")))
        yield from (_real(os.path.join(site, path)) for path in paths if path)


def _is_below(path: str, places: frozenset[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip(os.sep) + os.sep) for place in places)


def _real(path: str) -> str:
    return os.path.realpath(path)


def _nothing() -> None:
    return None
