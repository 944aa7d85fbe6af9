"""The process of a `CodeExecutor`'s kernel, in a sandbox."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.processes.kernel_launch import KernelLaunch

from .backend_factory import make_backend
from .backends import SandboxBackend, SandboxSpec
from .environment import kernel_environment
from .interpreter import prefixes_of
from .network import domains_variable, proxy_variables
from .opened_directories import Opened
from .probes import select_level
from .programs import with_programs
from .protected_path_discovery import find_protected
from .run_directory import RunDirectory, base_directory, sweep
from .settings import Domains, ExtraPaths, SandboxLimits, absolute
from .stderr_relay import Harmless
from .writable_directories import record, recorded

log = logging.getLogger(__name__)

#: Seconds between SIGTERM and the end.
_GRACE: Final = 2.0
_MODULE: Final = "jupyter_agentbox.kernel_app.launcher"


class SandboxedProcess:
    """Runs a kernel in a sandbox. Implements the executor's `KernelProcess`.

    Parameters
    ----------
    on_output : callable
        Called with what the kernel writes to its raw standard output and error, without terminal control sequences.
    settings : SandboxSettings
        The sandbox's settings.
    hidden : iterable of Path
        Files of its owner that it must not see, besides those that no kernel may see.
    """

    def __init__(
        self, on_output: Callable[[bytes], None], *, settings: SandboxSettings, hidden: Iterable[Path] = ()
    ) -> None:
        self._on_output = on_output
        self._settings = settings
        self._hidden = tuple(hidden)
        self._run: RunDirectory | None = None
        self._backend: SandboxBackend | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starting: asyncio.Future[None] | None = None
        self._output: asyncio.ReadTransport | None = None
        self._ended = asyncio.Event()

    @property
    def isolation(self) -> Isolation:
        """The level that the running kernel has."""
        return self._backend.level if self._backend is not None else Isolation.NONE

    @property
    def returncode(self) -> int | None:
        """The exit status, 128 + n for signal n; ``None`` while it runs."""
        status = self._process.poll() if self._process is not None else None
        return status if status is None or status >= 0 else 128 - status

    def open(self) -> Path:
        """Make a private directory for the kernel's sockets and return it."""
        base = base_directory(os.environ)
        sweep(base)
        self._run = RunDirectory(base)
        return self._run.sockets

    async def start(self, launch: KernelLaunch) -> None:
        """Start the kernel at the best level that can be reached.

        Raises
        ------
        SandboxRefusedError
            If no level can be reached, or the work directory cannot be used.
        """
        loop = asyncio.get_running_loop()
        reader, writer = os.pipe()
        try:
            self._output, _ = await loop.connect_read_pipe(lambda: _Output(self._on_output), os.fdopen(reader, "rb", 0))
            self._starting = asyncio.ensure_future(asyncio.to_thread(self._start, launch, writer, loop))
        except BaseException:
            os.close(writer)
            raise
        await asyncio.shield(self._starting)  # a process that is being started must be known, to be ended

    def interrupt(self) -> bool:
        """Send SIGINT to the kernel and what it runs, from outside, because inside it does not lead its group."""
        if self._backend is not None:
            with suppress(ProcessLookupError):
                self._backend.signal(signal.SIGINT)
        return True

    async def wait(self, seconds: float | None) -> bool:
        """Wait until it has ended; return whether it has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        return self._ended.is_set()

    async def stop(self, *, patience: float) -> None:
        """End what still runs after `patience` seconds, and remove the directory."""
        try:
            if self._starting is not None:
                await asyncio.wait([self._starting])
                self._starting.exception()  # whoever started it was told, or was cancelled and does not want to know
            if self._backend is not None and self._process is not None and not await self.wait(patience):
                with suppress(ProcessLookupError):
                    self._backend.signal(signal.SIGTERM)
                await self.wait(_GRACE)
        finally:
            # also when we are cancelled
            backend, run, output = self._backend, self._run, self._output
            self._run = self._output = None
            if backend is not None:
                backend.kill()
            if output is not None:
                output.close()
            await asyncio.shield(asyncio.to_thread(_clear, backend, run))

    def _start(self, launch: KernelLaunch, writer: int, loop: asyncio.AbstractEventLoop) -> None:
        """Do what blocks: find out what the machine can do, make the sandbox, wait for it."""
        stack = ExitStack()
        try:
            if self._run is None:
                self.open()
            run = self._run
            assert run is not None  # noqa: S101  # made above
            base = base_directory(os.environ)
            work = Path(self._settings.work_dir or launch.cwd or Path.cwd()).expanduser()
            named = (work, *absolute(self._settings.writable))
            settings = with_programs(self._settings, [*recorded(base), *(path.resolve() for path in named)])
            domains = Domains.of(settings)
            level = select_level(
                [Isolation(one) for one in settings.levels],
                bubblewrap=settings.bubblewrap,
                srt=settings.srt,
                network=bool(domains),
            )
            prefixes = prefixes_of(Path(sys.executable))
            protected = find_protected(
                None,
                base=base,
                prefixes=prefixes,
                hidden=absolute(settings.hidden),
                read_only=absolute(settings.read_only),
                own=self._hidden,
            )
            opened = stack.enter_context(closing(Opened(recorded(base))))
            connection = run.file("kernel.json", "")
            connection.chmod(0o600)
            connection.write_text(launch.connection, encoding="utf-8")
            spec = SandboxSpec(
                run=run,
                work=opened.open_work_directory(work, protected),
                protected=protected,
                prefixes=prefixes,
                extra=opened.open_extra_paths(ExtraPaths.of(settings)),
                limits=SandboxLimits.of(settings),
                connection_file=connection,
                output=(writer, writer),
                pass_fds=() if level is Isolation.SRT else launch.pass_fds,
                domains=domains,
                on_refused=_log_refusal,
                srt=settings.srt_settings,
                opened=opened,
            )
            record(base, (spec.work, *spec.extra.writable))
            backend = make_backend(spec, level, bubblewrap=settings.bubblewrap, srt=settings.srt)
            env = kernel_environment(
                os.environ,
                named={**launch.env, **domains_variable(domains, settings)},
                extra=settings.environment,
                trusted=settings.environment,  # whoever runs an executor owns the variables
                home=backend.home,
                temporary=backend.temporary,
                prefixes=prefixes,
                proxy=proxy_variables(domains) if level is not Isolation.SRT else None,
            )
            preparation = _without_socket(launch.preparation) if level is Isolation.SRT else launch.preparation
            program = (sys.executable, "-P", "-X", "frozen_modules=on", "-m", _MODULE)
            self._backend = backend
            self._process = backend.start([*program, str(connection), preparation], env=env)
            threading.Thread(target=self._watch, args=(self._process.pid, loop), daemon=True).start()
        finally:
            stack.close()
            os.close(writer)

    def _watch(self, process: int, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(ChildProcessError):
            # without collecting it: until that is done, its number is no other process's
            os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        limit_exceeded = self._backend.limit_exceeded if self._backend is not None else None
        with suppress(RuntimeError):  # the loop is closed
            if limit_exceeded is not None:
                loop.call_soon_threadsafe(self._on_output, f"{limit_exceeded.words}\n".encode())
            loop.call_soon_threadsafe(self._ended.set)


class _Output(asyncio.Protocol):
    """The reading end of the kernel's raw output."""

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self._on_output = on_output
        self._harmless = Harmless()

    def data_received(self, data: bytes) -> None:
        self._on_output(self._harmless(data).encode())


def _without_socket(preparation: str) -> str:
    """Return the code to run before the first cell if the kernel inherits no socket: Node passes none on."""
    return json.dumps({**json.loads(preparation), "owner_fd": None})


def _log_refusal(reason: str) -> None:
    log.info("blocked a network connection of a sandboxed kernel: %s", reason)


def _clear(backend: SandboxBackend | None, run: RunDirectory | None) -> None:
    if backend is not None:
        backend.close()
    if run is not None:
        run.remove()
