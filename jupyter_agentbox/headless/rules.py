"""Rules from a file."""

from __future__ import annotations

import json
from pathlib import Path

from jupyter_agentbox.core.policy import Effect, Policy, Rule


def read_rules(path: Path) -> Policy:
    """Read a file of rules: JSON, ``{"rules": [{"effect": "allow", "server": "shop", "tool": "list_*"}]}``.

    Raises
    ------
    ValueError
        If anything in it is not understood: then no rule of it counts.
    OSError
        If it cannot be read.
    """
    value = json.loads(path.read_text("utf-8"))
    entries = value.get("rules") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise ValueError(f'`{path}` must be an object with a list under "rules"')
    return Policy(tuple(_rule(entry, number, path) for number, entry in enumerate(entries, 1)))


def _rule(entry: object, number: int, path: Path) -> Rule:
    if not isinstance(entry, dict) or entry.keys() - {"server", "tool", "effect", "reason"}:
        raise ValueError(f'rule {number} of `{path}` must be an object of "server", "tool", "effect" and "reason"')
    server, tool, effect, reason = (entry.get(name) for name in ("server", "tool", "effect", "reason"))
    reason = reason or ""
    if not isinstance(server, str) or not isinstance(tool, str) or not isinstance(reason, str):
        raise ValueError(f'rule {number} of `{path}`: "server", "tool" and "reason" must be strings')
    if effect not in [known.value for known in Effect]:
        raise ValueError(f'rule {number} of `{path}`: "effect" must be "allow", "ask" or "deny"')
    return Rule(server=server, tool=tool, effect=Effect(effect), reason=reason)
