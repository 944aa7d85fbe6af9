"""Where a control group can be made, as Linux describes it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jupyter_agentbox.sandbox.watch.cgroups import make_group, parents

FIRST = """\
36 31 0:33 / {top}/pids rw,relatime - cgroup cgroup rw,pids
35 31 0:32 / {top}/memory rw,relatime - cgroup cgroup rw,memory
"""
SECOND = "41 31 0:38 / {top} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def group(top: Path, name: str, *given: str) -> Path:
    made = top / name
    made.mkdir(parents=True, exist_ok=True)
    (made / "cgroup.subtree_control").write_text(" ".join(given) + "\n")
    return made


def test_version_1_has_one_tree_for_each_controller() -> None:
    mounts, membership = FIRST.format(top="/cg"), "8:pids:/\n4:cpu,memory:/jobs/one\n0::/\n"

    assert [path for path, _ in parents("pids", mounts, membership)] == [Path("/cg/pids")]
    assert [path for path, _ in parents("memory", mounts, membership)] == [Path("/cg/memory/jobs/one")]


def test_version_2_needs_a_group_that_gives_the_controller_to_those_below(tmp_path: Path) -> None:
    above = group(tmp_path, "user.slice", "memory", "pids")
    group(tmp_path, "user.slice/jupyter.service")
    group(tmp_path, ".", "memory", "pids")

    found = list(parents("memory", SECOND.format(top=tmp_path), "0::/user.slice/jupyter.service\n"))

    assert found == [(above, ("memory.max",))]


def test_own_group_is_taken_first_if_it_gives_the_controller(tmp_path: Path) -> None:
    own = group(tmp_path, "a/b", "pids")
    above = group(tmp_path, "a", "pids")

    assert [path for path, _ in parents("pids", SECOND.format(top=tmp_path), "0::/a/b\n")] == [own, above]


def test_nothing_is_looked_for_above_the_top(tmp_path: Path) -> None:
    group(tmp_path, ".", "pids")
    top = group(tmp_path, "top")

    assert not list(parents("pids", SECOND.format(top=top), "0::/\n"))


@pytest.mark.parametrize("membership", ["0::/../other\n", "0::/elsewhere\n", "3:cpu:/\n", ""])
def test_group_that_cannot_be_seen_is_left_alone(membership: str, tmp_path: Path) -> None:
    group(tmp_path, ".", "pids")
    mounts = f"41 31 0:38 /box {tmp_path} rw - cgroup2 cgroup2 rw\n"

    assert not list(parents("pids", mounts, membership))


def test_a_process_is_in_the_group_that_took_it_in_and_the_group_can_be_removed() -> None:
    made = make_group("pids", 7)
    if made is None:
        pytest.skip("this user can make no control group here")
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        assert (made.path / "pids.max").read_text().strip() == "7"
        assert made.add(process.pid)
        assert made.path.name in Path(f"/proc/{process.pid}/cgroup").read_text()
        assert not made.add(2**22 + 1)  # no such process
    finally:
        process.communicate()
        made.remove()

    assert not made.path.exists()
    assert made.path.name.startswith(f"agentbox-{os.getpid()}-")
