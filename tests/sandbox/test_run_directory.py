from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.processes import directories
from jupyter_agentbox.sandbox.server.run_directory import LONGEST_SOCKET_PATH, RunDirectory, base_directory, sweep
from tests.processes.test_removal import deepen


@pytest.fixture
def base() -> Iterator[Path]:
    # Below pytest's own directories a socket's path would be too long.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="abx-") as place:
        yield base_directory({"XDG_RUNTIME_DIR": place})


def test_a_socket_always_fits(base: Path) -> None:
    run = RunDirectory(base)

    assert len(str(run.sockets / "k-5")) <= LONGEST_SOCKET_PATH
    assert run.path.stat().st_mode & 0o077 == 0
    run.remove()


def test_a_path_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()

    assert long not in base_directory({"XDG_RUNTIME_DIR": str(long)}).parents


def test_a_place_that_others_can_enter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path("/tmp") / f"abx-test-{os.getpid()}"
    (place / f"agentbox-{os.getuid()}").mkdir(parents=True)
    (place / f"agentbox-{os.getuid()}").chmod(0o755)
    try:
        with pytest.raises(SandboxRefusedError):
            base_directory({"XDG_RUNTIME_DIR": str(place)})
    finally:
        (place / f"agentbox-{os.getuid()}").rmdir()
        place.rmdir()


def test_what_a_killed_server_left_is_swept_and_what_is_used_is_not(base: Path) -> None:
    used, left = RunDirectory(base), RunDirectory(base)
    os.close(left._lock)  # as when its process was killed

    sweep(base)

    assert (used.path.exists(), left.path.exists()) == (True, False)
    used.remove()


def test_a_directory_that_is_swept_while_it_is_made_is_made_again(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = fcntl.flock

    def lock_late(file: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        sweep(base)
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    run = RunDirectory(base)
    sweep(base)

    assert run.sockets.is_dir()
    run.remove()


def test_a_cleared_directory_keeps_the_path_of_its_sockets(base: Path) -> None:
    run = RunDirectory(base)
    (run.sockets / "k-1").touch()
    run.directory("tmp")

    run.clear()

    assert sorted(path.name for path in run.path.iterdir()) == ["ipc", "lock"]
    assert list(run.sockets.iterdir()) == []
    run.remove()


def test_what_cannot_be_removed_soon_is_put_aside_and_removed_later(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(base)
    deepen(run.sockets, 2000)

    monkeypatch.setattr(directories, "PATIENCE", 0.0)
    run.clear()
    assert list(run.sockets.iterdir()) == []
    assert len(list(run.path.glob("aside-*"))) == 1
    run.remove()
    assert (run.path / "lock").exists()

    monkeypatch.setattr(directories, "PATIENCE", 60.0)
    sweep(base)
    assert not run.path.exists()


def test_what_a_kernel_left_keeps_no_other_from_starting(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "PATIENCE", 60.0)  # a busy disk takes seconds
    bad, left = RunDirectory(base), RunDirectory(base)
    deepen(bad.sockets, 2000)
    (bad.sockets / "d").chmod(0)
    for run in (bad, left):
        os.close(run._lock)

    sweep(base)

    assert (bad.path.exists(), left.path.exists()) == (False, False)
