"""What was added or changed in a user's own files is started only after a person trusted it, if that is wanted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.exceptions import ServerConfigurationError, UnknownServerError
from jupyter_agentbox.mcp_client.configuration import StdioServer, UnusableServer
from jupyter_agentbox.mcp_client.own_servers import OF_ENV_FILE, OwnServers, ReviewableServers
from jupyter_agentbox.mcp_client.project_servers import ProjectServers, TrustedServers
from jupyter_agentbox.mcp_client.servers_file import ServersFile

SHOP: dict[str, Any] = {"command": "shop-server", "args": ["--port", "5"], "env": {"SHOP_TOKEN": "s3cret"}}
EVIL: dict[str, Any] = {"command": "evil"}


class User:
    """A user with two files of servers, and who trusts them."""

    def __init__(self, root: Path) -> None:
        self.file, self.added = root / "mcp.json", root / "added-servers.json"
        self.kept = root / "data" / "trusted-servers.json"
        self.protected: set[Path] = set()
        self.environment = {"TOKEN": "s3cret"}
        self.servers = self.again()

    def again(self) -> OwnServers:
        """Return what another process sees."""
        paths = [self.file, self.added]
        return OwnServers(
            paths, self.environment, TrustedServers(self.kept, own=paths), is_protected=self.protected.__contains__
        )

    def write(self, **entries: object) -> None:
        """Write the file, and see it."""
        self.file.write_text(json.dumps({"mcpServers": entries}))

    def kinds(self) -> dict[str, bool]:
        """Return which servers can be started."""
        return {name: isinstance(one, StdioServer) for name, one in self.servers.load().servers.items()}

    def trust(self, name: str = "shop") -> None:
        """Trust what the file says now."""
        self.servers.trust(name, self.servers.find(name).key)


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_what_the_files_have_when_they_are_first_read_is_trusted(user: User) -> None:
    user.write(shop=SHOP)
    user.added.write_text(json.dumps({"mcpServers": {"added": EVIL}}))
    assert user.kinds() == {"shop": True, "added": True}
    user.servers = user.again()
    assert user.kinds() == {"shop": True, "added": True}


@pytest.mark.parametrize("entries", [{}, {"shop": SHOP}])
def test_an_entry_that_is_written_later_is_withheld_until_it_is_trusted(user: User, entries: dict[str, Any]) -> None:
    if entries:
        user.write(**entries)
    user.servers.load()
    user.write(**entries, evil=EVIL)

    found = user.servers.load().servers["evil"]

    assert isinstance(found, UnusableServer)
    assert (found.needs_trust, found.is_of_project) == (True, False)
    assert "is new or has changed" in found.error
    user.servers = user.again()
    assert user.kinds() == {**dict.fromkeys(entries, True), "evil": False}, "and so it is for another process"
    user.trust("evil")
    assert user.kinds() == {**dict.fromkeys(entries, True), "evil": True}


def test_a_changed_entry_is_withheld_and_what_was_trusted_is_shown(user: User) -> None:
    user.write(shop=SHOP)
    user.servers.load()
    user.write(shop={**SHOP, **EVIL})
    assert user.kinds() == {"shop": False}
    found = user.servers.find("shop")
    hidden = {"SHOP_TOKEN": "*** (hidden, 6 characters)"}
    assert found.trusted_before == {**SHOP, "env": hidden}
    assert (found.configuration, found.is_of_project) == ({**SHOP, **EVIL, "env": hidden}, False)
    user.write(shop=SHOP)
    assert user.kinds() == {"shop": True}


@pytest.mark.parametrize(
    "change",
    [{"timeout": 5}, {"env": {"SHOP_TOKEN": "a new and longer one"}}],
)
def test_a_new_secret_or_time_limit_asks_nobody(user: User, change: dict[str, Any]) -> None:
    user.write(shop=SHOP)
    user.servers.load()
    user.write(shop={**SHOP, **change})
    assert user.kinds() == {"shop": True}


def test_a_change_of_what_steers_the_program_in_its_env_file_is_a_change(user: User) -> None:
    variables = user.file.with_name("shop.env")
    variables.write_text("SHOP_TOKEN=a\nPATH=/usr/bin\n")
    user.write(shop={**SHOP, "envFile": "shop.env"})
    assert user.kinds() == {"shop": True}
    variables.write_text("SHOP_TOKEN=another\nPATH=/usr/bin\n")
    assert user.kinds() == {"shop": True}
    variables.write_text("SHOP_TOKEN=another\nPATH=/tmp/evil\n")
    assert user.kinds() == {"shop": False}
    found = user.servers.find("shop")
    assert found.configuration[OF_ENV_FILE] == {"PATH": "/tmp/evil"}, "and the review shows what has changed"
    assert (found.trusted_before or {})[OF_ENV_FILE] == {"PATH": "/usr/bin"}
    variables.write_text("SHOP_TOKEN=another\nPATH=/usr/bin\n")
    assert user.kinds() == {"shop": True}, "the file is followed while its server is withheld"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["fifo", "/dev/zero", "large"])
def test_an_env_file_that_has_no_end_is_not_read(user: User, name: str) -> None:
    os.mkfifo(user.file.with_name("fifo"))
    user.file.with_name("large").write_text("A=1\n" * 300_000)
    user.servers.load()
    user.write(shop={**SHOP, "envFile": name})
    found = user.servers.load().servers["shop"]
    assert isinstance(found, UnusableServer)
    assert "cannot read its envFile" in found.error


def test_a_review_hides_secrets_of_an_env_file(user: User) -> None:
    user.file.with_name("shop.env").write_text("API_KEY=abc\nPATH=/usr/bin\n")
    user.servers.load()
    user.write(shop={**SHOP, "envFile": "shop.env"})
    shown = {"API_KEY": "*** (hidden, 3 characters)", "PATH": "/usr/bin"}
    assert user.servers.find("shop").configuration == {
        **SHOP,
        "env": {"SHOP_TOKEN": "*** (hidden, 6 characters)"},
        "envFile": "shop.env",
        OF_ENV_FILE: shown,
    }


def test_the_value_of_a_reference_in_env_is_no_change_with_an_env_file_either(user: User) -> None:
    user.file.with_name("shop.env").write_text("PATH=/usr/bin\n")
    user.write(shop={**SHOP, "envFile": "shop.env", "env": {"CACHE": "/tmp/${HOSTNAME}", "PATH": "/bin"}})
    user.environment["HOSTNAME"] = "one"
    assert user.kinds() == {"shop": True}
    user.environment["HOSTNAME"] = "two"
    user.servers = user.again()
    assert user.kinds() == {"shop": True}


def test_what_a_person_adds_in_the_panel_is_trusted_and_nothing_else(user: User) -> None:
    user.servers.load()
    panel = ServersFile(user.file, known=list, environment={}, trust=user.servers.trust_new)
    configuration = {"command": "shop-server", "env": {"SHOP_TOKEN": "${TOKEN}"}}
    panel.add("shop", configuration, revision=panel.preview("shop", configuration).revision)
    assert user.kinds() == {"shop": True}
    user.write(shop={"command": "shop-server", "env": {"SHOP_TOKEN": "${AWS_SECRET_ACCESS_KEY:-}"}})
    assert user.kinds() == {"shop": False}


def test_what_is_added_before_the_files_were_read_leaves_the_rest_trusted(user: User) -> None:
    user.write(shop=SHOP)
    user.servers.trust_new(user.file, "db", EVIL)
    user.write(shop=SHOP, db=EVIL)
    assert user.kinds() == {"shop": True, "db": True}


def test_an_entry_that_changed_since_it_was_shown_is_not_trusted(user: User) -> None:
    user.servers.load()
    user.write(shop=SHOP)
    key = user.servers.find("shop").key
    user.write(shop=EVIL)
    with pytest.raises(ServerConfigurationError, match="something else"):
        user.servers.trust("shop", key)
    assert user.kinds() == {"shop": False}


def test_trust_can_be_withdrawn(user: User) -> None:
    user.write(shop=SHOP)
    user.servers.load()
    user.servers.distrust("shop")
    found = user.servers.load().servers["shop"]
    assert isinstance(found, UnusableServer)
    assert "`shop` in" in found.error
    assert "is not trusted, so the server was not started" in found.error
    user.trust("shop")
    assert user.kinds() == {"shop": True}
    with pytest.raises(UnknownServerError):
        user.servers.distrust("other")


def test_trust_can_be_withdrawn_while_the_file_is_broken(user: User) -> None:
    user.write(shop=SHOP, db=EVIL)
    user.servers.load()
    user.file.write_text("{")
    assert user.kinds() == {"shop": True, "db": True}
    user.servers.distrust("shop")
    assert user.kinds() == {"shop": False, "db": True}
    user.trust("shop")
    assert user.kinds() == {"shop": True, "db": True}


def test_a_file_that_its_user_cannot_change_needs_no_trust(user: User) -> None:
    user.protected.add(user.file)
    user.servers.load()
    user.write(shop=SHOP)
    user.added.write_text(json.dumps({"mcpServers": {"added": EVIL}}))
    assert user.kinds() == {"shop": True, "added": False}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"trusted": []}'])
def test_where_it_cannot_be_read_what_is_trusted_nothing_is(user: User, text: str) -> None:
    user.write(shop=SHOP)
    user.kept.parent.mkdir()
    user.kept.write_text(text)
    assert user.kinds() == {"shop": False}


def test_what_replaces_an_unreadable_file_of_trust_trusts_nothing_else(user: User) -> None:
    user.write(shop=SHOP, other=EVIL)
    user.added.write_text(json.dumps({"mcpServers": {"added": EVIL}}))
    user.kept.parent.mkdir()
    user.kept.write_text("")
    user.trust("shop")
    user.servers = user.again()
    assert user.kinds() == {"shop": True, "other": False, "added": False}


def test_a_file_of_trust_that_replaces_an_unreadable_one_knows_a_users_files_whoever_writes_it(
    user: User, tmp_path: Path
) -> None:
    user.write(shop=SHOP)
    user.kept.parent.mkdir()
    user.kept.write_text("")
    TrustedServers(user.kept, own=(user.file,)).keep(tmp_path / ".mcp.json", "db", {"key": "1"})
    assert user.kinds() == {"shop": False}


@pytest.mark.parametrize("content", [b"{", b"\xff", None])
@pytest.mark.parametrize("is_another_process", [False, True])
def test_of_a_file_that_is_broken_at_first_nothing_is_trusted_once_it_can_be_read(
    user: User, content: bytes | None, *, is_another_process: bool
) -> None:
    user.added.write_text(json.dumps({"mcpServers": {"added": SHOP}}))
    if content is None:
        user.file.mkdir()
    else:
        user.file.write_bytes(content)
    assert user.kinds() == {"added": True}
    if content is None:
        user.file.rmdir()
    user.write(shop=SHOP)
    if is_another_process:
        user.servers = user.again()
    assert user.kinds() == {"shop": False, "added": True}
    user.trust("shop")
    assert user.kinds() == {"shop": True, "added": True}


@pytest.mark.parametrize("is_protected", [False, True])
def test_an_entry_of_a_protected_file_needs_trust_if_its_env_file_can_be_changed(
    user: User, *, is_protected: bool
) -> None:
    variables = user.file.with_name("shop.env")
    user.protected.update([user.file, *([variables] if is_protected else [])])
    variables.write_text("PATH=/usr/bin\n")
    user.write(shop={**SHOP, "envFile": "shop.env"}, db=SHOP)
    assert user.kinds() == {"shop": True, "db": True}, "what it has at first is trusted"
    variables.write_text("PATH=/tmp/evil\n")
    user.write(shop={**SHOP, "envFile": "shop.env"}, db=EVIL)
    assert user.kinds() == {"shop": is_protected, "db": True}
    if not is_protected:
        user.trust("shop")
        assert user.kinds() == {"shop": True, "db": True}


def test_a_protected_file_hides_names_of_the_next_one_from_a_review(user: User) -> None:
    user.protected.add(user.file)
    user.servers.load()
    user.write(shop=SHOP)
    user.added.write_text(json.dumps({"mcpServers": {"shop": EVIL}}))
    assert user.kinds() == {"shop": True}
    with pytest.raises(ServerConfigurationError, match="names no MCP server"):
        user.servers.find("shop")


def test_a_protected_file_is_known_so_that_it_is_not_new_once_it_is_not_protected(user: User) -> None:
    user.protected.add(user.file)
    user.write(shop=SHOP)
    assert user.kinds() == {"shop": True}
    user.protected.clear()
    user.write(shop=SHOP, evil=EVIL)
    user.servers = user.again()
    assert user.kinds() == {"shop": True, "evil": False}


@pytest.mark.parametrize("is_another_process", [False, True])
def test_an_entry_that_was_removed_is_trusted_no_more(user: User, *, is_another_process: bool) -> None:
    user.write(shop=SHOP, db=EVIL)
    user.servers.load()
    user.write(db=EVIL)
    if is_another_process:
        user.servers = user.again()
    user.servers.load()
    user.write(shop=SHOP, db=EVIL)
    assert user.kinds() == {"shop": False, "db": True}


def test_an_entry_of_a_file_that_is_missing_or_broken_for_a_while_stays_trusted(user: User) -> None:
    user.write(shop=SHOP)
    user.servers.load()
    user.file.unlink()
    for text in (None, "", "{"):
        if text is not None:
            user.file.write_text(text)
        user.servers.load()
        user.servers = user.again()
        user.servers.load()
    user.write(shop=SHOP)
    assert user.kinds() == {"shop": True}


def test_an_entry_stays_trusted_that_is_read_before_it_is_written(user: User) -> None:
    user.write(shop=SHOP)
    user.servers.trust_new(user.file, "db", EVIL)
    user.write(shop={**SHOP, "timeout": 5})
    assert user.kinds() == {"shop": True}
    user.write(shop=SHOP, db=EVIL)
    assert user.kinds() == {"shop": True, "db": True}


def test_a_trust_file_that_is_deleted_meanwhile_trusts_nothing_before_the_next_start(user: User) -> None:
    user.write(shop=SHOP)
    user.servers.load()
    user.kept.unlink()
    user.write(shop=SHOP, evil=EVIL)
    assert user.kinds() == {"shop": False, "evil": False}


def test_an_entry_that_cannot_start_stays_what_it_is(user: User) -> None:
    user.servers.load()
    user.write(off={**SHOP, "disabled": True}, unset={**SHOP, "env": {"A": "${UNSET}"}}, wrong=5)
    found = user.servers.load().servers
    assert [one.needs_trust for one in found.values() if isinstance(one, UnusableServer)] == [False] * 3
    with pytest.raises(ServerConfigurationError, match="names no MCP server"):
        user.servers.find("wrong")


def test_a_review_is_of_the_users_own_entry_before_that_of_a_project(user: User, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": SHOP, "db": SHOP}}))
    project = ProjectServers(tmp_path, {}, TrustedServers(user.kept))
    reviews = ReviewableServers(user.servers, project)
    user.servers.load()
    user.write(shop=EVIL)
    assert [reviews.find(name).is_of_project for name in ("shop", "db")] == [False, True]
    for name in ("shop", "db"):
        reviews.trust(name, reviews.find(name).key)
    assert user.kinds() == {"shop": True}
    assert isinstance(project.load().servers["db"], StdioServer)
    reviews.distrust("shop")
    assert user.kinds() == {"shop": False}
    assert ReviewableServers(user.servers, None).find("shop").path == str(user.file)
