from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.inside.syscalls import READ, WRITE
from jupyter_agentbox.sandbox.server.landlock import rules_of
from jupyter_agentbox.sandbox.server.protected_paths import Protected
from jupyter_agentbox.sandbox.server.settings import ExtraPaths
from jupyter_agentbox.sandbox.server.view import Access, Mount, View, make_view


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in (
        "home",
        "work/.git/hooks",
        "work/envs/one/etc/jupyter",
        "work/keys",
        "work/data",
        "library/deep/secret",
    ):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "work"


def view_of(work: Path, *, prefixes: tuple[Path, ...] = (), extra: ExtraPaths | None = None) -> View:
    protected = Protected(home=work.parent / "home", hidden=(), read_only=prefixes)
    return make_view(work=work, protected=protected, prefixes=prefixes, extra=extra or ExtraPaths(), files=[])


def access(view: View, path: Path) -> Access | None:
    """How the nearest mount shows a path."""
    found = [mount for mount in view.mounts if mount.place == path or mount.place in path.parents]
    return found[-1].access if found else None


def test_outer_mounts_come_before_inner_ones(work: Path) -> None:
    depths = [len(mount.place.parts) for mount in view_of(work).mounts]

    assert depths == sorted(depths)


def test_what_is_kept_in_the_work_directory_cannot_be_moved_away(work: Path) -> None:
    view = view_of(work, prefixes=(work / "envs" / "one",))

    assert access(view, work / ".git" / "hooks") is Access.READ
    assert Mount(work / ".git", Access.READ) in view.mounts
    assert Mount(work / "envs", Access.WRITE) in view.mounts


def test_an_environment_in_the_work_directory_is_read_only_all_through(work: Path) -> None:
    view = view_of(work, prefixes=(work / "envs" / "one",))

    assert access(view, work / "envs" / "one" / "etc") is Access.READ
    assert access(view, work / "envs" / "one" / "etc" / "jupyter") is Access.HIDDEN
    assert access(view, work / "data") is Access.WRITE


def test_hidden_wins_over_readable_and_writable(work: Path) -> None:
    places = ExtraPaths(readable=(work / "keys",), writable=(work / "keys",), hidden=(work / "keys",))

    assert access(view_of(work, extra=places), work / "keys") is Access.HIDDEN


def test_a_file_that_names_the_repository_is_kept(work: Path) -> None:
    (work / "sub").mkdir()
    (work / "sub" / ".git").write_text("gitdir: /elsewhere")

    assert access(view_of(work / "sub"), work / "sub" / ".git") is Access.READ


def test_rules_leave_out_what_is_hidden_and_what_is_above_it(work: Path, tmp_path: Path) -> None:
    (tmp_path / "library" / "open").mkdir()
    places = ExtraPaths(readable=(tmp_path / "library",), hidden=(tmp_path / "library" / "deep" / "secret",))

    rules = dict(rules_of(view_of(work, extra=places), read_only=()))

    assert rules[str(tmp_path / "library" / "open")] == READ
    assert not rules.keys() & {str(tmp_path / "library"), str(tmp_path / "library" / "deep")}
    assert rules[str(work)] == WRITE


def test_rules_cannot_keep_a_part_of_a_writable_directory(work: Path) -> None:
    with pytest.raises(SandboxRefusedError):
        rules_of(view_of(work, extra=ExtraPaths(hidden=(work / "keys",))), read_only=())
    with pytest.raises(SandboxRefusedError):
        rules_of(view_of(work), read_only=(work / "envs" / "one",))


def configured(work: Path, *paths: Path) -> View:
    protected = Protected(home=work.parent / "home", hidden=(), read_only=(), configuration=paths)
    return make_view(work=work, protected=protected, prefixes=(), extra=ExtraPaths(), files=[])


def test_a_file_that_decides_is_read_only_and_its_directories_stay(work: Path) -> None:
    (work / "data" / "sandbox.json").touch()
    view = configured(work, work / "data" / "sandbox.json")

    assert access(view, work / "data" / "sandbox.json") is Access.READ
    assert Mount(work / "data", Access.WRITE) in view.mounts
    with pytest.raises(SandboxRefusedError):
        rules_of(view, read_only=())


def test_a_file_that_would_decide_is_not_the_kernels_to_make(work: Path) -> None:
    with pytest.raises(SandboxRefusedError):
        configured(work, work / "data" / "sandbox.json")

    configured(work, work.parent / "elsewhere" / "sandbox.json")


def test_a_link_that_leads_to_what_decides_is_not_the_kernels_to_exchange(work: Path, tmp_path: Path) -> None:
    (tmp_path / "sandbox.json").touch()
    (work / "sandbox.json").symlink_to(tmp_path / "sandbox.json")
    (work / "conf").symlink_to(tmp_path)

    for path in (work / "sandbox.json", work / "conf" / "sandbox.json"):
        with pytest.raises(SandboxRefusedError):
            configured(work, path)


def test_read_only_holds_in_the_work_directory_or_the_kernel_is_refused(work: Path) -> None:
    view = view_of(work, extra=ExtraPaths(read_only=(work / "data",)))

    assert access(view, work / "data") is Access.READ
    with pytest.raises(SandboxRefusedError):
        rules_of(view, read_only=())
    with pytest.raises(SandboxRefusedError):
        view_of(work, extra=ExtraPaths(read_only=(work / "missing",)))
