"""Files that are written as a whole, for one user."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jupyter_agentbox.private_files import replace_file


@pytest.mark.parametrize("is_synced", [False, True])
def test_a_file_is_for_this_user_only_and_so_are_directories_that_were_missing(tmp_path: Path, is_synced: bool) -> None:
    path = tmp_path / "new" / "kept.json"

    replace_file(path, b"{}", is_synced=is_synced)

    assert path.read_bytes() == b"{}"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]


def test_permissions_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "shared.json"

    replace_file(path, b"{}", mode=0o644)

    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_what_is_no_file_stays_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    path.mkdir()

    with pytest.raises(OSError):
        replace_file(path, b"{}")

    assert list(tmp_path.iterdir()) == [path]
    assert path.is_dir()
