from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server import repositories
from jupyter_agentbox.sandbox.server.protected_paths import Protected
from jupyter_agentbox.sandbox.server.settings import ExtraPaths
from jupyter_agentbox.sandbox.server.view import MOST_OBEYED, Access, View, make_view

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (tmp_path / "home").mkdir()
    make(made)
    return made


def make(tree: Path) -> None:
    tree.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)


def configure(tree: Path, name: str, value: str) -> None:
    subprocess.run(["git", "config", name, value], cwd=tree, check=True)


def view_of(work: Path, *unprotected: str) -> View:
    protected = Protected(home=work.parent / "home", hidden=(), read_only=())
    places = ExtraPaths(unprotected=unprotected)
    return make_view(work=work, protected=protected, prefixes=(), extra=places, files=[])


def test_all_of_a_repository_is_kept_and_of_those_below(work: Path) -> None:
    make(work / "deep" / "down")
    view = view_of(work)

    for path in (work / ".git" / "commondir", work / "deep" / "down" / ".git" / "hooks" / "new"):
        assert view.access(path) is Access.READ
    assert view.access(work / "deep" / "down" / "code.py") is Access.WRITE


def test_settings_open_a_repository_for_commits_but_not_its_settings(work: Path) -> None:
    view = view_of(work, ".git")

    assert view.access(work / ".git" / "HEAD") is Access.WRITE
    assert view.access(work / ".git" / "config") is Access.READ
    assert view.access(work / ".git" / "hooks" / "new") is Access.READ


def test_what_settings_of_git_name_is_kept(work: Path) -> None:
    (work / "tools").mkdir()
    for name in ("hooks.d", "tools/strip.py", "shared.inc", "notes"):
        (work / name).mkdir() if name == "hooks.d" else (work / name).touch()
    configure(work, "core.hooksPath", "hooks.d")
    configure(work, "filter.strip.clean", "python tools/strip.py %f")
    configure(work, "include.path", "../shared.inc")
    configure(work, "user.name", "notes")
    view = view_of(work)

    for name in ("hooks.d", "tools/strip.py", "shared.inc"):
        assert view.access(work / name) is Access.READ
    assert view.access(work / "notes") is Access.WRITE


def test_what_the_users_own_settings_of_git_name_is_kept(work: Path) -> None:
    (work / ".myhooks").mkdir()
    (work.parent / "home" / ".gitconfig").write_text("[core]\n\thooksPath = .myhooks\n")

    assert view_of(work).access(work / ".myhooks" / "new") is Access.READ


def test_a_directory_for_hooks_that_is_missing_is_not_the_kernels_to_make(work: Path) -> None:
    configure(work, "core.hooksPath", ".myhooks")

    with pytest.raises(SandboxRefusedError, match=r"\.myhooks"):
        view_of(work)


def test_a_link_to_a_repository_is_not_the_kernels_to_exchange(work: Path) -> None:
    (work / ".git").rename(work.parent / "repository")
    (work / ".git").symlink_to(work.parent / "repository")

    with pytest.raises(SandboxRefusedError, match="link"):
        view_of(work)


def test_a_repository_that_is_named_and_missing_is_not_the_kernels_to_make(work: Path) -> None:
    shutil.rmtree(work / ".git")
    (work / ".git").write_text("gitdir: missing\n")

    with pytest.raises(SandboxRefusedError, match="missing"):
        view_of(work)


def test_a_linked_working_tree_keeps_the_repository_that_it_shares(work: Path) -> None:
    shutil.move(work / ".git", work / "store")
    (work / "tree").mkdir()
    (work / "store" / "worktrees" / "tree").mkdir(parents=True)
    (work / "store" / "worktrees" / "tree" / "commondir").write_text("../..\n")
    (work / "tree" / ".git").write_text(f"gitdir: {work / 'store' / 'worktrees' / 'tree'}\n")
    view = view_of(work)

    for name in ("tree/.git", "store/worktrees/tree/config.worktree", "store/config"):
        assert view.access(work / name) is Access.READ


def test_what_editors_and_agents_obey_is_kept_at_the_top_of_each_repository(work: Path) -> None:
    make(work / "sub")
    for name in (
        "AGENTS.md",
        "sub/CLAUDE.md",
        "sub/one.code-workspace",
        "data.env",
        "sub/pyproject.toml",
        "AGENTS.txt",
    ):
        (work / name).touch()
    (work / "CLAUDE.md").symlink_to("AGENTS.md")
    view = view_of(work)

    for name in ("AGENTS.md", "sub/CLAUDE.md", "sub/one.code-workspace"):
        assert view.access(work / name) is Access.READ
    for name in ("data.env", "sub/pyproject.toml", "AGENTS.txt"):
        assert view.access(work / name) is Access.WRITE
    assert view_of(work, "AGENTS.md", "CLAUDE.md").access(work / "AGENTS.md") is Access.WRITE


def test_repositories_are_looked_for_in_bounds(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = work.joinpath(*"abcdefgh")
    make(deep)
    assert work / ".git" in repositories.find(work)
    assert deep / ".git" not in repositories.find(work)

    monkeypatch.setattr(repositories, "MOST_REPOSITORIES", 1)
    make(work / "two")
    with pytest.raises(SandboxRefusedError):
        repositories.find(work)


@pytest.mark.parametrize("name", ["commondir", "config", "config.worktree"])
def test_a_pipe_that_nobody_writes_holds_nothing_up(work: Path, name: str) -> None:
    (work / "sub" / ".git").mkdir(parents=True)
    os.mkfifo(work / "sub" / ".git" / name)

    assert view_of(work).access(work / "sub" / ".git" / "new") is Access.READ


def test_settings_without_end_are_not_read(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        make(work / name)
    monkeypatch.setattr(repositories, "MOST_SETTINGS_FILES", 2)
    with pytest.raises(SandboxRefusedError, match="too many"):
        view_of(work)
    monkeypatch.undo()
    view_of(work)
    with (work / "two" / ".git" / "config").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(SandboxRefusedError, match="too long"):
        view_of(work)


def test_what_cannot_all_be_kept_is_no_work_directory(work: Path) -> None:
    for number in range(MOST_OBEYED):
        (work / f".env.{number}").touch()
    with pytest.raises(SandboxRefusedError, match="can be kept"):
        view_of(work)


def test_of_a_directory_without_end_the_beginning_is_looked_at(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        make(work / name)
    assert len(repositories.find(work)) == 4
    monkeypatch.setattr(repositories, "MOST_ENTRIES", 1)

    assert work / ".git" in repositories.find(work)
    assert len(repositories.find(work)) < 4


def test_reading_settings_of_git_runs_nothing(work: Path) -> None:
    for name in ("core.fsmonitor", "core.pager", "alias.config", "core.editor", "credential.helper"):
        configure(work, name, f"!touch {work.parent / 'ran'}")
    list(repositories.obeyed(work, home=Path(os.devnull), is_open=False))

    assert not (work.parent / "ran").exists()


def test_a_link_or_a_setting_that_a_kernel_left_shows_nothing_that_is_elsewhere(work: Path) -> None:
    secrets = work.parent / "secrets"
    (secrets / "store").mkdir(parents=True)
    (secrets / "linked").mkdir()
    (work / ".vscode").symlink_to(secrets)
    (work / ".git" / "objects" / "linked").symlink_to(secrets / "linked")
    shutil.rmtree(work / ".git" / "hooks")
    (work / ".git" / "hooks").symlink_to(secrets / "linked")
    (work / "tree").mkdir()
    (work / "tree" / ".git").write_text(f"gitdir: {secrets / 'store'}\n")
    configure(work, "core.hooksPath", str(secrets))
    configure(work, "include.path", str(secrets / "included"))
    (secrets / "included").touch()
    view = view_of(work)

    for path in (secrets, secrets / "linked", secrets / "store", secrets / "included"):
        assert view.access(path) not in (Access.READ, Access.WRITE)
