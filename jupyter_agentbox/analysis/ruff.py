"""Findings by ruff. Nothing in the code, beside it, or in the environment can make it overlook something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

#: Security (flake8-bandit), syntax, and characters that hide or turn around what is read.
RULES: Final = "S,E9,F7,PLE25"
_ANSWER_SECONDS: Final = 10.0

MISSING: Final = (
    "ruff is not installed in this Python's environment, so the code was analyzed only in part: `pip "
    "install 'jupyter-agentbox[agent]'` installs it"
)


class RuffError(Exception):
    """Ruff could not check the code."""


def find_ruff() -> str | None:
    """Return the path of ruff in this Python's environment; ``None`` if it is not installed.

    It is not looked for on the search path or in the home directory, nor by importing its package: a kernel may be able
    to write there. No sandboxed kernel can write to an environment's own directory.
    """
    name = "ruff.exe" if sys.platform == "win32" else "ruff"
    path = Path(sysconfig.get_path("scripts")) / name
    return str(path) if os.access(path, os.X_OK) else None


def diagnostics(ruff: str, text: str) -> Sequence[dict[str, Any]]:
    """Return ruff's diagnostics for a program without comments.

    Raises
    ------
    RuffError
        If it does not answer, or not as expected.
    """
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    command = (
        *(ruff, "check", "--isolated", "--ignore-noqa", "--no-cache", "--no-fix", "--exit-zero", "--quiet"),
        *("--output-format", "json", "--target-version", version, "--select", RULES),
        *("--stdin-filename", "code.py", "-"),
    )
    try:
        answer = subprocess.run(
            command,
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            timeout=_ANSWER_SECONDS,
            check=True,
        )
        found = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise RuffError(f"ruff did not analyze the code: {type(error).__name__}") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise RuffError("ruff's output is not a list of findings")
    return found
