"""Old requests are removed where the service's own role may remove nothing, and what is removed is recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from jupyter_agentbox.database_commands import main as db
from jupyter_agentbox.history_commands import OK
from jupyter_agentbox.history_commands import main as history
from jupyter_agentbox.storage.retention import RetentionLimits

from .service import TIMEOUT, a_policy, running_service
from .test_service import ALLOW, call

ROLE = "agentbox_pruned"


async def test_an_administrator_removes_what_the_service_may_not(
    tmp_path: Path,
    make_postgresql_database: Callable[[], str],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = make_postgresql_database()
    with psycopg.connect(admin.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {ROLE}")
        connection.execute(f"CREATE ROLE {ROLE} LOGIN")
    assert await asyncio.to_thread(db, ["db", "upgrade", "--database", admin, "--role", ROLE]) == 0
    own = admin.replace("agentbox@", f"{ROLE}@")
    old = RetentionLimits(days=1e-9, bytes=None, long_arguments=None)
    for name in ("_FIRST", "_INTERVAL"):
        monkeypatch.setattr(f"jupyter_agentbox.storage.retention.{name}", 0.0)
    with caplog.at_level(logging.ERROR):
        async with (
            running_service(tmp_path, a_policy(ALLOW), database_url=own, retention=old) as service,
            service.tools_of("ada") as tools,
        ):
            for _ in range(2):
                await tools.call_tool(call())
            async with asyncio.timeout(TIMEOUT):
                while "not removed" not in caplog.text:
                    await tools.call_tool(call())
    assert "jupyter agentbox db prune" in caplog.text
    assert "Traceback" not in caplog.text

    assert await asyncio.to_thread(db, ["db", "prune", "--database", admin, "--days", "1e-9"]) == 0
    assert " requests of more than 1e-09 days ago were removed." in capsys.readouterr().out
    assert await asyncio.to_thread(history, ["audit", "verify", "--database", own]) == OK
    assert "Removed by age or size, as entries say: " in capsys.readouterr().out


@pytest.mark.parametrize("days", ["0", "-1", "inf", "nan", "x"])
def test_a_number_of_days_is_needed(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        db(["db", "prune", "--database", "sqlite:///x.db", "--days", days])
    assert "--days" in capsys.readouterr().err
