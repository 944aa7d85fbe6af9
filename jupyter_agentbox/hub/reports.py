"""Records that users' servers report: stored in the name that the Hub gives, limited in rate, and counted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from jupyter_agentbox.core.calls import LONG
from jupyter_agentbox.core.ports import Clock, Ids
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.core.report_redaction import redacted_line, redacted_report
from jupyter_agentbox.core.reports import Gap, Report, read_report
from jupyter_agentbox.exceptions import ReportRefusedError, StorageError
from jupyter_agentbox.storage.holds import Hold
from jupyter_agentbox.storage.reports import ReportQuery, ReportRow, SqlReportLog, Taken

from .callers import Caller

log = logging.getLogger(__name__)

#: The largest report, in bytes.
MOST_BYTES: Final = 1_000_000
#: How many minutes' worth of records one user may send at once.
_BURST: Final = 2


class ReportCounter(Protocol):
    """Counts reported records."""

    def reported(self, outcome: str, records: int) -> None:
        """Count records by outcome: `accepted`, `duplicate`, `refused` or `throttled`."""


class TooManyReportsError(Exception):
    """A user reports more records than allowed.

    Parameters
    ----------
    seconds : int
        After how long to try again.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many records at once: try again in {seconds} s")
        self.seconds = seconds


@dataclass(slots=True)
class _Allowance:
    """How many records a user may still send, as of a time in seconds."""

    records: float
    at: float


class ReportManager:
    """Stores the records that users' servers report.

    Parameters
    ----------
    reports : SqlReportLog
        Where they are stored.
    metrics : ReportCounter
        Counts them.
    clock, ids
        The times and ids of holds.
    redaction : Redaction
        Removes secrets: what users' servers call a secret is up to users.
    per_minute : int
        How many records one user may report per minute.
    keep_days : float or None
        After how many days records are removed; ``None`` for never.
    now : callable
        Returns monotonic seconds.
    """

    def __init__(
        self,
        reports: SqlReportLog,
        metrics: ReportCounter,
        *,
        clock: Clock,
        ids: Ids,
        redaction: Redaction,
        per_minute: int,
        keep_days: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reports = reports
        self._metrics = metrics
        self._clock = clock
        self._ids = ids
        self._redaction = redaction
        self._per_minute = per_minute
        self._keep_days = keep_days
        self._now = now
        self._allowances: dict[str, _Allowance] = {}

    async def take(self, body: bytes, caller: Caller) -> Taken:
        """Add records to the caller's chain, without secrets. They are on the disk when this returns.

        Raises
        ------
        ReportRefusedError
            If a line is not a record of the caller's. No record was added.
        TooManyReportsError
        StorageError
        """
        lines = [line for line in body.split(b"\n") if line.strip()]
        self._spend(caller.name, len(lines))
        try:
            taken = await self._reports.append(caller.name, await self._read(lines, caller))
        except ReportRefusedError as error:
            self._metrics.reported("refused", len(lines))
            log.warning("records sent with a token of `%s` were refused: %s", caller.name, error)
            raise
        self._metrics.reported("accepted", taken.accepted)
        self._metrics.reported("duplicate", taken.duplicates)
        return taken

    async def page(self, query: ReportQuery) -> Sequence[ReportRow]:
        """Return the next rows, without secrets, including those whose names were added after the rows were stored."""
        rows = await self._reports.page(query)
        return await asyncio.to_thread(lambda: [self._redacted(row) for row in rows])

    async def gaps(self) -> Sequence[Gap]:
        """Return the gaps in the records."""
        return await self._reports.gaps()

    async def missing(self) -> int:
        """Return the number of records missing between others."""
        return await self._reports.missing()

    async def remove_old(self) -> None:
        """Remove records that are older than `keep_days` and under no hold.

        Raises
        ------
        StorageError
        """
        while self._keep_days is not None and await self._reports.remove_old(self._keep_days):
            pass  # in steps, so that reports do not have to wait for all of them

    async def note_heads(self) -> None:
        """Have the audit chain cover what was reported until now.

        Raises
        ------
        StorageError
        """
        await self._reports.note_heads()

    async def hold(self, user: str, *, since: datetime | None, until: datetime | None, reason: str, by: str) -> Hold:
        """Set a hold, under which no record of a user, or of any user if the name is empty, is removed."""
        hold = Hold(
            id=self._ids.new(),
            tenant=user,
            since=since,
            until=until,
            reason=reason,
            set_by=by,
            set_at=self._clock.now(),
        )
        await self._reports.set_hold(hold)
        log.warning("`%s` set the hold %s on records of %s", by, hold.id, f"`{user}`" if user else "all users")
        return hold

    async def release(self, hold_id: str, *, reason: str, by: str) -> Hold | None:
        """Release a hold and return it; ``None`` if there is no such hold or it was released before."""
        hold = await self._reports.release_hold(hold_id, by=by, reason=reason)
        if hold is not None:
            log.warning("`%s` released the hold %s", by, hold_id)
        return hold

    async def holds(self) -> Sequence[Hold]:
        """Return all holds, newest first."""
        return await self._reports.holds()

    async def aclose(self) -> None:
        """Have the audit chain cover what was reported, and close the store."""
        try:
            await self._reports.note_heads()
        except StorageError as error:
            log.warning("the audit chain will cover the last reports after the next start: %s", error)
        await self._reports.aclose()

    def _redacted(self, row: ReportRow) -> ReportRow:
        if row.record is None or row.is_note:
            return row
        return replace(row, record=redacted_line(row.record, self._redaction))

    async def _read(self, lines: Sequence[bytes], caller: Caller) -> list[Report]:
        def read() -> list[Report]:
            return [redacted_report(read_report(line, tenant=caller.name), self._redaction) for line in lines]

        # In a thread: records of very many values would block the loop.
        return await asyncio.to_thread(read) if sum(map(len, lines)) > LONG else read()

    def _spend(self, name: str, records: int) -> None:
        now, most = self._now(), float(_BURST * self._per_minute)
        allowance = self._allowances.setdefault(name, _Allowance(most, now))
        allowance.records = min(most, allowance.records + (now - allowance.at) * self._per_minute / 60)
        allowance.at = now
        if allowance.records <= 0 and records:
            self._metrics.reported("throttled", records)
            raise TooManyReportsError(int(1 - allowance.records * 60 / self._per_minute))
        allowance.records -= records  # may fall below 0, so that even a large report is accepted once
