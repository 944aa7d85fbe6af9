"""Statements that find records, and the search for words and approvers, which reads some records at a time.

Each kind of search has an index in the order of the list: the index answers it, and only the records of the page are
read. No index contains words, or all who approved. A search for these goes back through the records until its page is
full or its time is over, and the next page continues from there.
"""

from __future__ import annotations

import re
import string
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.sql.elements import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.audit_search import AuditPage, AuditQuery
from jupyter_agentbox.core.globs import problem_of_pattern
from jupyter_agentbox.core.pagination import Cursor, microseconds
from jupyter_agentbox.core.reviewers import meanings_of

from .json_text import text_key
from .rows import SEARCHED, search_key
from .schema import HAS_TIME, approvals

#: Reads the requests of some rows; damaged ones are left out.
Read: TypeAlias = Callable[[Sequence[Any]], Sequence[ApprovalRequest]]

#: How many records are looked at in one step of a search for words.
_STEP: Final = 500
#: Seconds after which a page of a search for words ends.
_PATIENCE: Final = 0.05
#: JSON's `null` as displayed in a call.
_NONE: Final = "none"
_WILD: Final = re.compile(r"[*?\[]")
#: The sets of a pattern, and its other characters.
_PIECES: Final = re.compile(r"\[!?\]?[^]]*\]|.", re.DOTALL)
#: What SQLite's `lower` does, whatever the locale.
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_RECORD: Final = (*("id", "created_at", "status", "tool_digest", "request", "progress"),)
#: The pattern of a user's name that Jupyter makes up.
_MADE_UP: Final = "[0-9a-f]" * 32
#: Statuses that a rule gives without a person.
_RULED: Final = (Status.APPROVED.value, Status.REJECTED.value)


def search(connection: Connection, query: AuditQuery, read: Read) -> AuditPage:
    """Return a page of records, newest first.

    Raises
    ------
    ValueError
        If the cursor is invalid.
    """
    statement = _keys(query, connection.dialect.name)
    if not query.reads_records:
        return _page(connection, statement, query, read)
    return _page_of_read(connection, statement, query, read)


def _page(connection: Connection, statement: Select[Any], query: AuditQuery, read: Read) -> AuditPage:
    keys = connection.execute(statement.limit(query.page_size + 1)).all()
    page = keys[: query.page_size]
    records = read(_rows(connection, page))
    return _made(records, page[-1] if len(keys) > len(page) else None)


def _page_of_read(connection: Connection, statement: Select[Any], query: AuditQuery, read: Read) -> AuditPage:
    found: list[ApprovalRequest] = []
    ends_at = time.monotonic() + _PATIENCE
    may_have = _may_match(query, connection.dialect.name)
    after: Any = None
    while True:
        step = statement if after is None else statement.where(_is_before(after.created_at, after.id))
        keys = connection.execute(step.limit(_STEP)).all()
        for request in read(_rows(connection, keys, *may_have)):
            if query.accepts(request):
                found.append(request)
                if len(found) == query.page_size:
                    return _made(found, _Key(request))
        if len(keys) < _STEP:
            return _made(found, None)
        after = keys[-1]
        if time.monotonic() >= ends_at:
            return _made(found, after)


class _Key:
    """The position of a request in the list."""

    def __init__(self, request: ApprovalRequest) -> None:
        self.id = text_key(request.id)
        self.created_at = microseconds(request.created_at)


def _made(records: Sequence[ApprovalRequest], last: Any) -> AuditPage:
    if last is None:
        return AuditPage(records=tuple(records))
    until = _EPOCH + timedelta(microseconds=last.created_at)
    cursor = Cursor(created_at=last.created_at, id=last.id).encode()
    return AuditPage(records=tuple(records), next=cursor, searched_until=until)


def _rows(connection: Connection, keys: Sequence[Any], *conditions: ColumnElement[bool]) -> Sequence[Any]:
    columns = approvals.c
    statement = select(*(columns[name] for name in _RECORD)).where(columns.id.in_([key.id for key in keys]))
    rows = connection.execute(statement.where(*conditions)).all()
    return sorted(rows, key=lambda row: (row.created_at, row.id), reverse=True)


def _keys(query: AuditQuery, dialect: str) -> Select[Any]:
    """Return the statement for the positions of all records that match, newest first."""
    columns = approvals.c
    statement = select(columns.id, columns.created_at).where(HAS_TIME, *_conditions(query, dialect))
    if query.since is not None:
        statement = statement.where(columns.created_at >= microseconds(query.since))
    if query.until is not None:
        statement = statement.where(columns.created_at < microseconds(query.until))
    if query.kernel_id is not None:
        statement = statement.where(columns.kernel_id == text_key(query.kernel_id))
    if query.notebook_path is not None:
        statement = statement.where(columns.notebook_path == text_key(query.notebook_path))
    if query.cursor is not None:
        after = Cursor.decode(query.cursor)
        statement = statement.where(_is_before(after.created_at, text_key(after.id)))
    return statement.order_by(columns.created_at.desc(), columns.id.desc())


def _is_before(created_at: int, id: str) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = tuple_(approvals.c.created_at, approvals.c.id) < tuple_(
        literal(created_at), literal(id)
    )
    return condition


def _conditions(query: AuditQuery, dialect: str) -> list[ColumnElement[bool]]:
    def column(name: str) -> ColumnElement[Any]:
        found: ColumnElement[Any] = approvals.c[name]
        # SQLite would take an index of this column alone, and read all of its records.
        return UnaryExpression(found, operator=custom_op("+")) if dialect == "sqlite" else found

    conditions: list[ColumnElement[bool]] = []
    if query.server is not None:
        conditions.append(_is_called(column("server"), query.server, dialect))
    if query.tool is not None:
        conditions.append(_is_tool(query.tool, column, dialect))
    if query.thread_id is not None:
        conditions.append(column("thread_id") == search_key(query.thread_id))
    if query.answers:
        conditions.append(column("answer").in_([answer.value for answer in query.answers]))
    if query.statuses:
        conditions.append(column("status").in_([status.value for status in query.statuses]))
    if query.outcomes:
        conditions.append(column("outcome_state").in_([outcome.value for outcome in query.outcomes]))
    if query.reviewer == "rule":
        conditions.append(column("answer").is_(None) & column("status").in_(_RULED))
    elif query.reviewer is not None:
        conditions.append(_decided_by(query.reviewer[:SEARCHED], column, dialect))
    return conditions


def _decided_by(who: str, column: Callable[[str], ColumnElement[Any]], dialect: str) -> ColumnElement[bool]:
    """Return the condition that a text is a part of the words for a reviewer, a way of answering, or a user's name."""
    shown, via = _shown_name(column, dialect), column("via")
    said = [
        and_(via == way.value if way is not None else true(), _named(shown, _containing(part), dialect))
        for way, part in meanings_of(who)
    ]
    return or_(via == who, column("reviewer") == search_key(who), *said)


def _shown_name(column: Callable[[str], ColumnElement[Any]], dialect: str) -> ColumnElement[Any]:
    """Return the name under which a reviewer is shown, with the user's name if people chose both."""
    user, name = column("reviewer"), column("reviewer_name")
    made_up = func.coalesce(name, literal("user ").concat(func.substr(user, 1, 6)))
    chosen = func.coalesce(name.concat(" (").concat(user).concat(")"), user)
    return case((_named(user, _MADE_UP, dialect), made_up), else_=chosen)


def _containing(part: str) -> str:
    """Return the pattern of texts that contain a part, ignoring case."""
    return f"*{''.join(_letter(one) for one in part)}*"


def _letter(letter: str) -> str:
    cases = sorted({one for one in (letter, letter.lower(), letter.upper()) if len(one) == 1})
    return f"[{''.join(cases)}]" if len(cases) > 1 or letter in "*?[" else letter


def _is_tool(pattern: str, column: Callable[[str], ColumnElement[Any]], dialect: str) -> ColumnElement[bool]:
    """Return the condition that a tool's name, or `server.tool` if the pattern has a dot, matches in any case."""
    is_named = _is_called(column("tool"), pattern, dialect)
    if "." not in pattern:
        return is_named
    qualified = column("server").concat(".").concat(column("tool"))
    if _WILD.search(pattern) is None:
        qualified = func.substr(qualified, 1, SEARCHED)
    return or_(is_named, _is_called(qualified, pattern, dialect))


def _is_called(column: ColumnElement[Any], pattern: str, dialect: str) -> ColumnElement[bool]:
    """Return the condition that a name matches a pattern, ignoring case; SQLite ignores that of ASCII letters only."""
    if _WILD.search(pattern) is None:
        return func.lower(column) == func.lower(search_key(pattern))
    key = text_key(pattern)
    if dialect != "sqlite":
        return column.op("~*", is_comparison=True)(_regex(key))
    return func.lower(column).op("GLOB", is_comparison=True)(_glob(_in_lower_case(key)))


def _in_lower_case(pattern: str) -> str:
    """Return a pattern with small ASCII letters; a set such as `[Z-a]`, which would be upside down, stays as it is."""
    lower = ((piece, piece.translate(_LOWER)) for piece in _PIECES.findall(pattern))
    return "".join(piece if problem_of_pattern(small) else small for piece, small in lower)


def _named(column: ColumnElement[Any], pattern: str, dialect: str) -> ColumnElement[bool]:
    """Return the condition that a name matches a pattern."""
    if _WILD.search(pattern) is None:
        return column == search_key(pattern)
    key = text_key(pattern)
    if dialect == "sqlite":
        return column.op("GLOB", is_comparison=True)(_glob(key))
    return column.op("~", is_comparison=True)(_regex(key))


def _glob(key: str) -> str:
    """Return a pattern as SQLite's `GLOB` has it."""
    return key.replace("[!", "[^")


def _regex(pattern: str) -> str:
    """Return a pattern as a regular expression for PostgreSQL."""
    pieces = _PIECES.findall(pattern)
    known = {"*": ".*", "?": "."}
    return "^" + "".join(known.get(one) or (_set(one) if len(one) > 1 else re.escape(one)) for one in pieces) + "$"


def _set(piece: str) -> str:
    members = piece[1:].replace("\\", "\\\\").replace("[", "\\[")
    return "[" + members.replace("!", "^", 1 if piece[1] == "!" else 0)


def _may_match(query: AuditQuery, dialect: str) -> Sequence[ColumnElement[bool]]:
    """Return conditions that hold for every record that `query` accepts, and for few others."""
    conditions = [_may_have(word, dialect) for word in query.words]
    if query.answered_by is not None:
        is_decider = approvals.c.reviewer == search_key(query.answered_by)
        conditions.append(or_(is_decider, _may_have(query.answered_by, dialect)))
    return conditions


def _may_have(word: str, dialect: str) -> ColumnElement[bool]:
    """Return a condition that holds for every record that contains a word, and for few others.

    It searches for the longest part of the word that JSON does not escape, even if the word is from a call as lists
    show it. It ignores the case of ASCII letters only: `ß` for `ss` is not found.
    """
    pieces = re.findall(r"[!#$%&*+\--<>-\[\]-~]+", word)
    piece = max((one for one in pieces if one != _NONE), key=len, default="").lower()
    return or_(*(_has(approvals.c[name], piece, dialect) for name in ("request", "progress")))


def _has(column: ColumnElement[Any], piece: str, dialect: str) -> ColumnElement[bool]:
    if dialect == "sqlite":
        return func.instr(func.lower(cast(column, Text)), piece) > 0
    return func.strpos(func.lower(func.encode(cast(column, LargeBinary), "escape")), piece.replace("\\", "")) > 0
