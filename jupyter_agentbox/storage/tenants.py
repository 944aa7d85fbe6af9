"""The owner of a database: one JupyterHub user, whose arguments and decisions no other user may read."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, select, text
from sqlalchemy.dialects import postgresql, sqlite

from jupyter_agentbox.exceptions import StorageError

#: One row: the user. Made when a server of a Hub opens the database, so it is no part of `schema.MIGRATIONS`.
_tenant = Table(
    "agentbox_tenant",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
)
_CLAIM: Final = {
    "sqlite": sqlite.insert(_tenant).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(_tenant).on_conflict_do_nothing(),
}


def make_tenant_table(connection: Connection) -> None:
    """Create the table, in the caller's transaction, for servers that may create none."""
    _tenant.create(connection, checkfirst=True)


def check_tenant(connection: Connection, name: str) -> None:
    """Make the database a user's if it is nobody's yet, in the caller's transaction.

    Parameters
    ----------
    connection : Connection
        A connection in a write transaction.
    name : str
        The user.

    Raises
    ------
    StorageError
        If it is another user's.
    """
    if connection.dialect.name == "postgresql":  # two servers may start at once; SQLite's transaction is alone already
        connection.execute(text("SELECT pg_advisory_xact_lock(72057594037928)"))
    _tenant.create(connection, checkfirst=True)
    connection.execute(_CLAIM[connection.dialect.name], {"id": 1, "name": name})
    if connection.scalar(select(_tenant.c.name).where(_tenant.c.id == 1)) != name:
        raise StorageError(
            "the approval store is that of another user of this JupyterHub, and who shares one reads what the other's"
            f" code asked for: give `{name}` a database or a schema of their own (`AgentBoxApp.database_url`)"
        )
