"""Approval requests in an SQL database: SQLite for one user's servers, or PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy import URL, Connection, Select, bindparam, or_, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.audit import Part
from jupyter_agentbox.core.calls import is_long
from jupyter_agentbox.core.grant_uses import Void
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.pagination import Cursor, microseconds
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery, Clock
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError, UnknownApprovalError

from . import audit_chain, grants
from .abandoned_requests import LOOK_AGAIN, AbandonedRequests
from .database import JournalMode, is_remote
from .group_commit import Timer, untimed
from .json_text import text_key
from .known_tools import READ, KnownTools
from .outbox import Outbox, Outgoing, add_records, make_outbox_tables
from .retention import Retention, RetentionLimits
from .rows import (
    arguments_row,
    new_row,
    progress_row,
    tool_row,
    with_arguments,
)
from .schema import HAS_TIME, approvals, arguments, tools
from .service_claim import ServiceClaim
from .statements import execute
from .store import SqlStore

log = logging.getLogger(__name__)

#: How many tool descriptions are cached.
_KNOWN_TOOLS: Final = 1000

_CHANGING: Final = (
    *("status", "outcome_state", "owner", "progress"),
    *("answer", "via", "reviewer", "reviewer_name"),
)
_ADD: Final = approvals.insert()
_GET: Final = select(*READ).where(approvals.c.id == bindparam("sought"))
_PRESENT: Final = (
    approvals.update()
    .where(approvals.c.id == bindparam("sought"))
    .where(approvals.c.status == bindparam("old_status"))
    .where(approvals.c.outcome_state.is_not_distinct_from(bindparam("old_outcome_state")))
    .where(approvals.c.owner.is_not_distinct_from(bindparam("old_owner")))
)
_REPLACE: Final = _PRESENT.values({name: bindparam(name) for name in _CHANGING})
#: The columns of an approved request that change. Naming others would rewrite their indexes.
_REPLACE_APPROVED: Final = _PRESENT.values({name: bindparam(name) for name in ("outcome_state", "owner", "progress")})
_ADD_ARGUMENTS: Final = arguments.insert()
_ADD_TOOL: Final = {
    "sqlite": sqlite.insert(tools).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(tools).on_conflict_do_nothing(),
}


def sqlite_url(path: str) -> str:
    """Return the URL of a SQLite file, whatever characters its path has."""
    return URL.create("sqlite", database=path).render_as_string()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Data about a request that is kept in memory until it ends.

    Parameters
    ----------
    digest : str
        Digest of the requested call in the audit chain, whatever happens to the row before the decision.
    secrets : frozenset of str
        Values that must not be stored, not even in error messages.
    """

    digest: str
    secrets: frozenset[str]


class SqlApprovalStore(SqlStore):
    """An `ApprovalStore` and a `GrantStore` in an SQL database.

    Several server processes can share a database. An open request belongs to the process that added it: only that
    process can change or list it, until the process is gone and another takes it over. Closed requests are listed
    everywhere. A database is for one user; on PostgreSQL each user has a database or a schema.

    Everything runs in the store's thread, never in the event loop; see `storage.group_commit`. The `call`, `tool` and
    `created_at` of a stored request are immutable.

    Parameters
    ----------
    url, clock, journal_mode, busy_timeout
        As for `SqlStore`.
    limits : RetentionLimits, optional
        How much is kept, and for how long.
    redaction : Redaction, optional
        Removes values that must not be stored. Without it, everything is stored.
    tenant, service_claim : optional
        As for `SqlStore`.
    outbox : Outbox, optional
        Gets a record of each change, for audit sinks.
    timer : function, optional
        As for `SqlStore`.

    Attributes
    ----------
    look_again : float or None
        Seconds until `adopt_abandoned` may be due again; ``None`` if one call at startup finds everything.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        journal_mode: JournalMode = "wal",
        busy_timeout: float = 5.0,
        limits: RetentionLimits | None = None,
        redaction: Redaction | None = None,
        tenant: str | None = None,
        service_claim: ServiceClaim | None = None,
        outbox: Outbox | None = None,
        timer: Timer = untimed,
    ) -> None:
        self._outbox = outbox
        super().__init__(
            url,
            clock=clock,
            owned=approvals.c.owner,
            journal_mode=journal_mode,
            busy_timeout=busy_timeout,
            tenant=tenant,
            service_claim=service_claim,
            timer=timer,
        )
        self.look_again = LOOK_AGAIN if is_remote(url) else None
        self._retention = Retention(limits or RetentionLimits())
        self._sweeping: asyncio.Task[None] | None = None
        self._known_tools = KnownTools()
        self._abandoned = AbandonedRequests(
            owner=self._owner,
            owners=self._owners,
            tools=self._known_tools,
            is_gone=self._is_gone,
            is_forgotten=self._is_forgotten,
        )
        self._kept_tools: set[str] = set()
        self._tool_rows: OrderedDict[int, tuple[ToolDescription, dict[str, Any]]] = OrderedDict()
        self._redaction = redaction or Redaction(())
        self._asked: dict[str, _Asked] = {}

    async def open(self) -> None:
        """Connect, and upgrade the tables. Otherwise, the first use does so.

        Raises
        ------
        StorageError
            If the database cannot be used. The next call retries.
        """
        await self._committer.run(lambda _connection: None, write=True)

    async def aclose(self) -> None:
        """Complete outstanding work and close the database."""
        if self._sweeping is not None:
            await asyncio.wait([self._sweeping])
        await super().aclose()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def add(self, request: ApprovalRequest) -> bool:
        """Store a new request, unless the grant that answered it is used up.

        On return, the request survives this process and, a moment later, the machine.
        """
        tool = self._tool_row(request.tool)
        outgoing = await self._record_of_new(request)
        if is_long(request.call.arguments):
            # In a thread: serializing millions of values would block the loop.
            kept, row, long_arguments = await asyncio.to_thread(self._rows, request, tool["digest"], is_long=True)
        else:
            kept, row, long_arguments = self._rows(request, tool["digest"], is_long=False)
        part = audit_chain.part_of(request)
        digest = audit_chain.record_digest(kept.digest, part, row) if part is not None else ""
        grant = request.evaluation.grant

        def job(connection: Connection) -> set[str] | None:
            known = self._kept_tools
            if grant is not None and not grants.use_grant(connection, grant.id, request.created_at):
                return None
            if tool["digest"] not in known:
                execute(connection, _ADD_TOOL[connection.dialect.name], tool)
            self._insert(connection, row, long_arguments)
            if part is not None:
                audit_chain.append(connection, part, row["id"], digest)
            add_records(connection, outgoing)
            return known

        if request.is_open:
            self._asked[request.id] = kept
        try:
            known = await self._committer.run(job, write=True, durable=False)
        except StorageError:
            self._asked.pop(request.id, None)
            raise
        if known is None:
            self._asked.pop(request.id, None)
            return False
        self._announce(outgoing)
        known.add(tool["digest"])
        self._wrote(len(row["request"]) + len(row["progress"]) + (long_arguments or {}).get("size", 0))
        return True

    def _insert(self, connection: Connection, row: dict[str, Any], long_arguments: dict[str, Any] | None) -> None:
        is_open = row["owner"] is not None
        if is_open:
            self._owners.hold(connection)
        execute(connection, _ADD, row)
        if long_arguments is not None and is_open:
            execute(connection, _ADD_ARGUMENTS, long_arguments)

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return a request, including those of other processes."""

        def job(connection: Connection) -> Sequence[ApprovalRequest]:
            rows = connection.execute(_GET, {"sought": text_key(request_id)}).all()
            self._known_tools.learn(connection, rows)
            return [self._whole(connection, self._known_tools.request(row)) for row in rows]

        found = await self._committer.run(job, write=False)
        if not found:
            raise UnknownApprovalError(f"no approval request `{request_id}`", request_id=request_id)
        return found[0]

    async def replace_if(
        self, request: ApprovalRequest, *, status: Status, outcome: OutcomeState | None, grant: Grant | None = None
    ) -> bool:
        """Write the request if the stored one has this status and outcome state and belongs to this process.

        Votes are not overwritten: the request must have all those of the stored one.

        On return, a person's decision or vote is on disk, and the start of a call whose approval did not start it.
        Other changes, those by programs included, survive this process and, a moment later, the machine.
        """
        known = self._asked.get(request.id)
        kept = await self._with_redacted_answer(request, known.secrets if known is not None else frozenset())
        values = progress_row(kept, owner=self._owner)
        values["sought"] = values.pop("id")
        values["old_status"] = status.value
        values["old_outcome_state"] = outcome.value if outcome else None
        values["old_owner"] = self._owner

        call = request.call
        has_long_arguments = call.omitted is not None or is_long(call.arguments)
        part = audit_chain.part_of(request)
        replacing = _REPLACE_APPROVED if status is request.status is Status.APPROVED else _REPLACE
        is_recorded = part is Part.DECIDED and status is Status.APPROVED
        rule = request.evaluation.rule
        may_have_votes = status is Status.PENDING and rule is not None and rule.approvers is not None
        decision = request.decision if status is Status.PENDING else None
        outgoing = await self._record_of_change(request, status, outcome)
        used = decision.grant if decision is not None and grant is None else None

        def job(connection: Connection) -> bool:
            if may_have_votes and not self._has_all_votes(connection, request):
                return False
            if used is not None and not grants.use_grant(connection, used.id, self._clock.now()):
                return False
            if execute(connection, replacing, values) != 1:
                if used is not None:
                    grants.give_use_back(connection, used.id)
                return False
            if grant is not None:
                grants.add_grant(connection, grant, owner=self._owner)
            if part is not None and not is_recorded:
                asked = known.digest if known is not None else _asked_of(connection, values["sought"])
                audit_chain.append(connection, part, values["sought"], audit_chain.record_digest(asked, part, values))
            if has_long_arguments and not request.is_open:
                self._close_arguments(connection, request)
            add_records(connection, outgoing)
            return True

        is_by_person = status is Status.PENDING and any(not one.reviewer.via.is_program for one in request.answers)
        is_start = status is Status.APPROVED and outcome is None and request.outcome_state is OutcomeState.RUNNING
        is_end = status is Status.APPROVED and not request.is_open  # the result is on its way; the next call may follow
        written = await self._committer.run(job, write=True, durable=is_by_person or is_start, patient=is_end)
        if not request.is_open:
            self._asked.pop(request.id, None)
        self._announce(outgoing)
        return written

    async def _record_of_new(self, request: ApprovalRequest) -> Sequence[Outgoing]:
        if self._outbox is None or self._outbox.is_announced(request):
            return []
        return [await self._outbox.of_new(request)]

    async def _record_of_change(
        self, request: ApprovalRequest, status: Status, outcome: OutcomeState | None
    ) -> Sequence[Outgoing]:
        if self._outbox is None or self._outbox.is_announced(request):
            return []
        return [await self._outbox.of_change(request, status, outcome)]

    def _announce(self, outgoing: Sequence[Outgoing]) -> None:
        if self._outbox is not None and outgoing:
            self._outbox.added()

    async def _with_redacted_answer(self, request: ApprovalRequest, secrets: frozenset[str]) -> ApprovalRequest:
        edited = None if request.decision is None else request.decision.arguments
        if edited is not None and is_long(edited):
            # In a thread, as in `add`.
            return await asyncio.to_thread(self._redaction.answer, request, secrets)
        return self._redaction.answer(request, secrets)

    def _has_all_votes(self, connection: Connection, request: ApprovalRequest) -> bool:
        """Whether a request has all votes of the stored one, which is locked until the transaction ends."""
        rows = connection.execute(_GET.with_for_update(), {"sought": text_key(request.id)}).all()
        self._known_tools.learn(connection, rows)
        stored = {vote.reviewer.name for row in rows for vote in self._known_tools.request(row).votes}
        return stored <= {vote.reviewer.name for vote in request.votes}

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first, without long arguments.

        Damaged requests are skipped and logged. If none is pending, a database server is not queried for pending ones:
        pages of thousands of users ask every few seconds.
        """
        statement = self._list_statement(query)
        size = query.page_size
        if self._database.is_remote and self._owners.owns_nothing and _is_of_own(query):
            return ApprovalPage(approvals=())

        def job(connection: Connection) -> ApprovalPage:
            rows = connection.execute(statement).all()
            page = rows[:size]
            cursor = Cursor(created_at=page[-1].created_at, id=page[-1].id).encode() if len(rows) > size else None
            return ApprovalPage(approvals=self._known_tools.read(connection, page), next=cursor)

        return await self._committer.run(job, write=False)

    async def grants(self) -> Sequence[Grant]:
        """Return the grants for all kernels and those for this process's kernels."""
        return await self._committer.run(
            lambda connection: grants.read_grants(connection, owner=self._owner), write=False
        )

    async def end_grants(self, ids: Sequence[str]) -> None:
        """Delete grants."""
        if ids:
            await self._committer.run(lambda connection: grants.end_grants(connection, ids), write=True)

    async def void_grant(self, grant_id: str, void: Void) -> None:
        """Mark a grant as void, with the reason."""
        await self._committer.run(lambda connection: grants.void_grant(connection, grant_id, void), write=True)

    def _rows(
        self, request: ApprovalRequest, tool_digest: str, *, is_long: bool
    ) -> tuple[_Asked, dict[str, Any], dict[str, Any] | None]:
        """Return the in-memory data, the row, and the row of long arguments for a new request."""
        call, secrets = self._redaction.call(request.call)
        is_redacted = call is not request.call
        kept = self._redaction.answer(request, secrets)
        if is_redacted:
            kept = replace(kept, call=call)
        long_arguments = arguments_row(kept) if is_long else None
        row = new_row(
            kept,
            tool_digest=tool_digest,
            owner=self._owner,
            long_arguments=long_arguments,
            is_redacted=is_redacted,
        )
        return _Asked(digest=audit_chain.asked_digest(row), secrets=secrets), row, long_arguments

    def _whole(self, connection: Connection, request: ApprovalRequest) -> ApprovalRequest:
        """Return the request with its long arguments, if they are still stored."""
        if request.call.omitted is None:
            return request
        kept = select(arguments.c.arguments).where(arguments.c.id == text_key(request.id))
        data = connection.scalar(kept)
        return request if data is None else with_arguments(request, data)

    def _close_arguments(self, connection: Connection, request: ApprovalRequest) -> None:
        """Delete the long arguments of an ended request; keep those of a decided one for a while."""
        own = arguments.c.id == text_key(request.id)
        if request.decision is None and request.status is not Status.APPROVED:
            connection.execute(arguments.delete().where(own))
        else:
            connection.execute(arguments.update().where(own).values(closed_at=microseconds(self._clock.now())))

    def _wrote(self, size: int) -> None:
        """Apply the retention limits occasionally, while nobody waits."""
        if self._retention.is_due(size, time.monotonic()) and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = in_background(self._sweep(), what="removing old requests")

    async def _sweep(self) -> None:
        now = microseconds(self._clock.now())
        more = True
        try:
            while more:  # in steps, so that calls do not wait for all of them
                more = await self._committer.run(
                    lambda connection: self._retention.sweep(connection, now), write=True, durable=False
                )
        except StorageError as error:  # such as a role that may remove nothing
            log.error("old requests were not removed: %s. As an administrator, use `jupyter agentbox db prune`", error)

    async def adopt_abandoned(self) -> Sequence[ApprovalRequest]:
        """Take over and return the open requests of server processes that are gone, oldest first."""
        return await self._committer.run(self._abandoned.adopt, write=True, brief=True)

    def is_look_due(self) -> bool:
        """Whether to call `adopt_abandoned` again: always if something is open here, or a process may be gone."""
        return self._abandoned.is_look_due()

    def _tool_row(self, tool: ToolDescription) -> dict[str, Any]:
        # By identity: a listed tool stays the same object, and hashing a long description is slow. The cache keeps it
        # alive.
        kept = self._tool_rows.get(id(tool))
        if kept is None:
            kept = self._tool_rows[id(tool)] = (tool, tool_row(tool))
            if len(self._tool_rows) > _KNOWN_TOOLS:
                self._tool_rows.popitem(last=False)
        return kept[1]

    def _claim(self, connection: Connection) -> None:
        self._kept_tools = set()  # it may be another file
        super()._claim(connection)
        if self._outbox is not None:
            make_outbox_tables(connection)

    def _list_statement(self, query: ApprovalQuery) -> Select[Any]:
        columns = approvals.c
        statement = select(*READ).where(HAS_TIME)
        if query.ids:
            statement = statement.where(columns.id.in_([text_key(id) for id in query.ids]))
        else:
            statement = statement.where(or_(columns.owner.is_(None), columns.owner == self._owner))
        if query.statuses:
            statement = statement.where(columns.status.in_([status.value for status in query.statuses]))
        if query.kernel_id is not None:
            statement = statement.where(columns.kernel_id == text_key(query.kernel_id))
        if query.notebook_path is not None:
            statement = statement.where(columns.notebook_path == text_key(query.notebook_path))
        if query.cursor is not None:
            after = Cursor.decode(query.cursor)
            statement = statement.where(
                tuple_(columns.created_at, columns.id) < tuple_(after.created_at, text_key(after.id))
            )
        return statement.order_by(columns.created_at.desc(), columns.id.desc()).limit(query.page_size + 1)


def _is_of_own(query: ApprovalQuery) -> bool:
    """Whether a query is for requests pending here: lists show only this process's pending requests."""
    return set(query.statuses) == {Status.PENDING} and not query.ids


def _asked_of(connection: Connection, request_id: str) -> str:
    """Return the digest of a request taken over from another process."""
    row = connection.execute(select(approvals).where(approvals.c.id == request_id)).mappings().one()
    return audit_chain.asked_digest(dict(row))
