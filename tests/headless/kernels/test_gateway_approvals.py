"""Calls of a gateway's kernels, decided through its REST API, as a program of its owner does it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from jupyter_agentbox import ExecutionError, ExecutionResult, KernelClient, KernelGateway
from tests.headless.executor.conftest import MINI

TIMEOUT = 60
ADD = "from jupyter_agentbox import tools\ntools.mini.add(a={a}, b={b})"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": MINI}}))


class Reviewer:
    """Decides through a gateway's REST API."""

    def __init__(self, gateway: KernelGateway) -> None:
        self._url = f"http://localhost:{gateway.port}/jupyter-agentbox/approvals"
        self._token = gateway.token

    async def ask(self, path: str = "", body: Any = None, token: str | None = None) -> tuple[int, Any]:
        request = HTTPRequest(
            f"{self._url}{path}",
            method="GET" if body is None else "POST",
            headers={"Authorization": f"token {self._token if token is None else token}"},
            body=None if body is None else json.dumps(body),
        )
        response = await AsyncHTTPClient().fetch(request, raise_error=False)
        return response.code, json.loads(response.body) if response.body else None

    async def listed(self, matches: Callable[[Any], bool], query: str = "") -> Any:
        """Return the first request that matches, when there is one."""
        async with asyncio.timeout(TIMEOUT):
            while True:
                _, page = await self.ask(query)
                if found := [request for request in page["approvals"] if matches(request)]:
                    return found[0]
                await asyncio.sleep(0.05)

    async def pending(self, kernel_id: str) -> Any:
        return await self.listed(lambda _: True, f"?status=pending&kernel_id={kernel_id}")

    async def decide(self, request: Any, decision: str, **more: Any) -> tuple[int, Any]:
        body = {"decision": decision, "digest": request["call"]["digest"], **more}
        return await self.ask(f"/{request['id']}/decision", body)


async def test_a_call_is_listed_decided_and_gives_its_value_through_rest(tmp_path: Path) -> None:
    async with (
        KernelGateway(port=0, working_dir=tmp_path) as gateway,
        KernelClient(port=gateway.port, token=gateway.token, images_dir=tmp_path) as one,
        KernelClient(port=gateway.port, token=gateway.token, images_dir=tmp_path) as two,
    ):
        reviewer = Reviewer(gateway)
        running = [
            asyncio.ensure_future(client.execute(ADD.format(a=number, b=10)))
            for number, client in enumerate((one, two))
        ]
        first, second = await reviewer.pending(one.kernel_id), await reviewer.pending(two.kernel_id)
        assert (first["call"]["server"], first["call"]["tool"]) == ("mini", "add")
        assert first["call"]["arguments"] == {"a": 0, "b": 10}
        assert (await reviewer.ask(token="wrong"))[0] == 403
        assert not any(task.done() for task in running)

        status, allowed = await reviewer.decide(first, "allow_once")
        assert (status, allowed["status"]) == (200, "approved")
        assert await running[0] == ExecutionResult(text="'10'")
        assert (await reviewer.decide(first, "allow_once"))[0] == 409  # once is once
        assert not running[1].done()

        status, edited = await reviewer.decide(second, "allow_once", arguments={"a": 5, "b": 5})
        assert (status, edited["decision"]["arguments"]) == (200, {"a": 5, "b": 5})
        assert (await running[1]).text == "'10'"
        ended = await reviewer.listed(lambda found: found["id"] == second["id"] and found["outcome"] is not None)
        assert ended["outcome"]["state"] in {"running", "succeeded"}


async def test_a_rejection_through_rest_is_an_error_with_the_reason(tmp_path: Path) -> None:
    async with (
        KernelGateway(port=0, working_dir=tmp_path) as gateway,
        KernelClient(port=gateway.port, token=gateway.token, images_dir=tmp_path) as client,
    ):
        reviewer = Reviewer(gateway)
        running = asyncio.ensure_future(client.execute(ADD.format(a=1, b=2)))
        await reviewer.decide(await reviewer.pending(client.kernel_id), "reject_once", reason="not today")
        with pytest.raises(ExecutionError, match="not today") as caught:
            await running
        assert "ToolCallRejectedError" in str(caught.value)
        assert (await client.execute("1")).text == "1"


async def test_what_waits_is_withdrawn_by_an_interrupt_and_orphaned_with_its_kernel(tmp_path: Path) -> None:
    async with KernelGateway(port=0, working_dir=tmp_path) as gateway:
        reviewer = Reviewer(gateway)
        async with KernelClient(port=gateway.port, token=gateway.token, images_dir=tmp_path) as client:
            running = asyncio.ensure_future(client.execute(ADD.format(a=1, b=2)))
            interrupted = await reviewer.pending(client.kernel_id)
            await client.interrupt()
            with pytest.raises(ExecutionError, match="KeyboardInterrupt"):
                await running
            await reviewer.listed(lambda found: (found["id"], found["status"]) == (interrupted["id"], "cancelled"))

            running = asyncio.ensure_future(client.execute(ADD.format(a=1, b=2)))
            lost = await reviewer.pending(client.kernel_id)
        with pytest.raises(ExecutionError):
            await running
        await reviewer.listed(lambda found: (found["id"], found["status"]) == (lost["id"], "orphaned"))
        assert (await reviewer.decide(lost, "allow_once"))[0] == 409
