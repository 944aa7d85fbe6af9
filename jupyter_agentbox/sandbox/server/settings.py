"""The settings of a sandboxed kernel in the form that the backends take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from jupyter_agentbox.core.egress_domains import DomainRules
from jupyter_agentbox.core.sandbox_settings import SandboxSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """The resources that a kernel may use. ``None`` means no limit.

    Parameters
    ----------
    memory : int or None
        Bytes of address space of each process (``RLIMIT_AS``), and of memory of all together.
    processes : int or None
        Processes and threads of the whole sandbox.
    file_size : int or None
        Bytes of the largest file that can be written (``RLIMIT_FSIZE``).
    temporary : int or None
        Bytes of each file system in memory: ``/tmp``, the home directory, ``/dev/shm``.
    """

    memory: int | None = None
    processes: int | None = None
    file_size: int | None = None
    temporary: int | None = None

    @classmethod
    def of(cls, settings: SandboxSettings) -> Self:
        """Return the limits that settings name."""
        return cls(
            memory=settings.memory_limit,
            processes=settings.process_limit,
            file_size=settings.file_size_limit,
            temporary=settings.temporary_limit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraPaths:
    """Files and directories besides the work directory.

    Parameters
    ----------
    readable : tuple of Path
        Can be read and run.
    writable : tuple of Path
        Can be read, run and written.
    hidden : tuple of Path
        Cannot be seen, wherever they are.
    read_only : tuple of Path
        Cannot be written, wherever they are.
    unprotected : tuple of str
        Names or patterns of files that programs outside obey and that the kernel can write nevertheless.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    unprotected: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: SandboxSettings) -> Self:
        """Return the paths that settings name."""
        return cls(
            readable=absolute(settings.readable),
            writable=absolute(settings.writable),
            hidden=absolute(settings.hidden),
            read_only=absolute(settings.read_only),
            unprotected=settings.unprotected,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Domains:
    """The domains that a kernel can reach, as settings spell them.

    Parameters
    ----------
    allowed : tuple of str
        Domains on the internet.
    private : tuple of str
        Domains that may also be in private networks.
    """

    allowed: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: SandboxSettings) -> Self:
        """Return the domains that settings name."""
        return cls(allowed=settings.allowed_domains, private=settings.private_domains)

    def __bool__(self) -> bool:
        return bool(self.allowed or self.private)

    def rules(self) -> DomainRules:
        """Return the rules that decide."""
        return DomainRules.of(self.allowed, self.private)


def absolute(names: Iterable[str]) -> tuple[Path, ...]:
    """Return the absolute paths of settings: ``~`` is the home directory, relative ones start here."""
    return tuple(Path(name).expanduser().absolute() for name in names)
