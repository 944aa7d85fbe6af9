"""A central call in the record of the service is found again in that of the user's server, and that gives no right."""

from __future__ import annotations

import asyncio
import csv
import json
from dataclasses import replace
from pathlib import Path

from jupyter_agentbox.composition import Settings, build
from jupyter_agentbox.core.calls import Origin
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeAnnouncer

from .service import TIMEOUT, Service, a_policy, running_service
from .test_service import call

ALLOW = {"effect": "allow", "server": "warehouse", "tool": "*"}
FROM = Origin(
    kernel_id="k1", notebook_path="work/a.ipynb", cell_id="c1", isolation=Isolation.BUBBLEWRAP, has_own_settings=True
)


async def run(service: Service, directory: Path, hub_service: str) -> str:
    """Run a call through a user's own server; return the id of its request there."""
    async with service.tools_of("ada", hub_service=hub_service) as tools:
        box = build(
            Settings(mcp_config_path=(), database_url=sqlite_url(str(directory / "own.sqlite"))),
            announcer=FakeAnnouncer(),
            own_tools={"warehouse": tools},
            policy=Policy((Rule(server="*", tool="*", effect=Effect.ALLOW),)),
        )
        await box.start()
        try:
            async with asyncio.timeout(TIMEOUT):
                finished = await box.calls.run(
                    replace(call(), origin=FROM), on_waiting=lambda _: None, on_running=lambda _: None
                )
        finally:
            await box.aclose()
    return finished.request.id


async def test_both_records_of_a_central_call_can_be_joined(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        own = await run(service, tmp_path, service.url)
        exported = await service.get("api/audit", token="dan")
        table = await service.get("api/audit?format=csv", token="dan")

    (record,) = map(json.loads, exported.body.decode().splitlines())
    assert record["asked_by"] == "ada"
    assert record["reported"] == {
        "request_id": own,
        "kernel_id": "k1",
        "notebook_path": "work/a.ipynb",
        "cell_id": "c1",
        "isolation": "bubblewrap",
        "has_own_settings": True,
    }
    (row,) = csv.DictReader(table.body.decode().splitlines())
    assert json.loads(row["reported"]) == record["reported"]


async def test_no_other_server_is_told_where_a_call_came_from(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        await run(service, tmp_path, "https://hub.example.org/services/agentbox/")
        exported = await service.get("api/audit", token="dan")

    (record,) = map(json.loads, exported.body.decode().splitlines())
    assert record["reported"] is None
