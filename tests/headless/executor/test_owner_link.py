"""Tool calls through the socket between a kernel and its executor, and without it."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_agentbox import ApprovalRequest, CodeExecutionChunk, CodeExecutionError, CodeExecutor
from jupyter_agentbox.headless.owner_socket import OwnerSocket

Make = Callable[..., CodeExecutor]
TIMEOUT = 60

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


async def test_calls_work_where_there_is_no_such_socket(make_executor: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnerSocket, "open", lambda _receive: None)
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        assert (await executor.execute("from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)")).text == "'3'"


async def test_large_arguments_and_results_pass(make_executor: Make) -> None:
    code = """
from jupyter_agentbox import tools
found = tools.mini.Where_Is(name="x" * 3_000_000)
print(found.place.x, len(found.others[0]["from"]))
"""
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        assert (await executor.execute(code)).text == "3000000 3000012"


async def test_interrupts_in_the_middle_of_calls_leave_the_socket_sound(make_executor: Make) -> None:
    code = """
from jupyter_agentbox import tools
text = "x" * 200_000
while True:
    tools.mini.Where_Is(name=text)
"""
    async with make_executor(approve_tool_calls=False) as executor, asyncio.timeout(2 * TIMEOUT):
        await executor.execute("from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)")
        for moment in range(8):
            running = asyncio.create_task(executor.execute(code))
            await asyncio.sleep(0.05 + moment / 400)
            executor.cancel()
            await running
            assert (await executor.execute(f"tools.mini.add(a={moment}, b=0)")).text == repr(str(moment))


@linux
async def test_programs_that_a_cell_starts_do_not_have_the_socket(make_executor: Make) -> None:
    code = """
import os, subprocess, sys
from jupyter_agentbox import tools
tools.mini.add(a=1, b=2)
here = "/proc/self/fd/"  # the directory's own descriptor is closed when they are looked at
look = f"import os; print([os.readlink({here!r} + n) for n in os.listdir({here!r}) if os.path.lexists({here!r} + n)])"
print(subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, close_fds=False).stdout)
"""
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        found = (await executor.execute(code)).text or ""
        assert "pipe" in found
        assert "socket" not in found


@linux
async def test_nothing_stays_open_here_when_kernels_have_come_and_gone(make_executor: Make) -> None:
    def sockets() -> int:
        gc.collect()  # what tests before left to it is none of ours
        return sum(entry.is_socket() for entry in Path("/proc/self/fd").iterdir())

    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        await executor.execute("from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)")
        before = sockets()
        for _ in range(3):
            await executor.reset()
            await executor.execute("from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)")
        assert sockets() == before


async def test_code_that_closes_the_socket_gets_an_error_and_the_executor_goes_on(make_executor: Make) -> None:
    code = """
import os
from jupyter_agentbox import tools
from jupyter_agentbox.kernel import runtime
tools.mini.add(a=1, b=2)
link = runtime.link()
link.patience = type(link.patience)(attach=1.0, repeat=0.2, ping=0.5, lost=1.0)
os.close(runtime._owner[0])
tools.mini.add(a=1, b=2)
"""
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        with pytest.raises(CodeExecutionError, match="NoServerError"):
            await executor.execute(code)
        assert (await executor.execute("1 + 1")).text == "2"
        await executor.reset()
        assert (await executor.execute("from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)")).text == "'3'"


async def test_execute_accepts_what_is_asked_at_once_together(make_executor: Make) -> None:
    code = """
import asyncio
from jupyter_agentbox import tools
sums = await asyncio.gather(*(asyncio.to_thread(tools.mini.add, a=i, b=i) for i in range(40)))
print(sum(map(int, sums)))
"""
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        assert (await executor.execute(code)).text == "1560"


async def test_call_that_is_withdrawn_while_it_is_accepted_does_not_end_execute(make_executor: Make) -> None:
    code = """
import asyncio
from jupyter_agentbox import tools
await tools.mini.add.aio(a=0, b=0)
for delay in range(30):
    task = asyncio.create_task(tools.mini.add.aio(a=1, b=2))
    await asyncio.sleep(delay / 10_000)
    task.cancel()
    await asyncio.wait([task])
print("done")
"""
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        assert (await executor.execute(code)).text == "done"


FORGE = """
import threading
from jupyter_agentbox import tools
from jupyter_agentbox.exceptions import ToolCallRejectedError
from jupyter_agentbox.kernel import runtime

ended = []
def ask():
    try:
        ended.append(tools.mini.add(a=1, b=2))
    except ToolCallRejectedError as error:
        ended.append(error.reason)

asking = threading.Thread(target=ask)
asking.start()
while not (pending := runtime.link().list_pending()):
    pass
(request,) = pending
for kind in ("decision", "approved", "allow_once", "reply", "running", "waiting", "welcome"):
    forged = {"type": kind, "id": request["id"], "request_id": request["id"], "decision": "allow_once", "content": {}}
    runtime.link().transport.send(forged)
print("forged", flush=True)
asking.join()
print(ended)
"""


async def forge(executor: CodeExecutor) -> str:
    """Let code write whatever might decide to the socket, then reject its call; return what it printed."""
    text = ""
    request: ApprovalRequest | None = None
    async for item in executor.stream(FORGE, chunks=True):
        if isinstance(item, ApprovalRequest):
            request = item
        elif isinstance(item, CodeExecutionChunk):
            text += item.text
        if request is not None and "forged" in text:
            await asyncio.sleep(0.2)
            await request.reject("by the person")
            request = None
    return text


async def test_nothing_that_code_writes_to_the_socket_decides(make_executor: Make) -> None:
    async with make_executor() as executor, asyncio.timeout(TIMEOUT):
        assert await forge(executor) == "forged\n['by the person']\n"
