from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_agentbox.mcp_client import project_servers, registration
from jupyter_agentbox.mcp_client.secret_names import is_credential_variable

from .attack import Attack

ATTACK = Attack(
    "change what a trusted server of a project's `.mcp.json` runs, or where it leaves its keys, by a variable that is"
    " hidden from the person because of its name (`DBUS_SESSION_BUS_ADDRESS`, `SSLKEYLOGFILE`, `GOAUTH`)",
    plain=False,
    control="test_where_any_word_for_a_secret_hides_a_variable_they_are_neither_shown_nor_asked_about",
)
#: Programs start what the first three name; the others say where secrets are written, or sent.
VARIABLES = {
    "DBUS_SESSION_BUS_ADDRESS": "unixexec:path=/bin/sh,argv1=-c,argv2=evil",
    "GOAUTH": "/project/evil",
    "CARGO_REGISTRY_GLOBAL_CREDENTIAL_PROVIDERS": "cargo:token-from-stdout /project/evil",
    "SSLKEYLOGFILE": "/project/keys",
    "AUTH_URL": "https://evil.example",
}


def attack(path: Path) -> list[str]:
    """Return the variables whose values are changed after the trust, and that nobody sees or is asked about."""
    before = {"command": "shop", "env": dict.fromkeys(VARIABLES, "plain")}
    return [
        name
        for name, evil in VARIABLES.items()
        if (after := {"command": "shop", "env": {**before["env"], name: evil}})  # type: ignore[dict-item]
        and project_servers.entry_key(path, "shop", after) == project_servers.entry_key(path, "shop", before)  # type: ignore[arg-type]
        and evil not in str(registration.masked(after))  # type: ignore[arg-type]
    ]


def test_where_any_word_for_a_secret_hides_a_variable_they_are_neither_shown_nor_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hides: Callable[[str], bool] = is_credential_variable
    monkeypatch.setattr(project_servers, "may_hide_variable", hides)
    monkeypatch.setitem(registration._MAY_HIDE, "env", hides)

    assert attack(tmp_path) == list(VARIABLES)


def test_each_of_them_is_shown_and_asked_about(tmp_path: Path) -> None:
    assert attack(tmp_path) == []
