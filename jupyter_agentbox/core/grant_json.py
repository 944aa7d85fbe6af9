"""Grants as the REST API sends them."""

from __future__ import annotations

from .calls import JsonObject
from .grant_uses import GrantUse, VoidGrant
from .grants import Grant
from .reviewers import Reviewer
from .times import json_time


def grant_to_json(grant: Grant) -> JsonObject:
    """Return a grant, with the digest of its arguments and the names of the tools that it covers."""
    return {
        **grant_use_to_json(grant.use),
        "effect": grant.effect.value,
        "server": grant.server,
        "tool": grant.tool,
        "tools": [*sorted(grant.definitions)],
        "kernel_id": grant.kernel_id,
        "notebook_path": grant.notebook_path,
        "thread_id": grant.thread_id,
        "request_id": grant.request_id,
        "arguments_digest": grant.arguments or None,
        "reason": grant.reason,
        "until": json_time(grant.until),
        "uses": grant.uses,
        "used": grant.used,
        "last_used_at": json_time(grant.last_used_at),
        "void": None if grant.void is None else grant.void.value,
    }


def grant_use_to_json(use: GrantUse) -> JsonObject:
    """Return a request's reference to the grant that answered it."""
    return {
        "id": use.id,
        "scope": use.scope.value,
        "granted_at": json_time(use.granted_at),
        **_granter_to_json(use.granter),
    }


def void_grant_to_json(voided: VoidGrant) -> JsonObject:
    """Return a request's reference to a void grant, with the tool and the server as they were."""
    before = voided.before
    server: JsonObject = {"before": voided.server_before, "now": voided.server_now}
    return {
        "grant": grant_use_to_json(voided.grant),
        "void": voided.void.value,
        "before": None
        if before is None
        else {
            "title": before.title,
            "description": before.description,
            "annotations": before.annotations,
            "input_schema": before.input_schema,
            "output_schema": before.output_schema,
        },
        "server": server if all(server.values()) else None,
    }


def _granter_to_json(granter: Reviewer) -> JsonObject:
    return {
        "reviewer": granter.name,
        "reviewer_kind": granter.kind.value,
        "reviewer_name": granter.display_name or None,
        "via": granter.via.value,
    }
