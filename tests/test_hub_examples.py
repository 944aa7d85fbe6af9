"""The files for Kubernetes and The Littlest JupyterHub name only what the chart, JupyterHub and this package have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_server.serverapp import ServerApp
from jupyterhub.scopes import scope_definitions
from jupyterhub.services.service import Service
from traitlets.config import Config

from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.core.policy import Layer
from jupyter_agentbox.core.reviewers import DECIDE_SCOPE
from jupyter_agentbox.core.rule_text import read_text
from jupyter_agentbox.hub.app import OK, HubService
from jupyter_agentbox.hub.callers import HOLD_SCOPE
from jupyter_agentbox.hub.policy_file import read_policy_file
from jupyter_agentbox.hub.traits import HubTraits
from jupyter_agentbox.hub.web_application import routes
from jupyter_agentbox.mcp_client.configuration import parse_configuration
from jupyter_agentbox.sandbox.kernelspecs import SandboxedKernelSpecManager

HUB = Path(__file__).parents[1] / "examples" / "hub"
VALUES = yaml.safe_load((HUB / "kubernetes" / "values.yaml").read_text("utf-8"))
MANIFESTS = {one["kind"]: one for one in yaml.safe_load_all((HUB / "kubernetes" / "agentbox.yaml").read_text("utf-8"))}
UNIT = (HUB / "tljh" / "agentbox-hub.service").read_text("utf-8")
SNIPPET = (HUB / "tljh" / "agentbox.py").read_text("utf-8")
PREFIX = "/services/agentbox/"
PORT = 8090

#: Prints what the service takes from its environment.
ASK_THE_SERVICE = """
import json
from jupyter_agentbox.hub.app import HubService
from jupyterhub.services.auth import HubOAuth
auth = HubOAuth()
names = ("api_token", "api_url", "base_url", "hub_prefix", "oauth_client_id")
print(json.dumps({
    **{name: getattr(auth, name) for name in names},
    "access_scopes": sorted(auth.access_scopes),
    "service_url": HubService().service_url,
}))
"""

#: Keys of the chart's values that the example uses, as jupyterhub/values.schema.yaml of zero-to-jupyterhub-k8s has them
#: at commit 02dd73df (chart 3.x or 4.x). What is below a key of type dict is free there; `*` is any name.
CHART = {
    "hub.config": dict,
    "hub.services": dict,
    "hub.loadRoles": dict,
    "hub.networkPolicy.enabled": bool,
    "hub.networkPolicy.ingress": list,
    "singleuser.image.name": str,
    "singleuser.image.tag": str,
    "singleuser.uid": int,
    "singleuser.fsGid": int,
    "singleuser.allowPrivilegeEscalation": bool,
    "singleuser.cloudMetadata.blockWithIptables": bool,
    "singleuser.networkPolicy.enabled": bool,
    "singleuser.networkPolicy.egress": list,
    "singleuser.networkPolicy.egressAllowRules.cloudMetadataServer": bool,
    "singleuser.networkPolicy.egressAllowRules.privateIPs": bool,
    "singleuser.extraFiles.*.mountPath": str,
    "singleuser.extraFiles.*.mode": int,
    "singleuser.extraFiles.*.data": dict,
}


def container() -> dict[str, Any]:
    """Return the service's container."""
    (one,) = MANIFESTS["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(one)


def site_file(name: str) -> dict[str, Any]:
    """Return what the chart writes to a file of the site."""
    (content,) = [
        one["data"] for one in VALUES["singleuser"]["extraFiles"].values() if Path(one["mountPath"]).name == name
    ]
    return dict(content)


def snippet(directory: Path) -> Config:
    """Return what the snippet for The Littlest JupyterHub configures, with a token in `directory`."""
    (directory / "service.env").write_text("JUPYTERHUB_API_TOKEN=0123\n")
    config = Config()
    config.JupyterHub.services = [{"name": "cull-idle"}]
    config.JupyterHub.load_roles = [{"name": "cull-idle"}]
    exec(SNIPPET.replace("/etc/agentbox", str(directory)), {"get_config": lambda: config})
    return config


def unknown_to_the_chart(values: object, path: str = "") -> list[str]:
    """Return the paths of the values that the chart does not have, or has with another type."""
    for pattern, kind in CHART.items():
        if re.fullmatch(re.escape(pattern).replace(r"\*", "[^.]+"), path):
            return [] if type(values) is kind else [path]
    if not isinstance(values, dict) or not values:
        return [path]
    return [bad for key, one in values.items() for bad in unknown_to_the_chart(one, f"{path}.{key}".lstrip("."))]


def deployed(tmp_path: Path) -> list[str]:
    """Return the options of the Deployment's command, with its files in `tmp_path`."""
    for name, text in MANIFESTS["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text.replace("/run/agentbox", str(tmp_path)))
    (tmp_path / "warehouse-token").write_text("secret\n")
    program, command, *options = container()["command"]
    assert (program, command) == ("jupyter-agentbox", "hub")
    return [option.replace("/etc/agentbox", str(tmp_path)) for option in options]


def test_every_value_is_one_of_the_charts() -> None:
    assert unknown_to_the_chart(VALUES) == []


@pytest.mark.parametrize(
    "wrong", [{"hub": {"sevices": {}}}, {"singeluser": {"uid": 1000}}, {"singleuser": {"uid": "1000"}}]
)
def test_a_value_that_the_chart_does_not_have_is_found(wrong: dict[str, object]) -> None:
    assert unknown_to_the_chart(wrong) != []


def test_the_service_takes_its_command_policy_and_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = deployed(tmp_path)
    assert HubService().run([*options, "--check-config"]) == OK
    assert "2 rules, 1 central server; nothing is wrong" in capsys.readouterr().out


@pytest.mark.parametrize("command", [" ".join(container()["command"]), UNIT], ids=["kubernetes", "systemd"])
def test_every_option_and_trait_is_one_of_the_services(command: str) -> None:
    known = {*HubService.aliases, *HubService.flags}
    assert {"policy", "config"} <= set(re.findall(r"--([a-z-]+)", command)) <= known
    config = Config()
    exec(MANIFESTS["ConfigMap"]["data"]["hub_config.py"], {"c": config})
    assert set(config) == {"HubService"}
    assert set(config.HubService) <= set(HubTraits.class_own_traits(config=True))
    assert config.HubService.public_url.endswith(PREFIX)


@pytest.mark.parametrize("place", ["kubernetes", "systemd"])
def test_the_environment_makes_a_service_of_the_hub(place: str) -> None:
    variables = {one["name"]: one.get("value", "from-a-secret") for one in container()["env"]}
    if place == "systemd":
        variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", UNIT, re.MULTILINE))
        variables["JUPYTERHUB_API_TOKEN"] = "from-a-file"
    others = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTERHUB_")}
    # A process of its own: JupyterHub reads some of these variables when it is imported.
    ran = subprocess.run(
        [sys.executable, "-c", ASK_THE_SERVICE], env=others | variables, capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == {
        "api_token": variables["JUPYTERHUB_API_TOKEN"],
        "api_url": variables["JUPYTERHUB_API_URL"],
        "base_url": PREFIX,
        "hub_prefix": "/hub/",
        "oauth_client_id": "service-agentbox",
        "access_scopes": ["access:services!service=agentbox"],
        "service_url": variables["JUPYTERHUB_SERVICE_URL"],
    }
    assert variables["JUPYTERHUB_SERVICE_URL"].endswith(f":{PORT}{PREFIX}")


def test_the_probes_ask_addresses_of_the_service() -> None:
    known = {route for route, *_ in routes(PREFIX, PREFIX)}
    asked = {container()[probe]["httpGet"]["path"] for probe in ("readinessProbe", "livenessProbe")}
    assert asked == {f"{PREFIX}health/ready", f"{PREFIX}health/live"}
    assert asked <= known


def test_the_sites_files_have_no_problem() -> None:
    rules = read_text(json.dumps(site_file("agentbox_rules.json")), path="rules", layer=Layer.SITE)
    assert rules.problems == ()
    assert [rule.server for rule in rules.rules] == ["warehouse"]
    servers = parse_configuration(
        Path("/etc/jupyter/agentbox_mcp.json"),
        json.dumps(site_file("agentbox_mcp.json")),
        {"JUPYTERHUB_API_TOKEN": "0123"},
    )
    assert servers.problems == ()
    assert list(servers.servers) == ["warehouse"]


def test_every_trait_of_the_users_servers_exists() -> None:
    classes = (AgentBoxApp, ServerApp, SandboxedKernelSpecManager, KernelSpecManager, MultiKernelManager)
    known = {one.__name__: one.class_trait_names(config=True) for one in classes}
    config = site_file("jupyter_server_config.json")
    assert [f"{name}.{trait}" for name, traits in config.items() for trait in traits if trait not in known[name]] == []


def test_every_scope_is_one_of_the_hubs_or_of_this_package(tmp_path: Path) -> None:
    custom = set(VALUES["hub"]["config"]["JupyterHub"]["custom_scopes"])
    assert custom <= {DECIDE_SCOPE, HOLD_SCOPE}
    roles = [*VALUES["hub"]["loadRoles"].values(), *snippet(tmp_path).JupyterHub.load_roles[1:]]
    scopes = {scope.partition("!")[0] for role in roles for scope in role["scopes"]}
    assert scopes - custom <= set(scope_definitions)


def test_the_groups_of_roles_and_of_the_policy_exist(tmp_path: Path) -> None:
    groups = set(VALUES["hub"]["config"]["JupyterHub"]["load_groups"])
    deployed(tmp_path)
    policy = read_policy_file(tmp_path / "policy.json", {})
    asked = {rule.approvers.group for rule in policy.policy.rules if rule.approvers}
    assert asked
    assert asked | policy.auditors <= groups
    assert {group for role in VALUES["hub"]["loadRoles"].values() for group in role.get("groups", [])} <= groups


def test_services_have_keys_that_the_hub_knows(tmp_path: Path) -> None:
    config = snippet(tmp_path)
    assert [one["name"] for one in config.JupyterHub.services] == ["cull-idle", "agentbox"]
    assert config.JupyterHub.services[1]["api_token"] == "0123"
    services = [VALUES["hub"]["services"]["agentbox"], config.JupyterHub.services[1]]
    assert [key for one in services for key in one if key not in Service.class_trait_names()] == []


def test_users_servers_and_the_proxy_reach_the_service_and_nothing_else_does() -> None:
    labels = MANIFESTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    policy = MANIFESTS["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert MANIFESTS["Service"]["spec"]["selector"] == labels
    (way_in,) = policy["ingress"]
    who = [one["podSelector"]["matchLabels"] for one in way_in["from"]]
    assert {one["component"] for one in who} == {"singleuser-server", "proxy", "hub"}
    assert all(one["app"] == "jupyterhub" for one in who)
    (way_out,) = VALUES["singleuser"]["networkPolicy"]["egress"]
    assert [one["podSelector"]["matchLabels"] for one in way_out["to"]] == [labels]
    (to_the_hub,) = VALUES["hub"]["networkPolicy"]["ingress"]
    assert [one["podSelector"]["matchLabels"] for one in to_the_hub["from"]] == [labels]
    assert [one["port"] for one in way_in["ports"] + way_out["ports"]] == [PORT, PORT]
    assert [one["containerPort"] for one in container()["ports"]] == [PORT]


def test_all_addresses_in_the_cluster_are_those_of_the_service() -> None:
    service = MANIFESTS["Service"]
    (port,) = service["spec"]["ports"]
    address = f"http://{service['metadata']['name']}:{port['port']}"
    assert VALUES["hub"]["services"]["agentbox"]["url"] == address
    url = site_file("agentbox_mcp.json")["mcpServers"]["warehouse"]["url"]
    assert url == f"{address}{PREFIX}mcp/warehouse"
    assert site_file("agentbox_rules.json")["audit"]["sinks"] == [f"agentbox+{address}{PREFIX}"]
    token = next(one for one in container()["env"] if one["name"] == "JUPYTERHUB_API_TOKEN")
    assert token["valueFrom"]["secretKeyRef"] == {"name": "hub", "key": "hub.services.agentbox.apiToken"}
