"""System-call filters, assembled for the running machine: the classic BPF programs of ``seccomp(2)``.

A program is a list of 8-byte instructions that look at one system call: its number, its architecture and its six
arguments. Every path ends in a verdict. The filter refuses what a Jupyter kernel has no use for and what either no
namespace confines (keyrings, ``AF_VSOCK``, the terminal's input queue, programs that run as the owner of their file) or
has often been the way into the operating system's kernel (``io_uring``, ``bpf``, ``userfaultfd``, new user namespaces).
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Sockets(Enum):
    """The sockets that can be created."""

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
        "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "open": 2, "shmctl": 31,
        "socketpair": 53, "semop": 65, "semctl": 66, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "fcntl": 72, "creat": 85,
        "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "mknod": 133,
        "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "setxattr": 188, "lsetxattr": 189,
        "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "sched_setaffinity": 203,
        "semtimedop": 220, "utimes": 235, "mq_unlink": 241, "ioprio_set": 251, "inotify_add_watch": 254, "openat": 257,
        "mknodat": 259, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280, "fanotify_init": 300,
        "prlimit64": 302, "sched_setattr": 314,
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
        "userfaultfd": 282, "kexec_file_load": 294, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14,
        "lremovexattr": 15, "fremovexattr": 16, "fcntl": 25, "inotify_add_watch": 27, "ioprio_set": 30, "mknodat": 33,
        "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "openat": 56, "utimensat": 88,
        "sched_setparam": 118,
        "sched_setscheduler": 119, "sched_setaffinity": 122, "setpriority": 140, "mq_unlink": 181, "msgctl": 187,
        "msgrcv": 188, "msgsnd": 189, "semctl": 191, "semtimedop": 192, "semop": 193, "shmctl": 195, "socketpair": 199,
        "prlimit64": 261, "fanotify_init": 262, "sched_setattr": 274,
    },
)  # fmt: skip

#: The same numbers on all machines.
_NEW_CALLS = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435,
    "openat2": 437, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443,
    "process_mrelease": 448, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467,
    "file_setattr": 469,
}  # fmt: skip

_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}

#: Of no use in a kernel of Jupyter; see the module's docstring.
ALWAYS_REFUSED = (
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "unshare", "setns"),
    *("mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount"),
    *("mount_setattr", "fsopen", "fsconfig", "fsmount", "fspick", "name_to_handle_at", "open_by_handle_at"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "settimeofday", "clock_settime"),
    *("clock_adjtime", "adjtimex", "iopl", "ioperm", "modify_ldt", "vhangup", "lookup_dcookie", "kcmp"),
)

#: What namespaces of processes and mounts would have held: the memory and files of other processes, what is done to
#: files by their names that Landlock does not hold, and watching them.
REFUSED_WITHOUT_NAMESPACES = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "process_madvise", "process_mrelease"),
    *("chown", "lchown", "fchown", "fchownat", "file_setattr", "inotify_add_watch", "fanotify_init"),
)

#: Of these a program hears that the file system has no such attributes, as many have none, and does without.
_ATTRIBUTES = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)

#: System V's and POSIX's shared objects. Not only what opens them: a number that is guessed is enough for the others.
SHARED_OBJECTS = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
)

#: What changes a process that its first argument names; 0 is the caller.
_OF_A_PROCESS = ("prlimit64", "sched_setaffinity", "sched_setparam", "sched_setattr")

#: What Landlock does not hold before Linux 6.12: signals, of which some cannot be told apart, and cutting files.
NOT_HELD_BEFORE = ("tkill", "rt_sigqueueinfo", "pidfd_send_signal", "truncate")

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _HOLD, _REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT_0, _ARGUMENT_1, _ARGUMENT_2, _ARGUMENT_3 = 0, 4, 16, 24, 32, 40
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
#: Let what comes of a file descriptor signal another process.
_F_SETOWN, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 15, 0x8901, 0x8902
#: Change a file's attributes through a descriptor that is open for reading only: ``FS_IOC_SETFLAGS`` (and as 32-bit
#: programs spell it), ``FS_IOC_SETVERSION`` (twice likewise, and ext4's own), ``FS_IOC_FSSETXATTR``,
#: ``FS_IOC_ENABLE_VERITY``, ``FS_IOC_SET_ENCRYPTION_POLICY``, ``FS_IOC_ADD_ENCRYPTION_KEY`` and
#: ``FS_IOC_REMOVE_ENCRYPTION_KEY`` (also of all users), FAT's attributes, Btrfs' subvolumes.
_FILE_ATTRIBUTES = (
    *(0x40086602, 0x40046602, 0x40087602, 0x40047602, 0x40086604, 0x40046604, 0x401C5820),
    *(0x40806685, 0x800C6613, 0xC0506617, 0xC0406618, 0xC0406619, 0x40047211, 0x4008941A),
)
_PRIO_PROCESS, _SCHED_OTHER = 0, 0
_IOPRIO_WHO_PROCESS = 1
_SET_ID_BITS = 0o6000
_MAKES_FILE = 0o100 | 0o20000000  # ``O_CREAT``, and what ``O_TMPFILE`` adds to ``O_DIRECTORY``
#: Of the types of sockets, ``SOCK_DGRAM`` and ``SOCK_RAW`` have it, ``SOCK_STREAM`` and ``SOCK_SEQPACKET`` do not.
_DATAGRAMS = 0b10
#: The calls that say a new file's mode or change one, and which argument that is.
_MODES = {
    **dict.fromkeys(("chmod", "fchmod", "creat", "mknod"), _ARGUMENT_1),
    **dict.fromkeys(("fchmodat", "fchmodat2", "mknodat"), _ARGUMENT_2),
}
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


def assemble(
    *, sockets: Sockets, namespaces: bool = True, shared_objects: bool = True, own_signals_only: bool = False
) -> bytes:
    """Return the filter as the bytes of its instructions.

    Parameters
    ----------
    sockets : Sockets
        The sockets that can be created.
    namespaces : bool
        Whether the sandbox has namespaces of its own for processes, mounts and shared objects.
    shared_objects : bool
        Whether those include one for shared objects.
    own_signals_only : bool
        Whether only the caller and its process group can be signalled, and files truncated only while being opened.

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
    refused += () if namespaces and shared_objects else SHARED_OBJECTS
    ioctls = [_TIOCSTI, _TIOCLINUX]
    if not namespaces:
        ioctls += [_FIOSETOWN, _SIOCSPGRP, *_FILE_ATTRIBUTES]
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.audit),
        _refuse(errno.EPERM),  # the same calls under other numbers: the 32-bit entry
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        _refuse(errno.ENOSYS),
        *_refuse_calls(calls[name] for name in refused if name in calls),
        # Flags and modes are in memory, where a filter cannot look; libc then uses `clone`, and programs `openat`.
        *_refuse_calls((calls["clone3"], calls["openat2"]), errno.ENOSYS),
        *_on(calls["clone"], [(_LOAD, 0, 0, _ARGUMENT_0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refuse(errno.EPERM)]),
        *_on(calls["ioctl"], _only_other_than(_ARGUMENT_1, ioctls, errno.EPERM)),
        *_on(calls["socket"], _only(_ARGUMENT_0, _FAMILIES[sockets], _socket_error(sockets))),
        *_no_programs_of_their_owner(calls),
    ]
    if not namespaces:
        program += _refuse_calls((calls[name] for name in _ATTRIBUTES), errno.EOPNOTSUPP)
        program += _own_process_only(calls)
        # A pair of datagram sockets is two sockets that can send to any other.
        pair = [*_only(_ARGUMENT_0, (_AF_UNIX,), errno.EPERM), (_LOAD, 0, 0, _ARGUMENT_1)]
        program += _on(calls["socketpair"], [*pair, (_ANY_BIT, 0, 1, _DATAGRAMS), _refuse(errno.EPERM)])
    if own_signals_only:
        own = (os.getpid(), 0)
        program += _refuse_calls(calls[name] for name in NOT_HELD_BEFORE)
        for name in ("kill", "tgkill", "rt_tgsigqueueinfo"):
            program += _on(calls[name], _only(_ARGUMENT_0, own, errno.EPERM))
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def attribute_calls() -> dict[str, int]:
    """Return the calls that change the mode or the times of a file, with their numbers on this machine."""
    calls = {**_MACHINES[platform.machine()].calls, **_NEW_CALLS}
    return {name: calls[name] for name in ("chmod", "fchmod", "fchmodat", "fchmodat2", "utimensat") if name in calls}


def assemble_attributes(*, held: bool) -> bytes:
    """Return the filter for calls that change the mode or the times of a file; it allows all others.

    Parameters
    ----------
    held : bool
        Whether they wait for a listener; otherwise they are refused.
    """
    verdict = (_RETURN, 0, 0, _HOLD) if held else _refuse(errno.EPERM)
    machine = _MACHINES[platform.machine()]
    calls = {**machine.calls, **_NEW_CALLS}
    program: list[_Instruction] = [(_LOAD, 0, 0, _NUMBER)]
    for number in attribute_calls().values():
        program += [(_EQUAL, 0, 1, number), verdict]
    # Older calls for the same; libc makes the newer ones.
    program += _refuse_calls((calls[name] for name in ("utime", "utimes", "futimesat") if name in calls), errno.ENOSYS)
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _socket_error(sockets: Sockets) -> int:
    # ZeroMQ aborts the process if a socket fails with anything but "no such family".
    return errno.EPERM if sockets is Sockets.NONE else errno.EAFNOSUPPORT


def _refuse(error: int) -> _Instruction:
    return (_RETURN, 0, 0, _REFUSE | error)


def _no_programs_of_their_owner(calls: Mapping[str, int]) -> list[_Instruction]:
    """Refuse the set-user-ID and set-group-ID bits: outside, such a file runs as the user, whoever starts it."""
    refusal = [(_ANY_BIT, 0, 1, _SET_ID_BITS), _refuse(errno.EPERM)]
    program = []
    for name, mode in _MODES.items():
        if name in calls:
            program += _on(calls[name], [(_LOAD, 0, 0, mode), *refusal])
    for name, flags, mode in (("open", _ARGUMENT_1, _ARGUMENT_2), ("openat", _ARGUMENT_2, _ARGUMENT_3)):
        if name in calls:
            # Without these flags, the mode is whatever was left in the register.
            makes = [(_LOAD, 0, 0, flags), (_ANY_BIT, 0, 3, _MAKES_FILE)]
            program += _on(calls[name], [*makes, (_LOAD, 0, 0, mode), *refusal])
    return program


def _own_process_only(calls: Mapping[str, int]) -> list[_Instruction]:
    """Refuse to change the limits, the processors, the priority and the signals of other processes of the user."""
    own = (0, os.getpid())
    program = []
    for name in _OF_A_PROCESS:
        program += _on(calls[name], _only(_ARGUMENT_0, own, errno.EPERM))
    # ZeroMQ sets the usual policy for its threads, and aborts the process if it cannot.
    program += _on(calls["sched_setscheduler"], _only(_ARGUMENT_1, (_SCHED_OTHER,), errno.EPERM))
    for name, kind in (("setpriority", _PRIO_PROCESS), ("ioprio_set", _IOPRIO_WHO_PROCESS)):
        program += _on(calls[name], [*_only(_ARGUMENT_0, (kind,), errno.EPERM), *_only(_ARGUMENT_1, own, errno.EPERM)])
    return [*program, *_on(calls["fcntl"], _only_other_than(_ARGUMENT_1, (_F_SETOWN, _F_SETOWN_EX), errno.EPERM))]


def _refuse_calls(numbers: Iterable[int], error: int = errno.EPERM) -> list[_Instruction]:
    return [part for number in numbers for part in ((_EQUAL, 0, 1, number), _refuse(error))]


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
