"""JSON objects without duplicate keys, for `json.loads(…, object_pairs_hook=with_unique_keys)`."""

from __future__ import annotations

from .calls import JsonObject, JsonValue


def with_unique_keys(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    """Return an object's members; parsers differ in which of two with the same key they use, so there may be only one.

    Raises
    ------
    ValueError
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found
