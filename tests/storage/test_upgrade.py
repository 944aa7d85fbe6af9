"""Tables that an administrator's role makes, for servers whose role may make none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from jupyter_agentbox.cli import main
from jupyter_agentbox.core.audit_trail import TrailEnd
from jupyter_agentbox.core.reports import read_report
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.holds import Hold
from jupyter_agentbox.storage.outbox import Outbox
from jupyter_agentbox.storage.outbox_reader import Backlog, OutboxReader
from jupyter_agentbox.storage.reports import SqlReportLog
from jupyter_agentbox.storage.schema import VERSION
from jupyter_agentbox.storage.sign_ins import SqlSignInTable
from jupyter_agentbox.storage.upgrade import upgrade
from jupyter_agentbox.testing import FakeClock, FakeIds
from tests.samples import a_request

ROLE = 'user "ada"'


@pytest.fixture
def admin(make_postgresql_database: Callable[[], str]) -> Iterator[str]:
    """Return the URL of an administrator, in a database with a role that has no right."""
    url = make_postgresql_database()
    engine = create_engine(url)
    quoted = ROLE.replace('"', '""')
    with engine.begin() as connection:
        connection.execute(text(f'CREATE ROLE "{quoted}" LOGIN'))
    yield url
    with engine.begin() as connection:
        connection.execute(text(f'DROP OWNED BY "{quoted}"'))
        connection.execute(text(f'DROP ROLE "{quoted}"'))
    engine.dispose()


def of_server(admin: str) -> str:
    """Return the URL with the role that servers have."""
    return make_url(admin).set(username=ROLE).render_as_string(hide_password=False)


def refusal(url: str, statement: str) -> str:
    """Return the error of a statement; empty if there is none."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text(statement))
    except SQLAlchemyError as error:
        return str(error)
    finally:
        engine.dispose()
    return ""


async def test_a_role_without_rights_is_told_what_an_administrator_does_and_works_after_that(admin: str) -> None:
    store = SqlApprovalStore(of_server(admin), clock=FakeClock(), tenant="ada")
    with pytest.raises(StorageError, match="jupyter agentbox db upgrade"):
        await store.open()
    await store.aclose()

    assert upgrade(admin, role=ROLE) == VERSION

    async with SqlApprovalStore(of_server(admin), clock=FakeClock(), tenant="ada") as store:
        await store.check_writable()
        await store.add(a_request())
        assert await store.get("r1") == a_request()
    assert (await SqlAuditLog(of_server(admin)).verify(None)).broken is None


async def test_the_role_of_servers_cannot_change_the_audit_chain_nor_the_tables(admin: str) -> None:
    upgrade(admin, role=ROLE)
    async with SqlApprovalStore(of_server(admin), clock=FakeClock()) as store:
        await store.add(a_request())

    for statement in (
        "UPDATE agentbox_audit SET hash = ''",
        "DELETE FROM agentbox_audit",
        "TRUNCATE agentbox_audit",
        "DELETE FROM agentbox_approvals",
        "UPDATE agentbox_tenant SET name = 'eve'",
        "DROP TABLE agentbox_audit",
        "ALTER TABLE agentbox_audit DISABLE TRIGGER ALL",
        "CREATE TABLE mine (id INT)",
    ):
        refused = refusal(of_server(admin), statement)
        assert "permission denied" in refused or "must be owner" in refused, statement
    upgrade(admin, role=ROLE, may_remove=True)
    assert refusal(of_server(admin), "DELETE FROM agentbox_audit") == ""
    upgrade(admin, role=ROLE)  # takes it back
    assert "permission denied" in refusal(of_server(admin), "DELETE FROM agentbox_audit")


async def test_a_hub_service_of_that_role_takes_reports_and_holds_and_can_neither_change_nor_remove_them(
    admin: str,
) -> None:
    upgrade(admin, role=ROLE)
    clock = FakeClock()
    said = {"user": "ada", "hub_server": "ada/", "chain": "c1", "time": "2026-05-01T12:00:00Z"}
    log = SqlReportLog(of_server(admin), clock=clock)
    await log.append("ada", [read_report(TrailEnd().then(said)[1], tenant="ada")])
    hold = Hold(id="h1", tenant="ada", since=clock.now(), until=None, reason="a case", set_by="eve", set_at=clock.now())
    await log.set_hold(hold)
    await log.release_hold(hold.id, by="eve", reason="it is over")
    assert [each.released_by for each in await log.holds()] == ["eve"]
    await log.aclose()

    for statement in (
        "UPDATE agentbox_reports SET hash = ''",
        "DELETE FROM agentbox_reports",
        "DELETE FROM agentbox_report_chains",
        "UPDATE agentbox_holds SET reason = ''",
        "DELETE FROM agentbox_holds",
    ):
        assert "permission denied" in refusal(of_server(admin), statement), statement
    assert refusal(of_server(admin), "UPDATE agentbox_reports SET record = NULL") == ""  # as retention does


async def test_a_hub_service_of_that_role_stores_replaces_and_deletes_sign_ins(admin: str) -> None:
    upgrade(admin, role=ROLE)
    table = SqlSignInTable(of_server(admin), clock=FakeClock())
    for content in (b"1", b"2"):
        assert await table.change("ada", "crm", lambda _, content=content: content) == content
    assert await table.load("ada", "crm") == b"2"
    assert await table.remove_all_of("ada") == 1
    await table.aclose()


async def test_a_hub_service_of_that_role_sends_its_record_and_cannot_change_what_was_refused(admin: str) -> None:
    upgrade(admin, role=ROLE)
    clock = FakeClock()
    outbox = Outbox(clock=clock, whose={}, fields=lambda _: {"user": "ada"})
    reader = OutboxReader(of_server(admin), clock=clock, ids=FakeIds())
    await reader.open(["a"])
    async with SqlApprovalStore(of_server(admin), clock=clock, outbox=outbox) as store:
        await store.add(a_request())
    await reader.seal()
    (record,) = await reader.next("a")
    assert await reader.set_aside("a", record, "it answered 400")
    await reader.sent("a", record.position)
    assert await reader.backlogs(["a"]) == [Backlog()]
    await reader.aclose()

    for statement in ("UPDATE agentbox_outbox_refused SET reason = ''", "DELETE FROM agentbox_outbox_refused"):
        assert "permission denied" in refusal(of_server(admin), statement), statement


def test_the_command_says_what_it_did_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTBOX_DATABASE_URL", raising=False)
    url = sqlite_url(str(tmp_path / "approvals.sqlite"))

    assert main(["db", "upgrade", "--database", url]) == 0
    assert capsys.readouterr().out == f"The tables have version {VERSION}.\n"
    assert main(["db", "upgrade", "--database", url, "--role", "ada"]) == 2
    assert "is a file, which has no roles" in capsys.readouterr().err
    assert main(["db", "upgrade"]) == 2
    assert "--database URL or in AGENTBOX_DATABASE_URL" in capsys.readouterr().err
