"""What a kernel is given is what was asked for, whatever links other kernels make."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.inside import bootstrap
from jupyter_agentbox.sandbox.server.backends import LandlockBackend, SandboxSpec
from jupyter_agentbox.sandbox.server.bubblewrap import compared
from jupyter_agentbox.sandbox.server.interpreter import prefixes_of
from jupyter_agentbox.sandbox.server.opened_directories import Opened
from jupyter_agentbox.sandbox.server.protected_paths import Protected
from jupyter_agentbox.sandbox.server.run_directory import RunDirectory
from jupyter_agentbox.sandbox.server.settings import Domains, ExtraPaths, SandboxLimits

from .conftest import can_reach


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory with a project in which a kernel works, and another one."""
    for name in ("home/project/sub", "home/other"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path.resolve()


@pytest.fixture
def opened(top: Path) -> Iterator[Opened]:
    opened = Opened([top / "home" / "project"])
    yield opened
    opened.close()


def test_a_directory_is_where_it_was_asked_for(top: Path, opened: Opened) -> None:
    assert opened.open(top / "home" / "project" / "sub", root=top / "home") == top / "home" / "project" / "sub"


def test_links_of_the_machine_are_followed(top: Path, opened: Opened) -> None:
    (top / "users").symlink_to("home")
    (top / "absolute").symlink_to(top / "users")
    (top / "home" / "other" / "back").symlink_to("../../absolute/other")

    assert opened.open(top / "absolute" / "other", root=top / "absolute") == top / "home" / "other"
    assert opened.open(top / "users" / "other" / "back") == top / "home" / "other"


def test_no_link_is_followed_below_the_root(top: Path, opened: Opened) -> None:
    (top / "home" / "link").symlink_to("other")

    with pytest.raises(SandboxRefusedError):
        opened.open(top / "home" / "link", root=top / "home")


@pytest.mark.parametrize("name", ["project/link", "project/sub/link", "around/link", "inner/link", "around/sub/link"])
def test_no_link_is_followed_where_a_kernel_can_write(top: Path, opened: Opened, name: str) -> None:
    home = top / "home"
    (home / "around").symlink_to("project")
    (home / "inner").symlink_to("project/sub")
    for place in ("project", "project/sub"):
        (home / place / "link").symlink_to(home / "other")

    with pytest.raises(SandboxRefusedError):
        opened.open(home / name)


def test_links_without_an_end_end(top: Path, opened: Opened) -> None:
    (top / "one").symlink_to("two")
    (top / "two").symlink_to("one")

    with pytest.raises(OSError, match="levels of symbolic links"):
        opened.open(top / "one")


def test_a_work_directory_that_is_missing_is_refused(top: Path, opened: Opened) -> None:
    protected = Protected(home=top / "home", hidden=(), read_only=())

    with pytest.raises(SandboxRefusedError):
        opened.open_work_directory(top / "home" / "none", protected)
    with pytest.raises(SandboxRefusedError):
        opened.open_work_directory(top / "home" / ".ssh", protected)


def test_places_that_are_missing_are_left_out_and_links_of_kernels_refused(top: Path, opened: Opened) -> None:
    home = top / "home"
    extra = ExtraPaths(readable=(home / "none", home / "other"), writable=(home / "project" / "sub",))

    assert opened.open_extra_paths(extra) == ExtraPaths(
        readable=(home / "other",), writable=(home / "project" / "sub",)
    )

    (home / "project" / "data").symlink_to(home / "other")
    with pytest.raises(SandboxRefusedError):
        opened.open_extra_paths(ExtraPaths(writable=(home / "project" / "data",)))


def test_what_is_below_is_found_from_what_is_open_and_through_no_link(top: Path, opened: Opened) -> None:
    project = opened.open(top / "home" / "project")
    (top / "home" / "project").rename(top / "moved")
    (top / "home" / "project").symlink_to("other")

    assert opened.fd_below(top / "elsewhere") is None
    found = opened.fd_below(project / "sub")
    assert found is not None
    assert Path(f"/proc/self/fd/{found}").readlink() == top / "moved" / "sub"
    (top / "moved" / "sub").rmdir()
    (top / "moved" / "sub").symlink_to(top)
    with pytest.raises(SandboxRefusedError):
        opened.fd_below(project / "sub")


def test_a_bubblewrap_that_mounts_by_name_runs_nothing_in_another_place(top: Path, opened: Opened) -> None:
    place = opened.open(top / "home" / "project")
    command = compared([sys.executable, "-c", "print('ran')"], opened)

    first = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    place.rename(top / "moved")
    (top / "home" / "other").rename(place)
    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (first.returncode, first.stdout) == (0, "ran\n")
    assert (second.returncode, second.stdout) == (77, "")
    assert f"{place} was replaced" in second.stderr


def test_a_kernel_that_srt_holds_does_not_start_in_another_place(
    top: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = opened.open(top / "home" / "project")
    same = {str(path): list(identity) for path, identity in opened.identities.items()}
    settings = {"cwd": str(top), "same": same, "limits": {}, "writable": None, "sign": str(top / "sign")}
    monkeypatch.chdir(top)

    bootstrap.narrow(settings)
    assert (top / "sign").exists()
    place.rename(top / "moved")
    (top / "home" / "other").rename(place)
    with pytest.raises(SystemExit, match=f"{place}` was replaced"):
        bootstrap.narrow(settings)


def test_landlock_says_at_once_why_a_kernel_could_not_be_confined(top: Path) -> None:
    can_reach(Isolation.LANDLOCK)
    base = top / "run"
    base.mkdir()
    run = RunDirectory(base)
    connection = run.file("connection.json", "{}")
    link = top / "home" / "link"  # as if it were exchanged for a link when everything was looked at
    link.symlink_to("other")
    order = SandboxSpec(
        run=run,
        work=link,
        protected=Protected(home=top / "home", hidden=(), read_only=()),
        prefixes=prefixes_of(Path(sys.executable)),
        extra=ExtraPaths(),
        limits=SandboxLimits(),
        connection_file=connection,
        output=(subprocess.DEVNULL, subprocess.DEVNULL),
        domains=Domains(),
        on_refused=lambda _: None,
    )
    box = LandlockBackend(order)
    try:
        with pytest.raises(SandboxRefusedError, match="leads to"):
            box.start([sys.executable, "-m", "jupyter_agentbox.kernel_app.launcher", str(connection), "{}"], env={})
    finally:
        box.close()
        run.remove()
