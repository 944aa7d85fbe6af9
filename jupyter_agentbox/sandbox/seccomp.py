"""System-call filters, assembled for the running machine: the classic BPF programs of ``seccomp(2)``.

A program is a list of 8-byte instructions that look at one system call: its number, its architecture and its six
arguments. Every path ends in a verdict. The filter refuses what has no use in a kernel of Jupyter and is either not
held by namespaces (keyrings, ``AF_VSOCK``, the terminal's input queue) or has often been the way into the operating
system's kernel (``io_uring``, ``bpf``, ``userfaultfd``, new user namespaces).
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class Sockets(Enum):
    """Which sockets can be made."""

    LOCAL = "local"
    """Unix and IP sockets: for a sandbox with a network of its own."""

    UNIX = "unix"
    """Unix sockets, and those that list network interfaces: while a kernel without namespaces opens its channels."""

    NONE = "none"
    """None but `socketpair`: once its channels are open."""


@dataclass(frozen=True, slots=True)
class _Machine:
    audit: int
    calls: dict[str, int]


_X86_64 = _Machine(
    0xC000003E,
    {
        "ioctl": 16, "shmget": 29, "shmat": 30, "socket": 41, "clone": 56, "kill": 62, "semget": 64, "msgget": 68,
        "truncate": 76, "ptrace": 101, "syslog": 103, "rt_sigqueueinfo": 129, "vhangup": 153, "modify_ldt": 154,
        "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165,
        "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175,
        "delete_module": 176, "quotactl": 179, "tkill": 200, "lookup_dcookie": 212, "clock_settime": 227, "tgkill": 234,
        "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
        "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    },
)  # fmt: skip

_AARCH64 = _Machine(
    0xC00000B7,
    {
        "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "truncate": 45, "chroot": 51, "quotactl": 60,
        "vhangup": 58, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
        "clock_settime": 112, "syslog": 116, "ptrace": 117, "kill": 129, "tkill": 130, "tgkill": 131,
        "rt_sigqueueinfo": 138, "reboot": 142, "settimeofday": 170, "adjtimex": 171, "mq_open": 180, "msgget": 186,
        "semget": 190, "shmget": 194, "shmat": 196, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219,
        "clone": 220, "swapon": 224, "swapoff": 225, "rt_tgsigqueueinfo": 240, "perf_event_open": 241,
        "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "kexec_file_load": 294,
    },
)  # fmt: skip

#: The same numbers on all machines.
_NEW_CALLS = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435,
    "pidfd_getfd": 438, "mount_setattr": 442,
}  # fmt: skip

_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}

#: Of no use in a kernel of Jupyter; see the module's docstring.
ALWAYS_REFUSED = (
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "unshare", "setns"),
    *("mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "mount_setattr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "name_to_handle_at", "open_by_handle_at"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("swapon", "swapoff", "acct", "quotactl", "syslog", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex"),
    *("iopl", "ioperm", "modify_ldt", "vhangup", "lookup_dcookie", "kcmp"),
)

#: What namespaces would have held: other processes' memory and files, and System V's and POSIX's shared objects.
REFUSED_WITHOUT_NAMESPACES = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
    *("shmget", "shmat", "semget", "msgget", "mq_open"),
)

#: What Landlock does not hold before Linux 6.12: signals, of which some cannot be told apart, and cutting files.
NOT_HELD_BEFORE = ("tkill", "rt_sigqueueinfo", "pidfd_send_signal", "truncate")

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT_0, _ARGUMENT_1 = 0, 4, 16, 24
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_FAMILIES = {
    Sockets.LOCAL: (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK),
    Sockets.UNIX: (_AF_UNIX, _AF_NETLINK),
    Sockets.NONE: (),
}

_Instruction = tuple[int, int, int, int]


def is_supported() -> bool:
    """Whether filters can be assembled for this machine."""
    return platform.machine() in _MACHINES


def assemble(*, sockets: Sockets, namespaces: bool = True, own_signals_only: bool = False) -> bytes:
    """Return the filter as the bytes of its instructions.

    Parameters
    ----------
    sockets : Sockets
        Which sockets can be made.
    namespaces : bool
        Whether the sandbox has namespaces of its own, that hold processes and shared objects.
    own_signals_only : bool
        Whether only the caller itself and its process group can be signalled, and files be cut only when opened.

    Raises
    ------
    NotImplementedError
        On a machine whose system-call numbers are not known.
    """
    if not is_supported():
        raise NotImplementedError(f"no system-call filter for `{platform.machine()}`")
    machine = _MACHINES[platform.machine()]
    calls = {**machine.calls, **_NEW_CALLS}
    refused = [*ALWAYS_REFUSED, *(() if namespaces else REFUSED_WITHOUT_NAMESPACES)]
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.audit),
        _refuse(errno.EPERM),  # the same calls under other numbers: the 32-bit entry
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        _refuse(errno.ENOSYS),
        *_refuse_calls(calls[name] for name in refused if name in calls),
        (_EQUAL, 0, 1, calls["clone3"]),
        _refuse(errno.ENOSYS),  # its flags are in memory, where a filter cannot look; libc then uses `clone`
        *_on(calls["clone"], [(_LOAD, 0, 0, _ARGUMENT_0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refuse(errno.EPERM)]),
        *_on(calls["ioctl"], _only_other_than(_ARGUMENT_1, (_TIOCSTI, _TIOCLINUX), errno.EPERM)),
        *_on(calls["socket"], _only(_ARGUMENT_0, _FAMILIES[sockets], _socket_error(sockets))),
    ]
    if own_signals_only:
        own = (os.getpid(), 0)
        program += _refuse_calls(calls[name] for name in NOT_HELD_BEFORE)
        for name in ("kill", "tgkill", "rt_tgsigqueueinfo"):
            program += _on(calls[name], _only(_ARGUMENT_0, own, errno.EPERM))
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _socket_error(sockets: Sockets) -> int:
    # ZeroMQ aborts the process if a socket fails with anything but "no such family".
    return errno.EPERM if sockets is Sockets.NONE else errno.EAFNOSUPPORT


def _refuse(error: int) -> _Instruction:
    return (_RETURN, 0, 0, _REFUSE | error)


def _refuse_calls(numbers: Iterable[int]) -> list[_Instruction]:
    return [part for number in numbers for part in ((_EQUAL, 0, 1, number), _refuse(errno.EPERM))]


def _on(number: int, block: Sequence[_Instruction]) -> list[_Instruction]:
    """Run `block` for one system call; what falls through is allowed."""
    return [(_EQUAL, 0, len(block) + 1, number), *block, (_RETURN, 0, 0, _ALLOW)]


def _only(offset: int, values: Sequence[int], error: int) -> list[_Instruction]:
    """Refuse a call unless its argument is one of `values`."""
    last = len(values)
    tests = [(_EQUAL, last - index, 0, value) for index, value in enumerate(values)]
    return [(_LOAD, 0, 0, offset), *tests, _refuse(error)]


def _only_other_than(offset: int, values: Sequence[int], error: int) -> list[_Instruction]:
    tests = [part for value in values for part in ((_EQUAL, 0, 1, value), _refuse(error))]
    return [(_LOAD, 0, 0, offset), *tests]
