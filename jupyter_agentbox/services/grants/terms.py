"""Parses a grant's terms from the body of a decision."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.grant_uses import Scope
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.times import time_from_json
from jupyter_agentbox.exceptions import InvalidDecisionError

_FIELDS: Final = {"scope", "until", "uses"}


def terms_from_json(value: JsonValue) -> GrantTerms:
    """Parse the `grant` of a decision.

    Raises
    ------
    InvalidDecisionError
        If a field is missing, unknown, or of the wrong type.
    """
    if not isinstance(value, dict):
        raise InvalidDecisionError("`grant` must be a JSON object")
    unknown = sorted(set(value) - _FIELDS)
    if unknown:
        raise InvalidDecisionError(f"unknown field `{unknown[0]:.80}`; a grant has {', '.join(sorted(_FIELDS))}")
    scopes = [scope.value for scope in Scope]
    scope, until, uses = value.get("scope"), value.get("until"), value.get("uses")
    if not isinstance(scope, str) or scope not in scopes:
        raise InvalidDecisionError(f"`grant.scope` must be one of {', '.join(scopes)}")
    if uses is not None and (not isinstance(uses, int) or isinstance(uses, bool)):
        raise InvalidDecisionError("`grant.uses` must be a whole number")
    return GrantTerms(scope=Scope(scope), until=_time(until), uses=uses)


def _time(value: JsonValue) -> datetime | None:
    if value is None:
        return None
    time = time_from_json(value)
    if time is None:
        raise InvalidDecisionError("`grant.until` must be a time in ISO 8601, with its time zone")
    return time
