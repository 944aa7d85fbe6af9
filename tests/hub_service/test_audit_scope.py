"""Who has the scope for the record reads it, all of it, and can do nothing else with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from .service import Service, a_policy, ask, running_service
from .test_history import ALLOW, listed, with_two_approvals
from .test_service import call, waiting

#: What only those get who may read the record of all.
RECORD = ("api/audit", "api/audit?format=csv", "api/reports", "api/reports/gaps", "api/holds")


async def codes(service: Service, **who: str) -> set[int]:
    return {(await service.get(path, **who)).code for path in RECORD}


@pytest.mark.parametrize("who", ["reader:eve", "reader:collector"])
async def test_who_has_the_scope_reads_the_record_of_all_users(tmp_path: Path, who: str) -> None:
    async with with_two_approvals(tmp_path) as service:
        assert await codes(service, token=who) == {200}
        lines = (await service.get("api/audit", token=who)).body.splitlines()
        assert [json.loads(line)["asked_by"] for line in lines] == ["ada", "ada"]
        id = json.loads(lines[0])["id"]
        assert (await service.get(f"api/requests/{id}", token=who)).code == 200


async def test_a_login_session_with_the_scope_opens_the_history_of_all(tmp_path: Path) -> None:
    async with with_two_approvals(tmp_path) as service:
        assert await listed(service, "reader:eve") == ["1", "orders"]
        page = (await service.get("history", session="reader:eve")).body.decode()
        assert "Download all of these as CSV" in page
        assert await codes(service, session="reader:eve") == {200}


@pytest.mark.parametrize("who", ["eve", "forger:eve", "part:eve", "keeper:eve", "collector", "narrow:eve"])
async def test_a_similar_scope_a_part_of_it_or_another_one_does_not_suffice(tmp_path: Path, who: str) -> None:
    async with with_two_approvals(tmp_path) as service:
        for path in RECORD:
            code = 200 if (who, path) == ("keeper:eve", "api/holds") else 403
            answer = await service.get(path, token=who)
            assert (answer.code, path) == (code, path), answer.body
        if who == "forger:eve":
            assert b"`custom:agentbox:audit`" in (await service.get("api/audit", token=who)).body
            assert await listed(service, who) == []
            answer = await service.get("history?whose=all", session=who)
            assert (answer.code, b"custom:agentbox:audit" in answer.body) == (403, True)


async def test_no_header_parameter_or_body_gives_the_scope(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        forged = {"Authorization": "Bearer eve", "X-Scopes": "custom:agentbox:audit", "Scope": "custom:agentbox:audit"}
        assert (await service.fetch("api/audit", forged)).code == 403
        assert (await service.fetch("api/audit?scope=custom:agentbox:audit&token=dan", forged)).code == 403


async def test_it_neither_decides_nor_holds_nor_shows_what_waits(tmp_path: Path) -> None:
    policy, secret = a_policy(ask("drop", group="data-stewards"), ALLOW), ("sql",)
    async with running_service(tmp_path, policy, secret_names=secret) as service, service.tools_of("ada") as tools:
        running = asyncio.create_task(tools.call_tool(call("drop", sql="hunter2")))
        request = await waiting(service, "bob")
        reader = "reader:eve"
        # Approvers see a secret as long as its request waits; the record never has it.
        assert request["call"]["arguments"] == {"sql": "hunter2"}
        assert await service.pending(reader) == []
        assert (await service.get(f"api/requests/{request['id']}", token=reader)).code == 404
        assert (await service.get(f"requests/{request['id']}", session=reader)).code == 404
        record = (await service.get("api/audit", token=reader)).body
        page = (await service.get("history", session=reader)).body
        assert (b"hunter2" in record, b"hunter2" in page) == (False, False)
        assert b"warehouse.drop" in page
        assert f"requests/{request['id']}".encode() not in page  # it would be a link to an error
        for answer in ("allow_once", "reject_once"):
            assert (await service.decide(request, reader, answer))[0] == 404
        held: tuple[int, Any] = await service.post(
            "api/holds", {"user": "ada", "reason": "mine"}, {"Authorization": f"Bearer {reader}"}
        )
        assert held[0] == 403
        assert (await service.decide(request, "bob"))[0] == 200
        await running
        assert f"requests/{request['id']}".encode() in (await service.get("history", session=reader)).body
        assert (await service.get(f"requests/{request['id']}", session=reader)).code == 200
