from __future__ import annotations

import asyncio
import base64
import getpass
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_agentbox import (
    ApprovalRequest,
    CodeExecutionChunk,
    CodeExecutionError,
    CodeExecutionResult,
    CodeExecutor,
    ServerLogMessage,
    ToolCatalog,
    ToolProgress,
)
from jupyter_agentbox.core.approvals import OutcomeState, Status
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.exceptions import InvalidTransitionError
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.system import SystemClock
from tests.headless.chunks import joined
from tests.headless.executor.conftest import ADD, MINI
from tests.processes_alive import children, survivors

Make = Callable[..., CodeExecutor]
TIMEOUT = 60
ROOT = Path(__file__).parents[3]
FOREVER = "import time\nprint('begun')\nwhile True:\n    time.sleep(0.01)"
ASKS = """
import threading
from jupyter_agentbox import tools
from jupyter_agentbox.kernel import runtime
threading.Thread(target=tools.mini.add, kwargs={'a': 1, 'b': 2}, daemon=True).start()
while not runtime.link().list_pending():
    pass
"""
RESISTS = """
import time
while True:
    try:
        print('begun', flush=True)
        while True: time.sleep(60)
    except KeyboardInterrupt:
        pass
"""


async def run(executor: CodeExecutor, code: str, **options: Any) -> list[object]:
    """Return what a stream yields, and accept what asks."""
    items: list[object] = []
    async with asyncio.timeout(TIMEOUT):
        async for item in executor.stream(code, **options):
            items.append(item)
            if isinstance(item, ApprovalRequest):
                await item.accept()
    return items


async def gone(processes: list[psutil.Process]) -> bool:
    """Wait until the processes have ended."""
    return not await asyncio.to_thread(survivors, processes)


# -- code and results


async def test_text_of_streams_results_and_displays_comes_in_order(executor: CodeExecutor) -> None:
    result = await executor.execute("import sys\nprint('a')\nprint('b', file=sys.stderr)\ndisplay('c')\n'd'")
    assert result == CodeExecutionResult(text="a\nb\n'c''d'", images=[])


async def test_code_without_output_has_no_text(executor: CodeExecutor) -> None:
    assert await executor.execute("x = 1") == CodeExecutionResult(text=None, images=[])


async def test_cells_share_the_kernels_state_until_it_is_reset(make_executor: Make) -> None:
    async with make_executor() as executor:
        await executor.execute("x = 1")
        assert (await executor.execute("x")).text == "1"
        await executor.reset()
        with pytest.raises(CodeExecutionError, match="NameError"):
            await executor.execute("x")


async def test_images_are_files_in_order_and_other_outputs_are_bundles(make_executor: Make, places: Path) -> None:
    code = """
from IPython.display import HTML, Image, JSON, display
display(Image(data=b"\\x89PNG first", format="png"))
display(HTML("<b>x</b>"), JSON({"a": 1}))
display(Image(data=b"\\x89PNG second", format="png"))
"""
    async with make_executor() as executor:
        result = await executor.execute(code)
    assert [path.read_bytes() for path in result.images] == [b"\x89PNG first", b"\x89PNG second"]
    assert {path.parent for path in result.images} == {places / "images"}
    assert [sorted(bundle.keys() - {"text/plain"}) for bundle in result.mime_bundles] == [
        ["image/png"],
        ["text/html"],
        ["application/json"],
        ["image/png"],
    ]
    assert result.mime_bundles[0]["image/png"].strip() == base64.b64encode(b"\x89PNG first").decode()


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise ValueError('\\ud800')", "ValueError"),
        ("def", "SyntaxError"),
        ("no", "NameError"),
    ],
)
async def test_errors_have_the_kernels_traceback_without_colors(executor: CodeExecutor, code: str, name: str) -> None:
    with pytest.raises(CodeExecutionError, match=name) as caught:
        await executor.execute(code)
    assert "\x1b" not in str(caught.value)
    assert (await executor.execute("1")).text == "1"


async def test_chunks_are_yielded_only_if_asked_for(executor: CodeExecutor) -> None:
    assert await run(executor, "print('a')") == [CodeExecutionResult(text="a", images=[])]
    assert await run(executor, "print('a')", chunks=True) == [
        CodeExecutionChunk(text="a\n"),
        CodeExecutionResult(text="a", images=[]),
    ]


@pytest.mark.parametrize(
    ("code", "length"),
    [
        ("print('x' * 500_000)", 500_000),
        ("for i in range(50_000): print(i)", 288_889),
        ("for i in range(10_000): print(i, flush=True)", 48_889),
        ("for i in range(10_000): display(i)", 38_890),
        ("\n".join(f"x{i} = {i}" for i in range(10_000)) + "\nprint(x9999)", 4),
        ("import os; os.system('seq 10000'); print('end')", 48_897),
        ("import asyncio\nawait asyncio.sleep(0.01)\n'done'", 6),
        ("print('\\ud800é\\U0001f600')", 3),
    ],
)
async def test_no_output_is_lost(executor: CodeExecutor, code: str, length: int) -> None:
    async with asyncio.timeout(60):
        result = await executor.execute(code)
        assert result.text is not None
        assert len(result.text) == length


async def test_every_small_cell_has_its_output(executor: CodeExecutor) -> None:
    texts = [(await executor.execute(f"print({number})")).text for number in range(300)]
    assert texts == [str(number) for number in range(300)]


async def test_what_programs_write_stands_where_they_ran(executor: CodeExecutor) -> None:
    result = await executor.execute("import os\nprint('a')\nos.system('echo b')\nprint('c')\nos.system('echo d')")
    assert result.text == "a\nb\nc\nd\n0"


# -- environment


async def test_the_kernel_gets_what_is_passed_and_no_secret_of_ours(make_executor: Make) -> None:
    async with make_executor(kernel_env={"GIVEN": "yes"}) as executor:
        result = await executor.execute("import os; print(os.environ.get('GIVEN'), os.environ.get('A_SECRET'))")
        assert result.text == "yes None"


async def test_the_end_of_a_kernel_runs_nothing_of_the_working_directory(make_executor: Make, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "psutil.py").write_text(f"open({str(ran)!r}, 'w').close()")
    async with make_executor(working_dir=tmp_path) as executor:
        await executor.execute("1")
    assert not ran.exists()

    async with make_executor(working_dir=tmp_path) as executor:
        await executor.execute("import psutil")
    assert ran.exists(), "a cell imports what it likes"


async def test_each_cell_starts_in_the_working_directory(make_executor: Make, tmp_path: Path) -> None:
    async with make_executor(working_dir=tmp_path) as executor:
        await executor.execute("import os; os.chdir('/')")
        assert (await executor.execute("print(os.getcwd())")).text == str(tmp_path)


# -- approvals


async def test_a_call_is_yielded_before_it_runs_and_its_record_is_kept(make_executor: Make, places: Path) -> None:
    async with make_executor() as executor:
        items = await run(executor, ADD)
        request, result = items
        assert isinstance(request, ApprovalRequest)
        assert (request.server_name, request.tool_name, request.tool_args) == ("mini", "add", {"a": 1, "b": 2})
        assert str(request) == "mini.add(a=1, b=2)"
        assert await request.response() is True
        assert result == CodeExecutionResult(text="3", images=[])
    url = sqlite_url(str(places / "data" / "agentbox" / "approvals.sqlite"))
    async with SqlApprovalStore(url, clock=SystemClock()) as store:
        (kept,) = (await store.list(ApprovalQuery())).approvals
    assert (kept.status, kept.outcome_state) == (Status.APPROVED, OutcomeState.SUCCEEDED)
    assert kept.decision is not None
    assert kept.decision.reviewer == Reviewer(name=getpass.getuser(), via=Via.PROGRAM)


async def test_text_comes_before_the_request_that_follows_it(executor: CodeExecutor) -> None:
    late = "get_ipython().kernel.iopub_thread.schedule(lambda: __import__('time').sleep(0.5))"
    items = await run(executor, f"{late}\nprint('before')\n{ADD}\nprint('after')", chunks=True)
    kinds = [item if isinstance(item, CodeExecutionChunk) else type(item) for item in items]
    assert kinds[:2] == [CodeExecutionChunk(text="before\n"), ApprovalRequest]
    assert "".join(item.text for item in items if isinstance(item, CodeExecutionChunk)) == "before\n3\nafter\n"


async def test_a_call_runs_with_the_arguments_that_it_was_accepted_with(executor: CodeExecutor) -> None:
    async for item in executor.stream(ADD):
        if isinstance(item, ApprovalRequest):
            await item.accept(arguments={"a": 10, "b": 20})
        else:
            assert item == CodeExecutionResult(text="30", images=[])


async def test_a_rejection_is_an_error_with_its_reason(executor: CodeExecutor) -> None:
    stream = executor.stream(ADD)
    request = await anext(stream)
    assert isinstance(request, ApprovalRequest)
    decisions: list[bool] = []
    request.on_decision(decisions.append)
    await request.reject("not on a Friday")
    with pytest.raises(CodeExecutionError, match="not on a Friday") as caught:
        await anext(stream)
    assert "ToolCallRejectedError" in str(caught.value)
    assert decisions == [False]


async def test_a_request_that_expires_is_an_error(make_executor: Make, let_time_pass: Callable[[float], None]) -> None:
    async with make_executor(approval_timeout=100) as executor:
        stream = executor.stream(ADD)
        request = await anext(stream)
        let_time_pass(100)
        assert isinstance(request, ApprovalRequest)
        assert await request.response() is False
        with pytest.raises(CodeExecutionError, match="ApprovalExpiredError"):
            await anext(stream)


async def test_a_second_decision_is_refused(executor: CodeExecutor) -> None:
    async for item in executor.stream(ADD):
        if isinstance(item, ApprovalRequest):
            await item.accept()
            with pytest.raises(InvalidTransitionError):
                await item.reject()


async def test_execute_accepts_every_call(executor: CodeExecutor) -> None:
    assert (await executor.execute(ADD)).text == "3"


async def test_calls_run_unasked_if_approval_is_off(make_executor: Make) -> None:
    async with make_executor(approve_tool_calls=False) as executor:
        assert await run(executor, ADD) == [CodeExecutionResult(text="3", images=[])]


async def test_rules_decide_without_asking(make_executor: Make) -> None:
    policy = Policy(
        (Rule(server="mini", tool="add", effect=Effect.ALLOW), Rule(server="mini", tool="pid", effect=Effect.DENY))
    )
    async with make_executor(policy=policy) as executor:
        assert await run(executor, ADD) == [CodeExecutionResult(text="3", images=[])]
        with pytest.raises(CodeExecutionError, match="ToolCallRejectedError"):
            await executor.execute("tools.mini.pid()")


async def test_what_a_tool_and_its_server_say_is_yielded_if_asked_for(make_executor: Make, places: Path) -> None:
    mini = {**MINI, "env": {"API_KEY": "s3cret-key"}}
    (places / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": mini}}))
    code = "from jupyter_agentbox import tools\nprint(tools.mini.chat())"
    async with make_executor(approve_tool_calls=False) as executor:
        without = await run(executor, code)
        items = await run(executor, code, progress=True)

    assert [type(item) for item in without] == [CodeExecutionResult]
    *reports, result = items
    assert isinstance(result, CodeExecutionResult)
    assert result.text == "chatted"
    steps = [item for item in reports if isinstance(item, ToolProgress)]
    assert [step.progress for step in steps] == [1, 2]
    last = steps[-1]
    assert (last.server_name, last.tool_name, last.progress, last.total) == ("mini", "chat", 2, 2)
    assert last.message == "step 2<U+202E>"
    assert str(last) == "mini.chat: 2 of 2: step 2<U+202E>"
    logs = [item for item in reports if isinstance(item, ServerLogMessage)]
    assert logs[:2] == [
        ServerLogMessage(server_name="mini", level="info", logger="db", text=f"row {step} ***<U+001B>[31m")
        for step in (1, 2)
    ]
    (refused,) = logs[2:]
    assert refused.level == "warning"
    assert "roots" in refused.text


async def test_a_tools_error_is_the_cells(executor: CodeExecutor) -> None:
    with pytest.raises(CodeExecutionError, match="it went wrong"):
        await executor.execute("from jupyter_agentbox import tools\ntools.mini.fail()")


async def test_calls_of_many_threads_are_all_asked_for(executor: CodeExecutor) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from jupyter_agentbox import tools
add = tools.mini.add
with ThreadPoolExecutor(16) as pool:
    print(sum(int(value) for value in pool.map(lambda i: add(a=i, b=0), range(50))))
"""
    items = await run(executor, code)
    assert len([item for item in items if isinstance(item, ApprovalRequest)]) == 50
    assert items[-1] == CodeExecutionResult(text="1225", images=[])


async def test_what_outlives_its_cell_asks_in_the_next_one(executor: CodeExecutor) -> None:
    code = """
import threading
from jupyter_agentbox import tools
add = tools.mini.add
begin = threading.Event()
thread = threading.Thread(target=lambda: (begin.wait(), add(a=1, b=1)))
thread.start()
"""
    await executor.execute(code)
    items = await run(executor, "begin.set()\nthread.join()\nprint('joined')")
    assert [type(item) for item in items] == [ApprovalRequest, CodeExecutionResult]


# -- time


async def test_a_cell_that_runs_too_long_is_interrupted_and_the_state_kept(executor: CodeExecutor) -> None:
    await executor.execute("x = 1")
    with pytest.raises(asyncio.TimeoutError):
        await executor.execute(FOREVER, timeout=0.2)
    assert (await executor.execute("x")).text == "1"


async def test_a_cell_that_awaits_too_long_is_interrupted(executor: CodeExecutor) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await executor.execute("import asyncio\nawait asyncio.sleep(100)", timeout=0.2)
    assert (await executor.execute("1")).text == "1"


async def test_thinking_is_not_execution_time(make_executor: Make, let_time_pass: Callable[[float], None]) -> None:
    async with make_executor() as executor:
        async for item in executor.stream(ADD, timeout=100):
            if isinstance(item, ApprovalRequest):
                let_time_pass(1000)
                await item.accept()
            else:
                assert item == CodeExecutionResult(text="3", images=[])


async def resist(executor: CodeExecutor, *, timeout: float) -> None:
    """Let a cell's time run out when its code resists an interrupt, and not before: a request holds the clock."""
    [request, _] = [item async for item in executor.stream(ASKS)]
    assert isinstance(request, ApprovalRequest)
    async for item in executor.stream(RESISTS, timeout=timeout, chunks=True):
        if isinstance(item, CodeExecutionChunk) and item.text.startswith("begun"):
            await request.accept()


async def test_code_that_resists_is_a_clear_error_and_reset_helps(make_executor: Make) -> None:
    async with make_executor() as executor:
        async with asyncio.timeout(2 * TIMEOUT):
            with pytest.raises(asyncio.TimeoutError, match="is unusable"):
                await resist(executor, timeout=0.2)
            with pytest.raises(CodeExecutionError, match="reset"):
                await executor.execute("1")
            await executor.reset()
            assert (await executor.execute("1")).text == "1"


# -- cancelling


async def cancel_when_begun(executor: CodeExecutor, code: str) -> list[object]:
    items: list[object] = []
    async with asyncio.timeout(TIMEOUT):
        async for item in executor.stream(code, chunks=True):
            items.append(item)
            if isinstance(item, CodeExecutionChunk) and item.text.endswith("\n"):
                executor.cancel()
    return joined(items)


async def test_cancel_ends_the_cell_cleanly(executor: CodeExecutor) -> None:
    for _ in range(3):
        assert await cancel_when_begun(executor, FOREVER) == ["begun\n"]
    assert (await executor.execute("1")).text == "1"


async def test_a_cancelled_execute_returns_an_empty_result(executor: CodeExecutor) -> None:
    task = asyncio.create_task(executor.execute(FOREVER))
    asyncio.get_running_loop().call_later(0.3, executor.cancel)
    assert await task == CodeExecutionResult(text=None, images=[])


async def test_cancel_without_a_cell_does_nothing(executor: CodeExecutor) -> None:
    executor.cancel()
    assert (await executor.execute("1")).text == "1"


async def test_cancel_withdraws_what_waits(executor: CodeExecutor) -> None:
    async for item in executor.stream(ADD):
        assert isinstance(item, ApprovalRequest)
        executor.cancel()
        assert await asyncio.wait_for(item.response(), TIMEOUT) is False
        with pytest.raises(InvalidTransitionError):
            await item.accept()
    assert (await executor.execute("1")).text == "1"


async def asked_in_a_task(executor: CodeExecutor) -> tuple[ApprovalRequest, asyncio.Task[None]]:
    """Return a request, and the task that reads its cell and waits for something else."""
    found: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()

    async def read() -> None:
        async for item in executor.stream(ADD):
            assert isinstance(item, ApprovalRequest)
            found.set_result(item)
            await asyncio.Event().wait()

    task = asyncio.create_task(read())
    return await asyncio.wait_for(found, TIMEOUT), task


@pytest.mark.parametrize("how", ["cancel", "task", "task, a moment later"])
async def test_what_is_accepted_right_after_a_cancel_never_runs(make_executor: Make, places: Path, how: str) -> None:
    async with make_executor() as executor:
        for _ in range(10):
            item, task = await asked_in_a_task(executor)
            if how == "cancel":
                executor.cancel()
            else:
                task.cancel()
            if how == "task, a moment later":
                await asyncio.sleep(0)
            with pytest.raises(InvalidTransitionError):
                await item.accept()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert (await asyncio.wait_for(executor.execute("1"), TIMEOUT)).text == "1"
    url = sqlite_url(str(places / "data" / "agentbox" / "approvals.sqlite"))
    async with SqlApprovalStore(url, clock=SystemClock()) as store:
        statuses = {request.status for request in (await store.list(ApprovalQuery())).approvals}
    assert statuses == {Status.CANCELLED}


async def test_code_that_is_accepted_right_after_a_cancel_never_runs(make_executor: Make) -> None:
    async with make_executor(approve_code=True) as executor, asyncio.timeout(TIMEOUT):
        async for item in executor.stream("ran = True"):
            assert isinstance(item, ApprovalRequest)
            executor.cancel()
            with pytest.raises(InvalidTransitionError):
                await item.accept()


async def test_what_code_of_an_earlier_cell_asked_for_can_be_accepted_once_the_cancelled_cell_has_ended(
    make_executor: Make,
) -> None:
    prepare = """
import threading
from jupyter_agentbox import tools
sums, begin, add = [], threading.Event(), tools.mini.add
thread = threading.Thread(target=lambda: (begin.wait(), sums.append(add(a=1, b=2))))
thread.start()
"""
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        await executor.execute(prepare)
        async for item in executor.stream(f"begin.set()\n{FOREVER}"):
            assert isinstance(item, ApprovalRequest)
            executor.cancel()
            with pytest.raises(InvalidTransitionError):
                await item.accept()
        while not await accepted(item):  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0)
        assert (await executor.execute("thread.join(); sums")).text == "['3']"


async def accepted(request: ApprovalRequest) -> bool:
    try:
        await request.accept()
    except InvalidTransitionError:
        return False
    return True


async def test_cancelled_tasks_leave_their_executors_usable(make_executor: Make) -> None:
    async with make_executor() as one, make_executor() as two, asyncio.timeout(60):
        for _ in range(3):
            tasks = [asyncio.create_task(executor.execute(FOREVER)) for executor in (one, two)]
            await asyncio.wait(tasks, timeout=0.3)
            for task in tasks:
                task.cancel()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert (await one.execute("1")).text == "1"
        assert (await two.execute("2")).text == "2"


async def test_leaving_the_iteration_interrupts_the_cell(executor: CodeExecutor) -> None:
    async for _ in executor.stream(FOREVER, chunks=True):
        break
    assert (await asyncio.wait_for(executor.execute("1"), TIMEOUT)).text == "1"


async def test_a_cell_within_the_iteration_over_another_is_refused(executor: CodeExecutor) -> None:
    stream = executor.stream(FOREVER, chunks=True)
    await anext(stream)
    with pytest.raises(RuntimeError, match="wait for ever"):
        await executor.execute("1")
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator


async def test_cells_of_other_tasks_wait_for_their_turn(executor: CodeExecutor) -> None:
    results = await asyncio.gather(*(executor.execute(f"print({number})") for number in range(10)))
    assert [result.text for result in results] == [str(number) for number in range(10)]


async def test_executors_run_in_parallel(make_executor: Make) -> None:
    async with make_executor() as one, make_executor() as two:
        await asyncio.gather(one.execute(ADD), two.execute(ADD))
        await asyncio.gather(one.execute("x = 1"), two.execute("x = 2"))
        assert ((await one.execute("x")).text, (await two.execute("x")).text) == ("1", "2")


# -- processes


async def test_stop_leaves_no_process(make_executor: Make) -> None:
    before = children()
    async with make_executor() as executor:
        await executor.execute(ADD)
        await executor.execute("import subprocess; p = subprocess.Popen(['sleep', '1000'])")
        processes = children(beside=before)
        assert len(processes) >= 4  # two reapers, the kernel, the MCP server
    assert await gone(processes)


async def test_reset_stops_the_mcp_servers(make_executor: Make) -> None:
    code = "from jupyter_agentbox import tools\nprint(tools.mini.pid())"
    others = children()
    async with make_executor() as executor:
        before = await executor.execute(code)
        processes = children(beside=others)
        await executor.reset()
        assert await gone(processes)
        after = await executor.execute(code)
        assert before.text != after.text


async def test_a_dead_kernel_is_an_error_and_reset_helps(make_executor: Make) -> None:
    async with make_executor() as executor:
        with pytest.raises(CodeExecutionError) as killed:
            await executor.execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        assert str(killed.value) == "the kernel ended by signal 9; call `reset()` to get a fresh one."
        with pytest.raises(CodeExecutionError, match="reset"):
            await executor.execute("1")
        await executor.reset()
        assert (await executor.execute("1")).text == "1"


async def test_a_kernel_that_cannot_start_says_why(make_executor: Make, tmp_path: Path) -> None:
    with pytest.raises(CodeExecutionError, match="did not start"):
        await make_executor(working_dir=tmp_path / "missing").start()


async def test_an_executor_that_does_not_run_says_so(make_executor: Make) -> None:
    executor = make_executor()
    with pytest.raises(RuntimeError):
        await executor.execute("1")
    await executor.stop()
    async with executor:
        with pytest.raises(RuntimeError):
            await executor.start()
    async with executor:
        assert (await executor.execute("1")).text == "1"


def test_importing_it_loads_no_server_and_no_database() -> None:
    import subprocess
    import sys

    code = (
        "import sys, jupyter_agentbox as j; j.CodeExecutor, j.ApprovalRequest, j.KernelGateway;"
        "heavy = {'jupyter_server', 'mcp', 'sqlalchemy', 'pydantic', 'IPython', 'jsonschema'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.strip() == "[]"


async def test_servers_gives_a_catalog_of_servers_and_tools(make_executor: Make) -> None:
    async with make_executor() as executor:
        catalog: ToolCatalog = await executor.servers()
        assert [(status.name, status.state.value) for status in catalog.servers()] == [("mini", "stopped")]
        assert catalog.problems() == ()
        assert "add" in {tool.name for tool in await catalog.list_tools("mini")}
        assert (await catalog.restart("mini")).state.value == "running"


async def test_a_tool_that_a_server_adds_while_the_kernel_runs_is_there(make_executor: Make, places: Path) -> None:
    raw = {"command": sys.executable, "args": [str(ROOT / "tests" / "mcp_client" / "servers" / "raw.py")]}
    (places / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"raw": raw}}))
    grow = "from jupyter_agentbox import tools\nbefore = dir(tools.raw)\ntools.raw.more_tools()"
    look = """
import time
while 'added' not in dir(tools.raw):
    time.sleep(0.02)
print('added' in before, callable(tools.raw.added))"""
    async with make_executor() as executor:
        await run(executor, grow)
        [result] = await run(executor, look)

    assert isinstance(result, CodeExecutionResult)
    assert result.text == "False True"


async def test_a_broken_configuration_is_the_same_text_in_the_magic_the_error_and_the_log(
    make_executor: Make, places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = places / "config" / "mcp.json"
    path.write_text('{\n  "mcpServers": {\n    "shop": {"command": "x"}\n    "mail": {}\n  }\n}')
    async with make_executor() as executor:
        *_, listed = await run(executor, "%agentbox servers")
        with pytest.raises(CodeExecutionError) as failed:
            await run(executor, "from jupyter_agentbox import tools\ntools.shop")
        [problem] = (await executor.servers()).problems()

    said = str(problem)
    assert said.startswith(f"{path}:4:5: ")
    assert isinstance(listed, CodeExecutionResult)
    assert said in (listed.text or "")
    assert said in str(failed.value)
    assert said in caplog.text
