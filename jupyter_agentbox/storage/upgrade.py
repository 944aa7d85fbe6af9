"""Creates or upgrades a database's tables with an administrator's role, for servers whose own role may not do so."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from jupyter_agentbox.exceptions import StorageError

from . import outbox, reports, sign_ins
from .database import Database
from .holds import holds
from .schema import VERSION, audit, metadata, schema
from .service_claim import make_claim_table, service
from .tenants import make_tenant_table

_LOCK_TIMEOUT: Final = 30.0
#: What servers do with tables: entries of the audit chain are added, and the tables themselves are the administrator's.
_ALL: Final = "SELECT, INSERT, UPDATE, DELETE"
_RIGHTS: Final = {audit.name: "SELECT, INSERT", schema.name: "SELECT, UPDATE"}
_APPROVALS: Final = ("agentbox_approvals", "SELECT, INSERT, UPDATE")
_TENANT: Final = ("agentbox_tenant", "SELECT, INSERT")
#: Of the Hub service: its reports lose their record, and nothing else, when they are too old; sign-ins are replaced.
_SERVICE: Final = {
    reports.reports.name: "SELECT, INSERT, UPDATE (record)",
    reports.chains.name: "SELECT, INSERT, UPDATE",
    service.name: "SELECT, INSERT, UPDATE",
    holds.name: "SELECT, INSERT, UPDATE (released_by, released_at, release_reason)",
    sign_ins.sign_ins.name: "SELECT, INSERT, DELETE",
    **outbox.RIGHTS,
}


def upgrade(url: str, *, role: str | None = None, may_remove: bool = False) -> int:
    """Bring the tables to this release's version, and grant a role its rights; return the version.

    Parameters
    ----------
    url : str
        A SQLAlchemy URL with a role that may create tables.
    role : str or None
        The PostgreSQL role of the servers; ``None`` leaves all rights as they are.
    may_remove : bool
        Whether that role may remove requests and their entries in the audit chain, as limits of the history require.

    Raises
    ------
    StorageError
        If that is not possible; nothing has changed then.
    """
    database = Database(url, journal_mode=None, busy_timeout=_LOCK_TIMEOUT, on_connect=make_tenant_table)
    if role is not None and database.path is not None:
        raise StorageError(f"{database} is a file, which has no roles")
    try:
        with database.transaction(write=True) as connection:
            if role is not None:
                make_claim_table(connection)
                reports.make_tables(connection)  # the role may be that of a Hub service
                sign_ins.make_table(connection)
                outbox.make_outbox_tables(connection)
                _grant(connection, role, may_remove=may_remove)
    finally:
        database.close()
    return VERSION


def _grant(connection: Connection, role: str, *, may_remove: bool) -> None:
    quoted = connection.dialect.identifier_preparer.quote_identifier(role)
    place = connection.dialect.identifier_preparer.quote_identifier(
        str(connection.scalar(text("SELECT current_schema()")))
    )
    rights = dict.fromkeys(metadata.tables, _ALL)
    rights |= dict((_APPROVALS, _TENANT)) | _RIGHTS | _SERVICE
    connection.execute(text(f"GRANT USAGE ON SCHEMA {place} TO {quoted}"))
    for table, allowed in rights.items():
        more = ", DELETE" if may_remove and table in (audit.name, _APPROVALS[0]) else ""
        connection.execute(text(f"REVOKE ALL ON {place}.{table} FROM {quoted}"))
        connection.execute(text(f"GRANT {allowed}{more} ON {place}.{table} TO {quoted}"))
