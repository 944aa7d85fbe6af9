"""Calls of users' own tools that members of a group approve at the service, and that run on the user's server."""

from __future__ import annotations

import asyncio
import html
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.composition import AgentBox
from jupyter_agentbox.composition import Settings as UsersSettings
from jupyter_agentbox.composition import build as build_users_box
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.exceptions import (
    ApprovalExpiredError,
    ToolCallRejectedError,
    ToolServerError,
)
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.services.calls.manager import FinishedCall
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeAnnouncer, FakeClock

from .service import TIMEOUT, WAREHOUSE, Service, listening, running_service
from .test_local_policy import users_server, with_local

QUERY = {"effect": "ask", "server": "lake", "tool": "query", "approvers": {"group": "data-stewards"}}
CALL = ToolCall(server="lake", tool="query", arguments={"sql": "select 1"})
ADA = Reviewer(name="ada", via=Via.BROWSER)


class UsersBox:
    """What runs the calls of ada's code, with an MCP server of her own that the service does not know."""

    def __init__(self, box: AgentBox, clock: FakeClock) -> None:
        self.box = box
        self.clock = clock
        self.seen: list[ApprovalRequest] = []
        self.waiting: asyncio.Queue[ApprovalRequest] = asyncio.Queue()

    def start(self, call: ToolCall = CALL) -> asyncio.Task[FinishedCall]:
        """Make the call, as a kernel does."""
        return asyncio.ensure_future(
            self.box.calls.run(
                call, on_waiting=self.waiting.put_nowait, on_running=lambda _: None, on_asked=self.seen.append
            )
        )

    async def record(self) -> ApprovalRequest:
        """Return the newest request as it is stored."""
        await self.box.approvals.recorded()
        return (await self.box.approvals.list(ApprovalQuery(limit=1))).approvals[0]


def asking_service(directory: Path, *rules: Any, **more: Any) -> AbstractAsyncContextManager[Service]:
    """Start the service with these rules for users' own tools. Its policy is signed at the time of `users_server`."""
    return running_service(directory, with_local(*rules), clock=FakeClock(), **more)


@asynccontextmanager
async def users_box(
    directory: Path, service: Service | str, *, policy: Policy | None = None, token: str = "ada"
) -> AsyncIterator[UsersBox]:
    home = directory / "ada"
    home.mkdir(exist_ok=True)
    entry = {"command": sys.executable, "args": [str(WAREHOUSE), "--api-key", "s3cret-s3cret"]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"lake": entry}}))
    async with users_server(directory, service) as server:
        settings = UsersSettings(
            mcp_config_path=(home / "mcp.json",), database_url=sqlite_url(str(home / "approvals.sqlite"))
        )
        box = build_users_box(
            settings, announcer=FakeAnnouncer(), policy=policy, rules=server.policies, hub_token=lambda: token
        )
        await box.start()
        try:
            yield UsersBox(box, server.clock)
        finally:
            await box.aclose()


async def asked(service: Service) -> Mapping[str, Any]:
    """Wait until bob is asked about a request, and return it."""
    async with asyncio.timeout(TIMEOUT):
        while not (found := await service.pending("bob")):  # noqa: ASYNC110  # as a page that has no events
            await asyncio.sleep(0.02)
    return found[0]


async def test_an_approver_approves_and_the_call_runs_on_the_users_server(tmp_path: Path) -> None:
    async with asking_service(tmp_path, QUERY) as service, users_box(tmp_path, service) as ada:
        call = ada.start(replace(CALL, origin=Origin(kernel_id="k-1", notebook_path="a.ipynb")))
        request = await asked(service)
        assert (request["asked_by"], request["call"]["server"], request["call"]["tool"]) == (
            "ada",
            "local/lake",
            "query",
        )
        assert request["call"]["arguments"] == {"sql": "select 1"}
        assert request["tool"]["description"] == "Runs SQL."
        assert request["reported"]["notebook_path"] == "a.ipynb"
        assert [one["may_decide"] for one in await service.pending("ada")] == [False]
        assert not call.done()
        assert ada.waiting.empty()
        page = (await service.get(f"requests/{request['id']}", session="bob")).body.decode()
        assert "on the server of ada, which says that the call comes from the notebook a.ipynb, not sandboxed" in page
        runs = f"{sys.executable} {WAREHOUSE} --api-key ***"
        assert request["reported"]["runs"] == runs
        assert f"<code><bdi>{runs}</bdi></code>, according to the server of <bdi>ada</bdi>" in page

        assert (await service.decide(request, "bob"))[0] == 200
        done = await call
        assert json.loads(done.result.text)["sql"] == "select 1"
        assert done.result.review is not None
        assert done.result.review.approved_by == ("bob",)
        stored = await ada.record()
        assert stored.outcome is not None
        assert stored.outcome.review is not None
        assert stored.outcome.review.approved_by == ("bob",)
        assert [one.id for one in ada.seen] == [stored.id]  # the card that says whom the Hub asks
        central = await service.json(f"api/requests/{request['id']}", token="dan")
        assert central["reported"]["request_id"] == stored.id
        assert central["outcome"]["state"] == "succeeded"


@pytest.mark.parametrize("edge", ["rejected", "withdrawn", "expired"])
async def test_a_call_that_nobody_approves_does_not_run(tmp_path: Path, edge: str) -> None:
    rule = {**QUERY, "timeout": 1.0 if edge == "expired" else 60.0}
    async with asking_service(tmp_path, rule) as service, users_box(tmp_path, service) as ada:
        call = ada.start()
        request = await asked(service)
        match edge:
            case "rejected":
                await service.decide(request, "bob", "reject_once", reason="not today")
                with pytest.raises(
                    ToolCallRejectedError, match=r"^`lake\.query` was rejected by bob.*: not today"
                ) as e:
                    await call
                assert e.value.reason == "not today"
            case "withdrawn":
                call.cancel()
                with suppress(asyncio.CancelledError):
                    await call
                async with asyncio.timeout(TIMEOUT):
                    while await service.pending("bob"):  # noqa: ASYNC110  # the same
                        await asyncio.sleep(0.02)
            case "expired":
                with pytest.raises(ApprovalExpiredError, match=r"`lake\.query`"):
                    await call
        stored = await ada.record()
        assert stored.outcome is not None
        assert stored.has_not_run or edge == "withdrawn"


async def test_only_who_may_decide_can_and_two_of_them_if_the_rule_says_so(tmp_path: Path) -> None:
    rule = {**QUERY, "approvers": {"group": "data-stewards", "count": 2}}
    async with asking_service(tmp_path, rule) as service, users_box(tmp_path, service) as ada:
        call = ada.start()
        request = await asked(service)
        assert (await service.decide(request, "ada"))[0] == 403
        assert (await service.decide(request, "eve"))[0] == 404
        assert (await service.decide(request, "bob"))[0] == 200
        assert not call.done()
        assert (await service.decide(request, "cleo"))[0] == 200
        review = (await call).result.review
        assert review is not None
        assert review.approved_by == ("bob", "cleo")


async def test_a_users_own_rules_and_answers_loosen_nothing(tmp_path: Path) -> None:
    allow = Rule(server="lake", tool="*", effect=Effect.ALLOW, layer=Layer.USER)
    policy = Policy((allow,))
    async with (
        asking_service(tmp_path, QUERY) as service,
        users_box(tmp_path, service, policy=policy) as ada,
    ):
        drop = await ada.start(replace(CALL, tool="drop", arguments={}))
        assert drop.result.review is None
        call = ada.start()
        await service.decide(await asked(service), "bob", "reject_once")
        with pytest.raises(ToolCallRejectedError):
            await call


async def test_a_rule_of_the_user_that_denies_asks_nobody(tmp_path: Path) -> None:
    policy = Policy((Rule(server="lake", tool="*", effect=Effect.DENY, layer=Layer.USER),))
    async with (
        asking_service(tmp_path, QUERY) as service,
        users_box(tmp_path, service, policy=policy) as ada,
    ):
        with pytest.raises(ToolCallRejectedError):
            await ada.start()
        assert await service.pending("bob") == []


async def test_edited_arguments_that_need_approvers_are_not_allowed_by_the_user(tmp_path: Path) -> None:
    rule = {**QUERY, "arguments": {"sql": "drop *"}}
    async with asking_service(tmp_path, rule) as service, users_box(tmp_path, service) as ada:
        call = ada.start()
        async with asyncio.timeout(TIMEOUT):
            waiting = await ada.waiting.get()
        edited = Verdict(answer=Answer.ALLOW_ONCE, digest=waiting.call.digest, arguments={"sql": "drop all"})
        with pytest.raises(ToolCallRejectedError, match="members of `data-stewards` have to approve it"):
            await ada.box.decisions.decide(waiting.id, edited, reviewer=ADA)
        await ada.box.decisions.decide(
            waiting.id, replace(edited, answer=Answer.REJECT_ONCE, arguments=None), reviewer=ADA
        )
        with pytest.raises(ToolCallRejectedError):
            await call


async def test_rules_for_notebooks_and_isolation_apply_as_reported(tmp_path: Path) -> None:
    rule = {**QUERY, "notebook": "work/*", "below": "bubblewrap"}
    async with asking_service(tmp_path, rule) as service, users_box(tmp_path, service) as ada:
        call = ada.start(replace(CALL, origin=Origin(kernel_id="k", notebook_path="work/a.ipynb")))
        await service.decide(await asked(service), "bob")
        assert (await call).result.review is not None
        boxed = Origin(kernel_id="k", notebook_path="work/a.ipynb", isolation=Isolation.BUBBLEWRAP)
        alone = ada.start(replace(CALL, origin=boxed))
        async with asyncio.timeout(TIMEOUT):
            waiting = await ada.waiting.get()  # the user is asked, and nobody else
        alone.cancel()
        assert waiting.evaluation.rule is None


async def test_an_approver_reads_that_the_sandbox_has_settings_of_its_user(tmp_path: Path) -> None:
    boxed = Origin(kernel_id="k", isolation=Isolation.BUBBLEWRAP, has_own_settings=True)
    async with asking_service(tmp_path, QUERY) as service, users_box(tmp_path, service) as ada:
        call = ada.start(replace(CALL, origin=boxed))
        request = await asked(service)
        page = (await service.get(f"requests/{request['id']}", session="bob")).body.decode()
        await service.decide(request, "bob")
        assert (await call).request.call.origin.has_own_settings
    assert "sandboxed with bubblewrap, with its user's own settings" in html.unescape(page)


async def test_what_was_approved_does_not_run_on_a_server_that_was_exchanged_meanwhile(tmp_path: Path) -> None:
    async with asking_service(tmp_path, QUERY) as service, users_box(tmp_path, service) as ada:
        call = ada.start()
        request = await asked(service)
        other = {"command": sys.executable, "args": [str(WAREHOUSE), "another"]}
        (tmp_path / "ada" / "mcp.json").write_text(json.dumps({"mcpServers": {"lake": other}}))
        await service.decide(request, "bob")
        with pytest.raises(ToolServerError, match="the entry of its server has changed since it was asked for"):
            await call


async def test_a_policy_that_denies_by_then_counts_on_the_users_server_too(tmp_path: Path) -> None:
    async with asking_service(tmp_path, QUERY) as service, users_box(tmp_path, service) as ada:
        call = ada.start()
        request = await asked(service)
        ada.clock.advance(2 * 3600)  # the policy expires, and none has come since
        await service.decide(request, "bob")
        with pytest.raises(ToolCallRejectedError, match=r"`lake\.query` did not run: it is denied by now"):
            await call


async def test_a_policy_that_changed_meanwhile_is_the_services(tmp_path: Path) -> None:
    async with asking_service(tmp_path, QUERY) as service, users_box(tmp_path, service) as ada:
        policy = with_local({"effect": "deny", "server": "lake", "tool": "query", "reason": "closed"})
        (tmp_path / "policy.json").write_text(json.dumps(policy))
        await service.box.policy.reload()
        with pytest.raises(ToolCallRejectedError, match="closed"):
            await ada.start()
        (tmp_path / "policy.json").write_text(json.dumps(with_local()))
        await service.box.policy.reload()
        with pytest.raises(ToolCallRejectedError, match="asks nobody about this call"):
            await ada.start()


async def test_a_waiting_call_survives_a_restart_of_the_service(tmp_path: Path) -> None:
    # The client comes back after a sixth of `resume_timeout`.
    at = listening()
    async with asking_service(tmp_path, QUERY, at=at.dup(), resume_timeout=30) as service:
        box = users_box(tmp_path, service)
        ada = await box.__aenter__()
        call = ada.start()
        await asked(service)
    async with asking_service(tmp_path, QUERY, at=at, resume_timeout=30) as service:
        await service.decide(await asked(service), "bob")
        assert (await call).result.review is not None
        await box.__aexit__(None, None, None)


async def test_a_service_that_cannot_be_asked_means_no(tmp_path: Path) -> None:
    async with asking_service(tmp_path, QUERY) as service:
        async with users_box(tmp_path, service, token="mallory") as ada:
            with pytest.raises(ToolServerError, match=r"`lake\.query` did not run: the Hub service could not be asked"):
                await ada.start()
        async with users_box(tmp_path, service, token="") as ada:
            with pytest.raises(ToolServerError, match="this server belongs to no JupyterHub"):
                await ada.start()


async def test_while_the_service_is_away_nobody_else_can_approve(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(asking_service(tmp_path, QUERY))
        async with users_box(tmp_path, service) as ada:
            await stack.aclose()
            with pytest.raises(ToolServerError, match=r"`lake\.query` did not run: the Hub service could not be asked"):
                await ada.start()


STRANGE = (
    {},
    {"server": 1, "tool": "a"},
    {"server": "", "tool": "a"},
    {"server": "a", "tool": ""},
    {"server": "a", "tool": "b", "arguments": []},
    {"server": "a", "tool": "b", "defaults": []},
    {"server": "a", "tool": "b", "annotations": 1},
    {"server": "a", "tool": "b", "description": 1},
)


async def test_what_no_server_of_ours_asks_is_refused_and_no_central_server_is_meant(tmp_path: Path) -> None:
    async with asking_service(tmp_path, QUERY) as service, service.tools_of("ada", "local-calls") as tools:
        assert [tool.name for tool in await tools.list_tools("local-calls")] == ["approve_call"]
        for question in STRANGE:
            result = await tools.call_tool(ToolCall(server="local-calls", tool="approve_call", arguments=question))
            assert result.is_error
            assert "must be" in result.text
        nan = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "approve_call"}}
        nan["params"]["arguments"] = {"server": "a", "tool": "b", "defaults": {"a": float("nan")}}
        _, answer = await service.post("mcp/local-calls", nan, {"Authorization": "Bearer ada"})
        assert "is not JSON" in answer["result"]["content"][0]["text"]
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "drop"}}
        _, answer = await service.post("mcp/local-calls", message, {"Authorization": "Bearer ada"})
        assert "there is no tool `drop`" in answer["result"]["content"][0]["text"]
        same = {"server": "warehouse", "tool": "query", "arguments": {"sql": "select 1"}}
        answer = await tools.call_tool(ToolCall(server="local-calls", tool="approve_call", arguments=same))
        assert answer.is_error
        assert "asks nobody" in answer.text
        assert await service.pending("bob") == []
