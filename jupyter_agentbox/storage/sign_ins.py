"""Users' sign-ins to the Hub service's central MCP servers, encrypted by the caller.

The table is the service's: it is created when the service opens the database, and is not part of `MIGRATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    MetaData,
    Table,
    Text,
    inspect,
    select,
    text,
    tuple_,
)

from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.core.ports import Clock

from .database import Database
from .group_commit import GroupCommitter, Timer, untimed
from .json_text import text_key
from .service_claim import ServiceClaim

_DAY: Final = 86_400_000_000  # microseconds, as times are kept
#: How many sign-ins are read at a time.
_PAGE: Final = 200

_metadata: Final = MetaData()

#: One row for each user and server. `changed_at` is when the user signed in, or the sign-in was last renewed.
sign_ins: Final = Table(
    "agentbox_sign_ins",
    _metadata,
    Column("tenant", Text, primary_key=True),
    Column("server", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
)


@dataclass(frozen=True, slots=True)
class SignInRow:
    """A row of the table.

    Parameters
    ----------
    tenant, server : str
        Its key, in the form in which the database has it.
    content : bytes
        The encrypted sign-in.
    """

    tenant: str
    server: str
    content: bytes


class SqlSignInTable:
    """The table of encrypted sign-ins.

    Parameters
    ----------
    url : str
        The SQLAlchemy URL of the service's database.
    clock : Clock
        The time at which sign-ins are stored.
    busy_timeout : float
        How long to wait for another process's lock, in seconds.
    service_claim : ServiceClaim or None
        The claim on the database; while another process has it, nothing is written.
    must_exist : bool
        Whether to refuse a database that is not an approval store yet, instead of making it one.
    timer : function, optional
        As for `GroupCommitter`.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        busy_timeout: float = 10.0,
        service_claim: ServiceClaim | None = None,
        must_exist: bool = False,
        timer: Timer = untimed,
    ) -> None:
        self._clock = clock
        database = Database(
            url,
            journal_mode=None,
            busy_timeout=busy_timeout,
            on_connect=make_table,
            guard=service_claim,
            must_exist=must_exist,
        )
        self._committer = GroupCommitter(database, timer=timer)

    async def load(self, tenant: str, server: str) -> bytes | None:
        """Return a user's sign-in to a server, if there is one.

        Raises
        ------
        StorageError
        """
        return await self._committer.run(lambda connection: _content(connection, tenant, server), write=False)

    async def page(self, after: SignInRow | None = None) -> Sequence[SignInRow]:
        """Return the next sign-ins of all users after a row, in the order of their keys.

        Raises
        ------
        StorageError
        """
        columns = (sign_ins.c.tenant, sign_ins.c.server)
        query = select(*columns, sign_ins.c.content).order_by(*columns).limit(_PAGE)
        if after is not None:
            query = query.where(tuple_(*columns) > tuple_(after.tenant, after.server))

        def job(connection: Connection) -> list[SignInRow]:
            rows = connection.execute(query).all()
            return [SignInRow(tenant, server, _bytes_of(content) or b"") for tenant, server, content in rows]

        return await self._committer.run(job, write=False)

    async def change(
        self, tenant: str, server: str, changed: Callable[[bytes | None], bytes | None], *, is_renewal: bool = True
    ) -> bytes | None:
        """Change a user's sign-in to a server; return it as it is afterwards.

        Parameters
        ----------
        changed : callable
            Returns the new sign-in for the stored one; ``None`` to delete it. It may be called twice.
        is_renewal : bool
            Whether the age of a changed sign-in counts from now.

        Raises
        ------
        StorageError
            Nothing has changed.
        """
        now = microseconds(self._clock.now())

        def job(connection: Connection) -> bytes | None:
            before = _content(connection, tenant, server)
            after = changed(before)
            if after != before:
                since = None if is_renewal else _changed_at(connection, tenant, server)
                connection.execute(sign_ins.delete().where(_is(tenant, server)))
                if after is not None:
                    at = now if since is None else since
                    row = {"tenant": text_key(tenant), "server": text_key(server), "content": after, "changed_at": at}
                    connection.execute(sign_ins.insert().values(row))
            return after

        return await self._committer.run(job, write=True)

    async def remove_old(self, days: float) -> int:
        """Delete the sign-ins that have not changed for so many days; return their number.

        Raises
        ------
        StorageError
        """
        is_old = sign_ins.c.changed_at < microseconds(self._clock.now()) - int(days * _DAY)
        return await self._committer.run(
            lambda connection: connection.execute(sign_ins.delete().where(is_old)).rowcount, write=True
        )

    async def remove_all_of(self, tenant: str) -> int:
        """Delete a user's sign-ins; return their number.

        Raises
        ------
        StorageError
        """
        is_theirs = sign_ins.c.tenant == text_key(tenant)
        return await self._committer.run(
            lambda connection: connection.execute(sign_ins.delete().where(is_theirs)).rowcount, write=True
        )

    async def aclose(self) -> None:
        """Close the database."""
        await self._committer.aclose()


def make_table(connection: Connection) -> None:
    """Create the table if it is missing, in the caller's transaction."""
    if inspect(connection).has_table(sign_ins.name):
        return
    if connection.dialect.name == "postgresql":  # two services may start at once
        connection.execute(text("SELECT pg_advisory_xact_lock(72057594037931)"))
    _metadata.create_all(connection, checkfirst=True)


def _is(tenant: str, server: str) -> ColumnElement[bool]:
    return (sign_ins.c.tenant == text_key(tenant)) & (sign_ins.c.server == text_key(server))


def _content(connection: Connection, tenant: str, server: str) -> bytes | None:
    return _bytes_of(connection.scalar(select(sign_ins.c.content).where(_is(tenant, server))))


def _changed_at(connection: Connection, tenant: str, server: str) -> int | None:
    return connection.scalar(select(sign_ins.c.changed_at).where(_is(tenant, server)))


def _bytes_of(found: object) -> bytes | None:
    # SQLite keeps whatever somebody wrote there: what is no sign-in must not stop the next one
    return bytes(found) if isinstance(found, bytes | bytearray | memoryview) else None
