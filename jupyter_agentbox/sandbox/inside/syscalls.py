"""The few Linux system calls that Python has no function for, through ``ctypes``."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from jupyter_agentbox.processes.reaper import prctl

PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_NO_NEW_PRIVS = 38

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION = 1
_PATH_BENEATH = 1
_SCOPE_SIGNAL = 0b10
_SECCOMP_NUMBER = {"x86_64": 317, "aarch64": 277}
_SECCOMP_FILTER, _SECCOMP_ALL_THREADS, _SECCOMP_LISTENER, _SECCOMP_KILLABLE = 1, 1, 1 << 3, 1 << 5
_CAPABILITY_VERSION_3 = 0x20080522
_CAPSET_NUMBER = {"x86_64": 126, "aarch64": 91}

#: ``SECBIT_NOROOT``, ``SECBIT_NO_SETUID_FIXUP`` and ``SECBIT_NO_CAP_AMBIENT_RAISE``, each with its lock.
_NO_POWERS_FOR_ROOT = 0b11001111

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK = 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 9
MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15

#: What each version of Landlock's interface can hold.
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

READ = EXECUTE | READ_FILE | READ_DIR
_MAKE = MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
WRITE = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | _MAKE | REFER | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV | TRUNCATE


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def landlock_version() -> int:
    """Return the version of Landlock's interface; 0 if there is none."""
    version: int = _libc().syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_LANDLOCK_VERSION))
    return max(0, version)


def restrict_files(
    rules: Iterable[tuple[str, int]], *, files_only: bool = False, opened: Mapping[str, int] = MappingProxyType({})
) -> int:
    """Restrict this thread, and all that it starts, to the files in `rules`. This cannot be undone.

    From version 4 of Landlock's interface on, TCP is closed as well; from version 6 on also abstract unix sockets and
    signals to processes that are not of this domain.

    Parameters
    ----------
    rules : iterable of (str, int)
        Each path with the rights beneath it. A missing path is left out. Without namespaces, a path that has become a
        link is an error: a kernel that shares a directory has just put it there. ``/proc/self`` is one.
    files_only : bool
        Whether TCP, abstract sockets and signals are left alone because namespaces confine them.
    opened : mapping of str to int
        File descriptors of paths that are already open; what is at the path by now does not matter.

    Returns
    -------
    int
        The version of Landlock's interface.

    Raises
    ------
    OSError
        If there is no Landlock, it refuses, or something was replaced by a link.
    """
    version = landlock_version()
    handled = _RIGHTS[max((known for known in _RIGHTS if known <= version), default=1)]
    network = 0b11 if version >= 4 and not files_only else 0
    scoped = 0b11 if version >= 6 and not files_only else 0
    attributes = struct.pack("=QQQ", handled, network, scoped)
    size = 8 if version < 4 else 16 if version < 6 else 24
    libc = _libc()
    ruleset = _checked(
        libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint(0)), "landlock_create_ruleset"
    )
    try:
        for path, rights in rules:
            exactly = not files_only and path != "/proc/self"
            _allow(libc, ruleset, path, rights & handled, exactly=exactly, opened=opened.get(path))
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _checked(libc.syscall(_LANDLOCK_RESTRICT, ruleset, ctypes.c_uint(0)), "landlock_restrict_self")
    finally:
        os.close(ruleset)
    return version


def keep_signals_below() -> bool:
    """Let this thread signal only itself and what it starts; return whether this Linux can. This cannot be undone.

    Then ``kill(-1)`` ends everything below this process and nothing else; no process escapes it by starting just now.
    """
    if landlock_version() < 6:
        return False
    libc = _libc()
    attributes = struct.pack("=QQQ", 0, 0, _SCOPE_SIGNAL)
    ruleset = _checked(
        libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)),
        "landlock_create_ruleset",
    )
    try:
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _checked(libc.syscall(_LANDLOCK_RESTRICT, ruleset, ctypes.c_uint(0)), "landlock_restrict_self")
    finally:
        os.close(ruleset)
    return True


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int, *, exactly: bool, opened: int | None) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC) if opened is None else os.dup(opened)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if exactly and opened is None and str(found := Path(f"/proc/self/fd/{beneath}").readlink()) != path:
            raise OSError(errno.ELOOP, f"`{path}` leads to `{found}`")
        if not Path(f"/proc/self/fd/{beneath}").is_dir():
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, beneath)
        _checked(libc.syscall(_LANDLOCK_ADD, ruleset, _PATH_BENEATH, rule, ctypes.c_uint(0)), f"landlock rule `{path}`")
    finally:
        os.close(beneath)


def filter_calls(program: bytes) -> None:
    """Install a system-call filter in all threads of this process. This cannot be undone.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    _checked(_install(program, _SECCOMP_ALL_THREADS), "seccomp")


def hold_calls(program: bytes) -> int:
    """Install a filter that holds calls of this thread; return the descriptor that reports them. This cannot be undone.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    for flags in (_SECCOMP_LISTENER | _SECCOMP_KILLABLE, _SECCOMP_LISTENER):  # the former since Linux 5.19
        listener = _install(program, flags)
        if listener >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    return _checked(listener, "seccomp")


def _install(program: bytes, flags: int) -> int:
    """Return what Linux says to a filter: a negative number if it refuses."""
    buffer = ctypes.create_string_buffer(program, len(program))
    description = _Filter(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    number = _SECCOMP_NUMBER[platform.machine()]
    answer: int = _libc().syscall(number, _SECCOMP_FILTER, ctypes.c_uint(flags), ctypes.byref(description))
    return answer


def drop_capabilities() -> None:
    """Give up every capability, also for programs that this process will run. This cannot be undone.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    libc = _libc()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    held = {
        line.partition(":")[0]: int(line.partition(":")[2], 16) for line in status.splitlines() if line[:3] == "Cap"
    }
    if held["CapEff"] & (1 << 8):  # CAP_SETPCAP
        prctl(PR_SET_SECUREBITS, _NO_POWERS_FOR_ROOT)
        for capability in range(held["CapBnd"].bit_length()):
            if held["CapBnd"] & (1 << capability):
                prctl(PR_CAPBSET_DROP, capability)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    none = struct.pack("=6I", 0, 0, 0, 0, 0, 0)
    _checked(libc.syscall(_CAPSET_NUMBER[platform.machine()], header, none), "capset")
