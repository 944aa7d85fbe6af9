"""The sandboxes, each of which holds one kernel: one class for each kind of isolation."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeAlias

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.inside.seccomp import Sockets, assemble
from jupyter_agentbox.sandbox.watch.supervisors import PASSED_ON

from . import spawner
from .bubblewrap import bubblewrap_command, compared, find_bubblewrap
from .exit_reasons import LimitExceeded
from .landlock import rules_of
from .limits import ResourceLimits, Spawn
from .network import Network
from .opened_directories import Opened
from .probes import BOOTSTRAP, NO_NETWORK_OF_ITS_OWN, memory_file, pins_sources
from .protected_paths import Protected
from .run_directory import RunDirectory
from .settings import Domains, ExtraPaths, SandboxLimits
from .stderr_relay import relay
from .view import Access, Mount, View, make_view

Stream: TypeAlias = int | IO[Any] | None

PACKAGE: Final = Path(__file__).parents[2]
_INSIDE: Final = Path("/run/agentbox")
_PROXY: Final = _INSIDE / "proxy"
_BOOTSTRAP_SETTINGS: Final = _INSIDE / "bootstrap.json"
#: What a confined process says last, after its id.
_HELD: Final = b"held\n"
#: Seconds: for a kernel's Python to start and be confined, and for a bwrap that failed to end.
_CONFINED: Final = 60.0
_PATIENCE: Final = 10.0
_LOOK: Final = 0.002
#: What runs a kernel that can be confined.
_KERNEL_MODULES: Final = frozenset({"ipykernel_launcher", "jupyter_agentbox.kernel_app.launcher"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a sandbox is made from.

    Parameters
    ----------
    run : RunDirectory
        The kernel's private directory.
    work : Path
        The work directory, checked.
    protected : Protected
        What the kernel must not see or change.
    prefixes : tuple of Path
        Where the kernel's Python has its files.
    extra : ExtraPaths
        Files and directories beside the work directory.
    limits : SandboxLimits
        The resources that the kernel may use.
    connection_file : Path
        The kernel's connection file, outside.
    output : tuple
        The kernel's standard output and error, as `subprocess.Popen` takes them.
    pass_fds : tuple of int
        File descriptors that the kernel inherits, by these numbers.
    domains : Domains
        What the kernel can reach of the network.
    on_refused : callable
        Called with each network request of the kernel that was refused.
    name : str
        The prefix of its lines in this process's log.
    srt : mapping
        Further settings for ``srt``, in the form of its own settings file.
    opened : Opened
        The work directory and the extra paths, open. The sandbox closes them when the kernel is started.
    """

    run: RunDirectory
    work: Path
    protected: Protected
    prefixes: tuple[Path, ...]
    extra: ExtraPaths
    limits: SandboxLimits
    connection_file: Path
    output: tuple[Stream, Stream]
    pass_fds: tuple[int, ...] = ()
    domains: Domains
    on_refused: Callable[[str], None]
    name: str = "sandboxed kernel"
    srt: Mapping[str, Any] = field(default_factory=dict)
    opened: Opened = field(default_factory=Opened)

    def view(self, files: Iterable[Mount]) -> View:
        """Return what can be seen inside: what the settings ask for, and the files that this kind of sandbox needs."""
        return make_view(
            work=self.work, protected=self.protected, prefixes=self.prefixes, extra=self.extra, files=files
        )


class SandboxBackend(Protocol):
    """Holds one kernel."""

    @property
    def level(self) -> Isolation:
        """The isolation that the kernel has."""

    @property
    def home(self) -> Path:
        """The home directory inside."""

    @property
    def temporary(self) -> Path:
        """The directory of temporary files inside."""

    @property
    def limit_exceeded(self) -> LimitExceeded | None:
        """The limit that the kernel reached; ``None`` if it reached none."""

    def start(self, command: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the kernel inside.

        Raises
        ------
        SandboxRefusedError
            If the sandbox cannot be confined as was asked.
        """

    def signal(self, number: int) -> None:
        """Signal the kernel's process group."""

    def kill(self) -> None:
        """End everything inside."""

    def close(self) -> None:
        """Release what the sandbox holds outside."""


class BubblewrapBackend:
    """A sandbox of namespaces. Implements `SandboxBackend`.

    Parameters
    ----------
    spec : SandboxSpec
        What is asked for.
    level : Isolation
        With or without a ``/proc`` of its own.
    program : str
        The path of ``bwrap``; empty to look for it.
    """

    temporary = Path("/tmp")  # noqa: S108  # a place inside

    def __init__(self, spec: SandboxSpec, level: Isolation, program: str) -> None:
        found = find_bubblewrap(program)
        if found is None:
            raise SandboxRefusedError("bwrap is not installed")
        self.level = level
        self.home = spec.protected.home.resolve()
        self._spec = spec
        self._program = found
        self._process: subprocess.Popen[bytes] | None = None
        self._inner: int | None = None
        self._network: Network | None = None
        # The processes of an ordinary user are counted by Linux, here for the sandbox alone; root's are not.
        self._by_linux = os.getuid() != 0
        self._resource_limits = ResourceLimits(
            processes=None if self._by_linux else spec.limits.processes,
            memory=spec.limits.memory,
            report=spec.run.path / "ended",
        )

    @property
    def limit_exceeded(self) -> LimitExceeded | None:
        """The limit that the kernel reached; ``None`` if it reached none."""
        return self._resource_limits.exceeded()

    def start(self, command: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the kernel inside."""
        spec = self._spec
        inside = self._inner_command(command)
        pins = pins_sources(self._program)
        if not pins:
            inside = compared(inside, spec.opened)
        if spec.domains:
            self._network = Network(spec.domains, place=spec.run.path / _PROXY.name, on_refused=spec.on_refused)
        view = spec.view(self._files())
        filter_ = memory_file(assemble(sockets=Sockets.LOCAL))
        info, info_end = os.pipe()
        block_end, block = os.pipe()
        fds = [filter_, info_end, block_end]
        pinned: list[int] = []
        try:
            outer = bubblewrap_command(
                self._program,
                view,
                level=self.level,
                temporary=spec.limits.temporary,
                empty=spec.run.path / "empty",
                seccomp=filter_,
                info=info_end,
                block=block_end,
                opened=spec.opened,
                pinned=pinned if pins else None,
            )
            self._process = start_process([*outer, *inside], spec, env=env, cwd="/", pass_fds=[*fds, *pinned])
            for fd in (filter_, info_end, *pinned):
                os.close(fd)
            fds, pinned = [block_end], []
            self._inner = self._read_info(info)
            self._limit(self._inner)
            self._resource_limits.enforce(
                self._inner, self._process.pid, end=signal.SIGKILL, spawn=outside(spec), on_watchdog_lost=self.kill
            )
            if self._network is not None:
                self._network.start(self._process.pid)
            os.write(block, b"g")
            self._await_mounts(block_end)
        finally:
            for fd in (*fds, *pinned, info, block):
                os.close(fd)
            spec.opened.close()
        return self._process

    def signal(self, number: int) -> None:
        """Signal the kernel's process group: process 1 inside leads it, and ignores signals without a handler."""
        if self._inner is not None and self._is_running():
            os.killpg(self._inner, number)

    def kill(self) -> None:
        """End process 1 inside, and with it everything in the same namespace."""
        if self._process is not None and self._is_running():
            if self._inner is not None:
                with suppress(ProcessLookupError):
                    os.kill(self._inner, signal.SIGKILL)
            self._process.kill()

    def close(self) -> None:
        """End what still runs."""
        self._spec.opened.close()
        self.kill()
        if self._process is not None:
            spawner.await_end(self._process)
        if self._network is not None:
            self._network.close()

    def _is_running(self) -> bool:
        # While bubblewrap's outer process is ours to wait for, its child's id cannot be another process's.
        return self._process is not None and self._process.poll() is None

    def _files(self) -> list[Mount]:
        spec, user = self._spec, os.getuid()
        name = os.environ.get("USER", "user") if user else "root"
        name = name if name.isidentifier() else "user"
        spec.run.file("empty", "").chmod(0)
        written = {
            "/etc/passwd": f"{name}:x:{user}:{os.getgid()}:{name}:{self.home}:/bin/bash\n",
            "/etc/group": f"{name}:x:{os.getgid()}:\n",
            "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
            "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        }
        mounts = [
            Mount(Path(place), Access.READ, spec.run.file(Path(place).name, text)) for place, text in written.items()
        ]
        connection = spec.run.file("connection.json", spec.connection_file.read_text(encoding="utf-8"))
        if self._network is not None:
            bootstrap = spec.run.file(_BOOTSTRAP_SETTINGS.name, json.dumps({"proxy": str(_PROXY)}))
            mounts += [
                Mount(_PROXY, Access.READ, self._network.place),
                Mount(_BOOTSTRAP_SETTINGS, Access.READ, bootstrap),
            ]
        return [
            *mounts,
            Mount(_INSIDE / "connection.json", Access.READ, connection),
            Mount(_INSIDE / "lib" / PACKAGE.name, Access.READ, PACKAGE),
            Mount(spec.run.sockets, Access.WRITE),
        ]

    def _inner_command(self, command: Sequence[str]) -> list[str]:
        inside = [_replace(part, self._spec.connection_file, _INSIDE / "connection.json") for part in command]
        bootstrap = str(_INSIDE / "lib" / BOOTSTRAP.relative_to(PACKAGE.parent))
        if not self._spec.domains:
            return with_bootstrap(inside, bootstrap, "-") or inside
        confined = with_bootstrap(inside, bootstrap, str(_BOOTSTRAP_SETTINGS))
        if confined is None:
            raise SandboxRefusedError("only kernels that use ipykernel can be allowed domains (`allowed_domains`)")
        return confined

    def _read_info(self, fd: int) -> int:
        """Return the id, outside, of process 1 inside."""
        parts = b""
        while part := os.read(fd, 4096):
            parts += part
            with suppress(ValueError):
                return int(json.loads(parts)["child-pid"])
        raise self._failed()

    def _await_mounts(self, block: int) -> None:
        """Wait until bubblewrap has read from its `block` descriptor, which it does when everything is mounted."""
        left, until = bytearray(4), time.monotonic() + _CONFINED
        while time.monotonic() < until:
            is_running = self._is_running()
            fcntl.ioctl(block, termios.FIONREAD, left)
            if not int.from_bytes(left, sys.byteorder):
                return
            if not is_running:
                raise self._failed()
            time.sleep(_LOOK)  # nothing tells of a pipe that was read
        raise SandboxRefusedError(f"bwrap did not make the sandbox within {_CONFINED:.0f} seconds")

    def _failed(self) -> SandboxRefusedError:
        status = self._process.wait(_PATIENCE) if self._process is not None else None
        return SandboxRefusedError(f"bwrap ended with {status} before the kernel started; see the server's log")

    def _limit(self, process: int) -> None:
        limits = self._spec.limits
        for kind, value in (
            (resource.RLIMIT_AS, limits.memory),
            (resource.RLIMIT_NPROC, limits.processes if self._by_linux else None),
            (resource.RLIMIT_FSIZE, limits.file_size),
        ):
            if value is not None:
                resource.prlimit(process, kind, (value, value))


class LandlockBackend:
    """A sandbox of Landlock and seccomp, where there are no namespaces. Implements `SandboxBackend`.

    Parameters
    ----------
    spec : SandboxSpec
        What is asked for.
    """

    level = Isolation.LANDLOCK

    def __init__(self, spec: SandboxSpec) -> None:
        self._spec = spec
        if spec.domains:
            raise SandboxRefusedError(NO_NETWORK_OF_ITS_OWN)
        self._process: subprocess.Popen[bytes] | None = None
        self.home = spec.run.directory("home")
        self.temporary = spec.run.directory("tmp")
        self._resource_limits = ResourceLimits(
            processes=spec.limits.processes,
            memory=spec.limits.memory,
            report=spec.run.path / "ended",
            overhead=3,  # the supervisors, of which the lower one has two threads
        )
        self._report: int | None = None
        self._kernel: int | None = None
        self._kernel_fd: int | None = None

    @property
    def limit_exceeded(self) -> LimitExceeded | None:
        """The limit that the kernel reached; ``None`` if it reached none."""
        return self._resource_limits.exceeded()

    def start(self, command: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the kernel inside."""
        spec = self._spec
        view = spec.view(self._files())
        gate_end, gate = os.pipe()
        self._report, report_end = os.pipe()
        opened = spec.opened.fds
        try:
            settings = {
                "parent": os.getpid(),
                "gate": gate_end,
                "report": report_end,
                "rules": rules_of(view, read_only=spec.protected.read_only),
                "opened": {str(path): fd for path, fd in opened.items()},
                "limits": {"memory": spec.limits.memory, "file_size": spec.limits.file_size},
            }
            confined = with_bootstrap(
                command, str(BOOTSTRAP), str(spec.run.file("bootstrap.json", json.dumps(settings)))
            )
            if confined is None:
                raise SandboxRefusedError("without namespaces, only kernels that use ipykernel can be confined")
            # Once more not by its name: between fork and exec, the child has all files that are open here.
            cwd = f"/proc/self/fd/{opened[spec.work]}" if spec.work in opened else str(spec.work)
            fds = [gate_end, report_end, *opened.values()]
            self._process = start_process(confined, spec, env=env, cwd=cwd, pass_fds=fds)
            self._resource_limits.enforce(
                self._process.pid,
                self._process.pid,
                end=signal.SIGTERM,
                spawn=outside(spec),
                on_watchdog_lost=self.kill,
            )
            os.write(gate, b"g")
        finally:
            for fd in (gate_end, gate, report_end):
                os.close(fd)
            spec.opened.close()
        self._await_report()
        return self._process

    def signal(self, number: int) -> None:
        """Signal the kernel's process group, or have the supervisor do it.

        An interrupt that goes through the supervisors may arrive after the cell has ended, while the next one runs.
        """
        if self._process is None or self._process.poll() is not None:
            return
        if number in PASSED_ON and (kernel := self._running_kernel()) is not None:
            with suppress(ProcessLookupError):  # it ends just now
                os.killpg(kernel, number)
        else:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Let the supervisor end everything: only it finds every process."""
        self.signal(signal.SIGTERM)

    def close(self) -> None:
        """End what still runs."""
        self._spec.opened.close()
        self.kill()
        if self._process is not None:
            spawner.await_end(self._process)
        for fd in (self._report, self._kernel_fd):
            if fd is not None:
                os.close(fd)
        self._report = self._kernel_fd = None

    def _await_report(self) -> None:
        """Wait until the kernel's process is confined."""
        assert self._report is not None  # noqa: S101  # whoever starts the process has it
        said, until = b"", time.monotonic() + _CONFINED
        ready = select.poll()
        ready.register(self._report, select.POLLIN)
        while not said.endswith(_HELD):
            if not ready.poll(max(0.0, until - time.monotonic()) * 1000):
                raise SandboxRefusedError(f"the kernel's process was not confined within {_CONFINED:.0f} seconds")
            part = os.read(self._report, 4096)
            said += part
            if not part:
                problem = said.decode(errors="replace").partition("!")[2].strip()
                raise SandboxRefusedError(f"the kernel's process could not be confined: {problem or 'see the log'}")
        self._kernel = int(said.split()[0])
        with suppress(OSError):  # it has ended
            self._kernel_fd = os.pidfd_open(self._kernel)

    def _running_kernel(self) -> int | None:
        """Return the id of the kernel's process, which leads its group; ``None`` if it has not started or has ended."""
        if self._kernel is None or self._kernel_fd is None:
            return None
        has_ended = select.poll()
        has_ended.register(self._kernel_fd, select.POLLIN)
        return None if has_ended.poll(0) else self._kernel

    def _files(self) -> list[Mount]:
        return files_in_place(self._spec, self.home, self.temporary)


def files_in_place(spec: SandboxSpec, home: Path, temporary: Path) -> list[Mount]:
    """Return the files of this package that a kernel needs in a sandbox with the same paths inside as outside."""
    return [
        Mount(spec.connection_file, Access.READ),
        Mount(PACKAGE, Access.READ),
        *(Mount(place, Access.WRITE) for place in (spec.run.sockets, home, temporary)),
    ]


def start_process(
    command: list[str], spec: SandboxSpec, *, env: Mapping[str, str], cwd: str, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a process that dies with this one and inherits none of its streams.

    Parameters
    ----------
    command : list of str
        What to run.
    spec : SandboxSpec
        Says where its output goes.
    env : mapping
        Its whole environment.
    cwd : str
        Where it starts.
    pass_fds : sequence of int
        File descriptors that it gets.
    """
    pipe = relay(spec.name) if None in spec.output else None
    try:
        return spawner.start(
            command,
            env=dict(env),
            cwd=cwd,
            pass_fds=(*pass_fds, *spec.pass_fds),
            stdin=subprocess.DEVNULL,
            stdout=pipe if spec.output[0] is None else spec.output[0],
            stderr=pipe if spec.output[1] is None else spec.output[1],
            start_new_session=True,
        )
    finally:
        if pipe is not None:
            os.close(pipe)


def outside(spec: SandboxSpec) -> Spawn:
    """Return a function that starts a process outside the sandbox, with the kernel's output."""
    return lambda command, fds: start_process(command, spec, env={}, cwd="/", pass_fds=fds)


def _replace(part: str, outside: Path, inside: Path) -> str:
    return part.replace(str(outside), str(inside))


def with_bootstrap(command: Sequence[str], bootstrap: str, settings: str) -> list[str] | None:
    """Return a command that runs the bootstrap first; ``None`` if it is not one of ipykernel.

    Parameters
    ----------
    command : sequence of str
        The command that starts the kernel.
    bootstrap : str
        Where the bootstrap is, as it is seen inside.
    settings : str
        The file with its settings.
    """
    for index in range(len(command) - 1):
        if command[index] == "-m" and command[index + 1] in _KERNEL_MODULES:
            return [*command[:index], bootstrap, settings, *command[index + 1 :]]
    return None
