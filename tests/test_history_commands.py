"""``jupyter agentbox audit verify`` and ``jupyter agentbox history``, as they are run in a terminal."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_agentbox.cli import main
from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.audit import GENESIS
from jupyter_agentbox.core.audit_trail import TrailEnd, sealed_again
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.testing import FakeClock
from tests.samples import a_call, a_decision, a_request


def kept(path: Path, *requests: ApprovalRequest) -> None:
    """Keep requests, and allow each."""

    async def keep() -> None:
        async with SqlApprovalStore(sqlite_url(str(path)), clock=FakeClock()) as store:
            for request in requests:
                await store.add(request)
                decided = request.decide(a_decision(request))
                assert await store.replace_if(decided, status=Status.PENDING, outcome=None)

    asyncio.run(keep())


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(argv)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def change(path: Path, statement: str, values: Sequence[object] = ()) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "approvals.sqlite"
    kept(path, a_request("r1"), a_request("r2"))
    return path


def shown(capsys: pytest.CaptureFixture[str], database: Path, *options: str) -> list[str]:
    code, out, _ = run(capsys, "history", "--database", str(database), *options)
    assert code == 0
    return out.splitlines()


def test_the_history_is_a_table_of_calls_under_their_days(
    database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")

    day, first, *_ = shown(capsys, database)

    assert day == f"{a_request().created_at.astimezone():%A, %Y-%m-%d}"
    assert "shop.delete_order(order_id=7)" in first
    assert first.rstrip().endswith("orders.ipynb")
    assert {"allowed", "ada"} <= set(first.split())


@pytest.mark.parametrize("columns", ["20", "80", "200"])
def test_no_line_is_wider_than_the_terminal_and_nothing_steers_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    database = tmp_path / "hostile.sqlite"
    evil = "\x1b]0;owned\x07\x9b2J\u202e\r\n" + "x" * 300
    kept(database, a_request(call=a_call(tool=evil, arguments={evil: evil})))

    lines = shown(capsys, database)

    assert len(lines) == 2
    assert len(lines[1]) <= max(int(columns), 60)
    assert all(line.isprintable() for line in lines)


def test_what_the_person_wrote_stands_below_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "commented.sqlite"
    request = a_request()

    async def keep() -> None:
        async with SqlApprovalStore(sqlite_url(str(database)), clock=FakeClock()) as store:
            await store.add(request)
            decided = request.decide(a_decision(request, reason="the last\x1b[2J one", tell=True))
            assert await store.replace_if(decided, status=Status.PENDING, outcome=None)

    asyncio.run(keep())

    assert shown(capsys, database)[2] == "          “the last<U+001B>[2J one”"


def test_the_history_can_be_filtered(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shown(capsys, database)) == 3
    assert len(shown(capsys, database, "--limit", "1")) == 2
    for options in (
        ["--tool", "delete_*"],
        ["--reviewer", "ada"],
        ["--search", "ORDERS.ipynb 7"],
        ["--since", "2026-04-30"],
    ):
        assert len(shown(capsys, database, *options)) == 3
    for options in (["--tool", "delete"], ["--reviewer", "bob"], ["--search", "nothing"], ["--until", "2026-04-30"]):
        assert shown(capsys, database, *options) == []
    assert shown(capsys, database, "--decision", "rejected", "--decision", "reject_once") == []


def test_json_and_csv_have_all_that_the_record_has(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [json.loads(line) for line in shown(capsys, database, "--json")]
    assert [record["id"] for record in records] == ["r2", "r1"]
    assert records[0]["decided_by"] == "ada"

    rows = list(csv.DictReader(shown(capsys, database, "--csv")))
    assert [(row["id"], row["call"], row["decision"]) for row in rows] == [
        ("r2", "delete_order(order_id=7)", "allow_once"),
        ("r1", "delete_order(order_id=7)", "allow_once"),
    ]


@pytest.mark.parametrize("options", [["--since", "soon"], ["--since", "9999999d"], ["--database", "missing.sqlite"]])
def test_what_cannot_be_shown_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    assert run(capsys, "history", *options)[0] == 2


def test_an_intact_record_is_0_and_its_head_can_be_checked_later(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "audit", "verify", "--database", str(database))
    assert code == 0
    assert "Intact: the records agree with the entries 1 to 2." in out
    head = out.partition("Head: ")[2].split()[0]
    assert run(capsys, "audit", "verify", "--database", str(database), "--head", f"0:{GENESIS}")[0] == 0

    kept(database, a_request("r3"))
    code, out, _ = run(capsys, "audit", "verify", "--database", str(database), "--head", head)
    assert (code, "Since then: 1 entry." in out) == (0, True)

    change(database, "DELETE FROM agentbox_audit WHERE number > 1")
    change(database, "DELETE FROM agentbox_approvals WHERE id != 'r1'")
    assert run(capsys, "audit", "verify", "--database", str(database))[0] == 0
    code, out, _ = run(capsys, "audit", "verify", "--database", str(database), "--head", head)
    assert (code, "its end was removed" in out) == (1, True)


def test_a_changed_record_is_1_and_is_named(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(database, "UPDATE agentbox_approvals SET request = replace(request, '7', '8') WHERE id = 'r2'")

    code, out, _ = run(capsys, "audit", "verify", "--database", str(database))

    assert code == 1
    assert out.startswith(
        "BROKEN at entry 2, request `r2` (shop.delete_order, 2026-05-01 12:00:00 UTC): its record was"
    )


def test_what_a_changed_record_says_steers_no_terminal(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(database, "UPDATE agentbox_approvals SET tool = ? WHERE id = 'r2'", ["\x1b]0;owned\x07\u202e"])

    code, out, _ = run(capsys, "audit", "verify", "--database", str(database))

    assert (code, "\x1b" in out, "\u202e" in out) == (1, False, False)


@pytest.mark.parametrize(
    "options",
    [
        ["--database", "missing.sqlite"],
        ["--head", "12"],
        ["--head", "0:" + 64 * "a"],
        ["--database", "mysql://nothing/here"],
    ],
)
def test_what_cannot_be_checked_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))

    code, _, err = run(capsys, "audit", "verify", *options)

    assert code == 2
    assert err.startswith("jupyter agentbox: ")


@pytest.mark.parametrize("command", [["audit", "verify"], ["history"]])
def test_what_is_no_store_is_2_and_is_not_made_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    empty, other = tmp_path / "empty.sqlite", tmp_path / "other.sqlite"
    empty.touch()
    change(other, "CREATE TABLE bookmarks (url TEXT)")
    before = other.read_bytes()

    for path in (tmp_path / "missing" / "missing.sqlite", empty, other):
        code, out, err = run(capsys, *command, "--database", sqlite_url(str(path)))
        assert (code, out, str(path) in err) == (2, "", True)

    assert sorted(tmp_path.iterdir()) == [empty, other]
    assert (empty.read_bytes(), other.read_bytes()) == (b"", before)


def test_a_store_without_records_is_intact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(tmp_path / "new.sqlite")
    code, out, _ = run(capsys, "audit", "verify", "--database", str(tmp_path / "new.sqlite"))
    assert (code, out.startswith("Intact: there are no records yet.\nHead: 0:0000")) == (0, True)


def test_a_damaged_version_of_the_schema_is_2(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(database, "UPDATE agentbox_schema SET version = 'x'")

    code, _, err = run(capsys, "audit", "verify", "--database", str(database))

    assert (code, "damaged: its schema's version is 'x'" in err) == (2, True)


@pytest.mark.parametrize("damaged", ["yesterday", 9e18, b"x"])
def test_a_record_whose_time_was_changed_does_not_hide_the_others(
    database: Path, capsys: pytest.CaptureFixture[str], damaged: object
) -> None:
    change(database, "UPDATE agentbox_approvals SET created_at = ? WHERE id = 'r1'", [damaged])

    code, out, _ = run(capsys, "history", "--json", "--database", str(database))
    assert (code, [json.loads(line)["id"] for line in out.splitlines()]) == (0, ["r2"])
    code, out, _ = run(capsys, "audit", "verify", "--database", str(database))
    assert (code, out.startswith("BROKEN at entry 1")) == (1, True)


def trail(*events: str) -> list[str]:
    link, lines = TrailEnd(), []
    for event in events:
        link, line = link.then({"chain": "c1", "event": event})
        lines.append(line.decode() + "\n")
    return lines


OF_REDACTED = "; a Hub service redacted 2 of them, whose content the chain does not cover"


@pytest.mark.parametrize(
    ("lines", "code", "told"),
    [
        (trail("started", "stopped"), 0, "Whole c1: 2 records; stopped properly\n"),
        (trail("started"), 0, "Whole c1: 1 record; the server is still running, or was killed\n"),
        (trail("started", "asked", "stopped")[::2], 1, "INCOMPLETE c1: 2 records to 3, missing: 2; stopped properly\n"),
        (
            [line.replace("asked", "ended") for line in trail("started", "asked")],
            1,
            "BROKEN c1: line 2 was changed: its hash is another\n",
        ),
        (
            [*trail("started", "stopped"), "a line\n"],
            1,
            "Whole c1: 2 records; stopped properly\n1 line is not a record.\n",
        ),
        (
            [sealed_again(json.loads(line)).decode() + "\n" for line in trail("started", "stopped")],
            1,
            f"REDACTED c1: 2 records; stopped properly{OF_REDACTED}. See `--from-hub-service`\n",
        ),
        (
            [TrailEnd().then({"chain": "c1\nWhole c2: 9 records\x1b[2J", "event": "started"})[1].decode()],
            0,
            "Whole c1 Whole c2: 9 records<U+001B>[2J: 1 record; the server is still running, or was killed\n",
        ),
        ([], 1, "There are no records.\n"),
    ],
)
def test_what_a_place_outside_received_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], code: int, told: str
) -> None:
    half = len(lines) // 2
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text("".join(lines[:half]))
    second.write_text("".join(lines[half:]))
    assert run(capsys, "audit", "trail", str(first), str(second)) == (code, told, "")


def test_what_came_by_way_of_a_hub_service_may_be_redacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "reports.jsonl"
    file.write_bytes(b"\n".join(sealed_again(json.loads(line)) for line in trail("started", "stopped")))
    code, out, _ = run(capsys, "audit", "trail", "--from-hub-service", str(file))
    assert (code, out) == (0, f"Whole c1: 2 records; stopped properly{OF_REDACTED}\n")


def test_received_records_that_are_not_there_are_no_trail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "audit", "trail", str(tmp_path / "none"))
    assert (code, out) == (2, "")
