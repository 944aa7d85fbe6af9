"""The tables, and the steps that bring an older database up to date.

`MIGRATIONS` is the truth: a new database runs all of its steps, an older one those that it lacks. A step that was
released is never edited. The `Table` objects are what the steps add up to, for building statements; a test compares.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, LargeBinary, MetaData, Table, Text, inspect, text

from jupyter_agentbox.exceptions import StorageError

#: Step n takes the database from version n - 1 to n. ``{blob}`` is the dialect's type of byte strings.
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
)

#: The version that this code reads and writes.
VERSION: Final = len(MIGRATIONS)

_BLOB = {"sqlite": "BLOB", "postgresql": "BYTEA"}

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
)
Index("agentbox_approvals_newest", approvals.c.created_at, approvals.c.id)
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

#: When server processes were last seen, where no file lock can tell.
owners = Table(
    "agentbox_owners",
    metadata,
    Column("id", Text, primary_key=True),
    Column("seen_at", BigInteger, nullable=False),
)


def migrate(connection: Connection) -> None:
    """Bring the tables to `VERSION`, in the caller's transaction.

    Raises
    ------
    StorageError
        If a newer release wrote the database.
    """
    present = _version(connection)
    if present > VERSION:
        raise StorageError(
            f"the approval store was written by a newer jupyter-agentbox (its schema is {present}, this release knows"
            f" {VERSION}): upgrade jupyter-agentbox, or choose another database"
        )
    if present == VERSION:
        return
    if connection.dialect.name == "postgresql":  # two servers may start at once; SQLite's transaction is alone already
        connection.execute(text("SELECT pg_advisory_xact_lock(72057594037927)"))
        present = _version(connection)
    for step in MIGRATIONS[present:]:
        for statement in step:
            connection.execute(text(statement.format(blob=_BLOB[connection.dialect.name])))
    schema.create(connection, checkfirst=True)
    connection.execute(schema.delete())
    connection.execute(schema.insert().values(version=VERSION))


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table(schema.name):
        return 0
    return int(connection.execute(schema.select()).scalar_one())
