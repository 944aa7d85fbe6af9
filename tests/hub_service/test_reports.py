"""Local calls that users' servers report: in whose name, once each, with what is missing in sight."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from jupyter_agentbox.composition import AgentBox, Settings, build
from jupyter_agentbox.core.audit_trail import AuditSettings, TrailEnd, check_trail
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.reports import read_report
from jupyter_agentbox.exceptions import ReportRefusedError
from jupyter_agentbox.history_commands import BROKEN, OK, main
from jupyter_agentbox.hub.callers import Caller
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.report_verification import ReportVerification
from jupyter_agentbox.storage.reports import SqlReportLog
from jupyter_agentbox.testing import FakeAnnouncer, FakeClock, FakeTools
from tests.collectors import collecting

from .service import PREFIX, TIMEOUT, Service, a_policy, listening, running_service

ALLOW = Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),))
SECRET = "hunter2hunter2"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database of either kind."""
    if request.param == "sqlite":
        return sqlite_url(str(tmp_path / "hub.sqlite"))
    make: Callable[[], str] = request.getfixturevalue("make_postgresql_database")
    return make()


def lines_of(user: str, count: int, *, chain: str = "c1", server: str = "", **fields: Any) -> list[bytes]:
    """Return the first records of a server of a user."""
    link, lines = TrailEnd(), []
    for _ in range(count):
        said = {"user": user, "hub_server": f"{user}/{server}", "chain": chain, "event": "ended", **fields}
        link, line = link.then({**said, "time": "2026-05-01T12:00:00.000012Z"})
        lines.append(line)
    return lines


async def report(service: Service, user: str, lines: Sequence[bytes]) -> tuple[int, Any]:
    """Report with a token of a user; return the status and the answer."""
    body = b"".join(line + b"\n" for line in lines).decode("utf-8", "replace")
    return await service.post("api/reports", body, {"Authorization": f"Bearer {user}"})


async def rows(service: Service, query: str = "") -> list[Any]:
    """Return what an auditor reads."""
    answer = await service.get(f"api/reports{query}", token="dan")
    assert answer.code == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


async def gaps(service: Service) -> list[str]:
    """Return what is missing, in words."""
    return [gap["message"] for gap in (await service.json("api/reports/gaps", token="dan"))["gaps"]]


async def test_a_long_report_is_read_while_the_service_does_other_things(tmp_path: Path) -> None:
    lines = lines_of("eve", 2, numbers=[1] * 10_000)
    async with running_service(tmp_path, a_policy()) as service:
        has_gone_on = asyncio.Event()
        asyncio.get_running_loop().call_soon(has_gone_on.set)
        with pytest.raises(ReportRefusedError):
            await service.box.reports.take(b"\n".join(lines), Caller(name="ada"))
        assert has_gone_on.is_set()


async def verify(database: str) -> int:
    """Run the command of an administrator, and return its exit code."""
    return await asyncio.to_thread(main, ["audit", "verify", "--database", database])


async def verified(url: str) -> ReportVerification:
    log = SqlAuditLog(url)
    try:
        return await log.verify_reports()
    finally:
        await log.aclose()


def a_server(
    directory: Path, url: str, monkeypatch: pytest.MonkeyPatch, last_patience: float = 0.0, **settings: Any
) -> AgentBox:
    """Return the parts of a user's server whose site has local calls reported."""

    async def find(call: ToolCall, report: Any) -> Any:
        return {}

    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "ada")
    audit = AuditSettings(
        sinks=(f"agentbox+{url}",), spool=str(directory / "spool"), pause=0.01, last_patience=last_patience
    )
    database = sqlite_url(str(directory / "approvals.sqlite"))
    return build(
        Settings(mcp_config_path=(), database_url=database, audit=audit, **settings),
        announcer=FakeAnnouncer(),
        own_tools={"shop": FakeTools({"shop.find": find})},
        policy=ALLOW,
    )


@asynccontextmanager
async def started(box: AgentBox) -> AsyncIterator[AgentBox]:
    await box.start()
    try:
        yield box
    finally:
        await box.aclose()


async def call(box: AgentBox, **arguments: Any) -> None:
    asked = ToolCall(server="shop", tool="find", arguments=arguments)
    await box.calls.run(asked, on_waiting=lambda _: None, on_running=lambda _: None)
    await box.approvals.recorded()


async def test_local_calls_are_reported_without_secrets_and_the_auditor_reads_them(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path, a_policy(), database_url=database_url) as service, asyncio.timeout(TIMEOUT):
        async with started(a_server(tmp_path, service.url, monkeypatch, last_patience=TIMEOUT)) as box:
            await call(box, password=SECRET)
            await call(box, n=2)
        told = await rows(service, "?user=ada")
        events = [row["record"]["event"] for row in told]
        assert events == ["started", "decided", "ended", "decided", "ended", "stopped"]
        assert [row["number"] for row in told] == list(range(1, len(told) + 1))
        assert {row["user"] for row in told} == {"ada"}
        assert SECRET not in json.dumps(told)
        assert await rows(service, "?user=bob") == []
        assert (await service.get("api/reports", token="ada")).code == 403
    assert (await verified(database_url)).broken == ""


async def test_what_is_no_secret_to_a_user_is_neither_stored_nor_sent_on(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = AuditSettings(pause=0.01, last_patience=TIMEOUT)
    async with asyncio.timeout(TIMEOUT), collecting() as sink:
        audit = replace(settings, sinks=(sink.url,))
        async with running_service(tmp_path, a_policy(), database_url=database_url, audit=audit) as service:
            box = a_server(tmp_path, service.url, monkeypatch, last_patience=TIMEOUT, secret_names=())
            async with started(box):
                await call(box, password=SECRET, city="Oslo")
            told = await rows(service)
            exported = [(await service.get(f"api/reports?format={form}", token="dan")).body for form in ("csv", "otlp")]
    said = [row["record"]["arguments"] for row in told if "arguments" in row["record"]]
    assert said == 2 * [{"password": "[redacted]", "city": "Oslo"}]
    assert SECRET not in json.dumps(told)
    assert [SECRET.encode() in one for one in exported] == [False, False]
    assert SECRET not in "".join(sink.lines)
    assert [path for path in tmp_path.glob("hub.sqlite*") if SECRET.encode() in path.read_bytes()] == []
    (chain, _), strange = check_trail(sorted(sink.lines, key=lambda line: '"chain":"service/' in line))
    assert (chain.is_whole, chain.is_ended, chain.redacted, strange) == (True, True, 2, 0)
    assert (await verified(database_url)).broken == ""


async def test_a_record_that_comes_again_is_the_same_also_if_other_names_are_those_of_secrets_by_then(
    tmp_path: Path, database_url: str
) -> None:
    lines = lines_of("ada", 3, arguments={"password": SECRET, "iban": "DE02"})
    answers = []
    for number, names in enumerate(((), ("iban",), ("*password*",)), 1):
        async with running_service(tmp_path, a_policy(), database_url=database_url, secret_names=names) as service:
            answers.append(await report(service, "ada", lines[:number]))
            assert (await report(service, "ada", lines_of("ada", number, arguments={"password": "x"})))[0] == 409
            told = [row["record"]["arguments"] for row in await rows(service, "?user=ada")]
    assert answers == [(200, {"accepted": 1, "duplicates": number}) for number in range(3)]
    assert told == [
        {"password": "[redacted]", "iban": "DE02"},
        {"password": "[redacted]", "iban": "[redacted]"},
        {"password": "[redacted]", "iban": "DE02"},
    ]
    assert (await verified(database_url)).broken == ""


async def test_what_could_not_be_reported_comes_later_in_order_and_once(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = listening()  # nobody answers there yet
    url = f"http://127.0.0.1:{at.getsockname()[1]}{PREFIX}"
    async with started(a_server(tmp_path, url, monkeypatch)) as box:
        for number in range(20):
            await call(box, n=number)
    (spool,) = (tmp_path / "spool").iterdir()
    assert spool.stat().st_mode & 0o777 == 0o600
    sent = spool.read_bytes().splitlines()
    chain = str(json.loads(sent[0])["chain"])

    async with (
        running_service(tmp_path, a_policy(), at=at, database_url=database_url) as service,
        asyncio.timeout(TIMEOUT),
    ):
        assert (await report(service, "ada", sent[:7]))[0] == 200  # of which the server never hears
        async with started(a_server(tmp_path, url, monkeypatch)):
            while len(of_chain := [row for row in await rows(service) if row["record"]["chain"] == chain]) < len(sent):
                pass
    assert [row["record"]["sequence"] for row in of_chain] == list(range(1, len(sent) + 1))
    found = await verified(database_url)
    assert (found.broken, [gap for gap in found.gaps if gap.chain == chain]) == ("", [])


async def test_the_record_is_exported_as_opentelemetry_logs(tmp_path: Path) -> None:
    lines = lines_of("ada", 600)
    async with running_service(tmp_path, a_policy()) as service:
        for start in (0, 300):
            assert (await report(service, "ada", lines[start : start + 300]))[0] == 200
        answer = await service.get("api/reports?format=otlp", token="dan")
        wrong = await service.get("api/reports?format=xml", token="dan")

    requests = [Parse(line, ExportLogsServiceRequest()) for line in answer.body.splitlines()]
    logs = [log for one in requests for resource in one.resource_logs for log in resource.scope_logs[0].log_records]
    assert [log.body.string_value.encode() for log in logs] == lines
    assert {log.time_unix_nano for log in logs} == {1777636800000012000}
    assert (len(requests), wrong.code) == (2, 400)


async def test_the_record_is_a_table_too_in_which_nothing_is_a_formula(tmp_path: Path) -> None:
    lines = lines_of("ada", 600, tool="=1+1", decision={"reason": '@SUM(1);"=2'}, error="\ud800")
    async with running_service(tmp_path, a_policy()) as service:
        empty = await service.get("api/reports?format=csv", token="dan")
        for start in (0, 300):
            assert (await report(service, "ada", lines[start : start + 299]))[0] == 200
        answer = await service.get("api/reports?format=csv&user=ada", token="dan")
        nobody = await service.get("api/reports?format=csv&user=bob", token="dan")
        told = await rows(service)
        refused = await service.get("api/reports?format=csv", token="ada")

    table = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert [(row["user"], row["number"], row["hash"]) for row in table] == [
        (row["user"], str(row["number"]), row["hash"]) for row in told
    ]
    assert [row["event"] for row in table if row["is_note"] == "true"] == ["missing"]
    assert (table[0]["tool"], table[0]["reason"]) == ("'=1+1", "'@SUM(1);'\"=2")
    assert not [cell for row in table for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert empty.body == nobody.body
    assert csv.DictReader(io.StringIO(empty.body.decode())).fieldnames == list(table[0])
    assert refused.code == 403


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("server=shop", "`server` is not a parameter here; use user, since, until, format"),
        ("since=soon", "`since` must be a time such as 2026-05-01T00:00:00Z"),
        ("format=xls", "`format` must be one of jsonl, csv, otlp"),
    ],
)
async def test_a_filter_that_cannot_be_understood_returns_no_record(tmp_path: Path, query: str, says: str) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        refused = await service.get(f"api/reports?{query}", token="dan")
    assert (refused.code, json.loads(refused.body)["message"]) == (400, says)


async def test_a_gap_is_in_sight_until_it_is_filled(tmp_path: Path, database_url: str) -> None:
    lines = lines_of("ada", 60)
    async with running_service(tmp_path, a_policy(), database_url=database_url) as service:
        assert await report(service, "ada", lines[:40]) == (200, {"accepted": 40, "duplicates": 0})
        assert await report(service, "ada", lines[57:]) == (200, {"accepted": 3, "duplicates": 0})

        assert await gaps(service) == ["records 41–57 of ada's server are missing (chain c1)"]
        assert "agentbox_hub_missing_records 17.0" in (await service.get("metrics", token="eve")).body.decode()
        (note,) = [row["record"] for row in await rows(service) if row["is_note"]]
        assert (note["event"], note["chain"], note["first"], note["last"]) == ("missing", "c1", 41, 57)
        assert await verify(database_url) == BROKEN

        assert await report(service, "ada", lines) == (200, {"accepted": 17, "duplicates": 43})
        assert await gaps(service) == []
        assert "agentbox_hub_missing_records 0.0" in (await service.get("metrics", token="eve")).body.decode()
        notes = [row["record"]["event"] for row in await rows(service) if row["is_note"]]
        assert notes == ["missing", "filled"]
    assert await verify(database_url) == OK


async def test_a_server_that_began_anew_without_ending_its_chain_may_lack_its_end(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        await report(service, "ada", lines_of("ada", 3, chain="old"))
        assert await gaps(service) == []  # it may still run
        later = TrailEnd().then(
            {"user": "ada", "hub_server": "ada/", "chain": "new", "time": "2026-05-01T13:00:00Z", "event": "started"}
        )[1]
        await report(service, "ada", [later])
        (gap,) = await gaps(service)
        assert gap.startswith("records from 4 on of ada's server may be missing")


async def test_the_hub_says_whose_record_it_is_and_no_body_does(tmp_path: Path) -> None:
    lines = lines_of("ada", 3)
    async with running_service(tmp_path, a_policy()) as service:
        code, refused = await report(service, "bob", lines)
        assert (code, refused["reason"]) == (409, "report_refused")
        await report(service, "ada", lines[:2])
        assert (await report(service, "bob", lines_of("bob", 3)))[0] == 409  # the chain is ada's
        assert (await report(service, "bob", lines_of("bob", 1, chain="c2")))[0] == 200
        assert [(row["user"], row["number"]) for row in await rows(service)] == [("ada", 1), ("ada", 2), ("bob", 1)]
        for headers in ({"Authorization": "Bearer nobody"}, {"Authorization": "Bearer narrow:ada"}, {}):
            assert (await service.post("api/reports", lines[2].decode(), headers))[0] == 403
        in_browser = {"Cookie": service.cookie("session:ada"), "X-XSRFToken": "x"}
        assert (await service.post("api/reports", lines[2].decode(), in_browser))[0] == 403
        metrics = (await service.get("metrics", token="eve")).body.decode()
    assert 'agentbox_hub_reported_records_total{outcome="refused"} 6.0' in metrics


async def test_a_replayed_number_adds_nothing_and_replaces_nothing(tmp_path: Path) -> None:
    lines = lines_of("ada", 3)
    async with running_service(tmp_path, a_policy()) as service:
        await report(service, "ada", lines)
        assert await report(service, "ada", lines) == (200, {"accepted": 0, "duplicates": 3})
        assert await report(service, "ada", [lines[1], lines[1]]) == (200, {"accepted": 0, "duplicates": 2})
        other = lines_of("ada", 4, text="something else")
        assert (await report(service, "ada", other))[0] == 409
        assert [row["record"].get("text") for row in await rows(service)] == [None] * 3


async def test_a_huge_report_is_refused_and_a_changed_line_is_none(tmp_path: Path) -> None:
    lines = lines_of("ada", 2)
    async with running_service(tmp_path, a_policy()) as service:
        assert (await report(service, "ada", [b"x" * 1_000_001]))[0] == 413
        assert (await report(service, "ada", [lines[0], b"x" * 70_000]))[0] == 409
        assert (await report(service, "ada", [lines[0].replace(b"ended", b"asked")]))[0] == 409
        assert await rows(service) == []


async def test_one_users_flood_is_held_back_and_others_are_not(tmp_path: Path) -> None:
    lines = lines_of("ada", 200)
    async with running_service(tmp_path, a_policy(), report_rate=60) as service:
        assert (await report(service, "ada", lines[:121]))[0] == 200
        rest = b"\n".join(lines[121:]).decode()
        refused = await service.send("api/reports", rest, {"Authorization": "Bearer ada"})
        assert (refused.code, refused.headers.get("Retry-After", "").isdecimal()) == (429, True)
        assert (await report(service, "bob", lines_of("bob", 1, chain="c2")))[0] == 200
        assert len(await rows(service, "?user=ada")) == 121


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE agentbox_reports SET record = x'7b7d' WHERE number = 2", "row 2 of `ada`: its record was changed"),
        ("UPDATE agentbox_reports SET received_at = 1 WHERE number = 2", "row 2 of `ada`: it was changed"),
        ("UPDATE agentbox_reports SET at = 1 WHERE number = 2", "row 2 of `ada`: it was changed"),
        ("DELETE FROM agentbox_reports WHERE number = 2", "row 3 of `ada`: it does not follow from row 1"),
        ("DELETE FROM agentbox_reports WHERE number = 3", "3 records came, up to number 3"),
        ("UPDATE agentbox_reports SET record = NULL WHERE number = 2", "no row says that age was the reason"),
    ],
)
async def test_verify_names_the_first_row_that_somebody_changed(
    tmp_path: Path, change: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        await report(service, "ada", lines_of("ada", 3))
        with sqlite3.connect(service.database) as connection:
            connection.execute(change)
        connection.close()
        assert await verify(str(service.database)) == BROKEN
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "DELETE FROM agentbox_reports WHERE tenant = 'ada'; DELETE FROM agentbox_report_chains",
            "row 3 of `ada`: it was removed",
        ),
        (
            "DELETE FROM agentbox_reports WHERE number = 3; UPDATE agentbox_report_chains SET last = 2, records = 2",
            "row 3 of `ada`: it was removed",
        ),
        (
            "DELETE FROM agentbox_reports WHERE tenant = ''",
            "row 1 of the service itself: it was removed",
        ),
        ("DROP TABLE agentbox_reports; DROP TABLE agentbox_report_chains", "the table of reports: it was removed"),
    ],
)
async def test_the_head_that_is_kept_covers_the_chains_of_users(
    tmp_path: Path, change: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        await report(service, "ada", lines_of("ada", 3))
    assert await verify(str(service.database)) == OK
    assert "The head covers those that were taken until " in capsys.readouterr().out
    with sqlite3.connect(service.database) as connection:
        connection.executescript(change)
    connection.close()
    assert await verify(str(service.database)) == BROKEN
    assert says in capsys.readouterr().out


async def test_a_chain_that_was_written_anew_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        await report(service, "ada", lines_of("ada", 3))
    with sqlite3.connect(service.database) as connection:
        connection.executescript(
            "DELETE FROM agentbox_reports WHERE tenant = 'ada'; DELETE FROM agentbox_report_chains"
        )
    connection.close()
    async with running_service(tmp_path, a_policy()) as service:  # whoever can write there runs the service's code
        await report(service, "ada", lines_of("ada", 4, tool="harmless"))
    assert await verify(str(service.database)) == BROKEN
    assert "row 3 of `ada`: it is another one than the service noted" in capsys.readouterr().out


async def test_what_was_reported_later_is_covered_by_the_next_note(database_url: str) -> None:
    store = SqlApprovalStore(database_url, clock=FakeClock())
    await store.check_writable()
    log, audit = SqlReportLog(database_url, clock=FakeClock()), SqlAuditLog(database_url)
    numbers = []
    for sequence in (1, 2, 2):
        line = lines_of("ada", sequence)[-1]
        await log.append("ada", [read_report(line, tenant="ada")])
        await log.note_heads()
        numbers.append((await audit.verify()).reports.number)
    for one in (audit, log, store):
        await one.aclose()
    assert numbers == [1, 2, 2], "one note whenever something came"
