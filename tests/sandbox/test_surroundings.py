from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from jupyter_agentbox.sandbox.places import Protected
from jupyter_agentbox.sandbox.surroundings import protected_by


def protected(places: Path) -> Protected:
    return protected_by(None, base=places / "run", prefixes=[], hidden=[places / "keys"])


def test_what_settings_name_is_hidden(places: Path) -> None:
    found = protected(places)

    assert {places / "keys", places / "run"} <= set(found.hidden)
    assert found.home == places / "home"


def test_keys_of_the_account_are_hidden_where_the_home_directory_is_another(places: Path) -> None:
    account = Path(pwd.getpwuid(os.getuid()).pw_dir) if _has_account() else None
    if account is None:
        pytest.skip("this user id has no account")

    assert account / ".ssh" in protected(places).hidden


def test_user_id_without_an_account_is_no_obstacle(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_user: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)

    assert places / "keys" in protected(places).hidden


def _has_account() -> bool:
    return any(entry.pw_uid == os.getuid() for entry in pwd.getpwall())
