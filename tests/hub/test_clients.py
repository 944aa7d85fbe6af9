"""Code that a client outside of JupyterLab runs at a user's server of a real JupyterHub."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from .hub import API, OWNER, STRANGER, TIMEOUT, Hub, Session, run

ADD = "from jupyter_agentbox import tools\nprint(tools.shop.delete_order(order_id=1210))"
#: A cell of a user's server that runs code with a tool call in a kernel of its own, and allows it.
EXECUTE = f"""
from jupyter_agentbox import ApprovalRequest, CodeExecutor
async with CodeExecutor() as executor:
    async for item in executor.stream({ADD!r}):
        if isinstance(item, ApprovalRequest):
            await item.accept()
        else:
            print("result:", item.text)
    seen = await executor.execute("import os; print([name for name in os.environ if name.startswith('JUPYTERHUB')])")
    print("names:", seen.text)
"""


async def pending(hub: Hub) -> Any:
    """Return the one request that waits at the owner's server, once it does."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            _, page = await asyncio.to_thread(hub.ask, f"{hub.server()}{API}approvals?status=pending", token=hub.admin)
            if page["approvals"]:
                (request,) = page["approvals"]
                return request
            await asyncio.sleep(0.1)  # a kernel of another process asks, and tells nobody here


@pytest.mark.usefixtures("shop")
def test_an_mcp_client_runs_code_at_a_users_server_where_their_browser_decides(hub: Hub, tmp_path: Path) -> None:
    browser, token = Session(hub, OWNER), hub.token_of(OWNER)
    browser.open_lab(hub.server())
    command = ["-m", "jupyter_agentbox.cli", "mcp", "--server", hub.server()]
    environment = {"JUPYTER_TOKEN": token, "HOME": str(tmp_path)}
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=tmp_path)

    async def call() -> tuple[Any, Any, tuple[int, Any], tuple[int, Any]]:
        async with Client(parameters) as client:
            running = asyncio.ensure_future(client.call_tool("execute_code", {"code": ADD}))
            request = await pending(hub)
            url, body = hub.decision(request)
            body["decision"] = "allow_once"
            by_token = await asyncio.to_thread(hub.ask, url, body, token=token)
            by_person = await asyncio.to_thread(browser.ask, url, body)
            async with asyncio.timeout(TIMEOUT):
                return request, await running, by_token, by_person

    request, result, by_token, by_person = asyncio.run(call())

    assert (by_token[0], by_token[1]["reason"]) == (403, "needs_person")
    assert by_person[0] == 200, by_person
    assert not result.is_error, result
    assert "1210" in result.content[0].text
    told = hub.read(request)
    assert (told["status"], told["decision"]["reviewer"], told["decision"]["via"]) == ("approved", OWNER, "browser")
    assert [(one["name"], one["via"]) for one in told["call"]["askers"]] == [(OWNER, "api_token")]


def test_an_mcp_client_with_a_token_of_somebody_without_access_runs_nothing(hub: Hub, tmp_path: Path) -> None:
    command = ["-m", "jupyter_agentbox.cli", "mcp", "--server", hub.server()]
    environment = {"JUPYTER_TOKEN": hub.token_of(STRANGER), "HOME": str(tmp_path)}
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=tmp_path)

    async def call() -> Any:
        async with Client(parameters) as client, asyncio.timeout(TIMEOUT):
            return await client.call_tool("execute_code", {"code": f"open({str(tmp_path / 'ran')!r}, 'w')"})

    result = asyncio.run(call())

    assert result.is_error
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("shop")
def test_a_code_executor_in_a_users_server_is_in_the_servers_record_and_has_nothing_of_the_hub(hub: Hub) -> None:
    with hub.kernel() as kernel:
        said = run(kernel, EXECUTE)

    assert "1210" in said, said
    assert "names: []" in said, said
    _, page = hub.ask(f"{hub.server()}{API}approvals", token=hub.admin)
    newest = page["approvals"][0]
    assert (newest["call"]["tool"], newest["status"]) == ("delete_order", "approved")
