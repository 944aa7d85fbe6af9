"""Which files the user of this process can change; by an ordinary user and by root, each as far as it is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_agentbox.storage.protection import why_unprotected

AS_ROOT = os.geteuid() == 0


def a_file(path: Path, mode: int = 0o644) -> Path:
    path.write_text("{}")
    path.chmod(mode)
    return path


def test_what_belongs_to_root_is_protected() -> None:
    assert why_unprotected(Path("/etc/passwd")) == ""


def test_what_belongs_to_the_user_is_not(tmp_path: Path) -> None:
    assert bool(why_unprotected(a_file(tmp_path / "x"))) is not AS_ROOT


@pytest.mark.skipif(not AS_ROOT, reason="only root makes files of root")
def test_everything_on_the_way_counts(tmp_path: Path) -> None:
    directory = tmp_path / "a"
    directory.mkdir()
    path = a_file(directory / "x")
    link = tmp_path / "link"
    link.symlink_to("a/x")
    assert [why_unprotected(path), why_unprotected(link)] == ["", ""]

    path.chmod(0o646)
    assert "write" in why_unprotected(path)
    assert "write" in why_unprotected(link)
    path.chmod(0o644)
    directory.chmod(0o777)
    assert "write" in why_unprotected(path)
    assert "write" in why_unprotected(link)
    directory.chmod(0o1777)  # sticky, as /tmp
    assert why_unprotected(path) == ""
    os.chown(path, 65534, 65534)
    assert "root" in why_unprotected(path)


def test_links_that_lead_in_a_circle_are_not_protected(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert why_unprotected(tmp_path / "one")


def test_what_is_missing_is_not_protected(tmp_path: Path) -> None:
    assert why_unprotected(tmp_path / "none")
