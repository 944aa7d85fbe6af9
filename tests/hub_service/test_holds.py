"""Records that somebody holds outlive retention; who holds them, since when and why is in the record."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.redaction import SECRET_NAMES
from jupyter_agentbox.history_commands import BROKEN, OK, USAGE, main
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.system import SystemClock

from .service import Service, a_policy, running_service
from .test_reports import database_url, lines_of, report, rows, verified
from .test_service import ALLOW, call

__all__ = ["database_url"]

#: Days that pass at once: all that is there is older.
SOON = RetentionLimits(days=1e-9)


async def hold(service: Service, token: str = "keeper:eve", **body: Any) -> tuple[int, Any]:
    given = {"user": "ada", "reason": "case 17", **body}
    return await service.post("api/holds", given, {"Authorization": f"Bearer {token}"})


async def release(service: Service, id: str, token: str = "keeper:eve", **body: Any) -> tuple[int, Any]:
    given = {"reason": "case closed", **body}
    return await service.post(f"api/holds/{id}/release", given, {"Authorization": f"Bearer {token}"})


async def left(service: Service, user: str) -> int:
    """Return how many records of a user's servers there still are."""
    await service.box.reports.remove_old()
    return len([row for row in await rows(service, f"?user={user}") if row["record"] and not row["is_note"]])


async def test_records_that_are_held_stay_until_they_are_released(tmp_path: Path, database_url: str) -> None:
    async with running_service(tmp_path, a_policy(), database_url=database_url, retention=SOON) as service:
        code, found = await hold(service)
        assert (code, found["set_by"], found["user"], found["reason"]) == (201, "eve", "ada", "case 17")
        await report(service, "ada", lines_of("ada", 5))
        await report(service, "bob", lines_of("bob", 5, chain="c2"))

        assert (await left(service, "ada"), await left(service, "bob")) == (5, 0)
        code, ended = await release(service, found["id"])
        assert (code, ended["released_by"], ended["release_reason"]) == (200, "eve", "case closed")
        assert await left(service, "ada") == 0
        assert (await release(service, found["id"]))[0] == 404

        notes = [row["record"]["event"] for row in await rows(service, "?user=ada") if row["is_note"]]
        assert notes == ["hold_set", "hold_released", "removed"]
        again = await report(service, "ada", lines_of("ada", 5))
        assert again == (200, {"accepted": 0, "duplicates": 5})  # what was removed does not come back
    checked = await verified(database_url)
    assert (checked.broken, checked.removed, list(checked.gaps)) == ("", 10, [])


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ({"user": None}, 3),
        ({"user": "bob"}, 0),
        ({"until": "2026-05-01T12:00:00Z"}, 0),
        ({"since": "2026-05-01T12:00:00Z", "until": "2026-05-02T00:00:00Z"}, 3),  # when they were made
        ({"since": "2026-05-02T00:00:00Z"}, 3),  # when they came: what a server says of the time frees nothing
    ],
)
async def test_a_hold_is_for_a_user_and_a_time(tmp_path: Path, body: dict[str, Any], stays: int) -> None:
    async with running_service(tmp_path, a_policy(), retention=SOON) as service:
        assert (await hold(service, **body))[0] == 201
        await report(service, "ada", lines_of("ada", 3))
        assert await left(service, "ada") == stays


async def test_requests_for_central_tools_are_held_as_well(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        for user in ("ada", "bob"):
            async with service.tools_of(user) as tools:
                await tools.call_tool(call())
        await hold(service)
        url = f"sqlite:///{service.database}"
    store = SqlApprovalStore(url, clock=SystemClock(), limits=SOON)
    await store.open()
    await store._sweep()
    await store.aclose()
    with sqlite3.connect(service.database) as connection:
        assert connection.execute("SELECT kernel_id FROM agentbox_approvals").fetchall() == [("ada",)]
    connection.close()


async def test_only_the_scope_of_the_hub_lets_somebody_set_and_release(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        _, found = await hold(service)
        for token in ("eve", "dan", "nobody", "narrow:eve"):
            assert (await hold(service, token))[0] == 403
            assert (await release(service, found["id"], token))[0] == 403
        assert (await hold(service, "keeper:bob", set_by="eve"))[0] == 422
        assert (await service.get("api/holds", token="ada")).code == 403
        for reader in ("dan", "keeper:eve"):
            (listed,) = (await service.json("api/holds", token=reader))["holds"]
            assert listed == found


@pytest.mark.parametrize(
    "body",
    [
        *({"reason": reason} for reason in ("", None, "x" * 4001)),
        *({"user": user} for user in (7, "")),
        *({"since": since} for since in ("noon", "2026-05-01T00:00:00", 3)),
        {"since": "2026-05-02T00:00:00Z", "until": "2026-05-01T00:00:00Z"},
        {"color": "red"},
    ],
)
async def test_what_is_no_hold_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        assert (await hold(service, **body))[0] == 422
        assert (await service.json("api/holds", token="dan"))["holds"] == []


async def test_the_command_sets_lists_and_releases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    token = tmp_path / "token"
    token.write_text("keeper:eve\n")

    async def run(*arguments: str, file: Path = token) -> int:
        given = ["audit", "hold", *arguments, "--url", service.url, "--token-file", str(file)]
        return await asyncio.to_thread(main, given)

    async with running_service(tmp_path, a_policy()) as service:
        assert await run("set", "--user", "ada", "--since", "2026-05-01", "--reason", "case 17") == OK
        (id, who, *_), *_ = (line.split() for line in capsys.readouterr().out.splitlines())
        assert who == "ada"
        assert await run("release", id, "--reason", "closed") == OK
        assert await run("release", id, "--reason", "closed") == USAGE
        assert "404" in capsys.readouterr().err
        assert await run("list") == OK
        shown = capsys.readouterr().out
        assert "set by eve" in shown
        assert "released by eve" in shown
        (listed,) = (await service.json("api/holds", token="dan"))["holds"]
        assert listed["id"] == id
        token.write_text("eve")
        assert await run("set", "--all-users", "--reason", "x") == USAGE
        assert "403" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("DELETE FROM agentbox_holds", "it was removed"),
        ("UPDATE agentbox_holds SET until = 1", "on records of `ada`: it was changed or added"),
        ("UPDATE agentbox_holds SET released_by = 'eve', released_at = 1", "it was changed or added"),
        ("UPDATE agentbox_holds SET tenant = ''", "on records of all users: it was changed or added"),
        (
            "INSERT INTO agentbox_holds SELECT 'x', tenant, since, until, reason, set_by, set_at, released_by,"  # noqa: ISC004
            " released_at, release_reason FROM agentbox_holds",
            "the hold x",
        ),
    ],
)
async def test_verify_names_a_hold_that_somebody_changed(
    tmp_path: Path, change: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        await hold(service, reason="case \ud83d")
        _, over = await hold(service, user=None)
        await release(service, over["id"])
        assert await asyncio.to_thread(main, ["audit", "verify", "--database", str(service.database)]) == OK
        with sqlite3.connect(service.database) as connection:
            connection.execute(f"{change} WHERE tenant = 'ada'")
        connection.close()
        assert await asyncio.to_thread(main, ["audit", "verify", "--database", str(service.database)]) == BROKEN
    assert says in capsys.readouterr().out


async def test_names_that_the_site_calls_secret_are_not_in_the_record(tmp_path: Path) -> None:
    names = (*SECRET_NAMES, "sql")
    async with running_service(tmp_path, a_policy(ALLOW), secret_names=names) as service:
        async with service.tools_of("ada") as tools:
            await tools.call_tool(call(sql="SELECT 123456789"))
        record = (await service.get("api/audit", token="dan")).body.decode()
    assert '"sql": "[redacted]"' in record
    assert "123456789" not in record
