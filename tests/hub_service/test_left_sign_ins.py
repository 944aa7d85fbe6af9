"""Sign-ins to servers that have left the policy go with them, but not at once."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.hub.left_sign_ins import MOST_REVOCATIONS, LeftSignIns
from jupyter_agentbox.system import SystemClock
from tests.oauth_server import OAuthServer, running_oauth_server

from .service import TIMEOUT, USERS, Service, running_service
from .test_sign_in_troubles import set_policy
from .test_sign_ins import SERVER, Browser, at, policy_with, whoami

DAY = 86_400
HOUR = 1 / 24
WITHOUT: dict[str, Any] = {"rules": [], "mcpServers": {}}


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as found:
        yield found


@pytest.fixture
def days(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Days that have passed, in a list that a test changes."""
    passed = [0.0]
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + timedelta(days=passed[0]))
    return passed


def kept_in(directory: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(directory / "hub.sqlite") as database:
        return sorted(database.execute("SELECT tenant, server FROM agentbox_sign_ins").fetchall())


def revoked(remote: OAuthServer) -> list[str]:
    return [form["token"] for what, form in remote.asked if what == "revoke"]


async def look(service: Service) -> None:
    await service.box.left_sign_ins.remove()


async def leave(
    service: Service, remote: OAuthServer, directory: Path, days: list[float], policy: Any = WITHOUT
) -> None:
    """Sign Ada in, change the policy to one without that server, and let the grace run out."""
    await Browser(service, "ada").sign_in(remote, "ada")
    await set_policy(service, directory, policy)
    await look(service)
    days[0] += 8


@pytest.mark.parametrize("change", ["no server", "no sign-in", "another address"])
async def test_a_sign_in_to_a_server_that_is_gone_is_removed_and_revoked_after_the_grace(
    remote: OAuthServer, tmp_path: Path, days: list[float], change: str
) -> None:
    after = {
        "no server": WITHOUT,
        "no sign-in": policy_with(remote, oauth=False),
        "another address": policy_with(remote, url=f"{remote.url}?of=another"),
    }[change]
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        for user in ("ada", "bob"):
            assert (await Browser(service, user).sign_in(remote, user)).code == 200
        refresh = set(remote.refreshable)
        await look(service)
        await set_policy(service, tmp_path, after)
        await look(service)
        days[0] = 6.9
        await look(service)
        assert (kept_in(tmp_path), revoked(remote)) == ([("ada", SERVER), ("bob", SERVER)], [])
    async with running_service(tmp_path, after, **at(tmp_path)) as service:  # a restart does not begin anew
        days[0] = 7.1
        await look(service)
        assert (kept_in(tmp_path), set(revoked(remote))) == ([], refresh)


async def test_a_mistaken_edit_that_is_mended_in_time_loses_nothing_and_is_forgotten(
    remote: OAuthServer, tmp_path: Path, days: list[float]
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        for _ in range(3):
            await set_policy(service, tmp_path, WITHOUT)
            await look(service)
            days[0] += 5
            await set_policy(service, tmp_path, policy_with(remote))
            await look(service)
        await set_policy(service, tmp_path, WITHOUT)
        await look(service)
        days[0] += 5
        await look(service)
        await set_policy(service, tmp_path, policy_with(remote))
        assert await whoami(service, "ada") == "you are ada"
        # A broken file is no policy at all: the last good one stays in force.
        (tmp_path / "policy.json").write_text("{")
        await service.box.policy.reload()
        for _ in range(2):
            days[0] += 20
            await look(service)
        assert kept_in(tmp_path) == [("ada", SERVER)]
    assert revoked(remote) == []


async def test_a_server_that_is_written_back_in_the_last_moment_keeps_its_sign_ins(
    remote: OAuthServer, tmp_path: Path, days: list[float]
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await leave(service, remote, tmp_path, days)
        (tmp_path / "policy.json").write_text(json.dumps(policy_with(remote)))  # the service has not read it yet
        await look(service)
        assert (kept_in(tmp_path), revoked(remote)) == ([("ada", SERVER)], [])


async def test_a_server_that_was_back_between_two_looks_was_not_gone_all_the_time(
    remote: OAuthServer, tmp_path: Path, days: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: asyncio.Queue[None] = asyncio.Queue()

    async def remove(left: LeftSignIns, original: Any = LeftSignIns.remove) -> None:
        await original(left)
        looked.put_nowait(None)

    monkeypatch.setattr(LeftSignIns, "remove", remove)
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        for policy in (WITHOUT, policy_with(remote), WITHOUT):
            await set_policy(service, tmp_path, policy)
            async with asyncio.timeout(TIMEOUT):
                await looked.get()
            days[0] += 6
        await look(service)
        assert (kept_in(tmp_path), revoked(remote)) == ([("ada", SERVER)], [])


async def test_an_address_with_the_users_groups_is_not_taken_for_another(
    remote: OAuthServer, tmp_path: Path, days: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_with(remote, url=f"{remote.url}?groups=${{HUB_GROUPS}}&user=${{HUB_USER}}")
    async with running_service(tmp_path, policy, **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        for _ in range(2):
            await look(service)
            days[0] += 30
        assert kept_in(tmp_path) == [("ada", SERVER)]
        monkeypatch.setitem(USERS, "ada", [])
        await set_policy(service, tmp_path, policy_with(remote, url=f"{remote.url}?user=${{HUB_USER}}"))
        for _ in range(2):
            await look(service)
            days[0] += 30
        assert kept_in(tmp_path) == []


async def test_a_provider_that_is_gone_or_a_key_that_is_lost_stops_nothing(
    remote: OAuthServer, tmp_path: Path, days: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jupyter_agentbox")
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        for user in ("ada", "bob"):
            await Browser(service, user).sign_in(remote, user)
        with sqlite3.connect(tmp_path / "hub.sqlite") as database:
            database.execute("UPDATE agentbox_sign_ins SET content = x'00' WHERE tenant = 'bob'")
        await set_policy(service, tmp_path, WITHOUT)
        await look(service)
        days[0] += 8
        remote.on_ask = lambda _: 1 / 0
        for _ in range(MOST_REVOCATIONS):
            assert kept_in(tmp_path) == [("ada", SERVER), ("bob", SERVER)]
            await look(service)
            days[0] += HOUR
        assert kept_in(tmp_path) == [("bob", SERVER)]
    assert len(revoked(remote)) == MOST_REVOCATIONS
    assert [line for line in caplog.messages if "was asked 5 times" in line and "sign-in of ada" in line]
    removed = [line for line in caplog.messages if "was removed" in line]
    assert removed == [
        f"the sign-in of ada to the central server {SERVER} was removed: the policy has not had that server for 7 days"
    ]
    assert not [secret for secret in remote.secrets if secret in caplog.text]


@pytest.mark.parametrize("is_back", [False, True])
async def test_a_service_that_ends_before_the_provider_was_told_leaves_that_to_the_next_one(
    remote: OAuthServer, tmp_path: Path, days: list[float], monkeypatch: pytest.MonkeyPatch, is_back: bool
) -> None:
    class KilledError(BaseException):
        pass

    async def killed(*_: Any) -> bool:
        raise KilledError

    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        refresh = list(remote.refreshable)
        await set_policy(service, tmp_path, WITHOUT)
        await look(service)
        days[0] += 8
        with monkeypatch.context() as patch:
            patch.setattr("jupyter_agentbox.hub.left_sign_ins.revoke", killed)
            with pytest.raises(KilledError):
                await look(service)
        assert revoked(remote) == []
    days[0] += HOUR
    now = policy_with(remote) if is_back else WITHOUT
    async with running_service(tmp_path, now, **at(tmp_path)) as service:
        if is_back:
            assert await Browser(service, "ada").status() != "signed in"
        await look(service)
        assert (kept_in(tmp_path), revoked(remote)) == ([], refresh)


async def test_a_provider_that_answers_later_is_asked_again_until_then_and_not_afterwards(
    remote: OAuthServer, tmp_path: Path, days: list[float]
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await leave(service, remote, tmp_path, days)
        remote.on_ask = lambda _: 1 / 0
        await look(service)
        remote.on_ask = lambda _: None
        for _ in range(3):
            days[0] += HOUR
            await look(service)
        assert (kept_in(tmp_path), len(revoked(remote)), remote.refreshable) == ([], 2, {})


async def test_many_changes_of_the_policy_do_not_use_up_the_attempts(
    remote: OAuthServer, tmp_path: Path, days: list[float]
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await leave(service, remote, tmp_path, days)
        remote.on_ask = lambda _: 1 / 0
        for number in range(MOST_REVOCATIONS + 1):
            await set_policy(service, tmp_path, {**WITHOUT, "auditors": [f"group-{number}"]})
            await look(service)
        assert (kept_in(tmp_path), len(revoked(remote))) == ([("ada", SERVER)], 1)
    async with running_service(tmp_path, WITHOUT, **at(tmp_path)) as service:  # a restart does not make it earlier
        await look(service)
        assert len(revoked(remote)) == 1
        days[0] -= 30  # a clock that was set back does not make it later
        await look(service)
        assert (kept_in(tmp_path), len(revoked(remote))) == ([("ada", SERVER)], 2)


async def test_a_provider_that_refuses_to_revoke_a_sign_in_is_not_asked_again_and_the_log_says_so(
    remote: OAuthServer, tmp_path: Path, days: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await leave(service, remote, tmp_path, days)
        remote.revocation_status = 404
        await look(service)
        assert (kept_in(tmp_path), len(revoked(remote))) == ([("ada", SERVER)], 1)
        days[0] += HOUR
        remote.revocation_status = 403
        await look(service)
        assert (kept_in(tmp_path), len(revoked(remote))) == ([], 2)
    assert [line for line in caplog.messages if "was asked 2 times" in line and "sign-in of ada" in line]


async def test_a_sign_in_made_while_an_earlier_one_is_being_revoked_stays(
    remote: OAuthServer, tmp_path: Path, days: list[float]
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await leave(service, remote, tmp_path, days, policy_with(remote, url=f"{remote.url}?of=another"))
        remote.on_ask = lambda what: 1 / 0 if what == "/revoke" else None
        await look(service)
        assert (await Browser(service, "ada").sign_in(remote, "ada")).code == 200
        remote.on_ask = lambda _: None
        await look(service)
        assert (kept_in(tmp_path), len(revoked(remote))) == ([("ada", SERVER)], 1)
        assert await Browser(service, "ada").status() == "signed in"


async def test_a_sign_in_made_during_the_look_stays(
    remote: OAuthServer, tmp_path: Path, days: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await leave(service, remote, tmp_path, days, policy_with(remote, url=f"{remote.url}?of=another"))
        change = service.box.sign_ins.table.change
        signed_in = asyncio.Event()

        async def late(*args: Any, **more: Any) -> Any:
            if not signed_in.is_set():
                signed_in.set()
                assert (await Browser(service, "ada").sign_in(remote, "ada")).code == 200
            return await change(*args, **more)

        monkeypatch.setattr(service.box.sign_ins.table, "change", late)
        await look(service)
        assert kept_in(tmp_path) == [("ada", SERVER)]
        assert await Browser(service, "ada").status() == "signed in"
