"""The kernel provisioner ``agentbox-sandbox``: the kernels that it starts cannot get around the approval."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from tornado.web import HTTPError
from traitlets import Dict, Enum, Int, List, TraitError, Unicode
from traitlets.config.loader import LazyConfigValue

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.kernel_exits import KernelExit
from jupyter_agentbox.core.notebook_runners import NO_SERVER, notebook_runner
from jupyter_agentbox.core.sandbox_settings import NO_SANDBOXED_KERNEL, SETTINGS, Kind, SandboxSettings
from jupyter_agentbox.core.srt_settings import from_srt_file, is_srt_file
from jupyter_agentbox.exceptions import SandboxConfigError, SandboxRefusedError
from jupyter_agentbox.sandbox.server.backend_factory import make_backend
from jupyter_agentbox.sandbox.server.backends import SandboxBackend, SandboxSpec
from jupyter_agentbox.sandbox.server.environment import kernel_environment, looks_secret, without_secrets
from jupyter_agentbox.sandbox.server.exit_reasons import exit_of
from jupyter_agentbox.sandbox.server.interpreter import prefixes_of
from jupyter_agentbox.sandbox.server.network import domains_variable, proxy_variables
from jupyter_agentbox.sandbox.server.opened_directories import Opened
from jupyter_agentbox.sandbox.server.probes import select_level
from jupyter_agentbox.sandbox.server.programs import check_source, with_programs
from jupyter_agentbox.sandbox.server.protected_path_discovery import find_protected
from jupyter_agentbox.sandbox.server.protected_paths import is_below
from jupyter_agentbox.sandbox.server.run_directory import RunDirectory, base_directory, sweep
from jupyter_agentbox.sandbox.server.settings import Domains, ExtraPaths, SandboxLimits, absolute
from jupyter_agentbox.sandbox.server.site import is_site
from jupyter_agentbox.sandbox.server.writable_directories import record, recorded

#: ``503 Service Unavailable`` would be retried, and ``500`` would look like a fault.
_REFUSED = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """What is known of a kernel that is about to be started.

    Parameters
    ----------
    settings : SandboxSettings
        What the kernelspec and the server say.
    level : Isolation
        The level that was reached.
    base : Path
        The directory of all run directories.
    run : RunDirectory
        The kernel's own run directory.
    opened : Opened
        What the kernel is given, open.
    work : Path
        The work directory.
    """

    settings: SandboxSettings
    level: Isolation
    base: Path
    run: RunDirectory
    opened: Opened
    work: Path


def _trait(name: str) -> Any:
    """Return the trait of a setting."""
    declared = SETTINGS[name]
    match declared.kind:
        case Kind.LEVELS:
            values = list(declared.default)
            return List(Enum(values), default_value=values, help=declared.help).tag(config=True)
        case Kind.LIST:
            return List(Unicode(), default_value=list(declared.default), help=declared.help).tag(config=True)
        case Kind.LIMIT:
            return Int(declared.default, allow_none=True, help=declared.help).tag(config=True)
        case Kind.OBJECT:
            return Dict(default_value=declared.default, help=declared.help).tag(config=True)
        case Kind.TEXT:
            return Unicode(declared.default, help=declared.help).tag(config=True)


class SandboxProvisioner(LocalProvisioner):
    """Starts a kernel in a sandbox.

    Every trait can also be set for a kernelspec, in ``metadata.kernel_provisioner.config``. All but `sandbox_config`
    are made of what `core.sandbox_settings` declares.
    """

    levels = _trait("levels")
    work_dir = _trait("work_dir")
    readable = _trait("readable")
    writable = _trait("writable")
    hidden = _trait("hidden")
    read_only = _trait("read_only")
    unprotected = _trait("unprotected")
    environment = _trait("environment")
    allowed_domains = _trait("allowed_domains")
    private_domains = _trait("private_domains")
    memory_limit = _trait("memory_limit")
    process_limit = _trait("process_limit")
    file_size_limit = _trait("file_size_limit")
    temporary_limit = _trait("temporary_limit")
    bubblewrap = _trait("bubblewrap")
    srt = _trait("srt")
    srt_settings = _trait("srt_settings")

    sandbox_config = Unicode(
        help="A JSON file with the same keys as these settings; it is read when a kernel starts and "
        "takes precedence over them. For the level `srt`, it may be a settings file of srt "
        "instead."
    ).tag(config=True)

    _backend: SandboxBackend | None = None
    _run: RunDirectory | None = None
    _kernel_directories: tuple[Path, ...] = ()
    _found: Mapping[str, Any] = {}  # replaced, never changed
    _has_own_settings = False

    @property
    def kernel_directories(self) -> tuple[Path, ...]:
        """The directories of others in which the kernel can write, without links."""
        return self._kernel_directories

    @property
    def isolation(self) -> Isolation:
        """The level that the running kernel has."""
        return self._backend.level if self._backend is not None else Isolation.NONE

    @property
    def has_own_settings(self) -> bool:
        """Whether the running kernel has settings that its user chose, where an administrator could have."""
        return self._backend is not None and self._has_own_settings

    @property
    def ended_by(self) -> KernelExit | None:
        """Why the kernel has ended; ``None`` if it runs, or ended of its own accord. Forgotten when it starts again."""
        status = self.process.poll() if self.process is not None else None
        return (
            exit_of(status, self._backend.limit_exceeded) if self._backend is not None and status is not None else None
        )

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose the level, make the run directory, and move the kernel's channels into it.

        All but what Jupyter's own part awaits is done in a thread: it starts programs, and reads files that may lie on
        a slow disk.
        """
        stack = ExitStack()
        try:
            start = await in_thread(self._prepare, stack, kwargs.get("cwd"))
            self._move_channels(self.parent, start.run)
            kwargs = await super().pre_launch(**kwargs)
            kwargs["cwd"] = str(start.work)
            await in_thread(self._make_backend, start, kwargs)
            stack.pop_all()  # from here on the sandbox closes them
        except (SandboxRefusedError, OSError) as error:  # a folder may be another one by the time that it is opened
            raise await self._refused(error) from error
        finally:
            stack.close()
        return kwargs

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the sandbox with the kernel in it."""
        try:
            if self._backend is None:
                raise SandboxRefusedError("could not set up the sandbox")
            process = await in_thread(partial(self._backend.start, cmd, env=kwargs["env"]))
        except asyncio.CancelledError:
            await in_thread(self._end)  # it may have been started
            raise
        except SandboxRefusedError as error:
            raise await self._refused(error) from error
        self.process = process
        self.pid, self.pgid, self.cwd = process.pid, None, kwargs["cwd"]
        return self.connection_info

    async def _refused(self, error: SandboxRefusedError | OSError) -> HTTPError:
        """Undo what was done for a kernel that cannot be started; return what to raise."""
        await in_thread(self._end)
        self._forget_start(self.parent)
        reason = str(error) if isinstance(error, SandboxRefusedError) else f"could not set up the sandbox: {error}"
        self.log.warning("refused to start a sandboxed kernel: %s", reason)
        return HTTPError(_REFUSED, reason, reason=NO_SANDBOXED_KERNEL)

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel's process group inside. The sandbox itself is never signalled: that would end it."""
        if self._backend is not None and self.process is not None:
            with suppress(ProcessLookupError):
                self._backend.signal(signum)

    async def kill(self, restart: bool = False) -> None:  # noqa: ARG002  # the base's signature
        """End everything in the sandbox."""
        if self._backend is not None and self.process is not None:
            self._backend.kill()

    async def terminate(self, restart: bool = False) -> None:  # noqa: ARG002  # the base's signature
        """Ask the kernel to end."""
        await self.send_signal(signal.SIGTERM)

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the run directory."""
        await super().cleanup(restart=restart)
        if not restart:
            await in_thread(self._end)

    def _prepare(self, stack: ExitStack, cwd: str | None) -> _Start:
        """Do what comes before Jupyter's part: end what still runs, read settings, try levels, open directories."""
        self._close_backend()
        self._read_config()
        settings = self._with_programs(self._settings(), cwd)
        level = select_level(
            [Isolation(one) for one in settings.levels],
            bubblewrap=settings.bubblewrap,
            srt=settings.srt,
            network=bool(Domains.of(settings)),
        )
        base = base_directory(os.environ)
        self._run = run = _emptied(self._run, base)
        opened = Opened(recorded(base))
        stack.callback(opened.close)
        work = self._work_directory(settings, opened, cwd, run)
        return _Start(settings=settings, level=level, base=base, run=run, opened=opened, work=work)

    def _forget_start(self, manager: Any) -> None:
        """Remove this kernel from the server's kernels.

        Jupyter keeps a kernel that could not be started among those that are starting, and then ignores signals to end.
        """
        pending = getattr(getattr(manager, "parent", None), "_pending_kernels", None)
        if isinstance(pending, dict):
            pending.pop(self.kernel_id, None)

    def _close_backend(self) -> None:
        if self._backend is not None:
            self._backend.close()
            if (limit_exceeded := self._backend.limit_exceeded) is not None:
                self.log.warning("kernel %s: %s", self.kernel_id, limit_exceeded.words)
            self._backend = None

    def _end(self) -> None:
        self._close_backend()
        if self._run is not None:
            self._run.remove()
            self._run = None

    def _read_config(self) -> None:
        if not self.sandbox_config:
            return
        self._found = found = self._read_file(self.sandbox_config)
        try:
            for name, value in found.items():
                setattr(self, name, value)
        except TraitError as error:
            raise SandboxConfigError(f"`{self.sandbox_config}` cannot be used: {error}") from error

    def _read_file(self, file: str) -> dict[str, Any]:
        """Return the settings of a file."""
        try:
            found = json.loads(Path(file).expanduser().read_text(encoding="utf-8"))
            if is_srt_file(found):
                found = from_srt_file(found)
            known = set(self.trait_names(config=True)) - {"sandbox_config"}
            if not isinstance(found, dict) or found.keys() - known:
                raise ValueError(f"it must be an object with keys from {', '.join(sorted(known))}")
        except (OSError, ValueError) as error:
            raise SandboxConfigError(f"`{file}` cannot be used: {error}") from error
        return found

    def _settings(self) -> SandboxSettings:
        names = set(self.trait_names(config=True)) - {"sandbox_config"}
        settings = SandboxSettings.from_mapping({name: getattr(self, name) for name in names})
        ceiling = self._ceiling()
        if not self._is_of_site():
            settings = settings.within(ceiling)
        self._has_own_settings = self._differ(settings, ceiling)
        return settings

    def _differ(self, settings: SandboxSettings, ceiling: Mapping[str, Any]) -> bool:
        """Whether the user chose any of these settings, where an administrator could have: a Hub's, or the server's."""
        if not ceiling and not os.environ.get("JUPYTERHUB_USER"):
            return False
        if self.sandbox_config and not is_site(Path(self.sandbox_config).expanduser().absolute()):
            return True
        return not self._is_of_site() and settings != SandboxSettings.from_mapping(ceiling).within(ceiling)

    def _is_of_site(self) -> bool:
        """Whether the user cannot change the kernelspec."""
        directory = self.kernel_spec.resource_dir
        return bool(directory) and is_site(Path(directory).absolute())

    def _ceiling(self) -> dict[str, Any]:
        """Return what is set for the server; a user's kernelspec can only tighten it."""
        config = self.config.get("SandboxProvisioner", {})
        known = {name: value for name, value in config.items() if not isinstance(value, LazyConfigValue)}
        file = known.pop("sandbox_config", "")
        return {**known, **(self._read_file(file) if file else {})}

    def _with_programs(self, settings: SandboxSettings, cwd: str | None) -> SandboxSettings:
        """Return settings with programs that no kernel could have put where they are."""
        named = settings.work_dir or cwd
        now = absolute((*settings.writable, *([named] if named else [])))
        places = [*recorded(base_directory(os.environ)), *(path.resolve() for path in now)]
        if self.sandbox_config:
            check_source(Path(self.sandbox_config), self._found, places)
        return with_programs(settings, places)

    def _work_directory(self, settings: SandboxSettings, opened: Opened, asked: str | None, run: RunDirectory) -> Path:
        protected = self._protected(settings, base_directory(os.environ))
        if settings.work_dir:
            return opened.open_work_directory(Path(settings.work_dir).expanduser(), protected)
        if not asked:
            return opened.open(run.directory("work"))
        root = getattr(getattr(self.parent, "parent", None), "root_dir", None)
        return opened.open_work_directory(Path(asked), protected, root=Path(root) if root else None)

    def _check_extra(self, extra: ExtraPaths) -> ExtraPaths:
        """Return the paths; refuse those of a user's kernelspec that the server hides and does not name itself."""
        ceiling = {} if self._is_of_site() else self._ceiling()
        hidden = [path.resolve() for path in absolute(ceiling.get("hidden", ()))]
        granted = [path.resolve() for name in ("readable", "writable") for path in absolute(ceiling.get(name, ()))]
        for place in (*extra.readable, *extra.writable):
            if is_below(place, hidden) and not is_below(place, granted):
                raise SandboxRefusedError(f"`{place}` is hidden from kernels by the server's settings")
        return extra

    def _protected(self, settings: SandboxSettings, base: Path) -> Any:
        named = [self.sandbox_config] if self.sandbox_config else []
        return find_protected(
            self.parent,
            base=base,
            prefixes=self._prefixes(),
            hidden=absolute(settings.hidden),
            read_only=absolute((*settings.read_only, *named)),
        )

    def _prefixes(self) -> tuple[Path, ...]:
        return prefixes_of(Path(self.parent.format_kernel_cmd()[0] if self.parent else self.kernel_spec.argv[0]))

    def _move_channels(self, manager: Any, run: RunDirectory) -> None:
        """Make the channels unix sockets in the run directory, even if the last kernel had others."""
        manager.cleanup_connection_file()
        manager.transport, manager.ip, manager.cache_ports = "ipc", str(run.sockets / "k"), False
        for number, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), start=1):
            setattr(manager, f"{name}_port", number)

    def _make_backend(self, start: _Start, kwargs: dict[str, Any]) -> None:
        """Make the sandbox, in which nothing runs yet, and the kernel's environment from Jupyter's arguments."""
        settings = start.settings
        manager: Any = self.parent
        spec = SandboxSpec(
            run=start.run,
            work=start.work,
            protected=self._protected(settings, start.base),
            prefixes=self._prefixes(),
            extra=self._check_extra(start.opened.open_extra_paths(ExtraPaths.of(settings))),
            limits=SandboxLimits.of(settings),
            connection_file=Path(manager.connection_file).resolve(),
            output=(kwargs.get("stdout"), kwargs.get("stderr")),
            name=f"kernel {self.kernel_id}",
            domains=Domains.of(settings),
            srt=settings.srt_settings,
            on_refused=lambda reason: self.log.info("blocked a network connection of a sandboxed kernel: %s", reason),
            opened=start.opened,
        )
        self._backend = backend = make_backend(spec, start.level, bubblewrap=settings.bubblewrap, srt=settings.srt)
        self._kernel_directories = (start.work, *spec.extra.writable)
        record(start.base, self._kernel_directories)
        env = kwargs["env"]
        if notebook_runner(sys.orig_argv) is not None:  # which the kernel cannot see from inside
            env = {**env, NO_SERVER: "1"}
        is_of_site = self._is_of_site()
        trusted = settings.environment if is_of_site else self._ceiling().get("environment", ())
        if kept_out := [name for name in settings.environment if looks_secret(name) and name not in trusted]:
            self.log.warning(
                "kernel %s does not get %s, which looks like a secret: to pass it on, name it in the "
                "server's own `SandboxProvisioner.environment`, or in a kernelspec that the user "
                "cannot change",
                self.kernel_id,
                ", ".join(kept_out),
            )
        spec_env = self.kernel_spec.env if is_of_site else without_secrets(self.kernel_spec.env)
        kwargs["env"] = kernel_environment(
            {name: value for name, value in env.items() if name not in self.kernel_spec.env},
            trusted=trusted,
            named={**{name: env[name] for name in spec_env}, **domains_variable(spec.domains, settings)},
            extra=settings.environment,
            home=backend.home,
            temporary=backend.temporary,
            prefixes=spec.prefixes,
            proxy=proxy_variables(spec.domains) if start.level is not Isolation.SRT else None,
        )


def _emptied(run: RunDirectory | None, base: Path) -> RunDirectory:
    """Return a run directory for the next kernel: the last kernel's, emptied, or a new one."""
    if run is not None:
        run.clear()
        return run
    sweep(base)
    return RunDirectory(base)
