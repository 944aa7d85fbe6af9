"""Code in a kernel of a running Jupyter server, decided about there: a client without elicitation, and one with it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from jupyter_agentbox.headless.server_api import ServerAddress
from jupyter_agentbox.mcp_server.activity import Activity
from jupyter_agentbox.mcp_server.consent import Refuser
from jupyter_agentbox.mcp_server.jupyter import JupyterSession
from jupyter_agentbox.mcp_server.sessions import CellRequest
from tests.headless.executor.conftest import MINI
from tests.integration.conftest import Server, for_one_test, server_in_thread

from .conftest import ADD, TIMEOUT, Connect, Person, text_of


@pytest.fixture(scope="module")
def running_jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A JupyterLab with agentbox that the tests share, at an address like one of a Hub."""
    options = ("--ServerApp.base_url=/user/anna/",)
    root = tmp_path_factory.mktemp("jupyterlab")
    with server_in_thread(root, options, servers={"mini": MINI}, has_lab=True) as server:
        yield server


@pytest.fixture
def places(running_jupyterlab: Server) -> Path:
    """The places of that JupyterLab, where the command looks for one."""
    return running_jupyterlab.root


@pytest.fixture
def jupyterlab(running_jupyterlab: Server, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """That JupyterLab for one test; no kernel of another one runs there."""
    with for_one_test(running_jupyterlab, jp_asyncio_loop) as server:
        yield server


async def kernels(server: Server) -> list[str]:
    _, found = await server.api("GET", "api/kernels")
    return [kernel["id"] for kernel in found]


async def test_without_elicitation_the_running_jupyterlab_decides(jupyterlab: Server, connect: Connect) -> None:
    messages: list[str] = []
    told = asyncio.Event()

    async def progress(_progress: float, _total: float | None, message: str | None) -> None:
        messages.append(message or "")
        if "JupyterLab" in (message or ""):
            told.set()

    async with connect() as caller:
        running = asyncio.ensure_future(caller.call("execute_code", {"code": ADD}, progress_callback=progress))
        approval = await jupyterlab.pending("add")
        await asyncio.wait_for(told.wait(), TIMEOUT)
        assert approval["call"]["arguments"] == {"a": 1, "b": 2}
        assert [approval["call"]["kernel_id"]] == await kernels(jupyterlab)
        await jupyterlab.decide(approval)
        allowed = await running

        rejecting = asyncio.ensure_future(caller.run("tools.mini.add(a=3, b=4)"))
        await jupyterlab.decide(await jupyterlab.pending("add"), "reject_once", reason="not today")
        rejected = await rejecting
        state = await caller.run("print('a')\ntools.__name__")
        listed = await caller.call("list_tools")
        over = await caller.run("print('begun')\nwhile True: pass", timeout=1)
        reset = await caller.call("reset")
        gone = await caller.run("'tools' in globals()")

    assert (text_of(allowed), allowed.is_error) == ("3", False)
    assert any(message.startswith("waiting for a decision about mini.add in JupyterLab for") for message in messages)
    assert rejected.is_error
    assert "not today" in text_of(rejected)
    assert text_of(state) == "a\n'jupyter_agentbox.tools'"
    (mini,) = listed.structured_content["servers"]
    assert "Where-Is" in [tool["name"] for tool in mini["tools"]]
    assert over.is_error
    assert "more than 1.00s" in text_of(over)
    assert not reset.is_error
    assert text_of(gone) == "False"
    async with asyncio.timeout(TIMEOUT):  # a client waits 2 s for the command to end, and its kernel may take longer
        while await kernels(jupyterlab):  # noqa: ASYNC110 - the server announces nothing
            await asyncio.sleep(0.05)


async def test_progress_of_a_tool_in_jupyterlab_reaches_the_client(
    jupyterlab: Server, connect: Connect, places: Path
) -> None:
    gate = places / "gate"
    os.mkfifo(gate)

    async def progress(_progress: float, _total: float | None, message: str | None) -> None:
        if message == "mini.chat: 2 of 2: step 2<U+202E>":
            await asyncio.to_thread(gate.write_text, "go on")

    code = f"from jupyter_agentbox import tools\nprint(tools.mini.chat(gate={str(gate)!r}))"
    async with connect() as caller:
        running = asyncio.ensure_future(caller.call("execute_code", {"code": code}, progress_callback=progress))
        await jupyterlab.decide(await jupyterlab.pending("chat"))
        assert text_of(await running) == "chatted"


async def test_the_time_for_a_decision_in_jupyterlab_does_not_count(
    jupyterlab: Server, places: Path, let_time_pass: Callable[[float], None]
) -> None:
    waits = asyncio.Event()

    def look() -> None:
        if activity.decisions():
            waits.set()

    activity = Activity(look)
    cell = CellRequest(code=ADD, timeout=100, consents=Refuser("nobody"), activity=activity, report=lambda _: None)
    session = JupyterSession(
        ServerAddress(url=jupyterlab.url, token=jupyterlab.token),
        working_dir=None,
        images_dir=places / "images",
        busy_timeout=TIMEOUT,
    )
    running = asyncio.ensure_future(session.execute(cell))
    approval = await jupyterlab.pending("add")
    async with asyncio.timeout(TIMEOUT):
        await waits.wait()
    let_time_pass(1000)
    await jupyterlab.decide(approval)
    done = await running
    await session.aclose()

    assert (done.text, done.error) == ("3", None)


async def test_cancelling_the_request_withdraws_what_waits_in_jupyterlab(jupyterlab: Server, connect: Connect) -> None:
    async with connect("--ask", "jupyterlab") as caller:
        running = asyncio.ensure_future(caller.run(ADD))
        approval = await jupyterlab.pending("add")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await jupyterlab.approval(lambda found: found["id"] == approval["id"] and found["status"] == "cancelled")
        after = await caller.run("1")

    assert text_of(after) == "1"


async def test_requests_at_once_run_in_order_and_a_reset_ends_them_all(jupyterlab: Server, connect: Connect) -> None:
    async with connect("--ask", "jupyterlab") as caller:
        await caller.run("order = []")
        await asyncio.gather(*(caller.run(f"order.append({number})") for number in range(5)))
        order = await caller.run("order")
        begun = asyncio.ensure_future(caller.run(ADD))
        await jupyterlab.pending("add")
        waiting = asyncio.ensure_future(caller.run("1"))
        await caller.call("list_tools")  # the request before is known by then
        await caller.call("reset")
        ended = [await request for request in (begun, waiting)]
        after = await caller.run("'order' in globals()")

    assert text_of(order) == "[0, 1, 2, 3, 4]"
    assert all(result.is_error and "reset" in text_of(result) for result in ended)
    assert text_of(after) == "False"


async def test_a_server_can_be_named_and_a_client_that_can_ask_is_not_asked_then(
    jupyterlab: Server, connect: Connect
) -> None:
    person = Person()
    options = ("--server", f"{jupyterlab.url}lab/tree/some.ipynb?token={jupyterlab.token}", "--working-dir", "/")
    async with connect(*options, person=person) as caller:
        where = await caller.run("import os; os.getcwd()")
        running = asyncio.ensure_future(caller.run(ADD))
        await jupyterlab.decide(await jupyterlab.pending("add"))
        result = await running

    assert text_of(where) == "'/'"
    assert text_of(result) == "3"
    assert person.shown == []


async def test_a_client_that_can_ask_is_asked_though_jupyterlab_runs(jupyterlab: Server, connect: Connect) -> None:
    async with connect(person=Person()) as caller:
        result = await caller.run(ADD)

    assert text_of(result) == "3"
    assert await kernels(jupyterlab) == []


async def test_rules_keep_code_away_from_jupyterlab_and_say_so(
    jupyterlab: Server, connect: Connect, places: Path
) -> None:
    rules = places / "rules.json"
    rules.write_text('{"rules": []}')
    async with connect("--rules", str(rules)) as caller:
        refused = await caller.run(ADD)
    async with connect("--rules", str(rules), "--ask", "jupyterlab") as caller:
        impossible = await caller.run("1")

    assert "JupyterLab is not asked, because of --rules" in text_of(refused)
    assert impossible.is_error
    assert "--rules cannot be combined with JupyterLab" in text_of(impossible)
    assert await kernels(jupyterlab) == []


async def test_a_wrong_token_and_a_server_that_is_not_there_are_errors_and_nothing_runs(
    jupyterlab: Server, connect: Connect, places: Path
) -> None:
    code = f"open({str(places / 'ran')!r}, 'w')"
    async with connect("--server", jupyterlab.url, "--token", "wrong") as caller:
        refused = await caller.run(code)
    async with connect("--server", "http://127.0.0.1:9/") as caller:
        missing = await caller.run(code)

    assert refused.is_error
    assert "token" in text_of(refused)
    assert missing.is_error
    assert "no Jupyter server answers" in text_of(missing)
    assert not (places / "ran").exists()


# -- `jupyter agentbox exec --ask jupyterlab`


async def execute(environment: Mapping[str, str], code: str, *options: str) -> asyncio.subprocess.Process:
    """Start the command without a terminal, with code on its standard input."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jupyter_agentbox.cli", "exec", "-", *options),
        **dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE),
        env={**os.environ, **environment},
        cwd=environment["JUPYTER_CONFIG_DIR"],
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(code.encode())
    process.stdin.close()
    return process


@pytest.mark.parametrize(
    ("decision", "code", "said"), [("allow_once", 0, "3\n"), ("reject_once", 3, "")], ids=["allowed", "rejected"]
)
async def test_code_without_a_terminal_waits_in_jupyterlab(
    jupyterlab: Server, environment: dict[str, str], decision: str, code: int, said: str
) -> None:
    process = await execute(environment, f"import os\nprint(os.getcwd())\n{ADD}", "--ask", "jupyterlab")
    approval = await jupyterlab.pending("add")
    assert process.stderr is not None
    assert await process.stderr.readline() == b"jupyter agentbox: waiting for a decision about mini.add in JupyterLab\n"
    await jupyterlab.decide(approval, decision)
    output, errors = await process.communicate()

    assert process.returncode == code
    assert output.decode() == f"{environment['JUPYTER_CONFIG_DIR']}\n{said}"
    assert ("ToolCallRejectedError" in errors.decode()) == (decision == "reject_once")
    async with asyncio.timeout(TIMEOUT):
        while await kernels(jupyterlab):  # noqa: ASYNC110 - the server announces nothing
            await asyncio.sleep(0.05)


async def test_what_is_printed_comes_while_the_code_runs_in_jupyterlab_and_time_runs_out(
    jupyterlab: Server, environment: dict[str, str]
) -> None:
    process = await execute(
        environment, "print('begun', flush=True)\nwhile True: pass",
        *("--server", jupyterlab.url, "--token", jupyterlab.token, "--timeout", "2"),
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"begun\n"
    await process.communicate()

    assert process.returncode == 124


async def test_what_does_not_apply_there_or_is_not_there_is_said_and_nothing_runs(
    environment: dict[str, str], tmp_path: Path
) -> None:
    elsewhere = {**environment, "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")}
    ends = [
        await execute(environment, "print(1)", "--ask", "jupyterlab", "--sandbox"),
        await execute(elsewhere, "print(1)", "--ask", "jupyterlab"),
        await execute(environment, "print(1)", "--server", "http://127.0.0.1:9/"),
    ]
    said = [(await process.communicate(), process.returncode) for process in ends]

    assert [(output, code) for (output, _), code in said] == [(b"", 2)] * 3
    texts = [errors.decode() for (_, errors), _ in said]
    assert "`--sandbox` cannot be used with `--ask jupyterlab`" in texts[0]
    assert "no JupyterLab of yours with agentbox is running" in texts[1]
    assert "http://127.0.0.1:9/" in texts[2]


async def test_each_call_that_waits_is_named_once_and_a_rules_denial_is_an_error_like_others(
    jupyterlab: Server, environment: dict[str, str]
) -> None:
    both = """
import asyncio
from jupyter_agentbox import tools
print(await asyncio.gather(*(tools.mini.add.aio(a=number, b=0) for number in (1, 2))))"""
    process = await execute(environment, both, "--ask", "jupyterlab")
    assert process.stderr is not None
    named = [await process.stderr.readline() for _ in range(2)]
    for a in (1, 2):
        found = await jupyterlab.approval(
            lambda one, a=a: one["status"] == "pending" and one["call"]["arguments"]["a"] == a
        )
        await jupyterlab.decide(found)
    output, errors = await process.communicate()
    assert named == [b"jupyter agentbox: waiting for a decision about mini.add in JupyterLab\n"] * 2
    assert (process.returncode, output, errors) == (0, b"['1', '2']\n", b"")

    rules = Path(environment["JUPYTER_CONFIG_DIR"]) / "agentbox_rules.json"
    rules.write_text(json.dumps({"rules": [{"server": "mini", "tool": "add", "effect": "deny", "reason": "not here"}]}))
    try:
        denied = await execute(environment, ADD, "--ask", "jupyterlab")
        _, errors = await denied.communicate()
    finally:
        rules.unlink()
    assert (denied.returncode, errors.count(b"not here")) == (1, 1)
