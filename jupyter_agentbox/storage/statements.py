"""Runs the statements that every call needs, without SQLAlchemy's preparation for results, which they do not have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import ClauseElement, Connection, Dialect


def execute(connection: Connection, statement: ClauseElement, values: Mapping[str, Any]) -> int:
    """Run a statement, on SQLite directly, and return the number of changed rows."""
    text, names = _compiled(statement, connection.dialect)
    ordered = dict(values) if names is None else tuple(values[name] for name in names)
    if connection.dialect.name != "sqlite":
        return connection.exec_driver_sql(text, ordered).rowcount
    driver: Any = connection.connection.driver_connection
    changed: int = driver.execute(text, ordered).rowcount
    return changed


@cache
def _compiled(statement: ClauseElement, dialect: Dialect) -> tuple[str, list[str] | None]:
    """Return the text of a statement, and the names of its values if they are passed by position."""
    compiled: Any = statement.compile(dialect=dialect)
    return str(compiled), compiled.positiontup
