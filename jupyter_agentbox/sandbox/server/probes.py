"""Finds the strongest level of isolation that this machine allows, by actually starting a sandbox of each level."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.inside import seccomp, syscalls

from .bubblewrap import bubblewrap_command, find_bubblewrap
from .interpreter import prefixes_of
from .settings import Domains
from .srt import find_srt, srt_command, srt_settings
from .view import SYSTEM, Access, Mount, View

#: What runs first in a kernel's process.
BOOTSTRAP = Path(__file__).parents[1] / "inside" / "bootstrap.py"

#: Why there is a level at which no domain can be allowed.
NO_NETWORK_OF_ITS_OWN = (
    "it has no network of its own, so no domains can be allowed (`allowed_domains`, `private_domains`)"
)

_TIMEOUT = 10.0
_SRT_TIMEOUT = 60.0
#: Tries, in a sandbox of ``srt``, what must fail, and what must work.
_ATTEMPTS = """
import json, socket, sys
def works(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True
def connect(family, place):
    with socket.socket(family) as one:
        one.settimeout(5)
        one.connect(place)
outside, port = sys.argv[1], int(sys.argv[2])
works(lambda: open(outside + "/written", "w").close())  # perhaps in memory; looked at from outside
print(json.dumps({
    "files": not works(lambda: open(outside + "/secret").close()),
    "network": not works(lambda: connect(socket.AF_INET, ("127.0.0.1", port))),
    "sockets of others": not works(lambda: connect(socket.AF_UNIX, outside + "/socket")),
    "sockets of its own": works(lambda: socket.socket(socket.AF_UNIX).bind(outside + "/in/own")),
}))
"""
#: The levels that worked in this process, each with the program that made the sandbox.
_WORKING: set[tuple[Isolation, str]] = set()
_INSTALL = {
    "linux": (
        "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`), and allow user namespaces"
        " (`kernel.unprivileged_userns_clone`, `kernel.apparmor_restrict_unprivileged_userns`, the container's seccomp"
        " profile) or use Linux 5.13 or later with Landlock"
    ),
    "darwin": (
        "install Anthropic's sandbox runtime, which uses macOS's own sandbox:"
        " `npm install -g @anthropic-ai/sandbox-runtime` (it needs Node 22.12 or later, and ripgrep)"
    ),
}


def select_level(
    levels: Sequence[Isolation], *, bubblewrap: str = "", srt: str = "", network: bool = False
) -> Isolation:
    """Return the first of `levels` that works here.

    Parameters
    ----------
    levels : sequence of Isolation
        The acceptable levels, the best first.
    bubblewrap, srt : str
        The paths of ``bwrap`` and ``srt``; empty to look for them.
    network : bool
        Whether the sandbox needs its own network, so that domains can be allowed.

    Raises
    ------
    SandboxRefusedError
        If none works. The message says why each one failed, and what to install.
    """
    met = []
    for level in levels:
        lacks_network = network and level is Isolation.LANDLOCK
        program = srt if level is Isolation.SRT else bubblewrap
        problem = NO_NETWORK_OF_ITS_OWN if lacks_network else why_unavailable(level, program)
        if problem is None:
            return level
        met.append(f"{level.value}: {problem}")
    raise SandboxRefusedError(
        f"no sandbox can be made on this machine, so no kernel was started; {install_advice()}. {_list(met)}"
    )


def install_advice() -> str:
    """Return what to install on this platform, so that sandboxed kernels work."""
    return _INSTALL.get(sys.platform, "sandboxed kernels need Linux")


@cache
def pins_sources(program: str) -> bool:
    """Whether this bubblewrap can mount by file descriptor, so that no link can be put in between.

    Raises
    ------
    SandboxRefusedError
        If bubblewrap does not say. That failure is not remembered.
    """
    try:
        done = _run([program, "--help"])
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxRefusedError(f"`{program} --help` failed: {error}") from error
    if done.returncode != 0:
        raise SandboxRefusedError(f"`{program} --help` ended with {done.returncode}: {done.stderr.strip()}")
    return "--ro-bind-fd" in done.stdout


def _list(met: Sequence[str]) -> str:
    return "What was met: " + "; ".join(met) if met else "The settings accept no level of isolation."


def why_unavailable(level: Isolation, program: str = "") -> str | None:
    """Return why a level does not work here; ``None`` if it does.

    `program` is the path of ``bwrap`` or ``srt``; empty to look for it.

    A success is remembered for as long as this process lives. A failure is not: a probe also fails when the machine is
    busy for a moment, and then every later kernel would have a weaker level.
    """
    if (level, program) in _WORKING:
        return None
    problem = _try(level, program)
    if problem is None:
        _WORKING.add((level, program))
    return problem


def _try(level: Isolation, program: str) -> str | None:
    is_linux = sys.platform.startswith("linux")
    if not is_linux and (level is not Isolation.SRT or sys.platform != "darwin"):
        return f"not on {sys.platform}"
    if is_linux and not seccomp.is_supported():
        return "the system calls of this machine's architecture are unknown"
    try:
        if level is Isolation.SRT:
            return _probe_srt(program)
        return _probe_landlock() if level is Isolation.LANDLOCK else _probe(level, program)
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
    if syscalls.landlock_version() < 1:
        return "this Linux has no Landlock"
    places = {Path(one).resolve() for one in (*SYSTEM, sys.base_prefix, sys.prefix, _package())}
    rules = [[str(path), syscalls.READ] for path in places]
    with tempfile.TemporaryDirectory() as directory:
        settings = Path(directory) / "probe.json"
        settings.write_text(json.dumps({"parent": 0, "rules": rules, "limits": {}}), encoding="utf-8")
        done = _run([sys.executable, "-I", "-S", str(BOOTSTRAP), str(settings), "--probe"])
    if done.returncode != 0:
        return done.stderr.strip().rpartition("\n")[2] or f"the probe ended with {done.returncode}"
    return _not_held(json.loads(done.stdout))


def _probe_srt(named: str) -> str | None:
    program = find_srt(named)
    if program is None:
        return "srt is not installed"
    with tempfile.TemporaryDirectory() as made, socket.create_server(("127.0.0.1", 0)) as tcp:
        outside = Path(made).resolve()
        inside = outside / "in"
        inside.mkdir()
        (outside / "secret").write_text("secret", encoding="utf-8")
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(outside / "socket"))
            unix.listen()
            readable = {*SYSTEM, *map(str, prefixes_of(Path(sys.executable)))}
            mounts = [Mount(Path(one), Access.READ) for one in readable]
            view = View(mounts=(*mounts, Mount(inside, Access.WRITE)), work=inside, home=inside)
            settings = outside / "srt.json"
            told = srt_settings(view, sockets=inside, given={}, domains=Domains())
            settings.write_text(json.dumps(told), encoding="utf-8")
            attempts = [str(outside), str(tcp.getsockname()[1])]
            command = srt_command(program, settings, [sys.executable, "-I", "-S", "-c", _ATTEMPTS, *attempts], env={})
            env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": made, "TMPDIR": made}
            done = _run(command, env=env, cwd=str(inside), timeout=_SRT_TIMEOUT)
        is_written = (outside / "written").exists()
    if done.returncode != 0:
        return done.stderr.strip().rpartition("\n")[2] or f"srt ended with {done.returncode}"
    return _not_held({**json.loads(done.stdout), "writing": not is_written})


def _not_held(held: dict[str, bool]) -> str | None:
    return None if all(held.values()) else f"not held: {', '.join(name for name in held if not held[name])}"


def _package() -> Path:
    return Path(__file__).parents[2]


def memory_file(content: bytes) -> int:
    """Return a file descriptor of an anonymous file, ready to be read."""
    made = os.memfd_create("agentbox")
    os.write(made, content)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def _run(
    command: Sequence[str],
    *fds: int,
    env: dict[str, str] | None = None,
    cwd: str | None = None,
    timeout: float = _TIMEOUT,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        pass_fds=fds,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env=env,
        cwd=cwd,
    )
