from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_agentbox.no_follow import open_directory


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # as names


def test_directories_are_opened_one_after_the_other_and_made_where_asked(tmp_path: Path) -> None:
    opened = open_directory(tmp_path, ("a", "b"), make=True)
    try:
        assert os.fstat(opened).st_ino == (tmp_path / "a" / "b").stat().st_ino
    finally:
        os.close(opened)


@pytest.mark.parametrize("names", [("link",), ("link", "inner"), ("missing",), ("file",)])
def test_no_link_is_followed_and_no_descriptor_is_left(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").touch()
    before = descriptors()

    with pytest.raises(OSError, match="Errno"):
        os.close(open_directory(tmp_path, names))

    assert descriptors() == before
