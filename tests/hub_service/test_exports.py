"""An auditor downloads a part of the record, in the format that is needed; nobody else does."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from tornado.simple_httpclient import HTTPStreamClosedError

from jupyter_agentbox.core.audit_search import AuditPage, AuditQuery
from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.core.times import time_from_json
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.services.audit import manager as audit_manager

from .service import TIMEOUT, Service, a_policy, running_service
from .test_service import ALLOW, DENY, call

#: Who calls which tool with what, the oldest call first.
CALLS = [("ada", "query", "select 1"), ("ada", "drop", "orders"), ("eve", "query", "select 2"), ("ada", "query", "=3")]


@asynccontextmanager
async def recorded(directory: Path) -> AsyncIterator[Service]:
    """Start the service, and let users call tools."""
    async with asyncio.timeout(TIMEOUT), running_service(directory, a_policy(ALLOW, DENY)) as service:
        async with service.tools_of("ada") as of_ada, service.tools_of("eve") as of_eve:
            for user, tool, sql in CALLS:
                await (of_ada if user == "ada" else of_eve).call_tool(call(tool, sql))
        yield service


async def exported(service: Service, query: str = "") -> list[Any]:
    """Return the records that an auditor gets."""
    answer = await service.get(f"api/audit{query}", token="dan")
    assert answer.code == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


async def numbers(service: Service, query: str) -> list[int]:
    """Return which of the calls an auditor gets, by number, and check that the table has the same."""
    records = await exported(service, query)
    table = await service.get(f"api/audit{query}&format=csv", token="dan")
    assert [row["id"].removeprefix("'") for row in csv.DictReader(io.StringIO(table.body.decode()))] == [
        record["id"] for record in records
    ]
    found = [(one["asked_by"], one["call"]["tool"], one["call"]["arguments"]["sql"]) for one in records]
    return [CALLS.index(one) for one in found]


async def test_an_auditor_gets_only_the_records_that_were_asked_for(tmp_path: Path) -> None:
    async with recorded(tmp_path) as service:
        second = (await exported(service))[1]["created_at"]
        wanted: dict[str, list[int]] = {
            "user=ada": [3, 1, 0],
            "user=eve&server=warehouse": [2],
            "user=ad": [],
            "user=Ada": [],
            "user=ad*": [],
            "server=ware*&tool=dr?p": [1],
            "server=bank": [],
            "status=rejected": [1],
            "status=approved,pending&status=rejected": [3, 2, 1, 0],
            "outcome=succeeded": [3, 2, 0],
            "decision=allow_once": [],
            "reviewer=rule&user=eve": [2],
            "q=SELECT": [2, 0],
            "q=orders+drop": [1],
            "since=2020-01-01&until=2021-01-01T00:00:00%2B02:00": [],
            f"since={second}": [3, 2],
            f"until={second}": [1, 0],
            "user=": [3, 2, 1, 0],
        }
        assert {query: await numbers(service, f"?{query}") for query in wanted} == wanted


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("since=soon", "`since` must be a time in ISO 8601, such as 2026-11-22T08:00:00Z"),
        ("until=2026-13-01", "`until` must be a time in ISO 8601"),
        ("status=x", "`status` must be one of pending, approved, "),
        ("decision=x", "`decision` must be one of allow_once, "),
        ("outcome=x", "`outcome` must be one of "),
        ("q=" + 201 * "x", "`q` may have 200 characters at most"),
        ("server=[z-a]", "`server`: `z-a` in `[z-a]` is upside down"),
        ("tool=[abc", "`tool`: `[abc` has no `]`"),
        ("format=xls", "`format` must be one of jsonl, csv, otlp"),
        ("usr=ada", "`usr` is not a parameter here; use user, answered_by, since, until, server, "),
        ("user=ada&notebook_path=a.ipynb", "`notebook_path` is not a parameter here"),
        ("limit=5", "`limit` is not a parameter here"),
    ],
)
async def test_a_filter_that_cannot_be_understood_returns_no_record(tmp_path: Path, query: str, says: str) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        refused = await service.get(f"api/audit?{query}", token="dan")

    assert refused.code == 400
    assert json.loads(refused.body)["message"].startswith(says)
    assert "Content-Disposition" not in refused.headers


async def test_no_filter_and_no_format_lets_others_read_the_record(tmp_path: Path) -> None:
    async with recorded(tmp_path) as service:
        for path in ("api/audit?user=ada", "api/audit?format=otlp", "api/reports?format=csv"):
            for token in ("ada", "bob", "nobody", ""):
                assert (await service.get(path, token=token)).code == 403, (path, token)
        assert (await service.get("api/audit?user=ada&since=x", token="ada")).code == 403


@pytest.mark.parametrize("query", ["", "?q=warehouse"])
async def test_a_record_of_several_pages_is_sent_without_a_gap(
    tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_manager, "_EXPORTED", 1)
    async with recorded(tmp_path) as service:
        assert await numbers(service, query or "?") == [3, 2, 1, 0]
        filtered = await numbers(service, "?user=ada&outcome=succeeded")
        otlp = await service.get("api/audit?format=otlp&user=ada", token="dan")

    assert filtered == [3, 0]
    assert len(otlp.body.splitlines()) == 3, "a line for each page"


async def test_a_file_that_could_not_be_sent_to_its_end_is_not_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_manager, "_EXPORTED", 2)
    async with recorded(tmp_path) as service:
        search, answers = service.box.audit.search, iter((True, False, False))

        async def failing(query: AuditQuery) -> AuditPage:
            if not next(answers):
                raise StorageError("the disk is gone")
            return await search(query)

        monkeypatch.setattr(service.box.audit, "search", failing)
        with pytest.raises(HTTPStreamClosedError):
            await service.get("api/audit", token="dan")
        none = await service.get("api/audit", token="dan")

    assert (none.code, json.loads(none.body)["reason"]) == (503, "storage")
    assert "Content-Disposition" not in none.headers


async def test_the_record_is_exported_as_opentelemetry_logs(tmp_path: Path) -> None:
    async with recorded(tmp_path) as service:
        records = await exported(service)
        answer = await service.get("api/audit?format=otlp", token="dan")
        none = await service.get("api/audit?format=otlp&user=nobody", token="dan")

    (line,) = answer.body.splitlines()
    (resource,) = Parse(line, ExportLogsServiceRequest()).resource_logs
    logs = resource.scope_logs[0].log_records
    assert [json.loads(log.body.string_value) for log in logs] == records
    assert [log.severity_text for log in logs] == ["INFO", "INFO", "WARN", "INFO"]
    assert resource.resource.attributes[0].value.string_value == "jupyter-agentbox-hub"
    attributes = {one.key.removeprefix("agentbox."): one.value.string_value for one in logs[1].attributes}
    assert attributes == {
        "user": "eve",
        "asked_by": "eve",
        "request_id": records[1]["id"],
        "server": "warehouse",
        "tool": "query",
        "call_digest": records[1]["call"]["digest"],
        "status": "approved",
        "effect": "allow",
        "outcome": "succeeded",
    }
    at = time_from_json(records[1]["created_at"])
    assert at is not None
    assert logs[1].time_unix_nano // 1_000_000 == microseconds(at) // 1000
    assert logs[1].observed_time_unix_nano >= logs[1].time_unix_nano
    assert answer.headers["Content-Disposition"] == 'attachment; filename="agentbox-record.jsonl"'
    assert (none.code, none.body) == (200, b"")
