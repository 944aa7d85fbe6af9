"""The argument `sandbox_config`: a mapping, or a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.exceptions import SandboxConfigError, SandboxRefusedError

#: What can be given as `sandbox_config`.
SandboxConfig = Mapping[str, Any] | Path | str


def read_sandbox_config(config: SandboxConfig | None, *, work_dir: Path | None) -> SandboxSettings:
    """Validate the argument and return it as settings.

    Parameters
    ----------
    config : mapping, Path, str or None
        The settings, or the JSON file that has them.
    work_dir : Path or None
        The work directory, if it was given beside them.

    Raises
    ------
    SandboxConfigError
        If the file cannot be read, a key is not known, a value is not of its kind, or two work directories are named.
    """
    source = "`sandbox_config`" if isinstance(config, Mapping) else f"`{config}`"
    found: Any = {} if config is None else config
    if not isinstance(found, Mapping):
        try:
            found = json.loads(Path(found).expanduser().read_text("utf-8"))
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise SandboxConfigError(f"{source} cannot be read as a JSON file: {error}") from error
    settings = SandboxSettings.from_mapping(found, source=source)
    if not isinstance(config, Mapping) and config is not None:
        settings = _from_file(Path(config).expanduser(), settings, work_dir)
    if work_dir is None:
        return settings
    if settings.work_dir and Path(settings.work_dir).expanduser().resolve() != work_dir.resolve():
        raise SandboxConfigError(
            f"{source}: `work_dir` and `working_dir` are different directories; give only one of them"
        )
    return SandboxSettings.from_mapping({**settings.as_json(), "work_dir": str(work_dir.resolve())}, source=source)


def with_read_only(config: SandboxConfig | None, *, work_dir: Path | None, read_only: Path) -> SandboxConfig:
    """Return settings with another file that the kernel must not write.

    Parameters
    ----------
    config : mapping, Path, str or None
        The settings, or the JSON file that has them.
    work_dir : Path or None
        The work directory, if it was given beside them.
    read_only : Path
        The file.

    Raises
    ------
    SandboxConfigError
        As `read_sandbox_config` does.
    """
    settings = read_sandbox_config(config, work_dir=work_dir)
    return replace(settings, read_only=(*settings.read_only, str(read_only.absolute()))).as_json()


def writable_directories(sandbox: SandboxSettings | None) -> tuple[Path, ...]:
    """Return the directories to which a sandboxed kernel that starts now can write."""
    if sandbox is None:
        return ()
    work = Path(sandbox.work_dir) if sandbox.work_dir else Path.cwd()
    return tuple(path.expanduser().resolve() for path in (work, *map(Path, sandbox.writable)))


def _from_file(file: Path, settings: SandboxSettings, work_dir: Path | None) -> SandboxSettings:
    """Return settings of a file that the kernel must not write, and that names no program if an earlier one could."""
    from jupyter_agentbox.sandbox.server.programs import check_source  # noqa: PLC0415  # only where there is a file

    places = [work_dir or settings.work_dir or Path.cwd(), *settings.writable]
    try:
        check_source(file, settings.as_json(), [Path(place).expanduser().resolve() for place in places])
    except SandboxRefusedError as error:
        raise SandboxConfigError(str(error)) from None
    return replace(settings, read_only=(*settings.read_only, str(file.absolute())))
