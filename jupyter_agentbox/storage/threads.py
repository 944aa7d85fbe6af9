"""Agents' threads in the approvals' database: conversations, their turns, and the messages for the model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Row, Select, bindparam, func, select, tuple_

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.pagination import Cursor, microseconds
from jupyter_agentbox.core.ports import Clock, ThreadPage, ThreadQuery
from jupyter_agentbox.core.threads import (
    Thread,
    Turn,
    TurnStatus,
    TurnSummary,
    summary_from_json,
    summary_of,
    summary_to_json,
    thread_from_json,
    thread_to_json,
    turn_from_json,
    turn_to_json,
)
from jupyter_agentbox.exceptions import StorageError, ThreadBusyError, UnknownThreadError

from .database import JournalMode
from .json_text import dump_json, text_key
from .schema import summaries, threads, turns
from .statements import execute
from .store import SqlStore
from .thread_retention import ThreadLimits, ThreadRetention, remove

T = TypeVar("T")

_ADD_TURN: Final = turns.insert()
_PUT_TURN: Final = (
    turns.update()
    .where(turns.c.id == bindparam("sought"), turns.c.owner == bindparam("old_owner"))
    .values({name: bindparam(name) for name in ("owner", "turn", "history")})
)
_ADD_SUMMARY: Final = summaries.insert()
_PUT_SUMMARY: Final = (
    summaries.update().where(summaries.c.id == bindparam("sought")).values(summary=bindparam("summary"))
)


class SqlThreadStore(SqlStore):
    """A `ThreadStore` in an SQL database.

    A turn belongs to the process that began it until it ends. When that process is gone, the next reader of the thread
    finds the turn interrupted.

    Parameters
    ----------
    url, clock, journal_mode, busy_timeout
        As for `SqlStore`. The clock also gives the times at which turns are interrupted.
    limits : ThreadLimits, optional
        How much is kept; applied when turns begin. Everything by default.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        journal_mode: JournalMode = "wal",
        busy_timeout: float = 5.0,
        limits: ThreadLimits | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__(
            url,
            clock=clock,
            owned=turns.c.owner,
            journal_mode=journal_mode,
            busy_timeout=busy_timeout,
            tenant=tenant,
        )
        self._retention = ThreadRetention(limits or ThreadLimits())
        self._sweeping: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """Finish outstanding work and close the database."""
        if self._sweeping is not None:
            await asyncio.wait([self._sweeping])
        await super().aclose()

    async def put(self, thread: Thread) -> None:
        """Store a new thread; `begin` and `put_turn` store its turns."""
        row = _thread_row(thread)
        await self._committer.run(lambda connection: connection.execute(threads.insert().values(row)), write=True)

    async def change(self, thread_id: str, changes: Mapping[str, object]) -> Thread:
        """Change some fields of a thread; return it."""

        def job(connection: Connection) -> Thread:
            _lock(connection, thread_id)
            return self._change(connection, thread_id, changes)

        return await self._committer.run(job, write=True)

    async def get(self, thread_id: str, *, include_turns: bool = False) -> Thread:
        """Return a thread."""
        return await self._committer.run(
            lambda connection: self._get(connection, thread_id, include_turns=include_turns),
            write=include_turns,  # a turn of a process that is gone is interrupted
            durable=False,
        )

    async def list(self, query: ThreadQuery) -> ThreadPage:
        """Return a page of threads without their turns, the most recently changed first."""
        statement = _list_statement(query)

        def job(connection: Connection) -> ThreadPage:
            rows = connection.execute(statement).all()
            page = rows[: query.page_size]
            last = Cursor(created_at=page[-1].updated_at, id=page[-1].id) if len(rows) > len(page) else None
            return ThreadPage(
                threads=tuple(_read(row.thread, thread_from_json) for row in page),
                next=last.encode() if last is not None else None,
            )

        return await self._committer.run(job, write=False)

    async def delete(self, thread_id: str) -> None:
        """Remove a thread and its turns."""

        def job(connection: Connection) -> None:
            _lock(connection, thread_id)
            self._require_idle(connection, thread_id)
            remove(connection, [text_key(thread_id)])

        await self._committer.run(job, write=True)

    async def begin(self, turn: Turn, changes: Mapping[str, object] | None = None) -> None:
        """Store a new turn, and changes to its thread. A thread has one turn in progress at a time."""

        def job(connection: Connection) -> None:
            _lock(connection, turn.thread_id)
            self._require_idle(connection, turn.thread_id)
            own = turns.c.thread_id == text_key(turn.thread_id)
            last = connection.scalar(select(func.max(turns.c.number)).where(own))
            number = 0 if last is None else int(last) + 1
            self._insert(connection, turn, number=number, history=b"")
            if changes:
                self._change(connection, turn.thread_id, changes)

        await self._committer.run(job, write=True)
        if self._retention.is_due(time.monotonic()) and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = in_background(self._sweep(), what="removing old threads")

    async def put_turn(self, turn: Turn, history: bytes) -> None:
        """Store the state of a turn that this process began, and the model's own history of it."""

        def job(connection: Connection) -> int:
            row = self._turn_row(turn, number=0, history=history)  # here: a long turn takes a while
            written = execute(connection, _PUT_TURN, {**row, "sought": row["id"], "old_owner": self._owner})
            if written:
                _update_summary(connection, turn)
            return written

        if await self._committer.run(job, write=True, durable=turn.status.is_final) != 1:
            raise UnknownThreadError(f"turn `{turn.id}` is not in progress here")

    async def move(self, old_path: str, new_path: str) -> Sequence[str]:
        """Give the threads of a notebook, or of all notebooks in a directory, its new path; return their ids."""
        path = threads.c.notebook_path
        is_there = (path == text_key(old_path)) | path.startswith(text_key(f"{old_path}/"), autoescape=True)
        statement = select(threads.c.thread).where(is_there).with_for_update()

        def job(connection: Connection) -> Sequence[str]:
            found = [_read(data, thread_from_json) for data in connection.scalars(statement).all()]
            for thread in found:
                moved = replace(thread, notebook_path=new_path + thread.notebook_path.removeprefix(old_path))
                row = _thread_row(moved)
                connection.execute(threads.update().where(threads.c.id == row["id"]).values(row))
            return [thread.id for thread in found]

        return await self._committer.run(job, write=True)

    async def get_turn(self, turn_id: str) -> Turn:
        """Return a turn. One whose process is gone is interrupted."""

        def job(connection: Connection) -> Turn:
            row = connection.execute(select(turns).where(turns.c.id == text_key(turn_id))).one_or_none()
            if row is None:
                raise UnknownThreadError(f"no turn `{turn_id}`")
            return self._living(connection, row)

        return await self._committer.run(job, write=True, durable=False)

    async def summaries(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[TurnSummary]]:
        """Return the summaries of some threads' turns for lists, by the thread's id, oldest first."""
        by_key = {text_key(thread_id): thread_id for thread_id in thread_ids}
        statement = select(turns.c.thread_id, turns.c.owner, summaries.c.summary).join(
            summaries, summaries.c.id == turns.c.id
        )
        statement = statement.where(turns.c.thread_id.in_(by_key)).order_by(turns.c.number)

        def job(connection: Connection) -> Mapping[str, Sequence[TurnSummary]]:
            found: dict[str, list[TurnSummary]] = {thread_id: [] for thread_id in thread_ids}
            for row in connection.execute(statement).all():
                summary = _read(row.summary, summary_from_json)
                if row.owner not in (None, self._owner) and self._is_gone(connection, row.owner):
                    summary = replace(summary, status=TurnStatus.INTERRUPTED)
                found[by_key[row.thread_id]].append(summary)
            return found

        return await self._committer.run(job, write=False)

    async def histories(self, thread_id: str) -> Sequence[bytes]:
        """Return the model's own histories of the thread's turns, oldest first."""
        statement = select(turns.c.history).where(turns.c.thread_id == text_key(thread_id)).order_by(turns.c.number)
        return await self._committer.run(lambda connection: connection.scalars(statement).all(), write=False)

    async def copy(self, thread_id: str, copied: Thread, turn_ids: Mapping[str, str]) -> None:
        """Store a new thread with copies of some turns of another one.

        Parameters
        ----------
        thread_id : str
            The thread to copy from.
        copied : Thread
            The new thread.
        turn_ids : mapping
            The ids of the turns to copy, with the ids of the copies.
        """
        found = select(turns).where(turns.c.thread_id == text_key(thread_id)).order_by(turns.c.number)

        def job(connection: Connection) -> None:
            rows = [row for row in connection.execute(found).all() if row.id in turn_ids]
            connection.execute(threads.insert().values(_thread_row(copied)))
            for row in rows:
                turn = _read(row.turn, turn_from_json)
                turn = replace(turn, id=turn_ids[turn.id], thread_id=copied.id)
                self._insert(connection, turn, number=row.number, history=row.history)

        await self._committer.run(job, write=True)

    async def _sweep(self) -> None:
        now = microseconds(self._clock.now())

        def job(connection: Connection) -> bool:
            return self._retention.sweep(connection, now, is_gone=lambda owner: self._is_gone(connection, owner))

        while await self._committer.run(job, write=True, durable=False):
            pass  # in steps, so that turns need not wait for all of them

    def _get(self, connection: Connection, thread_id: str, *, include_turns: bool) -> Thread:
        key = text_key(thread_id)
        data = connection.scalar(select(threads.c.thread).where(threads.c.id == key))
        if data is None:
            raise UnknownThreadError(f"no thread `{thread_id}`")
        thread = _read(data, thread_from_json)
        if not include_turns:
            return thread
        statement = select(turns).where(turns.c.thread_id == key).order_by(turns.c.number)
        found = [self._living(connection, row) for row in connection.execute(statement).all()]
        return replace(thread, turns=tuple(found))

    def _change(self, connection: Connection, thread_id: str, changes: Mapping[str, object]) -> Thread:
        thread: Thread = replace(self._get(connection, thread_id, include_turns=False), **changes)  # type: ignore[arg-type]  # fields of it
        row = _thread_row(thread)
        connection.execute(threads.update().where(threads.c.id == row["id"]).values(row))
        return thread

    def _require_idle(self, connection: Connection, thread_id: str) -> None:
        """Check that no turn has an owner, which takes no longer if many of the thread's turns have ended."""
        self._get(connection, thread_id, include_turns=False)
        statement = select(turns).where(turns.c.thread_id == text_key(thread_id), turns.c.owner.is_not(None))
        found = [self._living(connection, row) for row in connection.execute(statement).all()]
        if any(not turn.status.is_final for turn in found):
            raise ThreadBusyError(
                f"a turn is in progress in thread `{thread_id}`: wait for its end, or interrupt it, and try again"
            )

    def _living(self, connection: Connection, row: Row[Any]) -> Turn:
        """Return the turn of a row; one whose process is gone is interrupted first."""
        turn = _read(row.turn, turn_from_json)
        if row.owner in (None, self._owner) or not self._is_gone(connection, row.owner):
            return turn
        turn = turn.end(TurnStatus.INTERRUPTED, at=self._clock.now())
        values = {"owner": None, "turn": dump_json(turn_to_json(turn))}
        connection.execute(turns.update().where(turns.c.id == row.id, turns.c.owner == row.owner).values(values))
        _update_summary(connection, turn)
        return turn

    def _insert(self, connection: Connection, turn: Turn, *, number: int, history: bytes) -> None:
        if not turn.status.is_final:
            self._owners.hold(connection)
        execute(connection, _ADD_TURN, self._turn_row(turn, number=number, history=history))
        execute(connection, _ADD_SUMMARY, _summary_row(turn))

    def _turn_row(self, turn: Turn, *, number: int, history: bytes) -> dict[str, Any]:
        return {
            "id": text_key(turn.id),
            "thread_id": text_key(turn.thread_id),
            "number": number,
            "owner": None if turn.status.is_final else self._owner,
            "turn": dump_json(turn_to_json(turn)),
            "history": history,
        }


def _thread_row(thread: Thread) -> dict[str, Any]:
    return {
        "id": text_key(thread.id),
        "updated_at": microseconds(thread.updated_at),
        "is_archived": int(thread.is_archived),
        "notebook_path": text_key(thread.notebook_path),
        "thread": dump_json(thread_to_json(replace(thread, turns=()))),
    }


def _summary_row(turn: Turn) -> dict[str, Any]:
    return {"id": text_key(turn.id), "summary": dump_json(summary_to_json(summary_of(turn)))}


def _update_summary(connection: Connection, turn: Turn) -> None:
    row = _summary_row(turn)
    execute(connection, _PUT_SUMMARY, {**row, "sought": row["id"]})


def _list_statement(query: ThreadQuery) -> Select[Any]:
    columns = threads.c
    statement = select(columns.id, columns.updated_at, columns.thread)
    statement = statement.where(columns.is_archived == int(query.is_archived))
    if query.notebook_path is not None:
        statement = statement.where(columns.notebook_path == text_key(query.notebook_path))
    if query.cursor is not None:
        after = Cursor.decode(query.cursor)
        last = tuple_(after.created_at, text_key(after.id))
        statement = statement.where(tuple_(columns.updated_at, columns.id) < last)
    return statement.order_by(columns.updated_at.desc(), columns.id.desc()).limit(query.page_size + 1)


def _lock(connection: Connection, thread_id: str) -> None:
    """Keep other processes from changing the thread until this transaction ends; SQLite has a single writer anyway."""
    connection.execute(select(threads.c.id).where(threads.c.id == text_key(thread_id)).with_for_update())


def _read(data: bytes, read: Callable[[Any], T]) -> T:
    try:
        return read(json.loads(data.decode("utf-8", "surrogatepass")))
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"a thread in the approval store is damaged: {error}") from error
