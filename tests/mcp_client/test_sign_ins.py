"""Where sign-ins are kept, and for which server."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.errors
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail

from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore, Place, SignIn, usable_keyring

SIGN_IN = SignIn(
    trust_key="k1",
    tokens={"access_token": "t0ken", "refresh_token": "r0ken"},
    expires_at=7.5,
    client={"client_id": "c"},
    provider={"issuer": "https://a.example"},
)


class Vault(KeyringBackend):
    """A keyring in memory."""

    priority: Any = 5

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.refuses = False

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.refuses:
            raise keyring.errors.PasswordSetError("too long")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def use_keyring() -> Iterator[Any]:
    before = keyring.get_keyring()
    yield keyring.set_keyring
    keyring.set_keyring(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sign-ins.json"


@pytest.mark.parametrize("place", ["auto", "file", "memory"])
def test_what_is_kept_is_read_again_for_the_same_server_only(path: Path, place: Place, use_keyring: Any) -> None:
    use_keyring(Vault())
    sign_ins = LocalSignInStore(path, place=place)
    sign_ins.keep("a", SIGN_IN)

    assert sign_ins.load("a", "k1") == SIGN_IN
    assert sign_ins.load("a", "k2") is None  # another address
    assert sign_ins.load("a", "") is None
    assert sign_ins.load("b", "k1") is None
    sign_ins.forget("a")
    assert sign_ins.load("a", "k1") is None


def test_the_file_is_for_this_user_only_and_another_process_reads_it(path: Path) -> None:
    LocalSignInStore(path, place="file").keep("a", SIGN_IN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert LocalSignInStore(path, place="file").load("a", "k1") == SIGN_IN
    # no draft is left; the lock stays, and has nothing in it
    lock = path.with_name(".sign-ins-file.lock")
    assert sorted(path.parent.iterdir()) == [lock, path]
    assert (lock.stat().st_size, stat.S_IMODE(lock.stat().st_mode)) == (0, 0o600)


def test_a_file_that_others_can_read_is_not_used_and_is_replaced(path: Path) -> None:
    sign_ins = LocalSignInStore(path, place="file")
    sign_ins.keep("a", SIGN_IN)
    path.chmod(0o640)
    assert sign_ins.load("a", "k1") is None

    sign_ins.keep("b", SIGN_IN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["servers"].keys() == {"b"}


@pytest.mark.parametrize(
    "text", ["", "[", "[1]", '{"servers": 7}', '{"servers": {"a": [1]}}', '{"servers": {"a": {}}}']
)
def test_a_file_that_cannot_be_read_signs_nobody_in(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.touch(0o600)
    path.write_text(text)
    assert LocalSignInStore(path, place="file").load("a", "k1") is None


def test_a_keyring_that_protects_is_used_in_the_place_of_the_file(path: Path, use_keyring: Any) -> None:
    vault = Vault()
    use_keyring(vault)
    LocalSignInStore(path).keep("a", SIGN_IN)

    assert not path.exists()
    ((service, username),) = vault.kept
    assert (service, username) == ("jupyter-agentbox-mcp", f"a ({path})")
    assert LocalSignInStore(path).load("a", "k1") == SIGN_IN
    assert LocalSignInStore(path.with_name("of-another.json")).load("a", "k1") is None


def test_what_a_keyring_does_not_take_is_in_the_file(path: Path, use_keyring: Any) -> None:
    vault = Vault()
    use_keyring(vault)
    LocalSignInStore(path).keep("a", SIGN_IN)
    vault.refuses = True
    newer = SignIn(trust_key="k1", tokens={"access_token": "next"}, client={})
    LocalSignInStore(path).keep("a", newer)

    assert vault.kept == {}
    assert LocalSignInStore(path).load("a", "k1") == newer


def test_a_keyring_that_protects_nothing_is_not_used(path: Path, use_keyring: Any) -> None:
    use_keyring(fail.Keyring())
    assert usable_keyring() is None
    LocalSignInStore(path).keep("a", SIGN_IN)
    assert path.exists()


def test_memory_writes_no_file(path: Path, use_keyring: Any) -> None:
    vault = Vault()
    use_keyring(vault)
    LocalSignInStore(path, place="memory").keep("a", SIGN_IN)
    assert (path.exists(), vault.kept) == (False, {})


def test_no_token_is_in_the_representation() -> None:
    assert "0ken" not in repr(SIGN_IN)
