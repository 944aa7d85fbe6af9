"""Where a kernel's Python has its files, found in the file system: asking Python itself would start it once more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: What says that a directory is an environment, and nothing else.
_OF_ENVIRONMENT: Final = ("pyvenv.cfg", "conda-meta")
#: What a Python has that was installed below a prefix. The rest, ``share`` above all, may be anybody's.
_OF_PYTHON: Final = ("bin", "lib", "lib64", "libexec", "include", "ssl", "share/terminfo")
#: The same where programs of all kinds are installed, or keep their data: ``~/.local``, the home directory itself.
_OF_PYTHON_AMONG_OTHERS: Final = ("bin/python*", "lib/python*", "lib/libpython*", "lib64/python*", "include/python*")


def prefixes_of(executable: Path) -> tuple[Path, ...]:
    """Return the directories that an interpreter needs: its environment, and the Python that this is based on.

    Parameters
    ----------
    executable : Path
        The interpreter, as it is called. A symbolic link is followed, and every path on the way is included.
    """
    found: list[Path] = []
    for program in _chain(executable):
        prefix = program.parent.parent
        if prefix != Path("/") and prefix not in found:
            found.append(prefix)
        home = _home_of_environment(prefix)
        if home is not None:
            found += [one for one in prefixes_of(home / program.name) if one not in found]
    return tuple(found)


def readable_of(prefix: Path, *, home: Path) -> tuple[Path, ...]:
    """Return what a kernel may see of a prefix.

    That is all of it, unless it lies in the home directory and is no environment: then it is only what Python needs. So
    a link to a Python, such as ``uv`` puts into ``~/.local/bin``, does not expose the files of other programs there.

    Parameters
    ----------
    prefix : Path
        One of `prefixes_of`.
    home : Path
        The user's home directory.
    """
    real, home = prefix.resolve(), home.resolve()
    is_shared = real in (home, *home.parents, home / ".local")
    if not is_shared and (home not in real.parents or any((real / name).exists() for name in _OF_ENVIRONMENT)):
        return (prefix,)
    is_installed = any(real.glob("lib*/python*/os.py"))
    if is_installed and not is_shared:
        return tuple(path for name in _OF_PYTHON if (path := prefix / name).exists())
    names = _OF_PYTHON_AMONG_OTHERS if is_installed else _OF_PYTHON_AMONG_OTHERS[:1]
    return tuple(path for name in names for path in sorted(prefix.glob(name)))


def _chain(program: Path) -> list[Path]:
    """Return a program and every path that its symbolic links lead to."""
    steps = [Path(os.path.normpath(program))]
    while steps[-1].is_symlink() and len(steps) < 40:
        target = Path(os.path.normpath(steps[-1].parent / steps[-1].readlink()))
        if target in steps:
            break
        steps.append(target)
    resolved = program.resolve()
    return steps if resolved in steps else [*steps, resolved]


def _home_of_environment(prefix: Path) -> Path | None:
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return Path(value.strip())
    return None
