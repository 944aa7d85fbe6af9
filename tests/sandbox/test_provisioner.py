"""Kernels start, work and end in every sandbox that this machine allows."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tornado.web import HTTPError
from traitlets.config import Config

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import NO_SANDBOXED_KERNEL, SANDBOX_LEVELS
from tests.beats import beat_of_the_loop, slow_program
from tests.loops import loop_of_the_file
from tests.processes_alive import children, running, survivors

from .conftest import TIMEOUT, Sandboxed, Start, can_reach, furnish, manager_of, started

jp_asyncio_loop = pytest.fixture(scope="module", autouse=True)(loop_of_the_file)


@pytest.fixture(scope="module", params=SANDBOX_LEVELS, ids=lambda level: level.value)
def level(request: pytest.FixtureRequest) -> Isolation:
    """Every level that this machine can reach."""
    can_reach(request.param)
    found: Isolation = request.param
    return found


@pytest.fixture(scope="module")
def shared_kernel(
    level: Isolation,
    jp_asyncio_loop: asyncio.AbstractEventLoop,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Sandboxed]:
    """A kernel at each level, without further settings."""
    root = tmp_path_factory.mktemp(level.value)
    (root / "home" / "project").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        furnish(root, patch)
        starting = started(manager_of(level, root), root / "home" / "project")
        kernel = jp_asyncio_loop.run_until_complete(starting.__aenter__())
    yield kernel
    jp_asyncio_loop.run_until_complete(starting.__aexit__(None, None, None))


@pytest.fixture
def kernel(shared_kernel: Sandboxed, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Sandboxed]:
    """The kernel that the tests of a level share. Nothing runs in it, and it has no variables."""
    yield shared_kernel
    jp_asyncio_loop.run_until_complete(shared_kernel.run("%reset -f"))


def below(process: int) -> list[psutil.Process]:
    return children(process)


async def gone(processes: list[psutil.Process]) -> None:
    """Wait until processes have ended."""
    assert not await asyncio.to_thread(survivors, processes, TIMEOUT)


def process_of(kernel: Sandboxed) -> int:
    pid: int = kernel.manager.provisioner.pid  # type: ignore[union-attr, assignment]
    return pid


async def test_kernel_says_which_isolation_it_has(kernel: Sandboxed, level: Isolation) -> None:
    assert kernel.manager.provisioner.isolation is level  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("user", "server", "spec", "directory", "is_own"),
    [
        ("", {}, {"memory_limit": 2_000_000_000}, "", False),  # nobody but the user could have chosen anything
        ("ada", {}, {"memory_limit": 2_000_000_000}, "", True),
        ("", {"process_limit": 500}, {"memory_limit": 2_000_000_000}, "", True),
        ("ada", {"memory_limit": 2_000_000_000}, {"memory_limit": 3_000_000_000}, "", False),  # the ceiling counts
        ("ada", {}, {"memory_limit": 2_000_000_000}, "/usr/share", False),  # the site's kernelspec
        ("ada", {}, {"sandbox_config": "{home}/own.json"}, "/usr/share", True),  # names a file of the user's
    ],
)
async def test_a_kernel_says_whether_its_user_chose_its_settings(
    user: str,
    server: dict[str, Any],
    spec: dict[str, Any],
    directory: str,
    is_own: bool,
    *,
    level: Isolation,
    places: Path,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", user)
    (places / "home" / "own.json").write_text("{}")
    manager = manager_of(level, places, **json.loads(json.dumps(spec).replace("{home}", str(places / "home"))))
    manager._kernel_spec.resource_dir = directory  # type: ignore[union-attr]
    if user or server:
        manager.config = Config({"SandboxProvisioner": {"levels": [level.value], **server}})
    await manager.start_kernel(cwd=str(work))
    try:
        assert manager.provisioner.has_own_settings is is_own  # type: ignore[union-attr]
    finally:
        await manager.shutdown_kernel(now=True)


async def test_what_a_kernel_writes_in_its_work_directory_stays(start: Start, work: Path) -> None:
    async with start() as kernel:
        assert await kernel.run("import os; open('made', 'w').write('here'); print(os.getcwd())") == str(work)

    assert (work / "made").read_text() == "here"


@pytest.mark.parametrize("setting", ["work_dir", "readable", "writable"])
async def test_a_kernelspec_of_the_user_opens_nothing_that_the_server_hides(
    level: Isolation, places: Path, work: Path, setting: str
) -> None:
    hidden = places / "home" / "private"
    inner = hidden / "inner"
    inner.mkdir(parents=True)
    manager = manager_of(level, places, **{setting: str(inner) if setting == "work_dir" else [str(inner)]})
    manager.config = Config({"SandboxProvisioner": {"hidden": [str(hidden)]}})
    with pytest.raises(HTTPError, match="private"):
        await manager.start_kernel(cwd=str(work))


async def test_a_kernelspec_of_the_user_has_the_work_directory_that_the_server_names(
    level: Isolation, places: Path, work: Path
) -> None:
    other = places / "home" / "other"
    other.mkdir()
    manager = manager_of(level, places, work_dir=str(other))
    manager.config = Config({"SandboxProvisioner": {"work_dir": str(work)}})
    await manager.start_kernel(cwd=str(other))
    try:
        assert manager.provisioner.cwd == str(work)  # type: ignore[union-attr]
    finally:
        await manager.shutdown_kernel(now=True)


async def test_kernel_without_a_path_gets_an_empty_directory_of_its_own(start: Start) -> None:
    async with start(cwd=None) as kernel:
        assert await kernel.run("import os; print(os.listdir()); open('x', 'w').close()") == "[]"
        where = await kernel.run("print(os.getcwd())")

    assert where != str(Path.cwd())
    assert not Path(where).exists()


async def test_interrupt_ends_the_cell_and_not_the_kernel(kernel: Sandboxed) -> None:
    await kernel.run("kept = 41")
    cell = await kernel.begin("import time; print('go'); time.sleep(60)")
    await kernel.manager.interrupt_kernel()
    assert await cell == "KeyboardInterrupt"
    assert await kernel.run("print(kept + 1)") == "42"


async def test_interrupt_reaches_a_program_that_the_kernel_runs(kernel: Sandboxed) -> None:
    cell = await kernel.begin("import subprocess; print('go', flush=True); subprocess.run(['sleep', '60'])")
    await kernel.manager.interrupt_kernel()
    assert await cell == "KeyboardInterrupt"


async def test_restart_gives_a_fresh_kernel_and_ends_the_old_one(start: Start, level: Isolation) -> None:
    async with start() as kernel:
        await kernel.run("old = 1")
        before = below(process_of(kernel))
        await kernel.restart()
        await gone(before)
        # The client that was connected to the old kernel finds the new one.
        assert "NameError" in await kernel.run("old")
        assert kernel.manager.provisioner.isolation is level  # type: ignore[union-attr]


@pytest.mark.parametrize("level", [Isolation.LANDLOCK], indirect=True)
async def test_interrupt_waits_for_no_supervisor(start: Start) -> None:
    async with start() as kernel:
        supervisors = [psutil.Process(process_of(kernel))]
        supervisors += supervisors[0].children()
        cell = await kernel.begin("import time; print('go'); time.sleep(60)")
        for supervisor in supervisors:
            supervisor.suspend()
        try:
            await kernel.manager.interrupt_kernel()
            assert await cell == "KeyboardInterrupt"
        finally:
            for supervisor in supervisors:
                supervisor.resume()


async def test_polite_shutdown_leaves_no_process_and_no_file(start: Start) -> None:
    async with start() as kernel:
        sockets = Path(kernel.manager.ip).parent
        daemon = "import subprocess; subprocess.Popen(['setsid', 'sleep', '600'], start_new_session=True); print('x')"
        await kernel.run(daemon)
        all_ = below(process_of(kernel))
        assert sockets.exists()
        kernel.client.stop_channels()
        await kernel.manager.shutdown_kernel()
        await gone(all_)

    assert not sockets.parent.exists()


DAEMON = """
import os
reader, writer = os.pipe()  # closed when the daemon is `sleep`
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "600"])
    os._exit(0)
os.close(writer)
os.wait()
os.read(reader, 1)
"""


@pytest.mark.parametrize("victim", ["outermost", "next"])
async def test_killing_a_part_of_the_sandbox_ends_all_of_it(start: Start, victim: str) -> None:
    async with start() as kernel:
        await kernel.run(DAEMON)
        outermost = psutil.Process(process_of(kernel))
        all_ = below(process_of(kernel))
        assert running("sleep", all_)
        (outermost if victim == "outermost" else outermost.children()[0]).kill()
        await gone(all_)


OWNER = """
import asyncio, sys
sys.path[:0] = {path!r}
from pathlib import Path
from tests.sandbox.conftest import manager_of, Sandboxed
from jupyter_agentbox.core.isolation import Isolation

async def main():
    manager = manager_of(Isolation({level!r}), Path({places!r}))
    await manager.start_kernel(cwd={work!r})
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    await Sandboxed(manager, client).run({daemon!r})
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_killing_the_server_ends_its_kernels(level: Isolation, work: Path, places: Path) -> None:
    code = OWNER.format(path=[str(Path.cwd())], level=level.value, places=str(places), work=str(work), daemon=DAEMON)
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    async with asyncio.timeout(TIMEOUT):
        assert (await owner.stdout.readline()).strip() == b"ready"
    all_ = below(owner.pid)
    assert len(all_) >= 3
    owner.kill()
    await owner.wait()
    await gone(all_)


async def test_input_asks_the_person(kernel: Sandboxed) -> None:
    assert await kernel.run("print(input('name? ').upper())", answer="ada") == "ADA"


async def test_programs_and_cells_of_bash_work(kernel: Sandboxed) -> None:
    assert await kernel.run("%%bash\necho $((6 * 7))") == "42"
    assert await kernel.run("!echo from a shell") == "from a shell"


async def test_widgets_can_be_made(kernel: Sandboxed) -> None:
    assert await kernel.run("import ipywidgets; print(ipywidgets.IntSlider(3).value)") == "3"


async def test_multiprocessing_works_where_there_is_a_memory_of_its_own(kernel: Sandboxed, level: Isolation) -> None:
    said = await kernel.run("import multiprocessing; print(multiprocessing.Pool(2).map(abs, [-1, -2]))")

    assert said == "[1, 2]" if level is not Isolation.LANDLOCK else "PermissionError" in said


async def test_debugger_attaches_where_there_is_a_network_of_its_own_and_else_says_why_not(
    start: Start, level: Isolation
) -> None:
    async with start() as kernel:
        channel, replies = kernel.client.control_channel, []
        for sequence, command in enumerate(("initialize", "attach"), start=1):
            request = {
                "type": "request",
                "seq": sequence,
                "command": command,
                "arguments": {"clientID": "test", "adapterID": "", "pathFormat": "path"},
            }
            channel.send(kernel.client.session.msg("debug_request", request))
            async with asyncio.timeout(TIMEOUT):
                reply: dict[str, Any] = {}
                while reply.get("command") != command:
                    reply = (await kernel.client.get_control_msg())["content"]
            replies.append(reply)
        kernel.client.kernel_info()
        async with asyncio.timeout(TIMEOUT):
            features = (await kernel.client.get_shell_msg())["content"].get("supported_features", ["debugger"])
        assert await kernel.run("print('alive')") == "alive"

    assert [reply["success"] for reply in replies] == [level is not Isolation.LANDLOCK] * 2
    assert ("debugger" in features) is (level is not Isolation.LANDLOCK)
    assert level is not Isolation.LANDLOCK or "TCP" in replies[0]["message"]


async def test_the_kernel_side_can_be_imported(kernel: Sandboxed) -> None:
    assert await kernel.run("import jupyter_agentbox.kernel.link; print('here')") == "here"


async def test_file_size_limit_holds(start: Start) -> None:
    async with start(file_size_limit=1 << 20) as kernel:
        said = await kernel.run("import signal; open('big', 'wb').write(bytes(2 << 20))")

    assert "File too large" in said


async def test_temporary_limit_holds_where_there_is_a_memory_of_its_own(start: Start, level: Isolation) -> None:
    if level not in (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC):
        pytest.skip("temporary files are on disk there")
    async with start(temporary_limit=1 << 20) as kernel:
        said = await kernel.run("import tempfile; tempfile.TemporaryFile().write(bytes(2 << 20))")

    assert "No space left" in said


async def test_git_shows_and_compares_and_does_not_commit(start: Start, work: Path, level: Isolation) -> None:
    if shutil.which("git") is None or level is Isolation.LANDLOCK:
        pytest.skip("git is not installed, or may commit")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for command in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "the first"]):
        subprocess.run(["git", *command], cwd=work, check=True)
    git = "import subprocess\ngit = lambda *args: subprocess.run(['git', *args], capture_output=True, text=True)"
    async with start() as kernel:
        await kernel.run(f"{git}\nopen('new', 'w').close()")
        said = await kernel.run("print(git('status', '--short').stdout + git('log', '-p', '--format=%s').stdout)")
        refused = await kernel.run(f"print(git(*{author}, 'commit', '--allow-empty', '-m', 'second').stderr)")

    assert said.splitlines() == ["?? new", "the first"]
    assert "Read-only file system" in refused


async def test_memory_limit_holds_and_the_kernel_lives(start: Start) -> None:
    async with start(memory_limit=4 << 30) as kernel:
        assert "MemoryError" in await kernel.run("bytearray(5 << 30)")
        assert await kernel.run("print('alive')") == "alive"


async def test_named_paths_can_be_read_and_written_and_hidden_ones_not(
    start: Start, places: Path, level: Isolation
) -> None:
    for name in ("library", "output"):
        (places / name).mkdir()
        (places / name / "file").write_text(name)
    (places / "library" / "secret").write_text("secret")
    config = {
        "readable": [str(places / "library")],
        "writable": [str(places / "output")],
        "hidden": [str(places / "library" / "secret")],
    }
    async with start(**config) as kernel:
        assert await kernel.run(f"print(open({str(places / 'library' / 'file')!r}).read())") == "library"
        assert "Error" in await kernel.run(f"open({str(places / 'library' / 'file')!r}, 'a')")
        assert "Error" in await kernel.run(f"print(open({str(places / 'library' / 'secret')!r}).read())")
        await kernel.run(f"open({str(places / 'output' / 'file')!r}, 'w').write('new')")

    assert (places / "output" / "file").read_text() == "new"


async def test_named_variables_pass_and_no_others(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_PLACE", "sea")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    async with start(environment=["DATA_*"]) as kernel:
        said = await kernel.run("import os; print(os.environ['DATA_PLACE'], os.environ.get('JUPYTERHUB_API_TOKEN'))")

    assert said == "sea None"


async def test_settings_can_stand_in_a_file(start: Start, places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_PLACE", "sea")
    settings = places / "sandbox.json"
    settings.write_text(json.dumps({"environment": ["DATA_PLACE"]}))
    async with start(sandbox_config=str(settings)) as kernel:
        assert await kernel.run("import os; print(os.environ['DATA_PLACE'])") == "sea"


@pytest.mark.parametrize("text", ["{", "[]", '{"unknown": 1}', '{"readable": 3}'])
async def test_settings_that_are_not_understood_are_refused(
    level: Isolation, places: Path, work: Path, text: str
) -> None:
    settings = places / "sandbox.json"
    settings.write_text(text)
    manager = manager_of(level, places, sandbox_config=str(settings))

    with pytest.raises(HTTPError):
        await manager.start_kernel(cwd=str(work))


async def test_link_in_the_work_directory_does_not_steer_what_is_shown(
    start: Start, places: Path, work: Path, level: Isolation
) -> None:
    (places / "secrets").mkdir()
    (places / "secrets" / "key").write_text("secret")
    (work / ".git").mkdir()
    (work / ".git" / "hooks").symlink_to(places / "secrets")
    (work / ".vscode").symlink_to(places / "secrets")
    async with start() as kernel:
        said = await kernel.run("import os; print(os.path.exists('.git/hooks/key'), os.path.exists('.vscode/key'))")

    assert said == "False False" or level is Isolation.LANDLOCK


async def test_home_as_work_directory_hides_keys_and_keeps_what_runs_later(
    start: Start, places: Path, level: Isolation
) -> None:
    home = places / "home"
    for name in (".ssh", ".config", ".local"):
        (home / name).mkdir()
    (home / ".ssh" / "key").write_text("secret")
    (home / ".netrc").write_text("secret")
    (home / ".bashrc").write_text("mine")
    if level is Isolation.LANDLOCK:
        with pytest.raises(HTTPError):
            async with start(cwd=home):
                pass
        return
    async with start(cwd=home) as kernel:
        assert await kernel.run("open('result.txt', 'w').write('x'); print('written')") == "written"
        for place in (".ssh/key", ".netrc"):
            assert "Error" in await kernel.run(f"print(open({place!r}).read())")
        for place in (".bashrc", ".local/x", ".ipython/x"):
            assert "Error" in await kernel.run(f"open({place!r}, 'a')")
        for place in (".ssh/authorized_keys", ".config/x"):  # srt shows an empty directory in memory
            assert level is Isolation.SRT or "Error" in await kernel.run(f"open({place!r}, 'a')")
            await kernel.run(f"open({place!r}, 'a').write('planted')")

    assert not (home / ".ssh" / "authorized_keys").exists()
    assert not (home / ".config" / "x").exists()
    assert (home / "result.txt").read_text() == "x"


async def test_refusal_can_be_read_by_the_client(places: Path, tmp_path: Path) -> None:
    can_reach(SANDBOX_LEVELS[0])
    manager = manager_of(SANDBOX_LEVELS[0], places)

    with pytest.raises(HTTPError) as refusal:
        await manager.start_kernel(cwd=str(tmp_path))

    assert "would show" in str(refusal.value.log_message)
    assert not manager.has_kernel


async def test_folder_that_changes_while_it_is_opened_is_refused(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    can_reach(SANDBOX_LEVELS[0])
    manager = manager_of(SANDBOX_LEVELS[0], places)
    work = places / "home" / "project"

    def resolve(path: Path, *_: object) -> Path:
        raise OSError(errno.EINVAL, "Invalid argument", str(path))  # it was a link, and is none any more

    monkeypatch.setattr(Path, "resolve", resolve)
    with pytest.raises(HTTPError) as refusal:
        await manager.start_kernel(cwd=str(work))

    assert refusal.value.reason == NO_SANDBOXED_KERNEL
    assert "could not set up the sandbox: [Errno 22]" in str(refusal.value.log_message)
    assert not manager.has_kernel


#: As bubblewrap before 0.8: it takes no file descriptors of what it mounts.
BY_NAME = """\
#!/bin/sh
case "$1" in --help) exec {real} --help | grep -v bind-fd ;; esac
exec {real} "$@"
"""


@pytest.mark.parametrize("level", [Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC], indirect=True)
async def test_bubblewrap_that_mounts_by_name_holds_a_kernel(start: Start, work: Path, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text(BY_NAME.format(real=shutil.which("bwrap")))
    program.chmod(0o755)

    async with start(bubblewrap=str(program)) as kernel:
        assert await kernel.run("import os; print(os.getcwd())") == str(work)


async def test_link_of_a_kernel_is_no_way_to_a_work_directory(
    start: Start, level: Isolation, work: Path, places: Path
) -> None:
    (work.parent / "other").mkdir()
    async with start() as kernel:
        await kernel.run("import os; os.symlink('../other', 'data')")

    manager = manager_of(level, places)
    with pytest.raises(HTTPError, match="which a kernel may have made"):
        await manager.start_kernel(cwd=str(work / "data"))
    manager = manager_of(level, places, writable=[str(work / "data")])
    with pytest.raises(HTTPError, match="which a kernel may have made"):
        await manager.start_kernel(cwd=str(work))


@pytest.mark.parametrize("level", [Isolation.BUBBLEWRAP], indirect=True)
async def test_the_server_goes_on_while_bubblewrap_is_slow(start: Start, tmp_path: Path) -> None:
    bubblewrap = shutil.which("bwrap") or ""
    async with slow_program(bubblewrap, tmp_path / "bwrap") as runs, start(bubblewrap=str(tmp_path / "bwrap")):
        # one that tries the level, one that asks what it can, and the kernel's
        assert len(runs) == 3


async def test_the_server_goes_on_while_settings_are_read_from_a_slow_disk(
    start: Start, level: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"levels": [level.value], "process_limit": 200}))
    read_text, await_beat = Path.read_text, beat_of_the_loop()
    beats: list[Path] = []

    def slow(path: Path, *arguments: Any, **options: Any) -> str:
        if path == file:
            await_beat()
            beats.append(path)
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", slow)
    async with start(sandbox_config=str(file)) as kernel:
        assert kernel.manager.provisioner.process_limit == 200  # type: ignore[union-attr]
        assert beats
