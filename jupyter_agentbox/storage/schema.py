"""The tables, and the steps that bring an older database up to date.

`MIGRATIONS` is authoritative: a new database runs all of its steps, an older one those that it lacks. A released step
is never edited. The `Table` objects describe the result of all steps, for building statements; a test compares the two.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, LargeBinary, MetaData, Table, Text, inspect, text

from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.exceptions import StorageError

#: Step n takes the database from version n - 1 to n. ``{blob}`` is the dialect's type of byte strings, ``{number}`` its
#: type of a key that counts up. `backfill` brings the rows of before up to date.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "CREATE TABLE agentbox_tools (digest TEXT NOT NULL PRIMARY KEY, description {blob} NOT NULL)",
        """
        CREATE TABLE agentbox_approvals (
            id TEXT NOT NULL PRIMARY KEY,
            created_at BIGINT NOT NULL,
            status TEXT NOT NULL,
            outcome_state TEXT,
            owner TEXT,
            kernel_id TEXT,
            notebook_path TEXT,
            tool_digest TEXT NOT NULL REFERENCES agentbox_tools (digest),
            request {blob} NOT NULL,
            progress {blob} NOT NULL
        )
        """,
        "CREATE INDEX agentbox_approvals_newest ON agentbox_approvals (created_at, id)",
        "CREATE INDEX agentbox_approvals_status ON agentbox_approvals (status, created_at, id)",
        "CREATE INDEX agentbox_approvals_kernel ON agentbox_approvals (kernel_id, created_at, id)",
        "CREATE INDEX agentbox_approvals_notebook ON agentbox_approvals (notebook_path, created_at, id)",
        "CREATE INDEX agentbox_approvals_owner ON agentbox_approvals (owner)",
        "CREATE TABLE agentbox_owners (id TEXT NOT NULL PRIMARY KEY, seen_at BIGINT NOT NULL)",
    ),
    (
        """
        CREATE TABLE agentbox_arguments (
            id TEXT NOT NULL PRIMARY KEY,
            size BIGINT NOT NULL,
            closed_at BIGINT,
            arguments {blob} NOT NULL
        )
        """,
        "CREATE INDEX agentbox_arguments_closed ON agentbox_arguments (closed_at)",
    ),
    (
        """
        CREATE TABLE agentbox_threads (
            id TEXT NOT NULL PRIMARY KEY,
            updated_at BIGINT NOT NULL,
            is_archived INTEGER NOT NULL,
            notebook_path TEXT NOT NULL,
            thread {blob} NOT NULL
        )
        """,
        "CREATE INDEX agentbox_threads_newest ON agentbox_threads (is_archived, updated_at, id)",
        "CREATE INDEX agentbox_threads_notebook ON agentbox_threads (notebook_path, updated_at, id)",
        """
        CREATE TABLE agentbox_turns (
            id TEXT NOT NULL PRIMARY KEY,
            thread_id TEXT NOT NULL REFERENCES agentbox_threads (id),
            number BIGINT NOT NULL,
            owner TEXT,
            turn {blob} NOT NULL,
            history {blob} NOT NULL
        )
        """,
        "CREATE UNIQUE INDEX agentbox_turns_order ON agentbox_turns (thread_id, number)",
        "CREATE INDEX agentbox_turns_owner ON agentbox_turns (owner)",
    ),
    ("CREATE TABLE agentbox_turn_summaries (id TEXT NOT NULL PRIMARY KEY, summary {blob} NOT NULL)",),
    (
        *(f"ALTER TABLE agentbox_approvals ADD COLUMN {name} TEXT" for name in ("server", "tool", "thread_id")),
        *(f"ALTER TABLE agentbox_approvals ADD COLUMN {name} TEXT" for name in ("answer", "via")),
        *(f"ALTER TABLE agentbox_approvals ADD COLUMN {name} TEXT" for name in ("reviewer", "reviewer_name")),
        "DROP INDEX agentbox_approvals_newest",
        """
        CREATE INDEX agentbox_approvals_found ON agentbox_approvals (
            created_at, id, status, outcome_state, owner, server, tool, thread_id, answer, via, reviewer, reviewer_name
        )
        """,
        """
        CREATE TABLE agentbox_audit (
            number {number} NOT NULL PRIMARY KEY,
            part TEXT NOT NULL,
            request_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            previous TEXT NOT NULL,
            hash TEXT NOT NULL
        )
        """,
        "CREATE INDEX agentbox_audit_request ON agentbox_audit (request_id)",
    ),
    (
        """
        CREATE TABLE agentbox_grants (
            id TEXT NOT NULL PRIMARY KEY,
            owner TEXT,
            uses BIGINT,
            used BIGINT NOT NULL,
            last_used_at BIGINT NOT NULL,
            void TEXT,
            content {blob} NOT NULL
        )
        """,
    ),
)

#: The version that this code reads and writes.
VERSION: Final = len(MIGRATIONS)

#: The version whose tables have the columns that searches use, and the audit chain.
AUDITED: Final = 5

_TYPES = {
    "sqlite": {"blob": "BLOB", "number": "INTEGER"},  # so it is the table's own key, and costs no index
    "postgresql": {"blob": "BYTEA", "number": "BIGINT"},
}

metadata = MetaData()

#: One row: the version of the tables.
schema = Table("agentbox_schema", metadata, Column("version", Integer, nullable=False))

#: Tool descriptions by digest: thousands of requests share a few.
tools = Table(
    "agentbox_tools",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("description", LargeBinary, nullable=False),
)

#: Approval requests. `owner` is the server process that has to bring an open one to its end, NULL once it is closed.
#: From `server` on they are what searches ask for, and only the beginnings of long texts.
approvals = Table(
    "agentbox_approvals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("outcome_state", Text),
    Column("owner", Text),
    Column("kernel_id", Text),
    Column("notebook_path", Text),
    Column("tool_digest", Text, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("progress", LargeBinary, nullable=False),
    Column("server", Text),
    Column("tool", Text),
    Column("thread_id", Text),
    Column("answer", Text),
    Column("via", Text),
    Column("reviewer", Text),
    Column("reviewer_name", Text),
)
#: All that searches ask for but texts and notebooks, newest first: a search reads this index, and no other row.
FOUND: Final = Index(
    "agentbox_approvals_found",
    *(approvals.c[name] for name in ("created_at", "id", "status", "outcome_state", "owner", "server", "tool")),
    *(approvals.c[name] for name in ("thread_id", "answer", "via", "reviewer", "reviewer_name")),
)
Index("agentbox_approvals_status", approvals.c.status, approvals.c.created_at, approvals.c.id)
Index("agentbox_approvals_kernel", approvals.c.kernel_id, approvals.c.created_at, approvals.c.id)
Index("agentbox_approvals_notebook", approvals.c.notebook_path, approvals.c.created_at, approvals.c.id)
Index("agentbox_approvals_owner", approvals.c.owner)

#: Long arguments, which lists do not show, by the request's id. `closed_at` is NULL while the request is open.
arguments = Table(
    "agentbox_arguments",
    metadata,
    Column("id", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("closed_at", BigInteger),
    Column("arguments", LargeBinary, nullable=False),
)
Index("agentbox_arguments_closed", arguments.c.closed_at)

#: Agents' conversations, without their turns.
threads = Table(
    "agentbox_threads",
    metadata,
    Column("id", Text, primary_key=True),
    Column("updated_at", BigInteger, nullable=False),
    Column("is_archived", Integer, nullable=False),
    Column("notebook_path", Text, nullable=False),
    Column("thread", LargeBinary, nullable=False),
)
Index("agentbox_threads_newest", threads.c.is_archived, threads.c.updated_at, threads.c.id)
Index("agentbox_threads_notebook", threads.c.notebook_path, threads.c.updated_at, threads.c.id)

#: Their turns. `owner` is the server process that works on a turn, NULL once it has ended; `history` is for the model.
turns = Table(
    "agentbox_turns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("thread_id", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("owner", Text),
    Column("turn", LargeBinary, nullable=False),
    Column("history", LargeBinary, nullable=False),
)
Index("agentbox_turns_order", turns.c.thread_id, turns.c.number, unique=True)
Index("agentbox_turns_owner", turns.c.owner)

#: What lists say of turns, by the turn's id: turns themselves are large.
summaries = Table(
    "agentbox_turn_summaries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("summary", LargeBinary, nullable=False),
)

#: The audit chain; see `core.audit`. `request_id` has no reference: requests are removed, their entries stay.
audit = Table(
    "agentbox_audit",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("part", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
Index("agentbox_audit_request", audit.c.request_id)

#: Lasting answers. `owner` is the server process of the kernel that one is for, NULL if it is for all.
grants = Table(
    "agentbox_grants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text),
    Column("uses", BigInteger),
    Column("used", BigInteger, nullable=False),
    Column("last_used_at", BigInteger, nullable=False),
    Column("void", Text),
    Column("content", LargeBinary, nullable=False),
)

#: When server processes were last seen, where no file lock can tell.
owners = Table(
    "agentbox_owners",
    metadata,
    Column("id", Text, primary_key=True),
    Column("seen_at", BigInteger, nullable=False),
)


#: Whether a request's `created_at` is a time: SQLite keeps values of any type, and someone may have changed it.
HAS_TIME: Final = approvals.c.created_at.between(
    microseconds(datetime.min.replace(tzinfo=UTC)), microseconds(datetime.max.replace(tzinfo=UTC))
)


def migrate(connection: Connection) -> int:
    """Bring the tables to `VERSION`, in the caller's transaction; return the version that they had.

    Raises
    ------
    StorageError
        If a newer release wrote the database, or the version is damaged.
    """
    present = _version(connection)
    if present > VERSION:
        raise StorageError(
            f"the approval store was written by a newer jupyter-agentbox (its schema is {present}, this release knows"
            f" {VERSION}): upgrade jupyter-agentbox, or choose another database"
        )
    if present == VERSION:
        return present
    if connection.dialect.name == "postgresql":  # two servers may start at once; SQLite's transaction is alone already
        connection.execute(text("SELECT pg_advisory_xact_lock(72057594037927)"))
        present = _version(connection)
    for step in MIGRATIONS[present:]:
        for statement in step:
            connection.execute(text(statement.format(**_TYPES[connection.dialect.name])))
    schema.create(connection, checkfirst=True)
    connection.execute(schema.delete())
    connection.execute(schema.insert().values(version=VERSION))
    return present


def has_tables(connection: Connection) -> bool:
    """Whether the database has been used as an approval store."""
    return inspect(connection).has_table(schema.name)


def _version(connection: Connection) -> int:
    if not has_tables(connection):
        return 0
    version = connection.execute(schema.select()).scalar_one()
    if not isinstance(version, int):  # in SQLite, a column may have values of any type
        raise StorageError(f"the approval store is damaged: its schema's version is {version!r:.80}")
    return version
