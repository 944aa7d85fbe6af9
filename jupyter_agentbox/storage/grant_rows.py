"""Conversion of grants to rows, and to references in the rows of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from jupyter_agentbox.core.grant_uses import GrantUse, Scope, Void, VoidGrant
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.pagination import from_microseconds, microseconds
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.reviewers import Reviewer, ReviewerKind, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError

from .json_text import dump_json, text_key

#: Fields of a grant that are JSON without conversion.
_PLAIN: Final = (
    "id",
    "server",
    "tool",
    "request_id",
    "kernel_id",
    "notebook_path",
    "thread_id",
    "arguments",
    "trust_key",
    "uses",
    "reason",
)
#: Fields of a reference to a void grant that are omitted if they are empty.
_SERVER: Final = ("server_before", "server_now")


def grant_row(grant: Grant, *, owner: str) -> dict[str, Any]:
    """Return the row of a new grant; one for all kernels has no owner.

    Raises
    ------
    StorageError
    """
    content = {
        **{name: getattr(grant, name) for name in _PLAIN},
        "server_entry": grant.server_entry,
        "effect": grant.effect.value,
        "scope": grant.scope.value,
        "granter": reviewer_to_json(grant.granter),
        "granted_at": grant.granted_at.isoformat(),
        "definitions": dict(grant.definitions),
        "seen": _tool_to_json(grant.seen),
        "until": None if grant.until is None else grant.until.isoformat(),
    }
    return {
        "id": text_key(grant.id),
        "owner": None if grant.kernel_id is None else owner,
        "uses": grant.uses,
        "used": grant.used,
        "last_used_at": microseconds(grant.last_used_at or grant.granted_at),
        "void": None if grant.void is None else grant.void.value,
        "content": dump_json(content),
    }


def grant_from_row(row: Any) -> Grant:
    """Return the grant in a row.

    Raises
    ------
    StorageError
        If the row is damaged.
    """
    try:
        value = json.loads(row.content)
        grant = Grant(
            **{name: value[name] for name in _PLAIN},
            server_entry=value.get("server_entry", ""),  # rows of earlier releases have none
            effect=Effect(value["effect"]),
            scope=Scope(value["scope"]),
            granter=reviewer_from_json(value["granter"]),
            granted_at=datetime.fromisoformat(value["granted_at"]),
            definitions=value["definitions"],
            seen=_tool_from_json(value["seen"]),
            until=None if value["until"] is None else datetime.fromisoformat(value["until"]),
        )
        void = None if row.void is None else Void(row.void)
        return replace(grant, used=row.used, last_used_at=from_microseconds(row.last_used_at), void=void)
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"a grant in the approval store is damaged: {error!r}") from error


def grant_use_to_json(use: GrantUse) -> dict[str, Any]:
    """Return a reference to a grant, for a request's row."""
    return {
        "id": use.id,
        "scope": use.scope.value,
        "granter": reviewer_to_json(use.granter),
        "granted_at": use.granted_at.isoformat(),
        "reason": use.reason,
    }


def grant_use_from_json(value: Mapping[str, Any]) -> GrantUse:
    """Return the grant reference in a request's row."""
    return GrantUse(
        id=value["id"],
        scope=Scope(value["scope"]),
        granter=reviewer_from_json(value["granter"]),
        granted_at=datetime.fromisoformat(value["granted_at"]),
        reason=value["reason"],
    )


def void_grant_to_json(voided: VoidGrant) -> dict[str, Any]:
    """Return a reference to a void grant, for a request's row."""
    return {
        "grant": grant_use_to_json(voided.grant),
        "void": voided.void.value,
        "before": _tool_to_json(voided.before),
        **{name: getattr(voided, name) for name in _SERVER if getattr(voided, name)},
    }


def void_grant_from_json(value: Mapping[str, Any]) -> VoidGrant:
    """Return the void grant reference in a request's row."""
    return VoidGrant(
        grant=grant_use_from_json(value["grant"]),
        void=Void(value["void"]),
        before=_tool_from_json(value["before"]),
        **{name: value.get(name, "") for name in _SERVER},
    )


def reviewer_to_json(reviewer: Reviewer) -> dict[str, Any]:
    """Return a reviewer as stored in rows."""
    return {
        "name": reviewer.name,
        "via": reviewer.via.value,
        "kind": reviewer.kind.value,
        "display_name": reviewer.display_name,
        "credential": reviewer.credential,
        "hub_server": reviewer.hub_server,
        **({"token_note": reviewer.token_note} if reviewer.token_note else {}),
    }


def reviewer_from_json(value: Mapping[str, Any] | str) -> Reviewer:
    """Return the reviewer in a row."""
    if isinstance(value, str):  # rows of earlier releases have only a name
        return Reviewer(name=value)
    return Reviewer(**{**value, "via": Via(value["via"]), "kind": ReviewerKind(value["kind"])})


def _tool_to_json(tool: ToolDescription | None) -> str | None:
    """Return a tool as text, so that none of a server's keys can be mistaken for one of the row's."""
    return None if tool is None else dump_json(tool.to_json()).decode("utf-8", "surrogatepass")


def _tool_from_json(text: str | None) -> ToolDescription | None:
    return None if text is None else ToolDescription(**json.loads(text))
