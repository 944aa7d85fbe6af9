from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox.sandbox.server.site import is_site


def test_what_belongs_to_the_system_is_the_sites() -> None:
    assert is_site(Path("/usr/share"))
    assert not is_site(Path("/usr/share/there-is-no-such-thing"))


def test_what_the_user_can_change_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "kernels").mkdir()

    assert not is_site(tmp_path / "kernels")


def test_what_anybody_can_change_is_not(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    assert not is_site(tmp_path / "open")
