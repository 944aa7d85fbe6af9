"""Changes modes and times of files for processes that Landlock confines; Landlock itself does not restrict such calls.

The calls are held (``SECCOMP_RET_USER_NOTIF`` in seccomp_unotify(2)) until a supervisor, outside, has checked what they
name and has made the change itself. It opens the file and asks where that is: what was read from the caller's memory,
and what lies at a path, can change a moment later; an open file cannot. Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import stat
import struct
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from jupyter_agentbox.sandbox.inside import seccomp, syscalls

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_REQUEST, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_AT_FDCWD, _NO_FOLLOW, _EMPTY_PATH = -100, 0x100, 0x1000
_NOW, _OMIT = 0x3FFFFFFF, 0x3FFFFFFE
_LONGEST_PATH = 4096
_OWN = b"/proc/self/"


def hand_over(link: socket.socket) -> None:
    """Hold these calls of this process, and of all that it starts, for the other end of `link`. This cannot be undone.

    Where Linux cannot hold calls, they are refused.

    Parameters
    ----------
    link : socket.socket
        To a thread that runs `serve`.
    """
    with link:
        try:
            listener = syscalls.hold_calls(seccomp.assemble_attributes(held=True))
        except OSError:
            syscalls.filter_calls(seccomp.assemble_attributes(held=False))
            return
        socket.send_fds(link, [b"l"], [listener])
        os.close(listener)


def serve(link: socket.socket, writable: Sequence[str]) -> None:
    """Do what the calls ask for until no process is left that can call.

    Parameters
    ----------
    link : socket.socket
        The socket over which the listener for the calls is passed.
    writable : sequence of str
        Directories, without links, in which files can be changed.
    """
    with link:
        _, listeners, _, _ = socket.recv_fds(link, 1, 1)
    if not listeners:
        return
    calls = {number: name for name, number in seccomp.attribute_calls().items()}
    while True:
        request = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(listeners[0], _RECEIVE, request)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT):
                continue  # who called was ended meanwhile
            return
        call, caller, _, number, _, _, *arguments = _REQUEST.unpack(request)
        failure = 0
        try:
            _Caller(caller, listeners[0], call).change(calls[number], arguments, writable)
        except OSError as error:
            failure = error.errno or errno.EPERM
        except Exception:  # noqa: BLE001
            # A boundary: whatever the arguments are, the next caller must not wait for ever.
            failure = errno.EPERM
        with suppress(OSError):  # it was ended meanwhile
            fcntl.ioctl(listeners[0], _SEND, bytearray(_ANSWER.pack(call, 0, -failure, 0)))


class _Caller:
    """A thread that waits for its call.

    Parameters
    ----------
    thread : int
        Its id.
    listener, call : int
        The listener that reported its call, and the call's id.
    """

    def __init__(self, thread: int, listener: int, call: int) -> None:
        self._place = f"/proc/{thread}"
        self._listener = listener
        self._call = call

    def change(self, name: str, arguments: Sequence[int], writable: Sequence[str]) -> None:
        """Do what a call asks for.

        Raises
        ------
        OSError
            If it fails, or must not be done.
        """
        if name == "fchmod":
            directory, path, value, flags = arguments[0], 0, arguments[1], 0
        elif name == "chmod":
            directory, path, value, flags = _AT_FDCWD, arguments[0], arguments[1], 0
        else:
            directory, path, value, flags = arguments[:4]
            flags = 0 if name == "fchmodat" else flags
        is_itself = name == "fchmod" or (name == "utimensat" and path == 0)
        times = self._times(value) if name == "utimensat" else None
        opened = self._open(directory, b"" if is_itself else self._text(path), flags | _EMPTY_PATH * is_itself)
        try:
            found = _checked(opened, writable)
            if name == "utimensat":
                os.utime(f"/proc/self/fd/{opened}", ns=_chosen(times, found))
            elif stat.S_ISLNK(found.st_mode):
                raise OSError(errno.EOPNOTSUPP, "a link has no mode")
            else:
                Path(f"/proc/self/fd/{opened}").chmod(value & 0o1777)
        finally:
            os.close(opened)

    def _open(self, directory: int, path: bytes, flags: int) -> int:
        number = ctypes.c_int(directory).value
        base = f"{self._place}/cwd" if number == _AT_FDCWD else f"{self._place}/fd/{number}"
        if not path and not flags & _EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "an empty path")
        if path.startswith(_OWN):
            path = self._place.encode() + path[len(_OWN) - 1 :]
        try:
            above = os.open(base, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such file descriptor") from error
        try:
            self._still_waits()
            if not path:
                return os.dup(above)
            no_follow = os.O_NOFOLLOW if flags & _NO_FOLLOW else 0
            return os.open(path, os.O_PATH | os.O_CLOEXEC | no_follow, dir_fd=above)
        finally:
            os.close(above)

    def _text(self, address: int) -> bytes:
        text, end, _ = self._memory(address, _LONGEST_PATH).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "a path without an end")
        return text

    def _times(self, address: int) -> tuple[int, ...] | None:
        return struct.unpack("=4q", self._memory(address, 32)) if address else None

    def _memory(self, address: int, most: int) -> bytes:
        with closing(os.fdopen(os.open(f"{self._place}/mem", os.O_RDONLY | os.O_CLOEXEC), "rb", 0)) as memory:
            self._still_waits()
            try:
                return os.pread(memory.fileno(), most, address)
            except OSError as error:
                raise OSError(errno.EFAULT, "no memory there") from error

    def _still_waits(self) -> None:
        """Make sure that the caller still waits: after its end its id can be reused, and what was opened may differ."""
        fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", self._call))


def _checked(opened: int, writable: Sequence[str]) -> os.stat_result:
    """Return the status of an open file, if it belongs to this user and lies where the caller can write."""
    place = os.readlink(f"/proc/self/fd/{opened}")  # noqa: PTH115  # what is deleted is no path
    found = os.fstat(opened)
    if found.st_uid != os.geteuid() or not any(place == one or place.startswith(f"{one}/") for one in writable):
        raise PermissionError(errno.EPERM, "not where the caller can write")
    return found


def _chosen(times: tuple[int, ...] | None, found: os.stat_result) -> tuple[int, int]:
    """Return the times to set, in nanoseconds."""
    now = time.time_ns()
    if times is None:
        return now, now
    chosen = []
    for seconds, part, kept in ((*times[:2], found.st_atime_ns), (*times[2:], found.st_mtime_ns)):
        if part not in (_NOW, _OMIT) and not 0 <= part < 1_000_000_000:
            raise OSError(errno.EINVAL, "no time")
        chosen.append({_NOW: now, _OMIT: kept}.get(part, seconds * 1_000_000_000 + part))
    return chosen[0], chosen[1]
