"""The argument `sandbox_config`: a mapping, or a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_agentbox.core.sandbox import SandboxSettings
from jupyter_agentbox.exceptions import SandboxConfigError

#: What can be given as `sandbox_config`.
SandboxConfig = Mapping[str, Any] | Path | str


def read_sandbox_config(config: SandboxConfig | None, *, work_dir: Path | None) -> SandboxSettings:
    """Check what was given and return it as settings.

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
    if work_dir is None:
        return settings
    if settings.work_dir and Path(settings.work_dir).expanduser().resolve() != work_dir.resolve():
        raise SandboxConfigError(f"{source}: `work_dir` is another directory than `working_dir`; give one of them")
    return SandboxSettings.from_mapping({**settings.as_json(), "work_dir": str(work_dir.resolve())}, source=source)
