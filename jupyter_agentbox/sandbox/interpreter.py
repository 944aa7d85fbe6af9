"""Where a kernel's Python has its files, read from the file system: asking Python itself would start it once more."""

from __future__ import annotations

import os
from pathlib import Path


def prefixes_of(executable: Path) -> tuple[Path, ...]:
    """Return the directories that an interpreter needs: its environment, and the Python which that was made from.

    Parameters
    ----------
    executable : Path
        The interpreter, as it is called; a symbolic link is followed, with every place that it leads through.
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
