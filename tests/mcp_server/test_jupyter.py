"""Code in a kernel of a running Jupyter server, decided about there: a real server, a client without elicitation."""

from __future__ import annotations

import asyncio
import json
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

from .conftest import ADD, Connect, text_of


@pytest.fixture
def jupyterlab(places: Path, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """A JupyterLab with agentbox, in the places that the command looks at, at an address like one of a Hub."""
    options = ("--ServerApp.base_url=/user/anna/",)
    server = jp_asyncio_loop.run_until_complete(
        start_server(places, servers={"mini": MINI}, options=options, has_lab=True)
    )
    yield server
    jp_asyncio_loop.run_until_complete(server.stop())


async def kernels(server: Server) -> list[str]:
    _, found = await server.api("GET", "api/kernels")
    return [kernel["id"] for kernel in found]


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
    server = await start_server(places, servers={"mini": MINI}, options=(option,), has_lab=True)
    try:
        async with connect("--ask", "jupyterlab") as caller:
            refused = await caller.call("register_mcp_server", {"name": "two", "configuration": MINI})
    finally:
        await server.stop()

    assert refused.is_error
    assert "mcp_config_path" in text_of(refused)


async def test_a_server_that_goes_away_is_an_error_and_reset_finds_the_next_one(connect: Connect, places: Path) -> None:
    first = await start_server(places, servers={"mini": MINI}, has_lab=True)
    async with connect("--ask", "jupyterlab") as caller:
        running = asyncio.ensure_future(caller.run(ADD))
        await first.pending("add")
        await first.stop()
        ended = await running
        again = await caller.run("1")
        none = await caller.call("reset")
        second = await start_server(places, servers={"mini": MINI}, has_lab=True)
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
        server = await start_server(places, servers={"mini": MINI}, has_lab=True)
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
