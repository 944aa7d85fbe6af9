"""Grants in the approval store's tables: stored, counted and ended in the transactions of requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, bindparam, literal_column, or_, select

from jupyter_agentbox.core.grant_uses import Void
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.exceptions import StorageError

from .grant_rows import grant_from_row, grant_row
from .json_text import text_key
from .schema import grants
from .statements import execute

log = logging.getLogger(__name__)

_ONE: Final[ColumnElement[int]] = literal_column("1")  # no value that each use would have to bring
_USE: Final = (
    grants.update()
    .where(grants.c.id == bindparam("sought"))
    .where(grants.c.void.is_(None))
    .where(or_(grants.c.uses.is_(None), grants.c.used < grants.c.uses))
    .values(used=grants.c.used + _ONE, last_used_at=bindparam("at"))
)
_GIVE_BACK: Final = grants.update().where(grants.c.id == bindparam("sought")).values(used=grants.c.used - _ONE)
_ADD: Final = grants.insert()


def use_grant(connection: Connection, grant_id: str, at: datetime) -> bool:
    """Count a use of a grant; return whether it had one left."""
    return execute(connection, _USE, {"sought": text_key(grant_id), "at": microseconds(at)}) == 1


def give_use_back(connection: Connection, grant_id: str) -> None:
    """Undo a use, in the transaction that counted it."""
    execute(connection, _GIVE_BACK, {"sought": text_key(grant_id)})


def add_grant(connection: Connection, grant: Grant, *, owner: str) -> None:
    """Store a new grant."""
    execute(connection, _ADD, grant_row(grant, owner=owner))


def end_grants(connection: Connection, ids: Sequence[str]) -> None:
    """Delete grants."""
    connection.execute(grants.delete().where(grants.c.id.in_([text_key(id) for id in ids])))


def void_grant(connection: Connection, grant_id: str, void: Void) -> None:
    """Mark a grant as void; the first reason is kept."""
    own = (grants.c.id == text_key(grant_id)) & grants.c.void.is_(None)
    connection.execute(grants.update().where(own).values(void=void.value))


def end_grants_of_lost(connection: Connection, *, owner: str, is_gone: Callable[[str], bool]) -> None:
    """Delete the grants for kernels of processes that are gone."""
    owners = set(connection.scalars(select(grants.c.owner).where(grants.c.owner.is_not(None)).distinct()))
    gone = [each for each in owners - {owner} if is_gone(each)]
    connection.execute(grants.delete().where(grants.c.owner.in_(gone)))


def read_grants(connection: Connection, *, owner: str) -> Sequence[Grant]:
    """Return the grants for all kernels and those for this process's kernels, oldest first."""
    own = or_(grants.c.owner.is_(None), grants.c.owner == owner)
    found: list[Grant] = []
    for row in connection.execute(select(grants).where(own)):
        try:
            found.append(grant_from_row(row))
        except StorageError as error:
            log.warning("grant %s is left out: %s", row.id, error)
    return sorted(found, key=lambda grant: grant.granted_at)
