from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from traitlets.config import Config

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.protected_path_discovery import find_protected
from jupyter_agentbox.sandbox.server.protected_paths import Protected
from jupyter_agentbox.sandbox.server.settings import ExtraPaths
from jupyter_agentbox.sandbox.server.view import Access, make_view


def protected(places: Path) -> Protected:
    return find_protected(None, base=places / "run", prefixes=[], hidden=[places / "keys"])


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


def test_the_companions_of_a_database_are_hidden_like_it(places: Path) -> None:
    names = {"approvals.sqlite", "approvals.sqlite-wal", "approvals.sqlite-shm", "approvals.sqlite-journal", "owners"}
    config = Config({"AgentBoxApp": {"database_url": f"sqlite:///{places / 'home' / 'db' / 'approvals.sqlite'}"}})
    manager = AsyncKernelManager(config=config)
    manager._kernel_spec = KernelSpec()
    found = find_protected(manager, base=places / "run", prefixes=[], hidden=[])

    assert {places / "home" / "db" / name for name in names} <= set(found.hidden) & set(found.configuration)


def test_files_of_rules_and_what_a_link_there_leads_to_are_kept_as_they_are(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(places / "config"))
    config = Config({"AgentBoxApp": {"rules_path": str(places / "elsewhere" / "rules.json")}})
    manager = AsyncKernelManager(config=config)
    manager._kernel_spec = KernelSpec()
    found = find_protected(manager, base=places / "run", prefixes=[], hidden=[])

    assert {places / "config" / "agentbox_rules.json", places / "elsewhere" / "rules.json"} <= set(found.configuration)


def test_rules_that_are_a_link_into_the_work_directory_keep_the_kernel_from_starting(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = places / "home" / "work"
    work.mkdir(parents=True, exist_ok=True)
    (places / "config").mkdir(exist_ok=True)
    (places / "config" / "agentbox_rules.json").symlink_to(work / "rules.json")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(places / "config"))

    with pytest.raises(SandboxRefusedError):
        make_view(work=work, protected=protected(places), prefixes=(), extra=ExtraPaths(), files=[])


def test_a_database_whose_companions_could_be_made_keeps_the_kernel_from_starting(places: Path) -> None:
    home, database = places / "home", places / "home" / "db" / "approvals.sqlite"
    database.parent.mkdir()
    database.touch()
    config = Config({"AgentBoxApp": {"database_url": f"sqlite:///{database}"}})
    manager = AsyncKernelManager(config=config)
    manager._kernel_spec = KernelSpec()
    found = find_protected(manager, base=places / "run", prefixes=[], hidden=[])

    with pytest.raises(SandboxRefusedError):
        make_view(work=home, protected=found, prefixes=(), extra=ExtraPaths(), files=[])
    view = make_view(work=home, protected=found, prefixes=(), extra=ExtraPaths(hidden=(database.parent,)), files=[])
    assert view.access(database.with_name("approvals.sqlite-wal")) is Access.HIDDEN


def test_what_kernelspecs_of_others_and_servers_name_is_kept(places: Path) -> None:
    spec = places / "data" / "kernels" / "other" / "kernel.json"
    spec.parent.mkdir(parents=True)
    settings = places / "settings.json"
    settings.write_text(json.dumps({"bubblewrap": "/opt/bwrap"}))
    config = {"sandbox_config": str(settings), "srt": "/opt/srt"}
    spec.write_text(json.dumps({"metadata": {"kernel_provisioner": {"config": config}}}))
    (places / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": {"envFile": "shop.env"}}}))
    found = protected(places)

    assert {settings, Path("/opt/bwrap"), Path("/opt/srt"), spec.parents[2]} <= set(found.configuration)
    assert places / "config" / "shop.env" in found.covered


def test_configuration_that_the_server_loaded_is_kept(places: Path) -> None:
    loaded = places / "home" / "project" / "jupyter_server_config.py"
    server = SimpleNamespace(loaded_config_files=[str(loaded)], parent=None)
    manager = SimpleNamespace(parent=server, config=Config(), kernel_spec=None)
    found = find_protected(manager, base=places / "run", prefixes=[], hidden=[])

    assert loaded in set(found.configuration) & set(found.covered)


def _has_account() -> bool:
    return any(entry.pw_uid == os.getuid() for entry in pwd.getpwall())
