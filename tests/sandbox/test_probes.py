"""The strongest level is found by trying, also where namespaces, or a `/proc` of one's own, are not allowed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import pins_sources, select_level

from .conftest import can_reach

REACH = """
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import pins_sources, select_level
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
try:
    print(select_level(SANDBOX_LEVELS).value)
except SandboxRefusedError as refusal:
    print("refused:", refusal)
"""

#: What the default system-call filter of a container engine refuses.
NO_NAMESPACES = """
from jupyter_agentbox.sandbox.inside import seccomp, syscalls
syscalls.filter_calls(seccomp.assemble(sockets=seccomp.Sockets.LOCAL))
"""

#: As on Linux before 5.13: no Landlock either.
NO_LANDLOCK = """
from jupyter_agentbox.sandbox.inside import syscalls
syscalls.landlock_version = lambda: 0
"""


def said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_user_namespaces_landlock_is_reached() -> None:
    can_reach(Isolation.LANDLOCK)

    assert said(sys.executable, "-c", NO_NAMESPACES + REACH) == "landlock"


def test_where_proc_is_masked_bubblewrap_shows_the_hosts() -> None:
    can_reach(Isolation.BUBBLEWRAP)
    masked = ("--dev-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/proc/irq")
    inside = ("bwrap", "--unshare-user", "--unshare-pid", *masked, "--", sys.executable, "-c", REACH)

    assert said(*inside) == "bubblewrap-host-proc"


def test_with_neither_the_refusal_says_what_to_install_and_what_was_met() -> None:
    told = said(sys.executable, "-c", NO_NAMESPACES + NO_LANDLOCK + REACH)

    assert told.startswith("refused:")
    assert "install bubblewrap" in told
    for level in SANDBOX_LEVELS:
        assert f"{level.value}:" in told


def test_a_level_that_settings_do_not_accept_is_not_reached() -> None:
    with pytest.raises(SandboxRefusedError):
        select_level([])


def test_bubblewrap_that_is_named_and_missing_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(SandboxRefusedError):
        select_level([Isolation.BUBBLEWRAP], bubblewrap=str(tmp_path / "bwrap"))


def test_landlock_follows_no_link_that_took_the_place_of_a_directory(tmp_path: Path) -> None:
    can_reach(Isolation.LANDLOCK)
    (tmp_path / "secret").mkdir()
    (tmp_path / "work").symlink_to("secret")
    code = (
        "import errno\nfrom jupyter_agentbox.sandbox.inside import syscalls\n"
        f"try:\n    syscalls.restrict_files([({str(tmp_path / 'work')!r}, syscalls.WRITE)])\n"
        "except OSError as error:\n    print(errno.errorcode[error.errno])\n"
    )

    assert said(sys.executable, "-c", code) == "ELOOP"


def flaky(path: Path, *, failures: int) -> Path:
    """Write a `bwrap` that fails some times, as on a machine that is too busy, and is the real one from then on."""
    real = shutil.which("bwrap")
    count = path.with_name("count")
    count.write_text("")
    path.write_text(
        f"#!/bin/sh\nprintf x >>'{count}'\n"
        f"[ $(wc -c <'{count}') -gt {failures} ] || {{ echo 'Resource temporarily unavailable' >&2; exit 1; }}\n"
        f'exec {real} "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_a_probe_that_failed_once_is_made_again_and_one_that_worked_is_not(tmp_path: Path) -> None:
    can_reach(Isolation.BUBBLEWRAP)
    program = flaky(tmp_path / "bwrap", failures=1)

    with pytest.raises(SandboxRefusedError):
        select_level([Isolation.BUBBLEWRAP], bubblewrap=str(program))
    for _ in range(3):
        assert select_level([Isolation.BUBBLEWRAP], bubblewrap=str(program)) is Isolation.BUBBLEWRAP

    assert len((tmp_path / "count").read_text()) == 2


def test_what_bubblewrap_can_do_is_asked_again_if_it_did_not_say(tmp_path: Path) -> None:
    can_reach(Isolation.BUBBLEWRAP)
    program = flaky(tmp_path / "bwrap", failures=1)

    with pytest.raises(SandboxRefusedError):
        pins_sources(str(program))
    assert pins_sources(str(program)) is pins_sources(str(shutil.which("bwrap")))
