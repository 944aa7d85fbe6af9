from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.protected_paths import Protected, check_work_directory, literal


@pytest.fixture
def protected(tmp_path: Path) -> Protected:
    for name in ("home/.ssh", "home/project", "runtime", "venv/lib", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    return Protected(home=tmp_path / "home", hidden=(tmp_path / "runtime",), read_only=(tmp_path / "venv",))


def test_a_project_is_a_work_directory(tmp_path: Path, protected: Protected) -> None:
    assert check_work_directory(tmp_path / "home" / "project", protected) == tmp_path / "home" / "project"


def test_the_home_directory_is_one_because_its_secrets_can_be_hidden(tmp_path: Path, protected: Protected) -> None:
    assert check_work_directory(tmp_path / "home", protected) == tmp_path / "home"


@pytest.mark.parametrize("name", [".", "home/.ssh", "runtime", "runtime/..", "venv", "venv/lib", "missing"])
def test_what_would_show_or_lay_open_something_is_refused(tmp_path: Path, protected: Protected, name: str) -> None:
    with pytest.raises(SandboxRefusedError):
        check_work_directory(tmp_path / name, protected)


@pytest.mark.parametrize("name", ["/", "/etc", "/usr/share", "/proc", "/dev", "/run"])
def test_what_belongs_to_the_system_is_refused(protected: Protected, name: str) -> None:
    with pytest.raises(SandboxRefusedError):
        check_work_directory(Path(name), protected)


def test_a_link_is_followed_before_it_is_judged(tmp_path: Path, protected: Protected) -> None:
    (tmp_path / "innocent").symlink_to(tmp_path / "home" / ".ssh")

    with pytest.raises(SandboxRefusedError):
        check_work_directory(tmp_path / "innocent", protected)


def test_an_environment_of_python_below_the_work_directory_is_no_reason_to_refuse(tmp_path: Path) -> None:
    work = tmp_path / "project"
    (work / ".venv" / "etc" / "jupyter").mkdir(parents=True)
    protected = Protected(
        home=tmp_path / "home", hidden=(work / ".venv" / "etc" / "jupyter",), read_only=(work / ".venv",)
    )

    assert check_work_directory(work, protected) == work


def test_a_path_with_a_link_in_it_is_not_literal(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")

    assert literal(tmp_path / "real" / "file") == tmp_path / "real" / "file"
    assert literal(tmp_path / "link" / "file") is None
    assert literal(tmp_path / "missing") is None
