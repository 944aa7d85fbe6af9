from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, create_engine, inspect

from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.schema import MIGRATIONS, VERSION, metadata, migrate, schema
from jupyter_agentbox.testing import FakeClock


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return create_engine(sqlite_url(str(tmp_path / "approvals.db")))


def shape(connection: Connection) -> dict[str, tuple[dict[str, bool], dict[str, list[str | None]]]]:
    """Return of each table the columns, with whether they may be null, and the indexes."""
    found = inspect(connection)
    return {
        table: (
            {column["name"]: column["nullable"] for column in found.get_columns(table)},
            {str(index["name"]): index["column_names"] for index in found.get_indexes(table)},
        )
        for table in found.get_table_names()
    }


def test_the_steps_add_up_to_the_tables_that_statements_are_built_from(engine: Engine, tmp_path: Path) -> None:
    other = create_engine(sqlite_url(str(tmp_path / "other.db")))
    with engine.begin() as migrated, other.begin() as created:
        migrate(migrated)
        metadata.create_all(created)

        assert shape(migrated) == shape(created)
    engine.dispose()
    other.dispose()


def test_a_database_that_is_up_to_date_is_left_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        migrate(connection)
        before = shape(connection)
        migrate(connection)

        assert shape(connection) == before
        assert connection.execute(schema.select()).all() == [(VERSION,)]
    engine.dispose()


def test_there_is_a_step_for_each_version() -> None:
    assert len(MIGRATIONS) == VERSION


async def test_a_database_of_a_newer_release_is_refused_and_left_as_it_is(engine: Engine, tmp_path: Path) -> None:
    with engine.begin() as connection:
        migrate(connection)
        connection.execute(schema.update().values(version=VERSION + 1))
    engine.dispose()
    before = (tmp_path / "approvals.db").read_bytes()
    store = SqlApprovalStore(str(engine.url), clock=FakeClock(), journal_mode="delete")

    with pytest.raises(StorageError, match="upgrade"):
        await store.open()
    await store.aclose()

    assert (tmp_path / "approvals.db").read_bytes() == before
