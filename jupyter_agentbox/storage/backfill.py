"""Upgrades a database of an earlier release beyond what SQL can do: fills in the audit chain."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select, tuple_

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.audit import Part

from . import audit_chain
from .rows import search_key
from .schema import AUDITED, approvals, migrate

log = logging.getLogger(__name__)

#: How many requests are read at once.
_STEP: Final = 1000
_FILLED: Final = ("server", "tool", "thread_id", "answer", "via", "reviewer", "reviewer_name")
_FILL: Final = (
    approvals.update().where(approvals.c.id == bindparam("sought")).values({name: bindparam(name) for name in _FILLED})
)


def bring_up_to_date(connection: Connection) -> None:
    """Upgrade the tables and their contents to the present version, in the caller's transaction.

    Raises
    ------
    StorageError
        If a newer release wrote the database.
    """
    if migrate(connection) < AUDITED:
        _fill(connection)


def _fill(connection: Connection) -> None:
    """Fill in each request's search columns and its entry in the chain, oldest first."""
    columns = approvals.c
    statement = select(approvals).order_by(columns.created_at, columns.id).limit(_STEP)
    rows = connection.execute(statement).mappings().all()
    while rows:
        filled = [{**row, **_searched(row)} for row in rows]
        connection.execute(_FILL, [{"sought": row["id"], **{name: row[name] for name in _FILLED}} for row in filled])
        audit_chain.append_all(connection, [entry for row in filled if (entry := _entry(row)) is not None])
        last = (rows[-1]["created_at"], rows[-1]["id"])
        rows = connection.execute(statement.where(tuple_(columns.created_at, columns.id) > last)).mappings().all()


def _searched(row: Any) -> dict[str, str | None]:
    """Return the search columns; empty if the row is damaged."""
    values: dict[str, str | None] = dict.fromkeys(_FILLED)
    try:
        asked, decision = json.loads(row["request"]), json.loads(row["progress"])["decision"]
        for name in ("server", "tool", "thread_id"):
            values[name] = search_key(asked[name])
        if decision is not None:
            reviewer = decision["reviewer"]
            if isinstance(reviewer, str):  # rows of earlier releases have only a name
                reviewer = {"name": reviewer, "via": "unknown"}
            values |= {"answer": decision["answer"], "via": reviewer["via"], "reviewer": search_key(reviewer["name"])}
            values["reviewer_name"] = search_key(reviewer.get("display_name") or None)
    except (KeyError, TypeError, ValueError) as error:
        log.warning("request %s is damaged: %r", row["id"], error)
    return values


def _entry(row: dict[str, Any]) -> tuple[Part, str, str] | None:
    if row["status"] == Status.PENDING.value:
        return None
    part = Part.ENDED if row["owner"] is None else Part.DECIDED
    try:
        digest = audit_chain.record_digest(audit_chain.asked_digest(row), part, row)
    except (TypeError, ValueError) as error:
        log.warning("request %s is damaged: %r", row["id"], error)
        return None
    return part, row["id"], digest
