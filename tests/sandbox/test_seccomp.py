"""The filters, installed in processes that then try what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jupyter_agentbox.sandbox import seccomp

pytestmark = pytest.mark.skipif(not seccomp.is_supported(), reason="the machine's system calls are not known")

TRY = """
import ctypes, errno, os, signal, socket, sys
from jupyter_agentbox.sandbox import kernel_calls, seccomp
kernel_calls.filter_calls(seccomp.assemble({options}))
try:
    {attempt}
except OSError as error:
    print(errno.errorcode[error.errno])
else:
    print("works")
"""


def outcome(attempt: str, options: str) -> str:
    code = TRY.format(attempt=attempt, options=options)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOCAL = "sockets=seccomp.Sockets.LOCAL"
UNIX = "sockets=seccomp.Sockets.UNIX, namespaces=False"
NONE = "sockets=seccomp.Sockets.NONE, namespaces=False"
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
        ("import fcntl, termios; fcntl.ioctl(0, 0x5412, b'x')", LOCAL, "EPERM"),
        ("import threading; threading.Thread(target=print, args=('',)).start()", NONE, "works"),
        ("import subprocess; subprocess.run(['true'])", NONE, "works"),
    ],
)
def test_filter_refuses_what_it_must_and_no_more(attempt: str, options: str, expected: str) -> None:
    assert outcome(attempt, options) == expected


def test_a_call_under_a_number_of_another_machine_is_refused() -> None:
    attempt = "ctypes.set_errno(0); r = ctypes.CDLL(None, use_errno=True).syscall(0x40000000 + 41, 2, 1, 0)"

    assert outcome(f"{attempt}\n    if r < 0: raise OSError(ctypes.get_errno(), '')", LOCAL) == "ENOSYS"


def test_an_unknown_machine_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "pdp11")

    with pytest.raises(NotImplementedError):
        seccomp.assemble(sockets=seccomp.Sockets.NONE)
