"""Removes old requests with an administrator's role, for servers whose own role may remove nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import func, select

from jupyter_agentbox.core.pagination import microseconds

from .database import Database
from .retention import Retention, RetentionLimits
from .schema import approvals
from .tenants import make_tenant_table

_LOCK_TIMEOUT: Final = 30.0


def prune(url: str, *, days: float, now: datetime) -> int:
    """Remove the ended requests that are so many days old and under no hold; return how many there were.

    The audit chain says what was removed. Servers can use the database in between.

    Parameters
    ----------
    url : str
        A SQLAlchemy URL with a role that may remove requests and entries of the audit chain.
    days : float
        The greatest age that is kept.
    now : datetime
        The present time.

    Raises
    ------
    StorageError
        If that is not possible; what was removed before stays removed.
    """
    retention = Retention(RetentionLimits(days=days, bytes=None, long_arguments=None))
    database = Database(
        url, journal_mode=None, busy_timeout=_LOCK_TIMEOUT, on_connect=make_tenant_table, must_exist=True
    )
    removed, more = 0, True
    try:
        while more:
            with database.transaction(write=True) as connection:
                count = select(func.count()).select_from(approvals)
                before = connection.scalar(count) or 0
                more = retention.sweep(connection, microseconds(now))
                removed += before - (connection.scalar(count) or 0)
    finally:
        database.close()
    return removed
