"""The way of a policy for users' own tools: the service signs it, the server of a user fetches it and goes by it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.site_policy import Feature, HubPolicySource, SitePolicy
from jupyter_agentbox.hub.app import main
from jupyter_agentbox.hub.policy_file import LocalPolicy, read_policy_file
from jupyter_agentbox.hub.policy_signing import read_key, version_of
from jupyter_agentbox.mcp_client.configuration import HttpServer
from jupyter_agentbox.mcp_client.site_servers import central_servers
from jupyter_agentbox.services.policies.hub_policy_link import HubPolicyLink
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.storage.hub_policies import HubPolicies
from jupyter_agentbox.storage.signed_policies import public_key_of
from jupyter_agentbox.testing import FakeClock

from .service import Service, a_policy, listening, running_service

CALL = ToolCall(server="git", tool="push", arguments={})
DENY = {"effect": "deny", "server": "git", "tool": "push", "reason": "not from notebooks"}


def with_local(*rules: Any, **more: Any) -> dict[str, Any]:
    return a_policy(local={"hub": "hub.example", "valid": 3600, "rules": list(rules), **more})


class UsersServer:
    """What a user's server has of the policy."""

    def __init__(
        self,
        directory: Path,
        url: str,
        key: Path,
        *,
        user: str = "ada",
        token: str = "",
        clock: FakeClock | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        source = HubPolicySource(url=f"{url}api/policy", public_key=public_key_of(read_key(key)), hub="hub.example")
        book = RuleBook(site=SitePolicy(hub_policy=source))

        class Files:
            is_writable = False

            def load(self) -> RuleBook:
                return book

            def write(self, *_: Any, **__: Any) -> None:
                raise NotImplementedError

        self.policies = HubPolicies(Files(), path=directory / "hub-policy.json", user=user, clock=self.clock)
        self.link = HubPolicyLink(self.policies, token=lambda: token or user, interval=3600)

    @property
    def effect(self) -> Effect:
        return PolicyManager(source=self.policies).evaluate(CALL).effect

    @property
    def version(self) -> int:
        status = self.policies.load().hub_policy
        assert status is not None
        return status.version or 0

    @property
    def problem(self) -> str:
        status = self.policies.load().hub_policy
        assert status is not None
        return status.problem


@asynccontextmanager
async def users_server(directory: Path, service: Service | str, **more: Any) -> AsyncIterator[UsersServer]:
    url = service if isinstance(service, str) else service.url
    server = UsersServer(directory, url, directory / "key", **more)
    await server.link.start()
    try:
        yield server
    finally:
        await server.link.aclose()


@pytest.mark.parametrize(
    ("isolation", "effect"),
    [(Isolation.NONE, Effect.DENY), (Isolation.SRT, Effect.DENY), (Isolation.BUBBLEWRAP, Effect.ASK)],
)
async def test_a_local_rule_keeps_a_central_server_from_kernels_below_an_isolation_level(
    tmp_path: Path, isolation: Isolation, effect: Effect
) -> None:
    rule = {"effect": "deny", "server": "warehouse", "tool": "*", "below": "landlock"}
    call = ToolCall(server="warehouse", tool="query", arguments={}, origin=Origin(kernel_id="k", isolation=isolation))
    clock = FakeClock()
    async with (
        running_service(tmp_path, with_local(rule, central_servers=True), clock=clock) as service,
        users_server(tmp_path, service, clock=clock) as server,
    ):
        assert PolicyManager(source=server.policies).evaluate(call).effect is effect


async def test_a_users_server_goes_by_what_the_service_signed_and_by_a_change_without_a_restart(tmp_path: Path) -> None:
    clock, at = FakeClock(), listening()
    first = with_local(DENY)
    async with running_service(tmp_path, first, at=at.dup(), clock=clock) as service:
        server = UsersServer(tmp_path, service.url, tmp_path / "key")
        await server.link.start()
        assert (server.effect, server.problem) == (Effect.DENY, "")
        version = server.version
    changed = with_local({**DENY, "effect": "allow"}, features={"grants": "force-off"})
    async with running_service(tmp_path, changed, at=at, clock=clock):
        await server.link.look()
        assert server.effect is Effect.ALLOW
        assert server.policies.load().site.is_off(Feature.GRANTS)
        assert server.version > version
        await server.link.aclose()


async def test_users_servers_get_the_names_of_the_central_servers_if_the_policy_says_so(tmp_path: Path) -> None:
    clock, at = FakeClock(), listening()
    rule = {"effect": "ask", "server": "ware*", "tool": "*", "timeout": 7200}
    entries = {"other": {"url": "https://mcp.example/", "timeout": 900}, "off": {"command": "x", "disabled": True}}

    def policy(has_central: bool) -> dict[str, Any]:
        found = with_local(central_servers=has_central)
        return {**found, "rules": [rule], "mcpServers": {**found["mcpServers"], **entries}}

    async with running_service(tmp_path, policy(False), at=at.dup(), clock=clock) as service:
        server = UsersServer(tmp_path, service.url, tmp_path / "key")
        await server.link.start()
        assert server.policies.load().site.central_servers == {}
        version = server.version
    async with running_service(tmp_path, policy(True), at=at, clock=clock) as service:
        await server.link.look()
        await server.link.aclose()
        site = server.policies.load().site
        assert site.central_servers == {"warehouse": 7200 + 300, "other": 60 + 900}
        assert server.version > version
        central = central_servers(site, {"JUPYTERHUB_API_TOKEN": "ada"}).servers
        assert [one.url for one in central.values() if isinstance(one, HttpServer)] == [
            f"{service.url}mcp/{name}" for name in ("other", "warehouse")
        ]


async def test_who_has_a_policy_is_told_that_it_is_the_present_one_until_it_is_signed_anew(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_service(tmp_path, with_local(DENY), clock=clock) as service:
        first = await service.get("api/policy", token="ada")
        again = await service.get("api/policy", token="ada")
        assert (first.code, first.body) == (200, again.body)
        assert first.headers["ETag"]
        clock.advance(3600 / 2)
        later = await service.get("api/policy", token="ada")
        assert later.body != first.body
        async with users_server(tmp_path, service, clock=clock) as server:
            kept = tmp_path / "hub-policy.json"
            written = kept.stat().st_mtime_ns
            await server.link.look()
            assert (server.problem, kept.stat().st_mtime_ns) == ("", written)  # it was not sent again
            clock.advance(3600 / 2)
            await server.link.look()
            assert (server.problem, kept.stat().st_mtime_ns != written) == ("", True)


async def test_each_user_has_their_own_and_none_can_use_anothers(tmp_path: Path) -> None:
    async with running_service(tmp_path, with_local(DENY), clock=FakeClock()) as service:
        of_bob = await service.get("api/policy", token="bob")
        async with users_server(tmp_path, service, token="bob") as server:
            assert "for the user `bob`" in server.problem
            assert server.effect is Effect.DENY
        assert (await service.get("api/policy", token="narrow:ada")).code == 403
        assert (await service.get("api/policy")).code == 403
        async with users_server(tmp_path, service) as server:
            with pytest.raises(Exception, match="for the user `bob`"):
                server.policies.accept(of_bob.body)
            assert server.effect is Effect.DENY


@pytest.mark.parametrize(("token", "problem"), [("nobody", "answers 403"), ("", "answers 404")])
async def test_what_the_service_refuses_is_told_and_everything_stays_denied(
    tmp_path: Path, token: str, problem: str
) -> None:
    read_key(tmp_path / "key")
    policy = with_local() if token else a_policy()
    async with running_service(tmp_path, policy) as service, users_server(tmp_path, service, token=token) as server:
        assert problem in server.problem
        assert server.effect is Effect.DENY


async def test_a_service_that_is_gone_leaves_what_was_good(tmp_path: Path) -> None:
    allow = {**DENY, "effect": "allow"}
    async with running_service(tmp_path, with_local(allow), clock=FakeClock()) as service:
        async with users_server(tmp_path, service) as server:
            assert server.effect is Effect.ALLOW
        url = service.url
    async with users_server(tmp_path, url) as server:
        assert "does not answer" in server.problem
        assert server.effect is Effect.ALLOW
        server.clock.advance(3601)
        assert server.effect is Effect.DENY


async def test_a_server_without_a_token_asks_nobody(tmp_path: Path) -> None:
    read_key(tmp_path / "key")
    server = UsersServer(tmp_path, "http://127.0.0.1:1/", tmp_path / "key")
    link = HubPolicyLink(server.policies, token=lambda: "", interval=3600)
    await link.start()
    await link.aclose()
    assert "no JupyterHub" in server.problem


def test_a_version_is_kept_and_grows_with_each_change_also_where_the_file_was_lost(tmp_path: Path) -> None:
    path, now = tmp_path / "key.version", FakeClock().now()
    one, two = (LocalPolicy(hub="h", valid=60.0, policy={"rules": rules}) for rules in ([], [DENY]))
    first = version_of(path, one, now)
    assert version_of(path, one, now) == first
    second = version_of(path, two, now)
    assert second == first + 1
    path.unlink()
    clock = FakeClock()
    assert version_of(path, one, clock.advance(10)) > second
    path.write_text("{}")
    with pytest.raises(ValueError, match="delete the file"):
        version_of(path, one, now)


def test_the_key_is_made_once_for_the_service_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "key"
    arguments = ["--show-policy-key", f"--HubService.policy_key={path}"]
    assert main(arguments) == 0
    assert path.stat().st_mode & 0o777 == 0o600
    shown = capsys.readouterr().out
    assert shown == f"{public_key_of(read_key(path))}\n"
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown
    path.chmod(0o644)
    assert main(arguments) == 2
    assert "other users can read the key" in capsys.readouterr().err
    path.chmod(0o600)
    path.write_text("short")
    assert main(arguments) == 2


@pytest.mark.parametrize(
    ("local", "found"),
    [
        ([], "1:24: `local` must be an object with `hub`, `rules`, `features` and `servers`"),
        ({"rules": []}, "1:24: `hub` is missing: the name of this Hub"),
        ({"hub": "h"}, "1:24: `rules` is missing"),
        ({"hub": "h", "rules": [], "valid": 59}, "`valid` must be a number of seconds from 60 to 2592000"),
        ({"hub": "h", "rules": [], "audit": {}}, "unknown key `audit`"),
        ({"hub": "h", "rules": [], "features": {"grants": "off"}}, "`grants` must be"),
        ({"hub": "h", "rules": [{"effect": "ask", "server": "a"}]}, "`tool` is missing"),
        ({"hub": "h", "rules": [], "servers": {"deny": [{"url": "*://x/*"}]}}, "`url` must begin with"),
        (
            {"hub": "h", "rules": [{**DENY, "approvers": {"group": "g"}}]},
            "`approvers` are of use in a rule whose effect",
        ),
        ({"hub": "h", "rules": [{**DENY, "effect": "ask", "approvers": {}}]}, "`group` is missing"),
    ],
)
def test_what_is_wrong_in_it_is_told_by_the_check(
    tmp_path: Path, local: Any, found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"rules": [], "local": local}))
    assert main([f"--policy={path}", "--check-config"]) == 2
    assert found in capsys.readouterr().err


def test_rules_for_users_can_name_notebooks_isolation_and_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = {**DENY, "notebook": "work/*", "isolation": "landlock", "below": "bubblewrap", "groups": ["students"]}
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"rules": [], "local": {"hub": "h", "rules": [rule]}}))
    assert main([f"--policy={path}", "--check-config"]) == 0
    assert "a policy for users' own tools; nothing is wrong" in capsys.readouterr().out
    local = read_policy_file(path, {}).local
    assert local == LocalPolicy(hub="h", valid=86_400.0, policy={"rules": [rule]})
