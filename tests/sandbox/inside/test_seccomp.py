"""The filters, installed in processes that then try what is refused."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agentbox.sandbox.inside import seccomp

pytestmark = pytest.mark.skipif(not seccomp.is_supported(), reason="the machine's system calls are not known")

TRY = """
import ctypes, errno, os, signal, socket, sys
from jupyter_agentbox.sandbox.inside import seccomp, syscalls
syscalls.filter_calls(seccomp.assemble({options}))
try:
    {attempt}
except OSError as error:
    print(errno.errorcode[error.errno])
else:
    print("works")
"""


def call(name: str, *arguments: int) -> None:
    """Make a system call that Python has no function for."""
    number = {**seccomp._MACHINES[platform.machine()].calls, **seccomp._NEW_CALLS}[name]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def outcome(attempt: str, options: str, directory: Path | None = None) -> str:
    code = TRY.format(attempt=attempt, options=options)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=directory, env=env
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOCAL = "sockets=seccomp.Sockets.LOCAL"
UNIX = "sockets=seccomp.Sockets.UNIX, namespaces=False"
NONE = "sockets=seccomp.Sockets.NONE, namespaces=False"
CALL = "from tests.sandbox.inside.test_seccomp import call; call"
OWN = "sockets=seccomp.Sockets.NONE, namespaces=False, own_signals_only=True"


@pytest.mark.parametrize(
    ("attempt", "options", "expected"),
    [
        ("socket.socket(socket.AF_INET)", LOCAL, "works"),
        ("socket.socket(socket.AF_VSOCK)", LOCAL, "EAFNOSUPPORT"),
        ("socket.socket(socket.AF_ALG)", LOCAL, "EAFNOSUPPORT"),
        ("socket.socket(socket.AF_UNIX)", UNIX, "works"),
        ("socket.socket(socket.AF_INET)", UNIX, "EAFNOSUPPORT"),
        ("socket.socket(socket.AF_UNIX)", NONE, "EPERM"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", NONE, "EPERM"),
        ("socket.socketpair()", NONE, "works"),
        ("os.kill(os.getppid(), 0)", OWN, "EPERM"),
        ("os.kill(os.getpid(), 0)", OWN, "works"),
        ("os.kill(-1, 0)", OWN, "EPERM"),
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", LOCAL, "works"),
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)", NONE, "works"),
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)", NONE, "EPERM"),
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)", NONE, "EPERM"),
        (f"{CALL}('semctl', 1, 0, 12)", LOCAL, "EINVAL"),
        (f"{CALL}('semctl', 1, 0, 12)", f"{LOCAL}, shared_objects=False", "EPERM"),
        (f"{CALL}('semctl', 1, 0, 12)", NONE, "EPERM"),
        ("os.open('made', os.O_CREAT | os.O_WRONLY, 0o755)", LOCAL, "works"),
        ("os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755)", LOCAL, "EPERM"),
        ("os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o2755)", LOCAL, "EPERM"),
        ("os.open('.', os.O_DIRECTORY, 0o4755)", LOCAL, "works"),
        ("os.chmod('.', 0o755)", LOCAL, "works"),
        ("os.chmod('.', 0o4755)", LOCAL, "EPERM"),
        ("os.fchmod(os.open('.', os.O_RDONLY), 0o2755)", LOCAL, "EPERM"),
        ("os.mknod('made', 0o104755)", LOCAL, "EPERM"),
        ("import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE)", NONE, "EPERM"),
        ("import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", NONE, "works"),
        ("os.setpriority(os.PRIO_PROCESS, os.getppid(), 0)", NONE, "EPERM"),
        ("os.setpriority(os.PRIO_USER, 0, 0)", NONE, "EPERM"),
        ("os.nice(0)", NONE, "works"),
        ("os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))", NONE, "EPERM"),
        ("os.sched_setaffinity(0, os.sched_getaffinity(0))", NONE, "works"),
        ("import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())", NONE, "EPERM"),
        ("os.setxattr('.', 'user.mark', b'')", NONE, errno.errorcode[errno.EOPNOTSUPP]),
        ("import fcntl, termios; fcntl.ioctl(0, 0x5412, b'x')", LOCAL, "EPERM"),
        ("import fcntl; fcntl.ioctl(os.open('.', os.O_RDONLY), 0x40086602, bytes(8))", NONE, "EPERM"),
        ("import fcntl; fcntl.ioctl(os.open('.', os.O_RDONLY), 0x40046602, bytes(8))", NONE, "EPERM"),
        ("import fcntl; fcntl.ioctl(os.open('.', os.O_RDONLY), 0x401c5820, bytes(28))", NONE, "EPERM"),
        ("import fcntl; fcntl.ioctl(os.open('.', os.O_RDONLY), 0x5421, bytes(8))", NONE, "works"),
        ("import threading; threading.Thread(target=print, args=('',)).start()", NONE, "works"),
        ("import subprocess; subprocess.run(['true'])", NONE, "works"),
    ],
)
def test_filter_refuses_what_it_must_and_no_more(attempt: str, options: str, expected: str, tmp_path: Path) -> None:
    assert outcome(attempt, options, tmp_path) == expected


def test_a_call_under_a_number_of_another_machine_is_refused() -> None:
    attempt = "ctypes.set_errno(0); r = ctypes.CDLL(None, use_errno=True).syscall(0x40000000 + 41, 2, 1, 0)"

    assert outcome(f"{attempt}\n    if r < 0: raise OSError(ctypes.get_errno(), '')", LOCAL) == "ENOSYS"


def test_an_unknown_machine_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "pdp11")

    with pytest.raises(NotImplementedError):
        seccomp.assemble(sockets=seccomp.Sockets.NONE)
