"""A sandbox that Anthropic's sandbox runtime makes, where it is installed."""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.processes import reaper
from jupyter_agentbox.sandbox.inside import syscalls

from . import spawner
from .backends import PACKAGE, SandboxSpec, files_in_place, outside, start_process, with_bootstrap
from .exit_reasons import LimitExceeded
from .limits import ResourceLimits
from .probes import BOOTSTRAP
from .programs import path_without
from .srt import find_srt, srt_command, srt_extra_paths, srt_settings
from .view import Access, Mount

#: On Linux: two supervisors, of which either ends everything when the other is gone.
_SUPERVISED: Final = (
    "import os, sys; sys.path.append(sys.argv[1]); from jupyter_agentbox.sandbox.watch import supervisors;"
    " gate = int(sys.argv[3]); os.read(gate, 1) or os._exit(1); os.close(gate);"
    " supervisors.supervised(int(sys.argv[2])); os.execv(sys.argv[4], sys.argv[4:])"
)
_ON_LINUX: Final[bool] = platform.system() == "Linux"
#: Processes and threads of its own: supervisors, Node, shells, what forwards to its proxy.
_OVERHEAD: Final = 24
#: Without them `localhost`, where programs find the proxy, has no address.
_NAMES: Final = ("/etc/hosts", "/etc/nsswitch.conf")
#: Seconds: for Node, `srt` and the kernel's Python to start, and between two looks.
_STARTED: Final = 60.0
_LOOK: Final = 0.01
#: What differs inside: ``srt`` has its own, and needs Node.
_INSIDE: Final = ("HOME", "PATH", "TMPDIR")


class SrtBackend:
    """A sandbox of ``srt``. Implements `SandboxBackend`.

    Supervisors, or a reaper where there are none, stand between it and the server, and end everything inside when
    either is gone.

    Parameters
    ----------
    spec : SandboxSpec
        What is asked for.
    program : str
        The path of ``srt``; empty to look for it.
    """

    level = Isolation.SRT

    def __init__(self, spec: SandboxSpec, program: str) -> None:
        found = find_srt(program)
        if found is None:
            raise SandboxRefusedError("srt is not installed")
        if _ON_LINUX and os.getuid() == 0 and syscalls.landlock_version() < 1:
            raise SandboxRefusedError("srt leaves `/proc/sys` to root; run the server as an ordinary user")
        home = spec.protected.home.resolve()
        extra = srt_extra_paths(spec.extra, spec.srt, work=spec.work, home=home)
        self._spec = replace(spec, extra=spec.opened.open_extra_paths(extra))
        self._program = found
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: socket.socket | None = None
        self._command: list[str] = []
        limits = spec.limits
        self._resource_limits = ResourceLimits(
            processes=limits.processes, memory=limits.memory, report=spec.run.path / "ended", overhead=_OVERHEAD
        )
        self._bootstrap_settings = spec.run.path / "bootstrap.json"
        # Where srt itself is at home and starts: it makes empty files there while it runs, and its proxy's socket.
        self._own = spec.run.directory("srt")
        self.home = spec.run.directory("home")
        self.temporary = spec.run.directory("tmp")

    def start(self, command: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the kernel inside."""
        spec, run, limits = self._spec, self._spec.run, self._spec.limits
        held = {"memory": limits.memory, "file_size": limits.file_size}
        self._bootstrap_settings.touch(mode=0o600)  # it is among what is seen
        view = spec.view(self._files())
        writable = [str(mount.place) for mount in view.mounts if mount.access in (Access.WRITE, Access.PRIVATE)]
        same = {str(path): identity for path, identity in spec.opened.identities.items()}
        sign = run.sockets / "held"
        bootstrap = {
            "cwd": str(spec.work),
            "same": same,
            "limits": held,
            "writable": writable if _ON_LINUX else None,
            "sign": str(sign),
        }
        spec.opened.close()  # srt takes names only; what they are inside is compared there
        run.file(self._bootstrap_settings.name, json.dumps(bootstrap))
        confined = with_bootstrap(command, str(BOOTSTRAP), str(self._bootstrap_settings))
        if confined is None:
            raise SandboxRefusedError("srt can confine only kernels that use ipykernel")
        self._command = confined
        report = srt_settings(view, sockets=run.sockets, given=spec.srt, domains=spec.domains)
        inside = {name: env[name] for name in _INSIDE if name in env}
        outside = {**env, "HOME": str(self._own), "TMPDIR": str(self._own), "PATH": path_without(self._places())}
        argv = srt_command(self._program, run.file("srt.json", json.dumps(report)), confined, env=inside)
        self._process = self._supervised(argv, outside, str(self._own))
        _await_sign(sign, self._process)
        return self._process

    def _supervised(self, argv: list[str], env: dict[str, str], cwd: str) -> subprocess.Popen[bytes]:
        """Start a command that ends, with all that it starts, when this process does."""
        if _ON_LINUX:
            return self._below_supervisors(argv, env, cwd)
        self._lifeline, theirs = socket.socketpair()
        with theirs:
            program = [sys.executable, "-I", "-S", str(Path(reaper.__file__)), str(theirs.fileno())]
            process = start_process(program, self._spec, env={}, cwd="/", pass_fds=[theirs.fileno()])
        self._lifeline.sendall(reaper.message(argv, env, cwd, [], 0.0))
        return process

    def _below_supervisors(self, argv: list[str], env: dict[str, str], cwd: str) -> subprocess.Popen[bytes]:
        """Start a command below supervisors, once its processes are counted."""
        gate_end, gate = os.pipe()
        places = [str(PACKAGE.parent), str(os.getpid()), str(gate_end)]
        program = [sys.executable, "-I", "-S", "-B", "-c", _SUPERVISED, *places, *argv]
        try:
            process = start_process(program, self._spec, env=env, cwd=cwd, pass_fds=[gate_end])
            self._process = process
            self._resource_limits.enforce(
                process.pid, process.pid, end=signal.SIGTERM, spawn=outside(self._spec), on_watchdog_lost=self.kill
            )
            os.write(gate, b"g")
        finally:
            os.close(gate_end)
            os.close(gate)
        return process

    @property
    def limit_exceeded(self) -> LimitExceeded | None:
        """The limit that the kernel reached; ``None`` if it reached none."""
        return self._resource_limits.exceeded()

    def signal(self, number: int) -> None:
        """Signal the kernel's process group, or only the kernel if ``srt`` is in that group, too."""
        kernel = self._kernel()
        if kernel is not None:
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                if os.getpgid(kernel.pid) == kernel.pid:
                    os.killpg(kernel.pid, number)
                else:
                    kernel.send_signal(number)

    def kill(self) -> None:
        """Let the supervisors or the reaper end everything: only they find every process."""
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None
        elif self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def close(self) -> None:
        """End what still runs."""
        self._spec.opened.close()
        self.kill()
        if self._process is not None:
            spawner.await_end(self._process)

    def _places(self) -> list[Path]:
        """Return where the kernel can write; programs that srt itself starts are not looked for there."""
        return [self._spec.work, *(path.resolve() for path in self._spec.extra.writable)]

    def _files(self) -> list[Mount]:
        more = [self._bootstrap_settings, self._own, *map(Path, _NAMES)]
        return [
            *files_in_place(self._spec, self.home, self.temporary),
            *(Mount(place, Access.READ) for place in more),
        ]

    def _kernel(self) -> psutil.Process | None:
        """Return the kernel's process: the first with its command line, which its forks have, too."""
        if self._process is None or self._process.poll() is not None:
            return None
        found = []
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if process.cmdline()[1:] == self._command[1:]:
                        found.append((process.create_time(), process.pid, process))
        return min(found)[-1] if found else None


def _await_sign(sign: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the kernel's process, inside, has checked its directories, closed what it can, and goes on."""
    until = time.monotonic() + _STARTED
    while time.monotonic() < until:
        has_ended = process.poll() is not None
        if os.path.lexists(sign):
            sign.unlink(missing_ok=True)
            return
        if has_ended:
            raise SandboxRefusedError(
                f"srt ended with {process.returncode} before the kernel started; see the server's log"
            )
        time.sleep(_LOOK)  # nothing of ours but files is passed on by Node
    raise SandboxRefusedError(f"srt did not start the kernel within {_STARTED:.0f} seconds")
