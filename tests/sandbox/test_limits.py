"""What a sandbox may use up as a whole, where control groups can be made and where something has to watch."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.sandbox.server.limits import ResourceLimits
from jupyter_agentbox.sandbox.watch.cgroups import make_group
from tests.processes_alive import children, running, survivors

from .conftest import TIMEOUT, Start, can_reach

PROCESSES = 100
MEMORY = 2 << 30

#: At most 2048 processes and no more, also where nothing stops it.
FORK_BOMB = """
import os, time
print("go", flush=True)
for _ in range(11):
    os.fork()
time.sleep(600)
"""

#: At most 4 GB and no more, also where nothing stops it; no process has more than a quarter of that. All have it at the
#: same time, for a minute if none of them is killed.
MEMORY_BOMB = """
import os, time
workers = []
have, has = os.pipe()
wait, end = os.pipe()
for _ in range(8):
    if (worker := os.fork()) == 0:
        os.close(end)
        taken = [bytearray(b"x" * (1 << 20)) for _ in range(512)]
        os.close(has)
        os.read(wait, 1)
        os._exit(0)
    workers.append(worker)
os.close(has)
os.read(have, 1)  # each has its part, or was killed
if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
    time.sleep(60)
os.close(end)
print(sorted({os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers}))
"""

#: Runs a cell in a sandboxed kernel, and says what became of it.
OWNER = """
import asyncio, json, logging, os, sys
logging.basicConfig()
sys.path[:0] = [{root!r}]
from pathlib import Path
from tests.sandbox.conftest import manager_of
from jupyter_agentbox.core.isolation import Isolation

async def main():
    manager = manager_of(Isolation({level!r}), Path({places!r}), **{limits!r})
    await manager.start_kernel(cwd={work!r})
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    backend = manager.provisioner._backend
    asked = client.execute({code!r})
    if {until!r} == "cell":
        said = []
        while not said or said[-1] != "idle":
            message = await client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") == asked:
                said.append(message["content"].get("text") or message["content"].get("execution_state"))
        print(json.dumps(said), flush=True)
    elif {until!r} == "end":
        backend._process.wait(60)
        print(json.dumps(backend.limit_exceeded.words), flush=True)
    else:
        print("ready", flush=True)
        await asyncio.Event().wait()
    client.stop_channels()
    await manager.shutdown_kernel(now=True)

asyncio.run(main())
"""


#: The levels that are limited as a whole.
LEVELS = (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC, Isolation.LANDLOCK)


@pytest.fixture(params=LEVELS, ids=lambda level: level.value)
def level(request: pytest.FixtureRequest) -> Isolation:
    """Every one of them that this machine can reach."""
    can_reach(request.param)
    found: Isolation = request.param
    return found


def control_groups() -> list[Path]:
    """Return the control groups that can be made here: each is made, and removed."""
    made = [make_group("pids", PROCESSES), make_group("memory", MEMORY)]
    for group in made:
        if group is not None:
            group.remove()
    return [group.path for group in made if group is not None]


def owner(level: Isolation, work: Path, *, code: str = "", until: str, **limits: int) -> list[str]:
    """Return the command of a process that owns a kernel until the cell's end, the kernel's, or for ever."""
    root, places = str(Path(__file__).parents[2]), str(work.parents[1])
    text = OWNER.format(
        root=root, level=level.value, places=places, work=str(work), limits=limits, code=code, until=until
    )
    return [sys.executable, "-c", text]


def without_control_groups(command: list[str]) -> list[str]:
    """Return a command that finds control groups read-only, as in most containers."""
    if not control_groups():
        return command
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if "cgroup" in line]
    remount = " && ".join(f"mount -o remount,ro,bind {mount}" for mount in mounts if Path(mount).is_dir())
    script = f'mount --make-rprivate / && {remount} && exec "$@"'
    wrapped = ["unshare", "--mount", "sh", "-c", script, "sh"]
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([*wrapped, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("control groups can be made here, and this user cannot take them away")
    return [*wrapped, *command]


def holds_by_itself(level: Isolation) -> bool:
    """Whether Linux counts the processes of this user's sandbox by itself."""
    return os.getuid() != 0 and level is not Isolation.LANDLOCK


async def run(command: list[str], tmp_path: Path) -> tuple[Any, str]:
    """Run an owner; return what it says of the end of its kernel, and what was said on the way."""
    with (tmp_path / "errors").open("w+b") as errors:
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=errors)
        try:
            async with asyncio.timeout(3 * TIMEOUT):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        errors.seek(0)
        log = errors.read().decode()
    assert said, log
    return json.loads(said), log


async def test_fork_bomb_fails_where_linux_counts_and_the_kernel_lives(start: Start, level: Isolation) -> None:
    if not holds_by_itself(level) and not control_groups():
        pytest.skip("no control group can be made here: the kernel is ended instead, which another test shows")
    bomb = f"""
import subprocess
started = []
try:
    for _ in range({3 * PROCESSES}):
        started.append(subprocess.Popen(["sleep", "60"]))
finally:
    print(len(started) < {PROCESSES})
    for one in started:
        one.kill()
        one.wait()
"""
    async with start(process_limit=PROCESSES) as kernel:
        said = await kernel.run(bomb)
        assert "True" in said
        assert "BlockingIOError" in said
        assert await kernel.run("print('alive')") == "alive"


@pytest.mark.usefixtures("places")
async def test_fork_bomb_ends_the_sandbox_where_only_watching_helps(
    level: Isolation, work: Path, tmp_path: Path
) -> None:
    if holds_by_itself(level):
        pytest.skip("Linux counts the processes of this user's sandbox by itself")
    before = children()
    command = without_control_groups(owner(level, work, code=FORK_BOMB, until="end", process_limit=PROCESSES))

    ended_by, log = await run(command, tmp_path)

    assert "`process_limit` is 100" in ended_by
    assert ended_by in log
    assert not survivors(children(beside=before))


async def test_memory_is_limited_for_all_processes_together_by_a_control_group(start: Start) -> None:
    if len(control_groups()) < 2:
        pytest.skip("no control group can be made here: the kernel is ended instead, which another test shows")
    async with start(memory_limit=MEMORY) as kernel:
        assert "-9" in await kernel.run(MEMORY_BOMB)
        assert await kernel.run("print('alive')") == "alive"


@pytest.mark.usefixtures("places")
async def test_memory_bomb_of_many_processes_ends_the_sandbox_where_only_watching_helps(
    level: Isolation, work: Path, tmp_path: Path
) -> None:
    before = children()
    command = without_control_groups(owner(level, work, code=MEMORY_BOMB, until="end", memory_limit=MEMORY))

    ended_by, log = await run(command, tmp_path)

    assert f"`memory_limit` is {MEMORY}" in ended_by
    assert ended_by in log
    assert not survivors(children(beside=before))


@pytest.mark.parametrize("told", [None, "", '{"limit": "mem'])
def test_limit_that_did_nothing_yet_tells_nothing(tmp_path: Path, told: str | None) -> None:
    if told is not None:
        (tmp_path / "ended").write_text(told)

    assert ResourceLimits(processes=None, memory=MEMORY, report=tmp_path / "ended").exceeded() is None


@pytest.mark.usefixtures("places")
async def test_memory_that_processes_share_counts_once(level: Isolation, work: Path, tmp_path: Path) -> None:
    code = """
import os
taken = bytearray(b"x" * (400 << 20))
reader, writer = os.pipe()
workers = []
for _ in range(8):
    if (worker := os.fork()) == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    workers.append(worker)
import time
time.sleep(2)  # several counts
os.close(writer)
print({os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers})
"""
    command = without_control_groups(owner(level, work, code=code, until="cell", memory_limit=MEMORY))

    said, _ = await run(command, tmp_path)

    assert "{0}\n" in said


async def test_control_groups_are_gone_with_the_kernel(start: Start) -> None:
    if not control_groups():
        pytest.skip("no control group can be made here")
    await removed(groups_of(os.getpid()))  # of the kernels before
    async with start(process_limit=PROCESSES, memory_limit=MEMORY) as kernel:
        groups = groups_of(os.getpid())
        assert groups
        await kernel.restart()
        await removed(groups)
        groups = groups_of(os.getpid())
        assert groups

    await removed(groups)


@pytest.mark.usefixtures("places")
async def test_control_groups_are_gone_with_a_server_that_was_killed(level: Isolation, work: Path) -> None:
    if not control_groups():
        pytest.skip("no control group can be made here")
    command = owner(level, work, until="killed", process_limit=PROCESSES, memory_limit=MEMORY)
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(TIMEOUT):
        assert (await process.stdout.readline()).strip() == b"ready"
    groups, all_ = groups_of(process.pid), children(process.pid)
    assert groups
    process.kill()
    await process.wait()

    await removed(groups)
    assert not await asyncio.to_thread(survivors, all_, TIMEOUT)


async def test_nothing_runs_on_when_nobody_watches_it_any_more(start: Start) -> None:
    before = children()
    async with start(memory_limit=MEMORY) as kernel:
        all_ = children(beside=before)
        [watchdog] = running("watchdog.py", all_)
        watchdog.kill()
        assert not await asyncio.to_thread(survivors, all_, TIMEOUT)
        for group in groups_of(os.getpid()):  # who was to remove them is gone
            group.rmdir()
        assert not await kernel.manager.is_alive()


async def test_kernels_without_limits_have_no_watchdog(start: Start) -> None:
    before = children()
    async with start():
        assert not running("watchdog.py", children(beside=before))


def groups_of(process: int) -> list[Path]:
    """Return the control groups that a process made."""
    found = {group.parent for group in control_groups()}
    return [path for parent in found for path in parent.glob(f"agentbox-{process}-*")]


async def removed(paths: list[Path]) -> None:
    """Wait until directories are gone: no event tells of that."""
    until = time.monotonic() + TIMEOUT
    while left := [path for path in paths if path.exists()]:
        assert time.monotonic() < until, left
        await asyncio.sleep(0.02)
