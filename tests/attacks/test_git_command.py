from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import TIMEOUT, Stage

ATTACK = Attack(
    "leave in a repository of the work directory, or below it, what the next git command outside runs: settings and"
    " what they include, hooks, `commondir`, `config.worktree`, a rebase's list, links where git writes",
    remains=(Isolation.LANDLOCK,),
    note="Landlock cannot take back a part of the work directory",
)

#: What is left where, and the command that would run it.
COMMANDS = {
    "config": ("status",),
    "commondir": ("status",),
    "config.worktree": ("status",),
    "included": ("status",),
    "program": ("status",),
    "hooks": ("checkout", "-q", "-b", "other"),
    "husky": ("commit", "-q", "--allow-empty", "-m", "x"),
    "rebase": ("rebase", "--continue"),
    "message": ("commit", "-q", "--allow-empty", "--no-edit"),
}


def attack(facts: dict[str, Any]) -> Any:
    import pathlib
    import shutil

    work = pathlib.Path(facts["tree"])
    settings = f"[core]\n\tfsmonitor = {facts['program']}\n"

    def add(file: str, text: str) -> None:
        with (work / file).open("a") as opened:
            opened.write(text)
        (work / file).chmod(0o755)

    def common() -> None:
        shutil.copytree(work / "commondir/.git", work / "commondir/.gitx", dirs_exist_ok=True)
        (work / "commondir/.gitx/config").unlink()
        add("commondir/.gitx/config", "[core]\n\trepositoryformatversion = 0\n" + settings)
        add("commondir/.git/commondir", "../.gitx\n")

    def hooks() -> None:
        (work / "hooks/.git/hooks").mkdir(exist_ok=True)
        add("hooks/.git/hooks/post-checkout", f"#!/bin/sh\n{facts['program']}\n")

    def message() -> None:
        (work / "message/.git/COMMIT_EDITMSG").unlink(missing_ok=True)
        (work / "message/.git/COMMIT_EDITMSG").symlink_to(facts["startup"])
        add("message/.git/MERGE_MSG", "planted\n")

    for attempt in (
        lambda: add("config/.git/config", settings),
        common,
        lambda: add("config.worktree/.git/config.worktree", settings),
        lambda: add("included/shared.gitconfig", settings),
        lambda: add("program/watch.sh", f"#!/bin/sh\n{facts['program']}\n"),
        hooks,
        lambda: add("husky/.husky/pre-commit", f"#!/bin/sh\n{facts['program']}\n"),
        lambda: add("rebase/.git/rebase-merge/git-rebase-todo", f"exec {facts['program']}\n"),
        message,
    ):
        try:
            attempt()
        except OSError:
            continue
    return "left"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home-of-git"
    made.mkdir()
    return made


def git(tree: Path, home: Path, *command: str, **more: str) -> None:
    names = ("AUTHOR", "COMMITTER")
    who = {f"GIT_{name}_{what}": "a@b.example" for name in names for what in ("NAME", "EMAIL")}
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_EDITOR": "true", **who, **more}
    subprocess.run(["git", *command], cwd=tree, env=env, capture_output=True, check=False, timeout=TIMEOUT)


def prepare(work: Path, home: Path) -> None:
    """Make the repositories as people have them."""
    for name in COMMANDS:
        tree = work / name
        tree.mkdir()
        git(tree, home, "init", "-q")
        for number in range(3):
            git(tree, home, "commit", "-q", "--allow-empty", "-m", str(number))
    git(work / "config.worktree", home, "config", "extensions.worktreeConfig", "true")
    git(work / "included", home, "config", "include.path", "../shared.gitconfig")
    (work / "included" / "shared.gitconfig").touch()
    git(work / "program", home, "config", "core.fsmonitor", "./watch.sh")
    (work / "program" / "watch.sh").write_text("#!/bin/sh\n")
    (work / "program" / "watch.sh").chmod(0o755)
    shutil.rmtree(work / "hooks" / ".git" / "hooks")
    git(work / "husky", home, "config", "core.hooksPath", ".husky")
    (work / "husky" / ".husky").mkdir()
    (work / "husky" / ".husky" / "pre-commit").write_text("#!/bin/sh\n")
    edit = {"GIT_SEQUENCE_EDITOR": "sed -i 1s/^pick/edit/"}
    git(work / "rebase", home, "rebase", "-i", "--keep-empty", "HEAD~2", **edit)
    assert (work / "rebase" / ".git" / "rebase-merge" / "git-rebase-todo").exists()


def test_the_next_git_command_runs_nothing_that_a_kernel_left(stage: Stage, home: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    root = stage.world.root
    directory = f"git-{stage.level.value}"
    work = root / "home" / directory
    work.mkdir()
    prepare(work, home)
    marker, program, startup = (root / f"{name}-{stage.level.value}" for name in ("marker", "program", "startup"))
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    startup.write_text("# mine\n")
    with stage.alone(directory) as kernel:
        facts = {"tree": str(work), "program": str(program), "startup": str(startup)}
        assert kernel.run(attack, **facts) == "left", kernel.said
    ran = set()
    for name, command in COMMANDS.items():
        git(work / name, home, *command)
        if marker.exists() or startup.read_text() != "# mine\n":
            ran.add(name)
            marker.unlink(missing_ok=True)
            startup.write_text("# mine\n")

    if stage.level is Isolation.NONE:
        assert ran == set(COMMANDS)  # each of them works where nothing stops it
    stage.said = str(ran)
    stage.judge(ATTACK, bool(ran))
