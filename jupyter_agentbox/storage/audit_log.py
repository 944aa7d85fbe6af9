"""Reads the record of all calls, concurrently with the servers that write it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection

from jupyter_agentbox.core.audit import Head
from jupyter_agentbox.core.audit_search import AuditPage, AuditQuery

from .audit_search import search
from .audit_verification import Reading, Verification, verify
from .database import Database
from .group_commit import GroupCommitter
from .known_tools import KnownTools
from .report_verification import ReportVerification, verify_reports

T = TypeVar("T")


class SqlAuditLog:
    """The record of all calls in an SQL database, read-only.

    It has its own connections, so that searches do not block calls.

    Parameters
    ----------
    url : str
        The SQLAlchemy URL of the approval store.
    busy_timeout : float
        How long to wait for another process's lock, in seconds.
    tenant : str, optional
        The JupyterHub user to whom the database must belong; any other's is refused.
    must_exist : bool
        Whether to refuse a database that is not an approval store yet, instead of making it one.
    """

    def __init__(
        self, url: str, *, busy_timeout: float = 5.0, tenant: str | None = None, must_exist: bool = False
    ) -> None:
        self._url = url
        self._must_exist = must_exist
        self._tenant = tenant
        self._busy_timeout = busy_timeout
        self._tools = KnownTools()
        self._committer = GroupCommitter(self._database())

    async def search(self, query: AuditQuery) -> AuditPage:
        """Return a page of records, newest first.

        Raises
        ------
        ValueError
            If the cursor is invalid.
        StorageError
            If the database cannot be read.
        """

        def job(connection: Connection) -> AuditPage:
            return search(connection, query, lambda rows: self._tools.read(connection, rows))

        return await self._committer.run(job, write=False)

    async def aclose(self) -> None:
        """Close the database."""
        await self._committer.aclose()

    async def verify(self, known: Head | None = None) -> Verification:
        """Check the audit chain and every record in it.

        Parameters
        ----------
        known : Head, optional
            The head from an earlier verification, stored elsewhere, which the chain must contain.

        Raises
        ------
        StorageError
            If the database cannot be read.
        """
        return await asyncio.to_thread(self._verify, known)

    async def verify_reports(self, noted: Head | None = None) -> ReportVerification:
        """Verify the reports of users' servers in a Hub service's database, and find missing ones.

        Parameters
        ----------
        noted : Head, optional
            `Verification.reports`: the row of the service's own chain that the audit chain names.

        Raises
        ------
        StorageError
            If the database cannot be read.
        """
        return await asyncio.to_thread(self._with_reading, lambda reading: verify_reports(reading, noted or Head()))

    def _verify(self, known: Head | None) -> Verification:
        return self._with_reading(lambda reading: verify(reading, known))

    def _with_reading(self, check: Callable[[Reading], T]) -> T:
        database = self._database()

        @contextmanager
        def reading() -> Iterator[Connection]:
            with database.transaction(write=False) as connection:
                yield connection

        try:
            return check(reading)
        finally:
            database.close()

    def _database(self) -> Database:
        return Database(
            self._url,
            journal_mode=None,
            busy_timeout=self._busy_timeout,
            on_connect=lambda _: None,
            tenant=self._tenant,
            must_exist=self._must_exist,
        )
