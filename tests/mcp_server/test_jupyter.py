"""Code in a kernel of a running Jupyter server, decided about there: a real server, a client without elicitation."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import KernelGateway
from jupyter_agentbox.mcp_server.jupyter import find_jupyterlab, server_address
from jupyter_agentbox.mcp_server.sessions import SessionError
from tests.headless.executor.conftest import MINI
from tests.integration.conftest import Server, start_server

from .conftest import ADD, TIMEOUT, Connect, Person, text_of


@pytest.fixture
def jupyterlab(places: Path, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """A JupyterLab with agentbox, in the places that the command looks at, at an address like one of a Hub."""
    options = ("--ServerApp.base_url=/user/anna/",)
    server = jp_asyncio_loop.run_until_complete(start_server(places, servers={"mini": MINI}, options=options))
    yield server
    jp_asyncio_loop.run_until_complete(server.stop())


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


SECRET = {**MINI, "env": {"API_KEY": "s3cret-key", "MODE": "fast"}}


async def test_a_server_is_added_once_it_is_approved_in_jupyterlab(
    jupyterlab: Server, connect: Connect, places: Path
) -> None:
    new = {"name": "two", "configuration": SECRET}
    async with connect() as caller:
        await caller.run("1")
        rejecting = asyncio.ensure_future(caller.call("register_mcp_server", new))
        await jupyterlab.decide(await jupyterlab.pending("register_mcp_server"), "reject_once", reason="not this one")
        rejected = await rejecting
        missing = await caller.run("from jupyter_agentbox import tools; print(hasattr(tools, 'two'))")

        adding = asyncio.ensure_future(caller.call("register_mcp_server", new))
        approval = await jupyterlab.pending("register_mcp_server")
        assert approval["call"]["server"] == "agentbox"
        assert [approval["call"]["kernel_id"]] == await kernels(jupyterlab)
        shown = {**MINI, "env": {"API_KEY": "*** (hidden, 10 characters)", "MODE": "fast"}}
        assert approval["call"]["arguments"] == {"name": "two", "configuration": shown}
        await jupyterlab.decide(approval)
        added = await adding

        running = asyncio.ensure_future(caller.run("print(tools.two.add(a=1, b=2))"))
        await jupyterlab.decide(await jupyterlab.pending("add"))
        result = await running
        again = await caller.call("register_mcp_server", new)

    assert rejected.is_error
    assert "not this one" in text_of(rejected)
    assert text_of(missing) == "False"
    assert not added.is_error, text_of(added)
    assert "Its tools: add" in text_of(added)
    assert text_of(result) == "3"
    assert again.is_error
    assert "already" in text_of(again)
    kept = places / "data" / "agentbox" / "added-servers.json"
    assert json.loads(kept.read_text()) == {"mcpServers": {"two": SECRET}}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads((places / "config" / "mcp.json").read_text()) == {"mcpServers": {"mini": MINI}}
    assert b"s3cret-key" not in b"".join(path.read_bytes() for path in kept.parent.glob("approvals.sqlite*"))


async def test_a_server_is_added_as_it_was_edited_in_jupyterlab(
    jupyterlab: Server, connect: Connect, places: Path
) -> None:
    async with connect("--ask", "jupyterlab") as caller:
        adding = asyncio.ensure_future(caller.call("register_mcp_server", {"name": "two", "configuration": SECRET}))
        approval = await jupyterlab.pending("register_mcp_server")
        shown = approval["call"]["arguments"]["configuration"]
        edited = {"name": "three", "configuration": {**shown, "env": {**shown["env"], "MODE": "slow"}}}
        await jupyterlab.decide(approval, arguments=edited)
        added = await adding

    assert not added.is_error, text_of(added)
    kept = json.loads((places / "data" / "agentbox" / "added-servers.json").read_text())
    assert kept == {"mcpServers": {"three": {**SECRET, "env": {"API_KEY": "s3cret-key", "MODE": "slow"}}}}


async def test_a_server_that_does_not_start_is_not_added_and_one_that_is_wrong_is_not_asked_about(
    jupyterlab: Server, connect: Connect, places: Path
) -> None:
    broken = {"name": "two", "configuration": {"command": "/no/such/program", "env": {"API_KEY": "s3cret-key"}}}
    async with connect("--ask", "jupyterlab") as caller:
        wrong = await caller.call("register_mcp_server", {"name": "two", "configuration": {"command": "x", "cwd": "a"}})
        taken = await caller.call("register_mcp_server", {"name": "MINI", "configuration": MINI})
        adding = asyncio.ensure_future(caller.call("register_mcp_server", broken))
        await jupyterlab.decide(await jupyterlab.pending("register_mcp_server"))
        failed = await adding

    assert [result.is_error for result in (wrong, taken, failed)] == [True, True, True]
    assert "absolute" in text_of(wrong)
    assert "already" in text_of(taken)
    assert "/no/such/program" in text_of(failed)
    assert "s3cret-key" not in text_of(failed)
    assert not (places / "data" / "agentbox" / "added-servers.json").exists()


async def test_a_registration_that_is_cancelled_is_withdrawn_in_jupyterlab(
    jupyterlab: Server, connect: Connect
) -> None:
    async with connect("--ask", "jupyterlab") as caller:
        adding = asyncio.ensure_future(caller.call("register_mcp_server", {"name": "two", "configuration": MINI}))
        approval = await jupyterlab.pending("register_mcp_server")
        adding.cancel()
        await asyncio.gather(adding, return_exceptions=True)
        await jupyterlab.approval(lambda found: found["id"] == approval["id"] and found["status"] == "cancelled")


async def test_a_file_of_servers_that_an_administrator_named_is_not_added_to(connect: Connect, places: Path) -> None:
    option = f"--AgentBoxApp.mcp_config_path={places / 'config' / 'mcp.json'}.site"
    server = await start_server(places, servers={"mini": MINI}, options=(option,))
    try:
        async with connect("--ask", "jupyterlab") as caller:
            refused = await caller.call("register_mcp_server", {"name": "two", "configuration": MINI})
    finally:
        await server.stop()

    assert refused.is_error
    assert "mcp_config_path" in text_of(refused)


async def test_the_time_for_a_decision_in_jupyterlab_does_not_count(jupyterlab: Server, connect: Connect) -> None:
    async with connect() as caller:
        running = asyncio.ensure_future(caller.run(ADD))
        await jupyterlab.decide(await jupyterlab.pending("add"))
        await running  # the server runs by then
        running = asyncio.ensure_future(caller.run("print(tools.mini.add(a=1, b=2))", timeout=4))
        approval = await jupyterlab.pending("add")
        await asyncio.sleep(6)
        await jupyterlab.decide(approval)
        result = await running

    assert text_of(result) == "3"


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


async def test_a_server_that_goes_away_is_an_error_and_reset_finds_the_next_one(connect: Connect, places: Path) -> None:
    first = await start_server(places, servers={"mini": MINI})
    async with connect("--ask", "jupyterlab") as caller:
        running = asyncio.ensure_future(caller.run(ADD))
        await first.pending("add")
        await first.stop()
        ended = await running
        again = await caller.run("1")
        none = await caller.call("reset")
        second = await start_server(places, servers={"mini": MINI})
        try:
            found = await caller.call("reset")
            fresh = await caller.run("1")
        finally:
            await second.stop()

    assert ended.is_error
    # A server withdraws what waits, interrupts its kernels and ends them; the last of what they say may come through.
    said = "ended before anybody decided|connection to the kernel was closed|KeyboardInterrupt"
    assert re.search(said, text_of(ended))
    assert again.is_error
    assert "its server may have ended; `reset()`" in text_of(again)
    assert none.is_error
    assert "no JupyterLab" in text_of(none)
    assert not found.is_error
    assert text_of(fresh) == "1"


async def test_reset_looks_for_a_jupyterlab_that_was_started_meanwhile(connect: Connect, places: Path) -> None:
    async with connect() as caller:
        refused = await caller.run(ADD)
        server = await start_server(places, servers={"mini": MINI})
        try:
            await caller.call("reset")
            running = asyncio.ensure_future(caller.run(ADD))
            await server.decide(await server.pending("add"))
            result = await running
        finally:
            await server.stop()

    assert refused.is_error
    assert text_of(result) == "3"


async def test_a_gateway_has_no_page_and_is_not_taken_for_jupyterlab(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(places / name.lower()))
    async with KernelGateway(port=0, working_dir=places):
        assert await find_jupyterlab() is None


@pytest.mark.parametrize(
    ("given", "url", "token"),
    [
        ("http://localhost:1/", "http://localhost:1/", ""),
        ("http://localhost:1/lab?token=abc", "http://localhost:1/", "abc"),
        ("http://localhost:1/lab/tree/a.ipynb", "http://localhost:1/", ""),
        ("https://hub.example.org/user/ada", "https://hub.example.org/user/ada/", ""),
        ("https://hub.example.org/user/ada/lab/workspaces/x", "https://hub.example.org/user/ada/", ""),
        ("https://hub.example.org/user/labrador/tree", "https://hub.example.org/user/labrador/", ""),
    ],
)
def test_servers_are_named_by_what_people_copy(given: str, url: str, token: str) -> None:
    address = server_address(given, None)

    assert (address.url, address.token) == (url, token)
    assert server_address(given, "other").token == "other"


@pytest.mark.parametrize("url", ["", "localhost:8888", "ftp://localhost", "http://", "http://localhost:port"])
def test_what_is_no_url_is_refused(url: Any) -> None:
    with pytest.raises(SessionError, match="--server"):
        server_address(url, None)
