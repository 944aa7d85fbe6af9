"""Finds the strongest level of isolation that this machine allows, by really starting one of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError

from . import kernel_calls, seccomp
from .bubblewrap import bubblewrap_command, find_bubblewrap
from .view import SYSTEM, Access, Mount, View

#: What runs first in a kernel's process.
GUARD = Path(__file__).with_name("guard.py")

_TIMEOUT = 10.0
_INSTALL = {
    "linux": (
        "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`), and allow user namespaces"
        " (`kernel.unprivileged_userns_clone`, `kernel.apparmor_restrict_unprivileged_userns`, the container's seccomp"
        " profile) or use Linux 5.13 or later with Landlock"
    ),
    "darwin": "this version has no sandbox for macOS; run the kernel in a Linux container or virtual machine",
}


def reach(levels: Sequence[Isolation], *, bubblewrap: str = "") -> Isolation:
    """Return the first of `levels` that works here.

    Parameters
    ----------
    levels : sequence of Isolation
        What is acceptable, the best first.
    bubblewrap : str
        The path of ``bwrap``; empty to look for it.

    Raises
    ------
    SandboxRefusedError
        If none works; it says what each one met, and what to install.
    """
    met = []
    for level in levels:
        problem = _problem(level, bubblewrap)
        if problem is None:
            return level
        met.append(f"{level.value}: {problem}")
    advice = _INSTALL.get(sys.platform, "sandboxed kernels need Linux")
    raise SandboxRefusedError(
        f"no sandbox can be made on this machine, so no kernel was started; {advice}. {_list(met)}"
    )


@cache
def pins_sources(program: str) -> bool:
    """Whether this bubblewrap mounts what an open file descriptor names, so that no link can be put in between."""
    return "--ro-bind-fd" in _run([program, "--help"]).stdout


def _list(met: Sequence[str]) -> str:
    return "What was met: " + "; ".join(met) if met else "No level is acceptable by the settings."


@cache
def _problem(level: Isolation, bubblewrap: str) -> str | None:
    """Return why a level does not work here; ``None`` if it does. Asked once a process: a machine does not change."""
    if not sys.platform.startswith("linux"):
        return f"not on {sys.platform}"
    if not seccomp.is_supported():
        return "the machine's system calls are not known"
    probe: Callable[[], str | None] = (
        _probe_landlock if level is Isolation.LANDLOCK else lambda: _probe(level, bubblewrap)
    )
    try:
        return probe()
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


def _probe(level: Isolation, bubblewrap: str) -> str | None:
    program = find_bubblewrap(bubblewrap)
    if program is None:
        return "bwrap is not installed"
    view = View(mounts=tuple(Mount(Path(one), Access.READ) for one in SYSTEM), work=Path("/"), home=Path("/"))
    filter_ = memory_file(seccomp.assemble(sockets=seccomp.Sockets.LOCAL))
    try:
        command = bubblewrap_command(
            program, view, level=level, temporary=None, empty=Path("/dev/null"), seccomp=filter_
        )  # fmt: skip
        done = _run([*command, "/bin/sh", "-c", "test ! -e /etc/passwd && test -e /proc/self/stat"], filter_)
    finally:
        os.close(filter_)
    return None if done.returncode == 0 else done.stderr.strip() or f"bwrap ended with {done.returncode}"


def _probe_landlock() -> str | None:
    if kernel_calls.landlock_version() < 1:
        return "this Linux has no Landlock"
    rules = [[path, kernel_calls.READ] for path in {*SYSTEM, sys.base_prefix, sys.prefix, str(_package())}]
    with tempfile.TemporaryDirectory() as directory:
        settings = Path(directory) / "probe.json"
        settings.write_text(json.dumps({"parent": 0, "rules": rules, "limits": {}}), encoding="utf-8")
        done = _run([sys.executable, "-I", "-S", str(GUARD), str(settings), "--probe"])
    if done.returncode != 0:
        return done.stderr.strip().rpartition("\n")[2] or f"the probe ended with {done.returncode}"
    held = json.loads(done.stdout)
    return None if all(held.values()) else f"not held: {', '.join(name for name in held if not held[name])}"


def _package() -> Path:
    return Path(__file__).parents[1]


def memory_file(content: bytes) -> int:
    """Return a file descriptor of an anonymous file, ready to be read."""
    made = os.memfd_create("agentbox")
    os.write(made, content)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def _run(command: Sequence[str], *fds: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, pass_fds=fds, capture_output=True, text=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL
    )
