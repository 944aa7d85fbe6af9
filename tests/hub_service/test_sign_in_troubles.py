"""Users' sign-ins while the provider, the database, the policy or the service changes or fails at a bad moment."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.exceptions import StorageError, ToolServerError
from jupyter_agentbox.services.servers.sign_ins import MOST
from tests.oauth_server import OAuthServer, running_oauth_server

from .service import USERS, Service, running_service
from .test_sign_ins import SERVER, Browser, at, policy_with, record_of, whoami

CALL = ToolCall(server=SERVER, tool="whoami", arguments={})


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as found:
        yield found


async def set_policy(service: Service, directory: Path, policy: dict[str, Any]) -> None:
    (directory / "policy.json").write_text(json.dumps(policy))
    await service.box.policy.reload()


async def fail(*_: object) -> None:
    raise StorageError("the database is gone")


async def test_renewals_that_wait_for_each_other_leave_threads_for_everybody_else(
    remote: OAuthServer, tmp_path: Path
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    remote.expires_in, remote.renewal_takes = 1, 2.0  # each use renews it first
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        async with asyncio.timeout(60):
            for _ in range(4):
                assert (await ada.sign_in(remote, "ada")).code == 200
                await asyncio.sleep(0.2)  # its server starts, and waits for the renewal of the last one
            assert await Browser(service, "bob").status() == "not signed in"
            remote.renewal_takes = 0.0
            assert await whoami(service, "ada") == "you are ada"


async def test_a_renewal_that_cannot_read_the_database_fails_its_own_call_only(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        async with service.tools_of("ada", SERVER) as tools:
            assert (await tools.call_tool(CALL)).text == "you are ada"
            remote.valid.clear()
            with monkeypatch.context() as patch:
                patch.setattr(service.box.sign_ins.table, "load", fail)
                failed = await tools.call_tool(CALL)
            assert failed.is_error
            assert "did not run" in failed.text
            assert "database cannot be used at the moment" in failed.text
            assert (await tools.call_tool(CALL)).text == "you are ada"
    assert len([method for method, _ in remote.asked if method == "refresh_token"]) == 1


async def test_a_renewed_sign_in_that_could_not_be_stored_is_stored_later(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        async with service.tools_of("ada", SERVER) as tools:
            with monkeypatch.context() as patch:
                patch.setattr(service.box.sign_ins.table, "change", fail)
                remote.valid.clear()
                assert (await tools.call_tool(CALL)).text == "you are ada"
            for _ in range(2):
                remote.valid.clear()
                assert (await tools.call_tool(CALL)).text == "you are ada"
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        assert await whoami(service, "ada") == "you are ada"


async def test_who_signed_out_stays_signed_out_although_a_renewal_could_not_be_stored(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        await ada.sign_in(remote, "ada")
        async with service.tools_of("ada", SERVER) as tools:
            with monkeypatch.context() as patch:
                patch.setattr(service.box.sign_ins.table, "change", fail)
                remote.valid.clear()
                assert (await tools.call_tool(CALL)).text == "you are ada"
            await service.box.sign_ins.table.remove_all_of("ada")  # as an administrator does
            remote.valid.clear()
            with pytest.raises(ToolServerError, match="the sign-in has ended"):
                await tools.call_tool(CALL)
        assert await ada.status() == "not signed in"


async def test_the_end_of_the_service_loses_no_renewal(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        remote.valid.clear()
        began = asyncio.Event()
        loop = asyncio.get_running_loop()
        remote.on_ask, remote.renewal_takes = lambda _: loop.call_soon_threadsafe(began.set), 1.0
        call = asyncio.create_task(whoami(service, "ada"))
        await began.wait()
    await asyncio.wait([call])
    assert call.exception() is not None
    while len(remote.issued) < 4:  # noqa: ASYNC110  # the old refresh token does not work any more
        await asyncio.sleep(0.05)
    remote.renewal_takes = 0.0
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        assert await whoami(service, "ada") == "you are ada"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"url": "another"}, b"The address of `crm` has changed since you began"),
        ({"oauth": False}, b"There is no such central server to sign in to"),
        ({"disabled": True}, b"disabled in its configuration"),
        (None, b"There is no such central server to sign in to"),
    ],
)
async def test_a_sign_in_to_a_server_that_the_policy_has_changed_meanwhile_keeps_no_token(
    remote: OAuthServer, tmp_path: Path, change: dict[str, Any] | None, says: bytes
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        back = await asyncio.to_thread(remote.grant, await ada.begin(), "ada")
        changed = policy_with(remote)
        if change is None:
            changed["mcpServers"] = {}
        else:
            changed["mcpServers"][SERVER] |= change
            changed["mcpServers"][SERVER]["url"] = remote.url + ("?another" if "url" in change else "")
        await set_policy(service, tmp_path, changed)
        answer = await ada.fetch(back)
        assert (answer.code >= 400, says in answer.body) == (True, True), answer.body
        assert "sign_in" not in [row["call"]["tool"] for row in await record_of(service)]
        assert not await service.box.sign_ins.table.remove_all_of("ada")
    assert not remote.issued


async def test_a_server_without_sign_in_gets_no_token_of_one_that_still_runs(
    remote: OAuthServer, tmp_path: Path
) -> None:
    policy = policy_with(remote, headers={"X-User": "${HUB_USER}"})  # so that it goes on as the user's own
    async with running_service(tmp_path, policy, **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        assert await whoami(service, "ada") == "you are ada"
        await set_policy(service, tmp_path, policy_with(remote, headers={"X-User": "${HUB_USER}"}, oauth=False))
        remote.bearers.clear()
        with pytest.raises(ToolServerError, match="401"):
            await whoami(service, "ada")
        await set_policy(service, tmp_path, policy)
        assert await whoami(service, "ada") == "you are ada"


async def test_the_groups_of_a_user_are_those_of_the_last_request(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_with(remote, url=f"{remote.url}?of=${{HUB_GROUPS}}")
    async with running_service(tmp_path, policy, **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        assert await ada.status() == "not signed in"
        monkeypatch.setitem(USERS, "ada", ["others"])
        assert (await ada.sign_in(remote, "ada")).code == 200
        assert await ada.status() == "signed in"
        assert await whoami(service, "ada") == "you are ada"
        await ada.press(f"servers/{SERVER}/sign-out")
        assert await ada.status() == "not signed in"


async def test_a_row_that_is_no_sign_in_does_not_stop_the_next_one(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        assert await ada.status() == "not signed in"
        for content in ("'text'", "100000000000", "1.5", "x'00'"):
            with sqlite3.connect(tmp_path / "hub.sqlite") as database:
                database.execute("DELETE FROM agentbox_sign_ins")
                database.execute(f"INSERT INTO agentbox_sign_ins VALUES ('ada', 'crm', {content}, 1)")
            assert await ada.status() == "not signed in"
            assert (await ada.sign_in(remote, "ada")).code == 200
            assert await whoami(service, "ada") == "you are ada"


async def test_who_begins_sign_ins_for_ever_is_refused_and_delays_nobody(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        eve = Browser(service, "eve")
        codes = [(await eve.press(f"servers/{SERVER}/sign-in")).code for _ in range(MOST + 3)]
        assert codes == [*[200] * MOST, *[429] * 3]
        assert len(remote.clients) == MOST
        assert (await Browser(service, "ada").sign_in(remote, "ada")).code == 200
