"""Sends the service's record on to its audit sinks, continuously, from the outbox in its database."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from jupyter_agentbox import __version__
from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.audit_trail import AuditEvent, AuditSettings, WhenDown
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import AuditSink, Clock
from jupyter_agentbox.core.text import counted
from jupyter_agentbox.exceptions import AuditError, DatabaseHeldError, StorageError
from jupyter_agentbox.services.audit.senders import REFUSALS, DeliveryResult, Sender, batch_of
from jupyter_agentbox.storage.outbox import Outbox, Outgoing
from jupyter_agentbox.storage.outbox_reader import (
    MOST_REFUSED,
    MOST_REFUSED_OF_USER,
    Backlog,
    OutboxReader,
    SealedRecord,
    place_of,
    sequence_of,
    user_of,
)

log = logging.getLogger(__name__)

#: Seconds in which records gather before they are sealed together: each time costs a commit.
_GATHER: Final = 0.2
#: Seconds until the database is tried again, or whatever else failed.
_RETRY: Final = 2.0
#: Seconds that a stopping service waits for a thread that waits for a sink.
_FAREWELL: Final = 1.0
#: What an error says about the state, if all is as before and if a call waited for approval.
NOTHING_DONE: Final = "nothing was done"
NOT_RUN: Final = "the approval is recorded, but the call did not run"
_NOT_ACCEPTED: Final = "an audit sink did not accept the record"
_WITHDRAWN: Final = "whoever wanted it has withdrawn it"


class _EndingError(Exception):
    """The service ends."""


class ForwardCounter(Protocol):
    """Counts what becomes of records, for each sink by its number."""

    def forwarded(self, sink: int, result: DeliveryResult, records: int) -> None:
        """Count records that a sink accepted or refused."""

    def sink_failed(self, sink: int) -> None:
        """Count a failed attempt to send records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """How far a sink has come.

    Parameters
    ----------
    number : int
        Its number in the settings, from 1.
    is_down : bool
        Whether it did not accept the last records that it was sent.
    waiting : int
        How many records it has not accepted yet.
    seconds : float
        How long the oldest of them has waited.
    """

    number: int
    is_down: bool
    waiting: int = 0
    seconds: float = 0.0


class _Route:
    """The way of records to one sink.

    Attributes
    ----------
    has_records : asyncio.Event
        Set if there may be something to send.
    is_settled : asyncio.Event
        Set if there is nothing to send, or the sink does not accept it now.
    accepted : int
        Up to which position the sink is done with records from this process, also if that could not be written down.
    refused : set of int
        The positions of the records that it refused for good while changes are announced; `accepted` goes past them.
    has_all : bool
        Whether there was nothing left to send.
    urgent : list of SealedRecord
        Announced records, for which somebody waits.
    early : set of int
        The positions of those beyond `accepted` that were sent before what others had queued.
    """

    def __init__(
        self, number: int, address: str, sink: AuditSink, *, settings: AuditSettings, counter: ForwardCounter
    ) -> None:
        self.key = _key_of(address)
        self.has_records = asyncio.Event()
        self.is_settled = asyncio.Event()
        self.accepted = 0
        self.refused: set[int] = set()
        self.has_all = True
        self.urgent: list[SealedRecord] = []
        self.early: set[int] = set()
        self.sender = Sender(
            sink,
            pause=settings.pause,
            count=partial(counter.forwarded, number),
            on_failure=self._note_failure,
            # If calls wait for their records, no user's record may delay those of others.
            refusals=1 if settings.when_down is WhenDown.DENY else REFUSALS,
        )
        self._number = number
        self._counter = counter

    @property
    def is_stuck(self) -> bool:
        """Whether there are records that the sink does not accept now."""
        return self.sender.is_away and not self.has_all

    def is_done_with(self, position: int) -> bool:
        """Whether the sink has accepted or refused a record."""
        return position <= self.accepted or position in self.early

    def reach(self, position: int) -> None:
        """Note that the sink is done with all records up to a position."""
        self.accepted = position
        self.early = {one for one in self.early if one > position}

    def _note_failure(self) -> None:
        self._counter.sink_failed(self._number)
        if self.sender.is_away:
            self.is_settled.set()


class RecordForwarder:
    """Sends the records in the outbox to each sink, at least once and in order, except that announced ones go first.

    Each sink has its own position, so none waits for another, and calls wait for none, unless the settings say so.
    Positions are in the database: whichever process holds that next, on whatever machine, continues there.

    Parameters
    ----------
    outbox : Outbox
        Makes records, and says when there are new ones.
    reader : OutboxReader
        Reads them.
    sinks : mapping
        The sinks, by their addresses.
    settings : AuditSettings
        How long to wait for them, and what is in the records.
    counter : ForwardCounter
        Counts what becomes of records.
    clock : Clock
        Source of the time.
    """

    def __init__(
        self,
        outbox: Outbox,
        reader: OutboxReader,
        sinks: Mapping[str, AuditSink],
        *,
        settings: AuditSettings,
        counter: ForwardCounter,
        clock: Clock,
    ) -> None:
        self._outbox = outbox
        self._reader = reader
        self._routes = [
            _Route(number, address, sink, settings=settings, counter=counter)
            for number, (address, sink) in enumerate(sinks.items(), start=1)
        ]
        self._settings = settings
        self._clock = clock
        self._has_added = asyncio.Event()
        self._has_moved = asyncio.Event()
        self._late = 0  # the position of the last record whose announcement timed out
        self._is_late = False
        self._revocations: list[Outgoing] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_ending = False
        self._changes = 0  # how many announced changes are under way
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def start(self) -> None:
        """Record the start, and begin to send.

        Raises
        ------
        StorageError
        """
        lost = await self._reader.open([route.key for route in self._routes])
        if lost:
            log.warning("%s were waiting for an audit sink that is no longer configured", counted(lost, "record"))
        kept = self._settings.arguments.value
        when_down = self._settings.when_down.value
        started: JsonObject = {"user": "", "when_down": when_down, "arguments_kept": kept, "version": __version__}
        await self._reader.add(self._outbox.own(AuditEvent.STARTED.value, started))
        self._outbox.follow(self._has_added.set)
        self._has_added.set()
        self._tasks = [
            in_background(self._again_and_again(self._has_added, self._seal), what="sealing records for audit sinks"),
            *(
                in_background(
                    self._again_and_again(route.has_records, partial(self._send, route)),
                    what=f"sending records to {route.sender.name}",
                )
                for route in self._routes
            ),
        ]

    def down(self) -> Sequence[int]:
        """Return the numbers of the sinks that did not accept the last records."""
        return [number for number, route in enumerate(self._routes, start=1) if route.sender.is_down]

    @property
    def stops_calls(self) -> bool:
        """Whether nothing is decided and no call starts now, because a sink accepts no records, or not in time."""
        if self._settings.when_down is not WhenDown.DENY:
            return False
        return self._is_late or any(route.is_stuck for route in self._routes)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Have the end of the service wait until an announced change was made or revoked."""
        self._changes += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._changes -= 1
            if not self._changes:
                self._is_idle.set()
                for route in self._routes:
                    route.refused.clear()

    async def finish_announcements(self) -> None:
        """Refuse announcements from now on, also those that wait for a sink, and wait for changes under way."""
        self._is_ending = True
        self._move()
        try:
            async with asyncio.timeout(self._settings.last_patience):
                await self._is_idle.wait()
        except TimeoutError:
            log.warning("%s still waiting for the database", counted(self._changes, "announced change"))

    async def announce(self, record: Outgoing, request_id: str, *, otherwise: str = NOTHING_DONE) -> int:
        """Send the record of what is about to happen; return its number once all sinks have accepted it.

        Parameters
        ----------
        record : Outgoing
            The record.
        request_id : str
            The request that it is about.
        otherwise : str
            What the error says about the state if it is not accepted.

        Raises
        ------
        AuditError
            The service ends, or a sink does not accept it, so it must not happen; that is recorded, too.
        StorageError
            It could not be stored.
        """
        if self._is_ending:
            raise _ending(request_id, otherwise)
        if not all(route.is_done_with(self._late) for route in self._routes):
            raise _not_accepted(request_id, otherwise)
        deadline = asyncio.get_running_loop().time() + self._settings.patience
        try:
            async with asyncio.timeout_at(deadline):
                await self._until(lambda route: not route.is_stuck)  # otherwise each attempt would leave two records
        except TimeoutError:
            raise _not_accepted(request_id, otherwise) from None
        except _EndingError:
            raise _ending(request_id, otherwise) from None
        sealed = await self._added(record, request_id)
        sequence = sequence_of(sealed)
        try:
            async with asyncio.timeout_at(deadline):
                await self._until(lambda route: route.is_done_with(sealed.position))
        except TimeoutError:
            self._late, self._is_late = max(self._late, sealed.position), True
            self.revoke(sequence, request_id, _NOT_ACCEPTED)
            raise _not_accepted(request_id, otherwise) from None
        except _EndingError:
            self.revoke(sequence, request_id, "the service ends")
            raise _ending(request_id, otherwise) from None
        except asyncio.CancelledError:
            self.revoke(sequence, request_id, _WITHDRAWN)
            raise
        self._is_late = False
        if any(sealed.position in route.refused for route in self._routes):
            self.revoke(sequence, request_id, _NOT_ACCEPTED)
            raise _refused(request_id, otherwise)
        return sequence

    def revoke(self, sequence: int, request_id: str, why: str) -> None:
        """Record that an announced change did not take effect."""
        fields: JsonObject = {"user": "", "request_id": request_id, "revoked": sequence, "reason": why}
        self._revocations.append(self._outbox.own(AuditEvent.REVOKED.value, fields))
        self._has_added.set()

    async def _added(self, record: Outgoing, request_id: str) -> SealedRecord:
        """Store and seal a record. If the caller is cancelled meanwhile, it is revoked."""
        adding = asyncio.ensure_future(self._reader.add_sealed(record))
        until_added = ExitStack()

        def revoke(done: asyncio.Future[SealedRecord]) -> None:
            until_added.close()
            if not done.cancelled() and done.exception() is None:
                self.revoke(sequence_of(done.result()), request_id, _WITHDRAWN)

        try:
            sealed = await asyncio.shield(adding)
        except asyncio.CancelledError:
            until_added.enter_context(self.changing())
            adding.add_done_callback(revoke)
            raise
        for route in self._routes:
            route.urgent.append(sealed)
        self._wake_routes()
        return sealed

    async def _until(self, condition: Callable[[_Route], bool]) -> None:
        """Wait until a condition is true of all routes.

        Raises
        ------
        _EndingError
            The service ends before that.
        """
        while not all(condition(route) for route in self._routes):
            if self._is_ending:
                raise _EndingError
            await self._has_moved.wait()

    def _move(self) -> None:
        """Wake those who wait for a sink."""
        self._has_moved.set()
        self._has_moved = asyncio.Event()

    async def states(self) -> Sequence[SinkState]:
        """Return how far each sink has come.

        Raises
        ------
        StorageError
        """
        backlogs = await self._reader.backlogs([route.key for route in self._routes])
        return [
            self._state(number, route, backlog)
            for number, (route, backlog) in enumerate(zip(self._routes, backlogs, strict=True), start=1)
        ]

    async def aclose(self, *, has_database: bool) -> None:
        """Record the end, and wait briefly for sinks that answer. The next process sends the rest.

        Parameters
        ----------
        has_database : bool
            Whether this process still holds the database; otherwise another one already sends the rest.
        """
        if has_database and self._tasks:
            try:
                await self._add_revocations()
                await self._reader.add(self._outbox.own(AuditEvent.STOPPED.value, {"user": ""}))
                async with asyncio.timeout(self._settings.last_patience):
                    await self._seal()
                    for route in self._routes:
                        if not route.sender.is_away:
                            await route.is_settled.wait()
            except TimeoutError:
                log.info("the next process sends what audit sinks have not received yet")
            except StorageError as error:
                log.warning("the end of this process is not recorded: %s", error)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FAREWELL)
        await self._reader.aclose()

    async def _again_and_again(self, event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
        """Work after each event, and later once more if that fails."""
        has_failed = False
        while True:
            await event.wait()
            event.clear()
            try:
                await work()
            except DatabaseHeldError:
                return
            except Exception as error:
                # The root of a task: its end would be the end of the trail.
                if not has_failed and isinstance(error, StorageError):
                    log.warning("records for audit sinks wait for the database: %s", error)
                elif not has_failed:
                    log.exception("records for audit sinks wait")
                has_failed = True
                event.set()
                await asyncio.sleep(_RETRY)
            else:
                has_failed = False
                await asyncio.sleep(_GATHER)

    async def _seal(self) -> None:
        await self._add_revocations()
        while await self._reader.seal():
            self._wake_routes()
        self._wake_routes()

    async def _add_revocations(self) -> None:
        while self._revocations:
            first = self._revocations.pop(0)
            try:
                await self._reader.add(first)
            except StorageError:
                self._revocations.insert(0, first)
                raise

    def _wake_routes(self) -> None:
        """Tell all routes that there are sealed records."""
        for route in self._routes:
            route.is_settled.clear()
            route.has_all = False
            route.has_records.set()

    async def _send(self, route: _Route) -> None:
        has_refused = False
        while found := await self._reader.next(route.key):
            records = [record for record in found if not route.is_done_with(record.position)]
            written = 0
            while records:
                batch = batch_of(record.line for record in records)
                # Neither a flood of reports nor what the sink refuses of them must keep a call waiting.
                after = records[0 if has_refused else len(batch) - 1].position
                route.urgent = [one for one in route.urgent if not route.is_done_with(one.position)]
                for one in [one for one in route.urgent if one.position > after]:
                    await self._hand_over(route, [one])
                    route.early.add(one.position)
                    self._move()
                    records = [record for record in records if record.position != one.position]
                    batch = batch_of(record.line for record in records)
                done, is_refused = await self._hand_over(route, records[: len(batch)])
                has_refused = has_refused or is_refused
                route.reach(records[done - 1].position)
                self._move()
                await self._reader.sent(route.key, route.accepted)
                written, records = route.accepted, records[done:]
            if written < found[-1].position:  # the rest was sent early, or accepted when that could not be written down
                route.reach(max(route.accepted, found[-1].position))
                await self._reader.sent(route.key, found[-1].position)
        if not route.has_records.is_set():
            route.is_settled.set()
            route.has_all = True
            if all(one.has_all and one.sender.seconds < self._settings.patience for one in self._routes):
                self._is_late = False
            self._move()

    async def _hand_over(self, route: _Route, records: Sequence[SealedRecord]) -> tuple[int, bool]:
        """Send records; return how many at the front are finished, and whether the sink refused the last of these."""

        async def set_aside(_: bytes, error: Exception) -> str:
            return await self._set_aside(route, records[0], error)

        handed = await route.sender.hand_over([record.line for record in records], set_aside)
        done, is_refused = len(handed.lines), handed.refusal is not None
        if is_refused and self._changes:
            route.refused.add(records[done - 1].position)
        return done, is_refused

    async def _set_aside(self, route: _Route, record: SealedRecord, error: Exception) -> str:
        try:
            if await self._has_used_up(route, record):
                log.error(
                    "%s refuses an audit record (%s), and %s of its user are in `agentbox_outbox_refused` already, so"
                    " it is not kept there: %s. Later records are sent",
                    *(route.sender.name, error, MOST_REFUSED_OF_USER, place_of(record.line)),
                )
                return ""
            has_room = await self._reader.set_aside(route.key, record, str(error))
        except StorageError as problem:
            raise OSError(str(problem)) from problem
        if not has_room:
            raise OSError(f"{MOST_REFUSED:,} records that it refuses are in `agentbox_outbox_refused` already")
        return f"the table `agentbox_outbox_refused`, with the position {record.position}"

    async def _has_used_up(self, route: _Route, record: SealedRecord) -> bool:
        """Whether so many records of a user were refused that one more could stop the calls of all."""
        user = user_of(record.line)
        if self._settings.when_down is not WhenDown.DENY or not user:
            return False
        return await self._reader.refused_of(route.key, user) >= MOST_REFUSED_OF_USER

    def _state(self, number: int, route: _Route, backlog: Backlog) -> SinkState:
        # Clocks may go back.
        seconds = 0.0 if backlog.oldest is None else max(0.0, (self._clock.now() - backlog.oldest).total_seconds())
        return SinkState(number=number, is_down=route.sender.is_down, waiting=backlog.records, seconds=seconds)


def _ending(request_id: str, otherwise: str) -> AuditError:
    return AuditError(f"{otherwise}, because the Hub service is being stopped. Try again later.", request_id=request_id)


def _not_accepted(request_id: str, otherwise: str) -> AuditError:
    """Return the error for people, who are not told which sinks there are."""
    return AuditError(
        f"{otherwise}, because an audit sink of the Hub service does not accept records now."
        " Try again later, or ask your administrator.",
        request_id=request_id,
    )


def _refused(request_id: str, otherwise: str) -> AuditError:
    """Return the error about a record that would be refused again."""
    return AuditError(
        f"{otherwise}, because an audit sink of the Hub service did not accept the record of this call. It may"
        " contain something that the sink refuses: ask your administrator.",
        request_id=request_id,
    )


def _key_of(address: str) -> str:
    """Return an identifier of an address for the database, without its secrets."""
    return hashlib.sha256(address.encode()).hexdigest()[:16]
