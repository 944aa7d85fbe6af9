"""What a kernel left is removed, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_agentbox.processes.removal import remove_tree

SECONDS = 30


def deepen(directory: Path, depth: int) -> None:
    """Make a directory in a directory in a directory. Its path is longer than Linux takes."""
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(directory)
        for _ in range(depth):
            os.mkdir("d")  # noqa: PTH102  # a path of all names would be too long
            os.chdir("d")
    finally:
        os.fchdir(before)
        os.close(before)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    made = tmp_path / "left"
    made.mkdir()
    return made


def test_a_tree_of_any_depth_is_removed(left: Path) -> None:
    deepen(left, 5000)

    assert remove_tree(left, seconds=SECONDS)
    assert not left.exists()


def test_directories_that_are_closed_to_their_owner_are_removed(left: Path) -> None:
    (left / "one" / "two" / "three").mkdir(parents=True)
    (left / "one" / "two" / "file").touch()
    for place in ("one/two/three", "one/two", "one"):
        (left / place).chmod(0)
    left.chmod(0)

    assert remove_tree(left, seconds=SECONDS)
    assert not left.exists()


def test_names_that_are_no_text_are_removed(left: Path) -> None:
    for name in (b"\xff\xfe", b"a\nb", b"-rf", b" ", b"x" * 255):
        os.mkdir(os.path.join(os.fsencode(left), name))  # noqa: PTH102, PTH118  # bytes
        with open(os.path.join(os.fsencode(left), name, name), "wb"):  # noqa: PTH118, PTH123
            pass

    assert remove_tree(left, seconds=SECONDS)


def test_no_link_is_followed(left: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    (outside / "kept").chmod(0o500)
    (left / "sub").mkdir()
    (left / "link").symlink_to(outside)
    (left / "sub" / "link").symlink_to(outside)
    (left / "sub" / "pipe").touch()

    assert remove_tree(left, seconds=SECONDS)
    assert (outside / "kept").stat().st_mode & 0o777 == 0o500


def test_a_link_in_the_place_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tmp_path / "left").symlink_to("outside")

    assert not remove_tree(tmp_path / "left", seconds=SECONDS)
    assert (tmp_path / "outside" / "kept").exists()


def test_what_takes_too_long_is_left(left: Path) -> None:
    deepen(left, 50)

    assert not remove_tree(left, seconds=0)
    assert remove_tree(left, seconds=SECONDS)


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "nothing", seconds=SECONDS)
