"""Modes and times of files, changed by a process that can do so in one directory only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.sandbox.inside import seccomp
from tests.sandbox.conftest import can_reach

pytestmark = pytest.mark.skipif(not seccomp.is_supported(), reason="the machine's system calls are not known")

TRY = """
import errno, os, socket, stat, sys, threading
from jupyter_agentbox.sandbox.watch import file_attributes
link, theirs = socket.socketpair()
child = os.fork()
if child:
    link.close()
    threading.Thread(target=file_attributes.serve, args=(theirs, [os.getcwd()]), daemon=True).start()
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
theirs.close()
file_attributes.hand_over(link)
try:
    print({attempt})
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    can_reach(Isolation.LANDLOCK)
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "file").write_text("")
    (tmp_path / "secret").write_text("")
    (tmp_path / "work-not").write_text("")
    (work / "out").symlink_to(tmp_path / "secret")
    (work / "in").symlink_to("file")
    return work


def outcome(attempt: str, work: Path) -> str:
    command = [sys.executable, "-c", TRY.format(attempt=attempt)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=work)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


MODE = "oct(os.lstat('file').st_mode)"


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (f"os.chmod('file', 0o741) or {MODE}", "0o100741"),
        (f"os.chmod(os.path.abspath('file'), 0o741) or {MODE}", "0o100741"),
        (f"os.chmod('in', 0o741) or {MODE}", "0o100741"),
        (f"os.chmod('../file', 0o741, dir_fd=os.open('sub', os.O_RDONLY)) or {MODE}", "0o100741"),
        (f"os.fchmod(os.open('file', os.O_RDONLY), 0o741) or {MODE}", "0o100741"),
        (f"os.chmod(f'/proc/self/fd/{{os.open(\"file\", os.O_RDONLY)}}', 0o741) or {MODE}", "0o100741"),
        ("os.utime('file', ns=(5, 7)) or (os.stat('file').st_atime_ns, os.stat('file').st_mtime_ns)", "(5, 7)"),
        ("os.utime(os.open('file', os.O_RDONLY), ns=(5, 7)) or os.stat('file').st_mtime_ns", "7"),
        ("os.utime('in', ns=(5, 7), follow_symlinks=False) or os.lstat('in').st_mtime_ns", "7"),
        ("os.utime('out', ns=(5, 7), follow_symlinks=False) or os.lstat('out').st_mtime_ns", "7"),
        ("os.utime('file') or os.stat('file').st_mtime_ns > 10**18", "True"),
    ],
)
def test_what_is_in_the_directory_is_changed(attempt: str, expected: str, work: Path) -> None:
    assert outcome(attempt, work) == expected


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        ("os.chmod('../secret', 0o777)", "EPERM"),
        ("os.chmod('../work-not', 0o777)", "EPERM"),
        ("os.chmod('out', 0o777)", "EPERM"),
        ("os.utime('out')", "EPERM"),
        ("os.fchmod(os.open('../secret', os.O_RDONLY), 0o777)", "EPERM"),
        ("os.utime(os.open('../secret', os.O_RDONLY))", "EPERM"),
        ("os.chmod('/proc/self/cwd/../secret', 0o777)", "EPERM"),
        ("os.chdir('..') or os.chmod('secret', 0o777)", "EPERM"),
        ("os.fchmod(os.pipe()[0], 0o777)", "EPERM"),
        ("os.chmod('missing', 0o777)", "ENOENT"),
        ("os.chmod('', 0o777)", "ENOENT"),
        ("os.chmod('file/below', 0o777)", "ENOTDIR"),
        ("os.fchmod(999, 0o777)", "EBADF"),
        ("os.utime('file', ns=(0, 5_000_000_000)) or os.stat('file').st_mtime", "5.0"),
    ],
)
def test_what_is_elsewhere_keeps_its_mode_and_times(attempt: str, expected: str, work: Path) -> None:
    before = [(work.parent / name).stat() for name in ("secret", "work-not")]

    assert outcome(attempt, work) == expected

    assert [(work.parent / name).stat() for name in ("secret", "work-not")] == before


def test_a_caller_that_is_ended_holds_up_no_other(work: Path) -> None:
    busy = "import os\nwhile True: os.chmod('file', 0o600)"
    attempt = (
        "[p.kill() or p.wait() for p in [__import__('subprocess').Popen([sys.executable, '-c', "
        f"{busy!r}], process_group=0) for _ in range(3)]] and os.chmod('file', 0o741) or {MODE}"
    )

    assert outcome(attempt, work) == "0o100741"


def test_where_calls_cannot_wait_they_are_refused(work: Path) -> None:
    inside = "__import__('jupyter_agentbox.sandbox.inside', fromlist=['seccomp', 'syscalls'])"
    attempt = f"{inside}.syscalls.filter_calls({inside}.seccomp.assemble_attributes(held=False))"

    assert outcome(f"{attempt} or os.chmod('file', 0o741)", work) == "EPERM"
