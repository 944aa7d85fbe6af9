"""What a person saw, and may have edited, with the secrets that were hidden."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.mcp.registry import ServerRegistry

GIVEN: Any = {
    "command": "server",
    "env": {"API_KEY": "s3cr3t-1", "MODE": "fast"},
    "url": "https://example.org/mcp?token=s3cr3t-2",
}
REGISTRY = ServerRegistry(known=list, keep=lambda *_: None)


def test_what_was_not_edited_has_its_secrets_again() -> None:
    shown = REGISTRY.shown(GIVEN)

    assert "s3cr3t" not in str(shown)
    assert REGISTRY.restored(shown, GIVEN) == GIVEN


def test_an_edited_value_is_as_it_was_edited() -> None:
    shown: Any = REGISTRY.shown(GIVEN)
    edited = {**shown, "command": "other", "env": {**shown["env"], "MODE": "slow", "API_KEY": "${MY_KEY}"}}

    assert REGISTRY.restored(edited, GIVEN) == {
        **GIVEN,
        "command": "other",
        "env": {"API_KEY": "${MY_KEY}", "MODE": "slow"},
    }


@pytest.mark.parametrize(
    "edit",
    [
        {"env": {"OTHER_KEY": "***"}},
        {"env": {"API_KEY": "*** and more"}},
        {"url": "https://elsewhere.example.org/mcp?token=***"},
        {"headers": {"Authorization": "***"}},
    ],
)
def test_a_hidden_value_goes_nowhere_else(edit: Any) -> None:
    with pytest.raises(ServerConfigurationError, match="hidden"):
        REGISTRY.restored({**REGISTRY.shown(GIVEN), **edit}, GIVEN)
