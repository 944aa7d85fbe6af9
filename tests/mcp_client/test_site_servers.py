"""The site's MCP servers, and those of their own that it lets its users have."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.site_policy import Feature, HubPolicySource, Lock, ServerPattern, SitePolicy
from jupyter_agentbox.mcp_client.configuration import HttpServer, StdioServer, UnusableServer
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.site_servers import SiteServers
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of

GIT = {"command": "uvx", "args": ["mcp-server-git"]}
SHELL = {"command": "bash", "args": ["-c", "true"]}
ONLY_GIT = SitePolicy(allowed=(ServerPattern(command=("uvx", "mcp-server-git")),))


class Site:
    """A user's file, the site's file, and a policy that a test changes."""

    def __init__(self, directory: Path) -> None:
        self.users, self.own = directory / "mcp.json", directory / "agentbox_mcp.json"
        self.policy = SitePolicy()
        self.why_unprotected = ""
        self.source = SiteServers(
            ConfigurationFiles([self.users], {"TOKEN": "secret"}),
            policy=lambda: self.policy,
            paths=[self.own],
            why_unprotected=lambda _path: self.why_unprotected,
            environment={"TOKEN": "secret", "JUPYTERHUB_API_TOKEN": "hub-token"},
        )

    def write(self, path: Path, **servers: Any) -> None:
        path.write_text(json.dumps({"mcpServers": servers}))

    def kinds(self) -> dict[str, type]:
        return {name: type(server) for name, server in self.source.load().servers.items()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_sites_servers_come_first_and_their_names_are_the_sites(site: Site) -> None:
    site.write(site.users, git=SHELL, own=GIT)
    site.write(site.own, git=GIT)
    servers = site.source.load().servers
    assert list(servers) == ["git", "own"]
    assert isinstance(git := servers["git"], StdioServer)
    assert git.command == "uvx"


def test_a_users_server_does_not_take_the_python_name_of_the_sites(site: Site) -> None:
    site.write(site.users, git_hub=SHELL, own=GIT)
    site.write(site.own, **{"git-hub": GIT})
    loaded = site.source.load()
    assert list(loaded.servers) == ["git-hub", "own"]
    assert "`git_hub` is left out" in loaded.problems[0].message


def test_nothing_is_read_anew_while_nothing_changes(site: Site) -> None:
    site.write(site.users, git=GIT)
    first = site.source.load()
    assert site.source.load() is first
    site.policy = ONLY_GIT
    assert site.source.load() is not first


@pytest.mark.parametrize(
    "entry",
    [
        SHELL,
        {**GIT, "args": ["mcp-server-git", "--more"]},
        {**GIT, "command": "/home/eve/uvx"},
        {**GIT, "env": {"PYTHONPATH": "/home/eve"}},
        {"url": "https://example.org/mcp"},
    ],
    ids=["other command", "other arguments", "other program", "steering variable", "address"],
)
def test_what_the_site_does_not_allow_cannot_start_whatever_it_is_called(site: Site, entry: Any) -> None:
    site.policy = ONLY_GIT
    site.write(site.users, git=entry)
    (server,) = site.source.load().servers.values()
    assert isinstance(server, UnusableServer)
    assert "your administrator does not allow" in server.error


def test_what_the_site_allows_starts_under_any_name(site: Site) -> None:
    site.policy = ONLY_GIT
    site.write(site.users, mine={**GIT, "env": {"GIT_DIR": "x"}})
    assert site.kinds() == {"mine": StdioServer}


def test_where_servers_of_users_are_off_those_of_the_site_are_left(site: Site) -> None:
    site.policy = SitePolicy(features={Feature.LOCAL_SERVERS: Lock.FORCE_OFF})
    site.write(site.users, own=GIT, off={**GIT, "disabled": True})
    site.write(site.own, central={"url": "https://mcp.example.org/", "headers": {"Authorization": "Bearer ${TOKEN}"}})
    assert site.kinds() == {"central": HttpServer, "own": UnusableServer, "off": UnusableServer}
    central = site.source.load().servers["central"]
    assert isinstance(central, HttpServer)
    assert central.headers == {"Authorization": "Bearer secret"}


def test_a_file_that_users_can_change_is_none_of_the_sites(site: Site) -> None:
    site.why_unprotected = "the user of this server can write it"
    site.write(site.users, git=GIT)
    site.write(site.own, git=SHELL, more=SHELL)
    configuration = site.source.load()
    assert list(configuration.servers) == ["git"]
    assert isinstance(git := configuration.servers["git"], StdioServer)
    assert git.command == "uvx"
    assert [problem.message for problem in configuration.problems] == [
        "the user of this server can write it: its servers do not count"
    ]


def test_what_is_wrong_in_the_sites_file_is_told(site: Site) -> None:
    site.own.write_text("{")
    assert [problem.path for problem in site.source.load().problems] == [str(site.own)]


@pytest.mark.parametrize(
    ("helper", "kind"), [("", HttpServer), ("uvx mcp-server-git", HttpServer), ("uvx mcp-server-git x", UnusableServer)]
)
def test_a_program_that_prints_headers_must_be_one_that_users_may_start(site: Site, helper: str, kind: type) -> None:
    patterns = (*(ONLY_GIT.allowed or ()), ServerPattern(url="https://crm.example/*"))
    site.policy = SitePolicy(allowed=patterns)
    site.write(site.users, crm={"url": "https://crm.example/mcp", **({"headersHelper": helper} if helper else {})})
    assert site.kinds() == {"crm": kind}


@pytest.mark.parametrize("entry", [GIT, {"url": "https://crm.example/mcp", "headersHelper": "bash -c true"}])
def test_a_site_can_list_a_server_by_its_trust_key(site: Site, entry: dict[str, Any]) -> None:
    site.write(site.users, one=entry, other=SHELL)
    key = trust_key_of(site.source.load().servers["one"])
    site.policy = SitePolicy(allowed=(ServerPattern(trust_key=key),))
    assert site.kinds() == {"one": HttpServer if "url" in entry else StdioServer, "other": UnusableServer}
    site.policy = SitePolicy(denied=(ServerPattern(trust_key=key),))
    assert site.kinds() == {"one": UnusableServer, "other": StdioServer}


AT_THE_HUB = SitePolicy(
    hub_policy=HubPolicySource(url="https://hub/services/agentbox/api/policy", public_key="", hub="hub"),
    central_servers={"warehouse": 3900.0, "git": 60.0},
)


def test_the_servers_of_the_hub_service_need_no_entry_and_a_users_does_not_hide_them(site: Site) -> None:
    site.write(site.users, warehouse=SHELL, own=GIT)
    site.write(site.own, git=GIT)
    site.policy = AT_THE_HUB
    loaded = site.source.load()

    assert list(loaded.servers) == ["warehouse", "git", "own"]
    warehouse = loaded.servers["warehouse"]
    assert isinstance(warehouse, HttpServer)
    assert (warehouse.url, warehouse.timeout) == ("https://hub/services/agentbox/mcp/warehouse", 3900.0)
    assert warehouse.headers == {"Authorization": "Bearer hub-token"}
    assert "hub-token" in warehouse.secrets
    assert isinstance(loaded.servers["git"], StdioServer)  # the site's file comes first
    site.policy = replace(AT_THE_HUB, features={Feature.LOCAL_SERVERS: Lock.FORCE_OFF}, central_servers={})
    assert site.kinds() == {"git": StdioServer, "warehouse": UnusableServer, "own": UnusableServer}
    site.policy = replace(site.policy, central_servers=AT_THE_HUB.central_servers)
    assert site.kinds() == {"warehouse": HttpServer, "git": StdioServer, "own": UnusableServer}


@pytest.mark.parametrize("url", [None, "https://hub/other"])
def test_without_an_address_of_the_site_no_server_of_a_hub_service_is_known(site: Site, url: str | None) -> None:
    source = None if url is None else HubPolicySource(url=url, public_key="", hub="hub")
    site.policy = replace(AT_THE_HUB, hub_policy=source)
    assert site.kinds() == {}


def test_central_servers_that_are_at_no_known_address_are_a_problem_that_says_so(site: Site) -> None:
    source = replace(AT_THE_HUB.hub_policy, url="https://hub.example.org/services/agentbox/api/policy/")
    site.policy = replace(AT_THE_HUB, hub_policy=source, files=("/etc/jupyter/agentbox_rules.json",))
    found = site.source.load()
    assert found.servers == {}
    assert [(one.path, "`api/policy`" in one.message) for one in found.problems] == [
        ("/etc/jupyter/agentbox_rules.json", True)
    ]
