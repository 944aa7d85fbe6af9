from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.programs import check_source, path_without, with_programs


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "bwrap").write_text("#!/bin/sh\n")
    (made / "bin" / "bwrap").chmod(0o755)
    return made


def test_a_program_where_the_kernel_can_write_is_not_run(work: Path) -> None:
    with pytest.raises(SandboxRefusedError):
        with_programs(SandboxSettings(bubblewrap=str(work / "bin" / "bwrap")), [work])


def test_a_program_that_is_reached_by_a_link_of_the_kernel_is_not_run(work: Path, tmp_path: Path) -> None:
    (tmp_path / "bwrap").symlink_to(work / "bin" / "bwrap")
    (work / "link").symlink_to("/usr/bin")

    for named in (tmp_path / "bwrap", work / "link" / "env"):
        with pytest.raises(SandboxRefusedError):
            with_programs(SandboxSettings(bubblewrap=str(named)), [work])


def test_a_program_is_not_looked_for_where_the_kernel_can_write(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{work / 'bin'}:bin::/usr/bin")
    monkeypatch.chdir(work)

    assert path_without([work]).split(os.pathsep) == ["/usr/bin", "/bin"]
    for named in ("", "bwrap"):
        assert not with_programs(SandboxSettings(bubblewrap=named), [work]).bubblewrap.startswith(str(work))


def test_settings_that_the_kernel_could_have_written_name_no_program(work: Path) -> None:
    check_source(work / "sandbox.json", {"levels": ["bubblewrap"]}, [work])
    check_source(work.parent / "sandbox.json", {"bubblewrap": "/usr/bin/bwrap"}, [work])
    with pytest.raises(SandboxRefusedError):
        check_source(work / "sandbox.json", {"bubblewrap": "/usr/bin/bwrap"}, [work])
