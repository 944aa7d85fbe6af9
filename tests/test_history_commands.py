"""``jupyter agentbox audit verify`` and ``jupyter agentbox history``, as they are run in a terminal."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_agentbox.cli import main
from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.testing import FakeClock
from tests.samples import a_decision, a_request


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


def change(path: Path, statement: str, values: Sequence[str] = ()) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "approvals.sqlite"
    kept(path, a_request("r1"), a_request("r2"))
    return path


def test_an_intact_record_is_0_and_its_head_can_be_checked_later(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "audit", "verify", "--database", str(database))
    assert code == 0
    assert "Intact: 2 records in the entries 1 to 2." in out
    head = out.partition("Head: ")[2].split()[0]

    kept(database, a_request("r3"))
    code, out, _ = run(capsys, "audit", "verify", "--database", str(database), "--head", head)
    assert (code, "Since then: 1 entries." in out) == (0, True)

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
    "options", [["--database", "missing.sqlite"], ["--head", "12"], ["--database", "mysql://nothing/here"]]
)
def test_what_cannot_be_checked_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))

    code, _, err = run(capsys, "audit", "verify", *options)

    assert code == 2
    assert err.startswith("jupyter agentbox: ")
