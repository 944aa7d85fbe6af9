"""The published schema of rules says of each file what the server says of it."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.isolation import LADDER, Isolation
from jupyter_agentbox.core.policy import Effect, GrantLimit, Layer, Rule
from jupyter_agentbox.core.rule_checks import MAX_PATTERN, MAX_REASON, MAX_TIMEOUT
from jupyter_agentbox.core.rule_text import read_text
from tests.core.test_rule_text import BASE, anything, entries

SCHEMA: Any = json.loads(
    (resources.files("jupyter_agentbox") / "schemas/agentbox_rules.schema.json").read_text("utf-8")
)
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
RULE = SCHEMA["$defs"]["rule"]["properties"]


def is_read(value: Any) -> bool:
    return not read_text(json.dumps(value), path="rules.json", layer=Layer.USER).problems


@given(st.lists(entries, max_size=3))
def test_rules_fit_the_schema(rules: list[Any]) -> None:
    assert VALIDATOR.is_valid({"$schema": "x", "rules": rules})


@given(anything)
def test_what_does_not_fit_the_schema_is_not_read(value: Any) -> None:
    for document in (value, {"rules": value}, {"rules": [value]}, {"rules": [{**BASE, "arguments": {"x": value}}]}):
        assert VALIDATOR.is_valid(document) or not is_read(document)


@pytest.mark.parametrize(
    "changes",
    [
        {"efect": 1},
        {"effect": "Allow"},
        {"server": ""},
        {"tool": "x" * 1001},
        {"notebook": 1},
        {"timeout": 0},
        {"timeout": MAX_TIMEOUT + 1},
        {"timeout": True},
        {"isolation": "vm"},
        {"reason": "x" * (MAX_REASON + 1)},
        {"arguments": []},
        {"arguments": {"x": []}},
        {"arguments": {"x": [[1]]}},
        {"arguments": {"x": {}}},
        {"arguments": {"x": {"min": "1"}}},
        {"arguments": {"x": {"mn": 1}}},
    ],
)
def test_what_is_not_read_does_not_fit_the_schema(changes: Any) -> None:
    document = {"rules": [{**BASE, **changes}]}
    assert (is_read(document), VALIDATOR.is_valid(document)) == (False, False)


def test_the_schema_has_the_names_and_bounds_of_the_code() -> None:
    assert RULE["effect"]["enum"] == [effect.value for effect in Effect]
    assert RULE["isolation"]["enum"] == [level.value for level in LADDER]
    assert RULE["grants"]["enum"] == [limit.value for limit in GrantLimit]
    assert RULE["timeout"]["maximum"] == MAX_TIMEOUT
    assert RULE["reason"]["maxLength"] == MAX_REASON
    assert SCHEMA["$defs"]["pattern"]["maxLength"] == MAX_PATTERN
    full = Rule(
        server="a",
        tool="b",
        effect=Effect.ASK,
        arguments={"x": 1},
        notebook="n",
        isolation=Isolation.SRT,
        below=Isolation.BUBBLEWRAP,
        timeout=1.0,
        reason="r",
        groups=("g",),
        grants=GrantLimit.ANY,
    )
    assert set(RULE) == set(full.to_json())
