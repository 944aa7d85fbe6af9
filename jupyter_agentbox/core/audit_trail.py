"""The trail of a server: a record for each thing that happens to a request, in a chain of its own, for a place outside.

Each record has a number and the hash of the one before it. Who receives the records can tell whether one is missing or
was changed, as `check_trail` does; who runs the server can end the trail, and that shows, too: no `STOPPED` ends it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Final

from .approval_json import outcome_to_json
from .approvals import ApprovalRequest, Decision, Status
from .audit import GENESIS
from .calls import LONG, JsonObject, JsonValue, Omission, canonical_json, is_long
from .redaction import Redaction
from .site_policy import SiteAudit
from .times import json_time

#: The format of the records.
SCHEMA: Final = "jupyter-agentbox/audit/1"
#: Bytes of the longest record: a datagram has room for it, and for what syslog puts before it.
LONGEST_RECORD: Final = 60_000
#: Bytes of a record's number, hashes and schema.
_PLACE: Final = 500
#: Characters of an error or a reason that a record has.
_LONGEST_TEXT: Final = 4000
#: Characters that are left of each text in a record that would be too long, until it is not; a digest has 64.
_SHORTER_TEXTS: Final = (1000, 200, 64)


class AuditEvent(str, Enum):
    """What a record is about."""

    STARTED = "started"
    """The server began; the first record of its chain."""

    ASKED = "asked"
    """A call waits for a person."""

    CHANGED = "changed"
    """It goes on waiting: longer, or with the approval of one of several persons."""

    DECIDED = "decided"
    """A person, a lasting answer or a rule allowed or refused it. Of one that is allowed: before it runs."""

    ANSWERED = "answered"
    """A question that its server asked was answered."""

    ENDED = "ended"
    """It ran to its end, or ended without an answer."""

    REVOKED = "revoked"
    """What an earlier record said did not come about: the call did not run on its account."""

    CONFIGURED = "configured"
    """Rules, an MCP server or a lasting answer were changed, by a person or in a file."""

    GRANT_ENDED = "grant_ended"
    """Lasting answers hold no more."""

    STOPPED = "stopped"
    """The server was stopped; the last record of its chain."""


class ArgumentsKept(str, Enum):
    """What records say of arguments."""

    FULL = "full"
    """All of them, but not long ones."""

    REDACTED = "redacted"
    """All but secrets and long ones."""

    DIGEST = "digest"
    """Nothing but the call's digest."""


class WhenDown(str, Enum):
    """What becomes of calls while a place for records does not take them."""

    DENY = "deny"
    """No call runs before every place has its record."""

    SPOOL = "spool"
    """Records are kept on disk until it does; calls run once theirs is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Where records go, and what they say.

    Parameters
    ----------
    sinks : tuple of str
        The addresses of places for records.
    when_down : WhenDown
        What becomes of calls while one does not take them.
    arguments : ArgumentsKept
        What records say of arguments.
    token_file : str
        The file that has the bearer token for addresses of HTTP; empty for none.
    spool : str
        The directory in which records wait; empty for that of the user's data.
    spool_bytes : int
        How much may wait for each place.
    patience : float
        Seconds that a call waits for its record to be taken.
    last_patience : float
        Seconds that a server that is being stopped waits for all records to be taken.
    pause : float
        Seconds before a place that did not take records gets them again; then twice as many, and so on.
    """

    sinks: tuple[str, ...] = ()
    when_down: WhenDown = WhenDown.SPOOL
    arguments: ArgumentsKept = ArgumentsKept.REDACTED
    token_file: str = ""
    spool: str = ""
    spool_bytes: int = 50_000_000
    patience: float = 5.0
    last_patience: float = 3.0
    pause: float = 0.5

    def with_site(self, site: SiteAudit) -> AuditSettings:
        """Return the settings with the site's places before all others, and what the site says of the rest."""
        return replace(
            self,
            sinks=tuple(dict.fromkeys((*site.sinks, *self.sinks))),
            when_down=WhenDown(site.when_down) if site.when_down else self.when_down,
            arguments=ArgumentsKept(site.arguments) if site.arguments else self.arguments,
            token_file=site.token_file or self.token_file,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a chain stands: how many records it has, and the hash of the last."""

    sequence: int = 0
    hash: str = GENESIS

    def then(self, fields: Mapping[str, JsonValue]) -> tuple[Link, bytes]:
        """Return where the chain stands with one record more, and that record as a line of JSON."""
        place: JsonObject = {"schema": SCHEMA, "sequence": self.sequence + 1, "previous": self.hash}
        record: JsonObject = {**_short_enough(fields), **place}
        digest = _hash(record)
        return Link(sequence=self.sequence + 1, hash=digest), _line({**record, "hash": digest})


def _line(record: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _short_enough(fields: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return what a record says, with shorter texts if it is too long: a place that refuses one gets none after it."""
    said = fields
    for limit in _SHORTER_TEXTS:
        if _fits(said):
            break
        said = {name: _shorter(value, limit) for name, value in fields.items()} | {"shortened": True}
    return said if _fits(said) else {name: value for name, value in said.items() if not isinstance(value, dict | list)}


def _fits(said: Mapping[str, JsonValue]) -> bool:
    return len(_line(said)) < LONGEST_RECORD - _PLACE


def _shorter(value: JsonValue, limit: int) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= limit else f"{value[:limit]}…"
    if isinstance(value, dict):
        return {name: _shorter(inner, limit) for name, inner in value.items()}
    return [_shorter(inner, limit) for inner in value] if isinstance(value, list) else value


def _hash(record: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(canonical_json(dict(record)).encode("utf-8", "surrogatepass")).hexdigest()


def event_of(request: ApprovalRequest, before: Status) -> AuditEvent:
    """Return what happened to a request that had another status before, or the same."""
    if request.status is Status.PENDING:
        return AuditEvent.CHANGED
    if before is Status.PENDING and request.status in (Status.APPROVED, Status.REJECTED):
        return AuditEvent.DECIDED
    return AuditEvent.ANSWERED if request.is_open else AuditEvent.ENDED


def request_fields(request: ApprovalRequest, arguments: ArgumentsKept, redaction: Redaction) -> JsonObject:
    """Return what a record says of a request.

    Parameters
    ----------
    request : ApprovalRequest
        As it stands now, with the arguments that were asked for.
    arguments : ArgumentsKept
        What is said of them.
    redaction : Redaction
        Which values are secrets.
    """
    call_digest, runs = request.call.digest, request.effective_call.digest
    if arguments is not ArgumentsKept.FULL:
        request = redaction.request(request)
    call, origin, evaluation, outcome = request.call, request.call.origin, request.evaluation, request.outcome
    decision = request.decision
    said: JsonObject = {}
    if arguments is not ArgumentsKept.DIGEST:
        said = _arguments("arguments", call.arguments)
        if decision is not None and decision.arguments is not None:
            said |= _arguments("edited_arguments", decision.arguments)
    return {
        "request_id": request.id,
        "status": request.status.value,
        "server": call.server,
        "tool": call.tool,
        "tool_digest": request.tool.digest,
        "call_digest": call_digest,
        "running_digest": runs,
        **said,
        "kernel_id": origin.kernel_id,
        "notebook_path": origin.notebook_path,
        "cell_id": origin.cell_id,
        "thread_id": origin.thread_id,
        "turn_id": origin.turn_id,
        "isolation": origin.isolation.value,
        "person": origin.person,
        "asked_by": origin.asked_by,
        "askers": [{**asker.to_json()} for asker in origin.askers],
        "created_at": json_time(request.created_at),
        "expires_at": json_time(request.expires_at),
        "ended_at": json_time(request.ended_at),
        "extended_by": request.extended_by or None,
        "evaluation": evaluation.to_json(),
        "grant": evaluation.grant.id if evaluation.grant is not None else None,
        "votes": [_decision(vote) for vote in request.votes],
        "decision": None if decision is None else _decision(decision),
        "outcome": None if outcome is None else {**outcome_to_json(outcome), "error": outcome.error[:_LONGEST_TEXT]},
    }


def _decision(decision: Decision) -> JsonObject:
    reviewer = decision.reviewer
    return {
        "answer": decision.answer.value,
        "reviewer": reviewer.name,
        "reviewer_kind": reviewer.kind.value,
        "via": reviewer.via.value,
        "credential": reviewer.credential or None,
        "hub_server": reviewer.hub_server or None,
        "reason": decision.reason[:_LONGEST_TEXT],
        "decided_at": json_time(decision.decided_at),
        "has_edited": decision.arguments is not None,
        "grant": None if decision.grant is None else decision.grant.id,
        "rule": None if decision.rule is None else decision.rule.named(),
    }


def _arguments(name: str, given: Mapping[str, JsonValue]) -> JsonObject:
    """Return arguments, or how long they are: a record fits into a datagram."""
    if not is_long(given) and len(_line(given)) < LONG:
        return {name: dict(given)}
    return {name: None, f"{name}_size": Omission.of(canonical_json(dict(given))).size}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What was found of one server's chain.

    Parameters
    ----------
    id : str
        The chain's.
    records : int
        Different records.
    last : int
        The number of the last.
    missing : tuple of int
        The numbers of the first records that are missing before that.
    problem : str
        Why it is not sound; empty if it is.
    is_ended : bool
        Whether the server's own last record is there.
    """

    id: str
    records: int = 0
    last: int = 0
    missing: tuple[int, ...] = ()
    problem: str = ""
    is_ended: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing and nothing was changed, as far as it goes."""
        return not self.missing and not self.problem


@dataclass(slots=True)
class _Found:
    """The records of one chain so far: hash, previous hash and event of each."""

    records: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    problem: str = ""


#: Missing records that are named.
_NAMED: Final = 20


def check_trail(lines: Iterable[str]) -> tuple[tuple[Chain, ...], int]:
    """Check records that were received, in any order, some perhaps twice.

    Parameters
    ----------
    lines : iterable of str
        One record each.

    Returns
    -------
    tuple of Chain, and int
        What was found of each chain, and how many lines are not records.
    """
    found: dict[str, _Found] = {}
    strange = 0
    for number, line in enumerate(lines, start=1):
        record = _read(line)
        if record is None:
            strange += bool(line.strip())
            continue
        _add(found.setdefault(str(record.get("chain")), _Found()), record, number)
    return tuple(_chain(id, one) for id, one in found.items()), strange


def _read(line: str) -> JsonObject | None:
    try:
        record = json.loads(line, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None


def read_record(line: str) -> JsonObject | None:
    """Return what a record says, its hash among it; ``None`` if it is none, or was changed since it was sealed."""
    record = _read(line)
    if record is None:
        return None
    try:
        is_sound = record.get("hash") == _hash({name: value for name, value in record.items() if name != "hash"})
    except (TypeError, ValueError):
        is_sound = False
    return record if is_sound else None


def _without_repetition(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    """Refuse a key that is there twice: the hash would be that of the last, and others read the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _add(found: _Found, record: JsonObject, number: int) -> None:
    given = record.pop("hash", None)
    sequence = record.get("sequence")
    try:
        is_sound = given == _hash(record) and type(sequence) is int and sequence > 0
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound or not isinstance(sequence, int):
        found.problem = found.problem or f"line {number} was changed: its hash is another"
        return
    entry = str(given), str(record.get("previous")), str(record.get("event"))
    if found.records.setdefault(sequence, entry) != entry:
        found.problem = found.problem or f"line {number}: there are two records {sequence}"


def _chain(id: str, found: _Found) -> Chain:
    records = found.records
    last = max(records, default=0)
    chain = Chain(
        id=id,
        records=len(records),
        last=last,
        missing=tuple(islice(_gaps(sorted(records)), _NAMED)),
        problem=found.problem,
        is_ended=last > 0 and records[last][2] == AuditEvent.STOPPED.value,
    )
    broken = next(
        (n for n, (_, previous, _) in sorted(records.items()) if previous != _before(records, n, previous)), None
    )
    return chain if broken is None or chain.problem else replace(chain, problem=f"record {broken} follows another one")


def _gaps(numbers: Iterable[int]) -> Iterator[int]:
    """Yield the numbers that are missing; there can be more of them than anybody counts."""
    before = 0
    for number in numbers:
        yield from range(before + 1, number)
        before = number


def _before(records: Mapping[int, tuple[str, str, str]], number: int, claimed: str) -> str:
    """Return the hash of the record before; what is claimed if that is missing."""
    if number == 1:
        return GENESIS
    return records[number - 1][0] if number - 1 in records else claimed


def record_time(at: datetime) -> str:
    """Return the time of a record, to the microsecond."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
