"""The programs that are run outside a sandbox to make it: never one that a kernel could have put there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.exceptions import SandboxRefusedError

from .protected_paths import is_below

#: The settings that name a program, and what it is called.
_USUAL: Final = {"bubblewrap": "bwrap", "srt": "srt"}


def with_programs(settings: SandboxSettings, directories: Sequence[Path]) -> SandboxSettings:
    """Return settings that name the programs, none of which a kernel could have put there.

    Parameters
    ----------
    settings : SandboxSettings
        The settings; a program that they do not name is looked for.
    directories : sequence of Path
        Where the kernel can write, without links.

    Raises
    ------
    SandboxRefusedError
        If a program is named that lies there.
    """
    bubblewrap, srt = (check_program(name, getattr(settings, name), directories) for name in _USUAL)
    return replace(settings, bubblewrap=bubblewrap, srt=srt)


def check_program(name: str, program: str, directories: Sequence[Path]) -> str:
    """Return the path of a program that a setting names, or that is looked for.

    Parameters
    ----------
    name : str
        The setting: ``bubblewrap`` or ``srt``.
    program : str
        Its value; empty to look for it on the path.
    directories : sequence of Path
        Where the kernel can write, without links. Programs there are never run outside the sandbox.

    Raises
    ------
    SandboxRefusedError
        If the setting names such a program.
    """
    if not program:
        found = shutil.which(_USUAL[name], path=path_without(directories))
        return found if found is not None and not is_below(Path(found), directories) else f"/nonexistent/{_USUAL[name]}"
    named = program if os.sep not in program else str(Path(program).expanduser().absolute())
    found = shutil.which(named, path=path_without(directories)) or named
    if os.sep in found and is_below(Path(found), directories):
        raise SandboxRefusedError(
            f"the setting `{name}` names `{program}`, which runs outside the sandbox but lies where "
            "the kernel can write; move it"
        )
    return found


def path_without(directories: Sequence[Path]) -> str:
    """Return the search path for programs without the directories in which a kernel can write.

    Parameters
    ----------
    directories : sequence of Path
        Where the kernel can write, without links.
    """
    searched = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/bin"]
    kept = [one for one in searched if Path(one).is_absolute() and not is_below(Path(one), directories)]
    return os.pathsep.join(dict.fromkeys(kept))


def check_source(file: Path, found: Mapping[str, Any], directories: Sequence[Path]) -> None:
    """Refuse a settings file that names a program to run, where an earlier kernel could have written it.

    Parameters
    ----------
    file : Path
        The settings file.
    found : mapping
        Its contents.
    directories : sequence of Path
        Where the kernel can write, without links.

    Raises
    ------
    SandboxRefusedError
        If the file names a program and a kernel could have written it.
    """
    programs = [name for name in _USUAL if found.get(name)]
    if programs and is_below(file.expanduser().absolute(), directories):
        raise SandboxRefusedError(
            f"`{file}` lies where the kernel can write, so its `{programs[0]}` is not run; move the file"
        )
