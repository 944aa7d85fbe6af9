"""The audit trail of a server: a hash chain of records for audit sinks, one per event of a request.

Each record has a number and the hash of the previous one, so recipients can detect missing or changed records, as
`check_trail` does. Whoever runs the server can cut the trail short, but then it does not end with `STOPPED`.
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
from .approvals import ApprovalRequest, Decision, OutcomeState, Status
from .audit import GENESIS
from .calls import LONG, JsonObject, JsonValue, Omission, canonical_json, is_long
from .redaction import SECRET_NAMES, Redaction
from .site_policy import SiteAudit
from .text import encodable
from .times import json_time
from .unique_keys import with_unique_keys

#: The format of the records.
SCHEMA: Final = "jupyter-agentbox/audit/1"
#: The hash of what a Hub service left of a record. Only records from which it removed secrets have one.
RESEALED: Final = "redacted_hash"
#: The fields that say where a record is in its chain.
_LINKS: Final = ("schema", "sequence", "previous", "hash")
#: Maximum size of a record in bytes: it fits into a datagram with its syslog header.
LONGEST_RECORD: Final = 60_000
#: Bytes reserved for a record's number, hashes and schema.
_PLACE: Final = 500
#: Maximum length of an error or reason in a record, in characters.
_LONGEST_TEXT: Final = 4000
#: Lengths to which texts of an oversized record are cut, in turn, until it fits; a digest has 64 characters.
_SHORTER_TEXTS: Final = (1000, 200, 64)


class AuditEvent(str, Enum):
    """The event that a record is about."""

    STARTED = "started"
    """The server started; the first record of its chain."""

    ASKED = "asked"
    """A call is waiting for a person."""

    CHANGED = "changed"
    """It is still pending: extended, or with one of several required approvals."""

    DECIDED = "decided"
    """A person, a grant or a rule allowed or refused it. If allowed: before it runs."""

    ANSWERED = "answered"
    """A question that its server asked was answered."""

    ENDED = "ended"
    """It ran to its end, or ended without an answer."""

    REVOKED = "revoked"
    """An earlier record did not take effect: the call did not run because of it."""

    CONFIGURED = "configured"
    """Rules, an MCP server or a grant were changed, by a person or in a file."""

    GRANT_ENDED = "grant_ended"
    """Grants ended."""

    STOPPED = "stopped"
    """The server stopped; the last record of its chain."""


class ArgumentsKept(str, Enum):
    """Which arguments records contain."""

    FULL = "full"
    """All except long ones."""

    REDACTED = "redacted"
    """All except secrets and long ones."""

    DIGEST = "digest"
    """None, only the call's digest."""


class WhenDown(str, Enum):
    """What happens to calls while an audit sink is down."""

    DENY = "deny"
    """No call runs until every sink has its record."""

    SPOOL = "spool"
    """Records are spooled to disk until the sink is back; calls run once their records are spooled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Audit sinks, and the content of records.

    Parameters
    ----------
    sinks : tuple of str
        The sinks' addresses.
    when_down : WhenDown
        What happens to calls while a sink is down.
    arguments : ArgumentsKept
        Which arguments records contain.
    token_file : str
        File with the bearer token for HTTP sinks; empty for none.
    secret_names : tuple of str
        Patterns of names whose values the records of a user's server omit.
    spool : str
        Spool directory; empty for the one in the user's data directory.
    spool_bytes : int
        Maximum spool size per sink, in bytes.
    patience : float
        How long a call waits for its record to be accepted, in seconds.
    last_patience : float
        How long a stopping server waits for all records to be accepted, in seconds.
    pause : float
        Delay before the first retry of a failed sink, in seconds; doubled with each retry.
    """

    sinks: tuple[str, ...] = ()
    when_down: WhenDown = WhenDown.SPOOL
    arguments: ArgumentsKept = ArgumentsKept.REDACTED
    token_file: str = ""
    secret_names: tuple[str, ...] = SECRET_NAMES
    spool: str = ""
    spool_bytes: int = 50_000_000
    patience: float = 5.0
    last_patience: float = 3.0
    pause: float = 0.5

    def with_site(self, site: SiteAudit) -> tuple[AuditSettings, ...]:
        """Return the settings of each chain of records: of the site's sinks, and of others that get different records.

        The site's settings override the user's. What the records for its sinks contain is not up to the user, even
        where the site says nothing: then they have the arguments without what the default names mark as secret.
        """
        own = replace(
            self,
            sinks=tuple(dict.fromkeys(sink for sink in self.sinks if sink not in site.sinks)),
            when_down=WhenDown(site.when_down) if site.when_down else self.when_down,
            arguments=ArgumentsKept(site.arguments) if site.arguments else self.arguments,
            token_file=site.token_file or self.token_file,
        )
        sites = replace(
            own,
            sinks=site.sinks,
            arguments=ArgumentsKept(site.arguments) if site.arguments else ArgumentsKept.REDACTED,
            secret_names=SECRET_NAMES if site.secret_names is None else site.secret_names,
        )
        if replace(sites, sinks=own.sinks) == own:
            sites, own = replace(own, sinks=(*site.sinks, *own.sinks)), replace(own, sinks=())
        return tuple(settings for settings in (sites, own) if settings.sinks)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEnd:
    """The state of a chain: its number of records, and the hash of the last."""

    sequence: int = 0
    hash: str = GENESIS

    def then(self, fields: Mapping[str, JsonValue]) -> tuple[TrailEnd, bytes]:
        """Return the state after one more record, and that record as a line of JSON."""
        place: JsonObject = {"schema": SCHEMA, "sequence": self.sequence + 1, "previous": self.hash}
        record: JsonObject = {**_unicode(_short_enough(fields)), **place}
        digest = _hash(record)
        return TrailEnd(sequence=self.sequence + 1, hash=digest), _line({**record, "hash": digest})


def sealed_again(record: Mapping[str, JsonValue]) -> bytes:
    """Return a record from which a Hub service removed secrets, as a line of JSON with a hash of what is left.

    Its own hash stays, as the one that the next record of its chain names.
    """
    place = {name: record[name] for name in _LINKS if name in record}
    left: JsonObject = {**_short_enough({k: v for k, v in record.items() if k not in (*_LINKS, RESEALED)}), **place}
    return _line({**left, RESEALED: _hash(left)})


def _unicode(fields: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return a record's fields with a replacement for each lone surrogate.

    Strict receivers refuse a lone one, with everything that is sent together with it. A pair of two would be one
    character once the record is read, which then no longer matches its hash.
    """
    said = json.dumps(fields, ensure_ascii=False)
    whole = encodable(said)
    if whole == said:
        return fields
    found: JsonObject = json.loads(whole)
    return found


def _line(record: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _short_enough(fields: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return a record's fields, truncated to the maximum size: a sink that refuses one record gets none after it."""
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


def first_event_of(request: ApprovalRequest) -> AuditEvent:
    """Return the event for a new request. One that is approved and has ended represents a change that was made."""
    if request.status is Status.PENDING:
        return AuditEvent.ASKED
    is_change = request.status is Status.APPROVED and not request.is_open
    return AuditEvent.CONFIGURED if is_change else AuditEvent.DECIDED


def event_of(request: ApprovalRequest, before: Status, outcome: OutcomeState | None) -> AuditEvent:
    """Return the event for a request whose previous status and outcome state are given."""
    if request.status is Status.PENDING:
        return AuditEvent.CHANGED
    if before is Status.PENDING and request.status in (Status.APPROVED, Status.REJECTED):
        return AuditEvent.DECIDED
    if outcome is None and request.outcome_state is OutcomeState.RUNNING:
        return AuditEvent.DECIDED
    return AuditEvent.ANSWERED if request.is_open else AuditEvent.ENDED


def has_long_arguments(request: ApprovalRequest) -> bool:
    """Whether `request_fields` takes long."""
    edited = None if request.decision is None else request.decision.arguments
    return is_long(request.call.arguments) or (edited is not None and is_long(edited))


def request_fields(request: ApprovalRequest, arguments: ArgumentsKept, redaction: Redaction) -> JsonObject:
    """Return a record's fields for a request.

    Parameters
    ----------
    request : ApprovalRequest
        The request as it is now, with the requested arguments.
    arguments : ArgumentsKept
        Which arguments to include.
    redaction : Redaction
        Detects secrets.
    """
    call_digest, runs = request.call.digest, request.effective_call.digest
    if arguments is not ArgumentsKept.FULL:
        request = _redacted(request, redaction)
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
        "has_own_settings": origin.has_own_settings,
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


def _redacted(request: ApprovalRequest, redaction: Redaction) -> ApprovalRequest:
    """Return a request without secrets, but with its long arguments, since a record contains only their size."""
    call, decision = request.call, request.decision
    secrets = redaction.secrets(call.arguments)
    edited = None if decision is None else decision.arguments
    if decision is not None and edited is not None and is_long(edited):
        short = replace(request, decision=replace(decision, arguments=None))
        kept = redaction.answer(short, secrets | redaction.secrets(edited))
        kept = replace(kept, decision=replace(kept.decision or decision, arguments=edited))
    else:
        kept = redaction.answer(request, secrets)
    return kept if is_long(call.arguments) else replace(kept, call=redaction.call(call)[0])


def _decision(decision: Decision) -> JsonObject:
    reviewer = decision.reviewer
    return {
        "answer": decision.answer.value,
        "reviewer": reviewer.name,
        "reviewer_kind": reviewer.kind.value,
        "via": reviewer.via.value,
        "credential": reviewer.credential or None,
        "hub_server": reviewer.hub_server or None,
        "token_note": reviewer.token_note or None,
        "reason": decision.reason[:_LONGEST_TEXT],
        "decided_at": json_time(decision.decided_at),
        "has_edited": decision.arguments is not None,
        "grant": None if decision.grant is None else decision.grant.id,
        "rule": None if decision.rule is None else decision.rule.named(),
    }


def _arguments(name: str, given: Mapping[str, JsonValue]) -> JsonObject:
    """Return the arguments, or their size if they do not fit into a datagram."""
    if not is_long(given) and len(_line(given)) < LONG:
        return {name: dict(given)}
    return {name: None, f"{name}_size": Omission.of(canonical_json(dict(given))).size}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The result of checking one server's chain.

    Parameters
    ----------
    id : str
        The chain's id.
    records : int
        Number of distinct records.
    last : int
        Number of the last record.
    missing : tuple of int
        Numbers of the first missing records before that.
    problem : str
        Why the chain is invalid; empty if it is valid.
    is_ended : bool
        Whether the server's `STOPPED` record is there.
    redacted : int
        Number of records from which a Hub service removed secrets. The chain covers their place, but not their content.
    """

    id: str
    records: int = 0
    last: int = 0
    missing: tuple[int, ...] = ()
    problem: str = ""
    is_ended: bool = False
    redacted: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether no record is missing or changed, up to the last one."""
        return not self.missing and not self.problem


@dataclass(slots=True)
class _Found:
    """The records of one chain so far: hash, previous hash and event of each."""

    records: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    redacted: set[int] = field(default_factory=set)
    problem: str = ""


#: How many missing records are listed.
_NAMED: Final = 20


def check_trail(lines: Iterable[str]) -> tuple[tuple[Chain, ...], int]:
    """Verify received records, in any order, possibly with duplicates.

    Parameters
    ----------
    lines : iterable of str
        One record per line.

    Returns
    -------
    tuple of Chain, and int
        The result for each chain, and the number of lines that are not records.
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
        record = json.loads(line, object_pairs_hook=with_unique_keys)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None


def read_record(line: str) -> JsonObject | None:
    """Return a record's fields, including its hash; ``None`` if it is invalid, or was changed after it was sealed."""
    record = _read(line)
    return record if record is not None and _is_covered(record, by="hash") else None


def _is_covered(record: JsonObject, *, by: str) -> bool:
    """Whether the field with this name is the hash of all others."""
    try:
        return record.get(by) == _hash({name: value for name, value in record.items() if name != by})
    except (TypeError, ValueError):
        return False


def _add(found: _Found, record: JsonObject, number: int) -> None:
    sequence, is_redacted = record.get("sequence"), RESEALED in record
    is_sound = _is_covered(record, by=RESEALED if is_redacted else "hash")
    if not is_sound or type(sequence) is not int or sequence < 1:
        found.problem = found.problem or f"line {number} was changed: its hash is another"
        return
    if is_redacted:
        found.redacted.add(sequence)
    entry = str(record.get("hash")), str(record.get("previous")), str(record.get("event"))
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
        redacted=len(found.redacted),
    )
    broken = next(
        (n for n, (_, previous, _) in sorted(records.items()) if previous != _before(records, n, previous)), None
    )
    return chain if broken is None or chain.problem else replace(chain, problem=f"record {broken} follows another one")


def _gaps(numbers: Iterable[int]) -> Iterator[int]:
    """Yield the missing numbers, lazily: there may be very many."""
    before = 0
    for number in numbers:
        yield from range(before + 1, number)
        before = number


def _before(records: Mapping[int, tuple[str, str, str]], number: int, claimed: str) -> str:
    """Return the previous record's hash, or the claimed one if that record is missing."""
    if number == 1:
        return GENESIS
    return records[number - 1][0] if number - 1 in records else claimed


def record_time(at: datetime) -> str:
    """Return the timestamp of a record, with microseconds."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
