"""Executors whose kernels are in a sandbox, at every level that this machine can reach."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import ApprovalRequest, CodeExecutionError, CodeExecutionResult, CodeExecutor
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxConfigError, SandboxRefusedError
from jupyter_agentbox.sandbox.server.run_directory import base_directory
from tests.headless.executor.conftest import ADD, shared
from tests.headless.executor.test_owner_link import forge
from tests.processes_alive import children, survivors
from tests.sandbox.conftest import can_reach
from tests.sandbox.test_limits import LEVELS as LIMITED_LEVELS
from tests.sandbox.test_limits import MEMORY, MEMORY_BOMB, without_control_groups

#: A program that leaves its parent, and is there when this line is over.
DAEMON = """
import subprocess
subprocess.run(["setsid", "--fork", "sleep", "1000"])
"""


@pytest.fixture(scope="module", params=SANDBOX_LEVELS, ids=lambda level: level.value)
def level(request: pytest.FixtureRequest) -> Isolation:
    """Every level that this machine can reach."""
    can_reach(request.param)
    found: Isolation = request.param
    return found


@pytest.fixture
def work(places: Path) -> Path:
    made = places / "project"
    made.mkdir()
    return made


Start = Callable[..., CodeExecutor]


@pytest.fixture
def sandboxed(make_executor: Start, level: Isolation, work: Path) -> Start:
    def make(config: dict[str, Any] | None = None, **options: Any) -> CodeExecutor:
        settings = {"levels": [level.value], **(config or {})}
        return make_executor(**{"working_dir": work, **options}, sandbox_config=settings)

    return make


@pytest.fixture(scope="module")
def shared_executor(
    level: Isolation, jp_asyncio_loop: asyncio.AbstractEventLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CodeExecutor]:
    """An executor at each level, for `executor`."""
    root = tmp_path_factory.mktemp(level.value)
    (root / "project").mkdir()
    config = {"levels": [level.value]}
    with shared(root, jp_asyncio_loop, working_dir=root / "project", sandbox_config=config) as executor:
        yield executor


async def reject(executor: CodeExecutor, reason: str) -> None:
    async for item in executor.stream(ADD):
        assert isinstance(item, ApprovalRequest)
        await item.reject(reason)


async def test_allowed_domain_is_reached_where_the_proxy_is_ours_and_refused_elsewhere(
    sandboxed: Start, level: Isolation
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    place = f"localhost:{server.sockets[0].getsockname()[1]}"
    executor = sandboxed({"private_domains": [place]})
    try:
        if level in (Isolation.LANDLOCK, Isolation.SRT):
            with pytest.raises(SandboxRefusedError, match="private_domains"):
                await executor.start()
            return
        async with executor:
            ask = "import urllib.request; print(urllib.request.urlopen('http://{}/').read())"
            assert (await executor.execute(ask.format(place))).text == "b'hello'"
            with pytest.raises(CodeExecutionError, match=r"other\.example is not an allowed domain"):
                await executor.execute(ask.format("other.example"))
    finally:
        server.close()


async def test_call_waits_for_its_decision_and_names_the_level(executor: CodeExecutor, level: Isolation) -> None:
    assert executor.isolation == level.value
    items = []
    async for item in executor.stream(ADD):
        items.append(item)
        if isinstance(item, ApprovalRequest):
            await item.accept(arguments={"a": 20, "b": 22})
    request, result = items
    assert isinstance(request, ApprovalRequest)
    assert request.isolation == level.value
    assert isinstance(result, CodeExecutionResult)
    assert result.text == "42"

    with pytest.raises(CodeExecutionError, match="not today"):
        await reject(executor, "not today")


async def test_kernel_has_its_directory_and_no_other_file_no_secret_and_no_network(
    sandboxed: Start, work: Path, places: Path
) -> None:
    (places / "other").write_text("private")
    async with sandboxed(kernel_env={"GIVEN": "yes"}) as executor:
        result = await executor.execute(
            "import os; open('made', 'w').write('here');"
            "print(os.getcwd(), os.environ['GIVEN'], os.environ.get('A_SECRET'))"
        )
        assert result.text == f"{work} yes None"
        assert (work / "made").read_text() == "here"
        for code in (
            f"open({str(places / 'other')!r})",
            f"open({str(places / 'config' / 'mcp.json')!r})",
            "import socket; socket.create_connection(('127.0.0.1', 1), timeout=5)",
            "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)",
        ):
            with pytest.raises(CodeExecutionError, match="Error: "):
                await executor.execute(code)
        with suppress(CodeExecutionError):  # below bubblewrap there is another /tmp, in memory
            await executor.execute(f"open({str(places / 'new')!r}, 'w')")
    assert not (places / "new").exists()


async def test_files_that_the_executor_was_given_stay_hidden(
    make_executor: Start, level: Isolation, places: Path
) -> None:
    shared = places / "shared"
    shared.mkdir()
    (shared / "servers.json").write_text('{"mcpServers": {}}')
    (shared / "data.txt").write_text("data")
    config = {"levels": [level.value], "work_dir": str(places / "work"), "readable": [str(shared)]}
    (places / "work").mkdir()
    async with make_executor(
        sandbox_config=config,
        mcp_config_path=shared / "servers.json",
        database_url=f"sqlite:///{shared / 'approvals.sqlite'}",
    ) as executor:
        assert (await executor.execute(f"print(open({str(shared / 'data.txt')!r}).read())")).text == "data"
        with pytest.raises(CodeExecutionError, match="Error: "):
            await executor.execute(f"print(open({str(shared / 'servers.json')!r}).read() or 1 / 0)")


async def test_timeout_and_cancel_interrupt_what_runs_and_keep_the_state(executor: CodeExecutor) -> None:
    await executor.execute("kept = 41")
    for code in ("while True: pass", "import subprocess; subprocess.run(['sleep', '1000'])", "!sleep 1000"):
        with pytest.raises(TimeoutError):
            await executor.execute(code, timeout=0.5)
    assert (await executor.execute("kept + 1")).text == "42"

    items: list[Any] = []
    async for item in executor.stream("print('go')\nwhile True: pass", chunks=True):
        items.append(item)
        if item.text.endswith("\n"):  # the line may come in two
            executor.cancel()
    assert "".join(item.text for item in items) == "go\n"
    assert (await executor.execute("kept + 1")).text == "42"


async def test_request_is_withdrawn_when_its_cell_is_cancelled(executor: CodeExecutor) -> None:
    async for item in executor.stream(ADD):
        assert isinstance(item, ApprovalRequest)
        executor.cancel()
        assert not await item.response()
    assert (await executor.execute(ADD)).text == "3"


async def test_reset_gives_a_fresh_sandbox_and_stop_leaves_nothing(sandboxed: Start, level: Isolation) -> None:
    before = children()
    executor = sandboxed()
    await executor.start()
    await executor.execute(DAEMON + ADD + "\nold = 1")
    first = children(beside=before)
    assert len(first) >= 4
    await executor.reset()
    assert not await asyncio.to_thread(survivors, first)
    assert executor.isolation == level.value
    with pytest.raises(CodeExecutionError, match="NameError"):
        await executor.execute("old")
    await executor.execute(DAEMON)
    second = children(beside=before)
    await executor.stop()
    assert not await asyncio.to_thread(survivors, second)
    assert executor.isolation == "none"


async def test_stop_while_the_sandbox_is_being_made_leaves_nothing(sandboxed: Start) -> None:
    before = children()
    executor = sandboxed()
    starting = asyncio.ensure_future(executor.start())
    for _ in range(3):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not await asyncio.to_thread(survivors, children(beside=before))
    async with executor:
        assert (await executor.execute("1")).text == "1"


async def test_kernel_that_dies_is_an_error_and_reset_helps(executor: CodeExecutor) -> None:
    with pytest.raises(CodeExecutionError, match="the kernel ended"):
        await executor.execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    await executor.reset()
    assert (await executor.execute("1")).text == "1"


async def test_a_plot_is_an_image(executor: CodeExecutor) -> None:
    result = await executor.execute(
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()", timeout=100
    )
    [image] = result.images
    assert image.parent == executor.images_dir
    assert image.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


async def test_link_that_the_kernel_makes_does_not_lead_an_image_elsewhere(
    sandboxed: Start, places: Path, work: Path
) -> None:
    elsewhere = places / "elsewhere"
    elsewhere.mkdir()
    async with sandboxed(images_dir=work / "images") as executor:
        with pytest.raises(OSError, match="images"):
            await executor.execute(
                f"import os; os.symlink({str(elsewhere)!r}, 'images')\n"
                "get_ipython().display_pub.publish({'image/png': 'aGVsbG8='})"
            )
        await executor.execute("os.unlink('images')")
        result = await executor.execute("get_ipython().display_pub.publish({'image/png': 'aGVsbG8='})")
    assert not list(elsewhere.iterdir())
    assert [path.read_bytes() for path in result.images] == [b"hello"]


async def test_shell_commands_run_and_ask_first_if_they_are_to(sandboxed: Start) -> None:
    async with sandboxed(approve_shell_cmds=True, require_shell_escape=True) as executor:
        asked = []
        for code in ("!echo one", "x = !echo two\nprint(x[0])", "%%bash\necho three"):
            async for item in executor.stream(code):
                if isinstance(item, ApprovalRequest):
                    asked.append((item.server_name, item.tool_args["cmd"].strip()))
                    await item.accept()
                elif isinstance(item, CodeExecutionResult):
                    asked.append(("said", item.text or ""))
        assert asked == [
            *[("shell", "echo one"), ("said", "one")],
            *[("shell", "echo two"), ("said", "two")],
            *[("shell", "echo three"), ("said", "three")],
        ]
        with pytest.raises(CodeExecutionError, match="can be approved"):
            await executor.execute("import subprocess; subprocess.run(['true'])")


async def test_command_that_was_reviewed_is_the_one_that_runs(sandboxed: Start) -> None:
    code = """
import threading
text = "harmless"
def swap():
    from jupyter_agentbox.kernel import runtime
    while not runtime.link().list_pending(within=60):
        pass
    globals()["text"] = "harmful"
    print("swapped", flush=True)
threading.Thread(target=swap, daemon=True).start()
!echo {text}
print(text)
"""
    requests: list[ApprovalRequest] = []
    async with sandboxed(approve_shell_cmds=True) as executor:
        async for item in executor.stream(code, chunks=True):
            if isinstance(item, ApprovalRequest):
                requests.append(item)
            elif isinstance(item, CodeExecutionResult):
                assert (item.text or "").split() == ["swapped", "harmless", "harmful"]
            elif "swapped" in item.text:
                [request] = requests
                assert request.tool_args["cmd"] == "echo harmless"
                await request.accept()


async def test_multiprocessing_works_where_there_is_a_memory_of_its_own(
    executor: CodeExecutor, level: Isolation
) -> None:
    code = "import multiprocessing; print(multiprocessing.get_context('fork').Pool(2).map(abs, [-1, -2]))"
    if level is Isolation.LANDLOCK:
        with pytest.raises(CodeExecutionError, match="PermissionError"):
            await executor.execute(code)
    else:
        assert (await executor.execute(code)).text == "[1, 2]"


async def test_input_says_that_nobody_is_there_to_answer(executor: CodeExecutor) -> None:
    with pytest.raises(CodeExecutionError, match="StdinNotImplementedError"):
        await executor.execute("input('name? ')")


async def test_all_output_arrives(executor: CodeExecutor) -> None:
    result = await executor.execute("for i in range(10_000): print(i, flush=True)\nprint('x' * 500_000)")
    assert result.text == "\n".join([*map(str, range(10_000)), "x" * 500_000])


async def test_two_sandboxes_do_not_know_each_other(sandboxed: Start, places: Path) -> None:
    (places / "second").mkdir()
    async with sandboxed() as one, sandboxed(working_dir=places / "second") as two:
        await one.execute("open('mine', 'w').write('mine')")
        with pytest.raises(CodeExecutionError, match="Error: "):
            await two.execute(f"open({str(places / 'project' / 'mine')!r})")
        # of the sockets below the run directories there are only its own, or none can be listed
        sockets = f"import glob; len(glob.glob({str(base_directory(os.environ) / '*' / 'ipc' / '*')!r}))"
        assert (await two.execute(sockets)).text in {"0", "5"}


async def test_limits_hold(sandboxed: Start) -> None:
    async with sandboxed({"memory_limit": 4 << 30, "file_size_limit": 1 << 20}) as executor:
        with pytest.raises(CodeExecutionError, match="MemoryError"):
            await executor.execute("bytearray(5 << 30)")
        with pytest.raises(CodeExecutionError, match="File too large"):
            await executor.execute("open('big', 'wb').write(bytes(2 << 20))")


LIMITED = """
import asyncio, sys
from jupyter_agentbox import CodeExecutionError, CodeExecutor

async def main():
    box = {{"levels": [{level!r}], "memory_limit": {memory}}}
    async with CodeExecutor(working_dir={work!r}, sandbox_config=box) as executor:
        try:
            await executor.execute({code!r})
        except CodeExecutionError as error:
            print(error)

asyncio.run(main())
"""


@pytest.mark.parametrize("level", LIMITED_LEVELS, ids=lambda level: level.value)
async def test_error_says_which_limit_ended_the_kernel(level: Isolation, work: Path) -> None:
    can_reach(level)
    code = LIMITED.format(level=level.value, memory=MEMORY, work=str(work), code=MEMORY_BOMB)
    command = without_control_groups([sys.executable, "-c", code])
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    async with asyncio.timeout(90):
        said, _ = await process.communicate()

    assert f"`memory_limit` is {MEMORY}" in said.decode()


# -- refused


async def test_nothing_starts_where_no_sandbox_can_be_made(make_executor: Start, work: Path) -> None:
    before = children()
    executor = make_executor(
        working_dir=work, sandbox_config={"levels": ["bubblewrap"], "bubblewrap": "/nonexistent/bwrap"}
    )
    with pytest.raises(SandboxRefusedError, match="install bubblewrap"):
        await executor.start()
    assert not await asyncio.to_thread(survivors, children(beside=before))
    with pytest.raises(RuntimeError):
        await executor.execute("1")


async def test_work_directory_that_would_show_what_is_private_is_refused(sandboxed: Start, places: Path) -> None:
    with pytest.raises(SandboxRefusedError, match="would show"):
        await sandboxed(working_dir=places).start()
    with pytest.raises(SandboxRefusedError, match="cannot be opened: No such file"):
        await sandboxed(working_dir=places / "missing").start()


def test_settings_that_are_not_understood_are_refused_at_once(make_executor: Start, places: Path) -> None:
    with pytest.raises(SandboxConfigError, match="`readble` is not a setting"):
        make_executor(sandbox_config={"readble": []})
    with pytest.raises(ValueError, match="cannot be read"):
        make_executor(sandbox=True, sandbox_config=places / "missing.json")


async def test_sandbox_is_asked_for_by_one_word(make_executor: Start, work: Path) -> None:
    can_reach(SANDBOX_LEVELS[0])
    async with make_executor(sandbox=True, working_dir=work) as executor:
        assert executor.isolation == SANDBOX_LEVELS[0].value


# -- what is left when an owner ends

OWNER = """
import asyncio, signal, sys
from jupyter_agentbox import CodeExecutor

async def main():
    config = {"levels": [sys.argv[1]]}
    async with CodeExecutor(sandbox_config=config, working_dir=sys.argv[2]) as executor:
        await executor.execute(sys.argv[3])
        print("ready", flush=True)
        await executor.execute("while True: pass")

# as under a terminal, also where the tests were started in the background and ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main())
"""


#: An owner that can still act stops its executor, which other tests show at each level.
ENDS = [
    *((level, signal.SIGKILL) for level in SANDBOX_LEVELS),
    *((SANDBOX_LEVELS[0], number) for number in (signal.SIGINT, signal.SIGTERM)),
]


@pytest.mark.parametrize(("level", "number"), ENDS)
def test_no_process_outlives_its_owner(level: Isolation, work: Path, number: signal.Signals) -> None:
    can_reach(level)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, level.value, str(work), DAEMON + ADD],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        started = children(owner.pid)
        assert len(started) >= 5  # two around the kernel, the kernel, its daemon, a reaper, the MCP server
        owner.send_signal(number)
        assert not survivors(started)
    finally:
        owner.kill()
        owner.wait()
        assert owner.stdout is not None
        owner.stdout.close()


async def test_nothing_that_code_sends_to_its_owner_decides(sandboxed: Start) -> None:
    async with asyncio.timeout(60), sandboxed() as executor:
        assert await forge(executor) == "forged\n['by the person']\n"


async def test_a_server_without_a_directory_does_not_start_where_the_kernel_can_write(
    sandboxed: Start, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    backend = Path(__file__).parents[2] / "attacks"
    entry = {
        "command": sys.executable,
        "args": ["-m", "ledger_server", str(tmp_path / "notes")],
        "env": {"PYTHONPATH": str(backend)},
    }
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"ledger": entry}}))
    plant = "open('json.py', 'w').write('raise SystemExit')"

    async with sandboxed(mcp_config_path=tmp_path / "servers.json") as executor:
        result = await executor.execute(f"{plant}\nfrom jupyter_agentbox import tools\nprint(dir(tools.ledger))")

    assert "report" in (result.text or "")


async def test_a_server_that_misses_the_work_directory_says_what_to_do(
    sandboxed: Start, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    servers = {"ledger": {"command": sys.executable, "args": ["server.py"]}}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": servers}))

    async with sandboxed(mcp_config_path=tmp_path / "servers.json") as executor:
        with pytest.raises(CodeExecutionError, match=r"a sandboxed kernel can write .*set its `cwd`"):
            await executor.execute("from jupyter_agentbox import tools\nprint(dir(tools.ledger))")
