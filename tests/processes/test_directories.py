from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agentbox.processes import directories
from jupyter_agentbox.processes.directories import PrivateDirectory, sweep

from .test_removal import deepen

LEAVES_ONE = """
import sys
from pathlib import Path
from jupyter_agentbox.processes.directories import PrivateDirectory
made = PrivateDirectory("kind-", parent=Path(sys.argv[1]))
(made.path / "secret").write_text("key")
print(made.path, flush=True)
input()
"""


def test_a_directory_is_private_and_gone_when_it_is_removed(tmp_path: Path) -> None:
    made = PrivateDirectory("kind-", parent=tmp_path)

    assert made.path.name.startswith("agentbox-kind-")
    assert made.path.stat().st_mode & 0o777 == 0o700
    made.remove()
    made.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_process_that_was_killed_is_removed_by_the_next_and_none_before(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEAVES_ONE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        sweep(tmp_path)
        assert (left / "secret").exists()
        other.send_signal(signal.SIGKILL)
        other.wait(60)

    made = PrivateDirectory(parent=tmp_path)

    assert [one.name for one in tmp_path.iterdir()] == [made.path.name]
    made.remove()


def test_what_is_no_such_directory_is_left(tmp_path: Path) -> None:
    (tmp_path / "agentbox-0" / "run").mkdir(parents=True)
    (tmp_path / "agentbox-file").touch()
    (tmp_path / "agentbox-link").symlink_to(tmp_path / "agentbox-0")
    (tmp_path / "agentbox-open").mkdir()
    (tmp_path / "agentbox-open" / ".owner").touch()
    (tmp_path / "agentbox-open").chmod(0o755)

    sweep(tmp_path)

    assert len(list(tmp_path.iterdir())) == 4


def test_what_a_kernel_put_into_such_a_directory_does_not_stay_or_hold_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = PrivateDirectory(parent=tmp_path)
    (made.path / "d").mkdir()
    deepen(made.path / "d", 1100)  # deeper than a function of Python can call itself
    (made.path / "link").symlink_to(tmp_path)

    monkeypatch.setattr(directories, "PATIENCE", 0.0)
    made.remove()
    assert made.path.exists()

    monkeypatch.setattr(directories, "PATIENCE", 60.0)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
