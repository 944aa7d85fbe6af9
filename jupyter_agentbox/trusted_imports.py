"""Imports that ignore the work directory, for code that the server runs in a kernel by itself.

In a kernel, `sys.path` has the work directory before the installed packages. If a cell imports a module from there,
its author is responsible. But the server runs code of its own in every kernel, even before the user has run anything.
If that code imported modules from the work directory, anybody who left a file there could run code. The server sends
the source of this file before such code (`in_kernel`), so this file imports only modules that every kernel has loaded.
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
    """A context in which this thread imports no module from the work directory.

    Other threads import as usual, and `sys.path` does not change. Modules that are already loaded are used as they are.
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
        """Find a module as Python would without the work directory. Submodules are found through their package."""
        if path is not None or get_ident() != self._thread:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            found = finder.find_spec(name, self._path if finder is PathFinder else None, target)
            # another package's finder may search `sys.path` itself
            if found is not None and self._is_spec_trusted(found):
                return found
        raise ModuleNotFoundError(f"No module named {name!r} is installed", name=name)

    def check_origin(self, name: str) -> None:
        """Check that a package, if already loaded, is the one that would be imported now.

        Raises
        ------
        ImportError
            If it is a different one, or cannot be found.
        """
        spec, loaded = self.find_spec(name), sys.modules.get(name)
        wanted = spec.origin if spec is not None else None
        found = getattr(loaded, "__file__", None) if loaded is not None else wanted
        if wanted is None or found is None or _real(wanted) != _real(found):
            raise ImportError(f"`{name}` was imported from {found}, where it is not installed", name=name)

    def _is_spec_trusted(self, spec: ModuleSpec) -> bool:
        if not spec.has_location and not spec.submodule_search_locations:
            return True  # built-in, frozen, or created without a file
        places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or ())
        return all(self._is_trusted(place) for place in places)

    def _is_trusted(self, place: Any) -> bool:
        """Return whether a path is outside the work directory, or belongs to an environment inside it."""
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
    """Return code for a kernel that runs statements with trusted imports and leaves no names behind.

    Parameters
    ----------
    statements : str
        Python code, which can use ``get_ipython``.
    """
    with open(__file__, encoding="utf-8") as file:
        source = file.read()
    indented = "".join(f"    {line}\n" for line in statements.splitlines())
    names = "{'__name__': 'jupyter_agentbox_in_kernel', 'get_ipython': get_ipython}"
    whole = f"{source}\n\nwith TrustedImports() as trusted:\n    trusted.check_origin('jupyter_agentbox')\n{indented}"
    return f"exec({whole!r}, {names})"


def _work_directories() -> frozenset[str]:
    """Return the current directory, the one at the start, and the entries of `PYTHONPATH` relative to it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", _nothing)()
    start = getattr(shell, "starting_dir", None)
    places = [start] if isinstance(start, str) else []
    with suppress(OSError):  # it was removed, so nothing can be imported from there
        places.append(os.getcwd())
    relative = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not os.path.isabs(one)]
    return frozenset(_real(os.path.join(place, one)) for place in places for one in ["", *relative])


def _installed() -> frozenset[str]:
    """Return the directories of the standard library and of installed packages, including editable ones."""
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
    """Yield the paths in `.pth` files: https://docs.python.org/3/library/site.html."""
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
