"""A policy that the Hub service signed, in the server of a user of a real JupyterHub, who tries to be rid of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from jupyter_agentbox.hub.policy_signing import read_key
from jupyter_agentbox.storage.signed_policies import public_key_of

from .hub import LAUNCH, kept_ports, missing, run
from .test_service import SERVICE, DemoHub, audit_of, kernel, running_demo, until

__all__ = ["kernel"]

DENY = {"effect": "deny", "server": "git", "tool": "push", "reason": "not from notebooks"}
ALLOW = [{"effect": "allow", "server": "ledger", "tool": "*"}]
LOCAL = {"hub": "demo", "rules": [DENY, *ALLOW], "features": {"grants": "force-off"}, "central_servers": True}
#: What only the policy names.
LEDGER = {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}
CALL = {"server": "git", "tool": "push"}

#: The demo, whose users' servers have a directory of the system that they cannot change.
CONFIG = """
import sys
c.Spawner.cmd = [sys.executable, "-c", {launch!r}, {site!r}]
for service in c.JupyterHub.services:
    if "url" in service:
        service["command"] = [
            f"--policy={policy}" if part.startswith("--policy=") else part for part in service["command"]
        ]
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoHub]:
    if reason := missing():
        pytest.skip(reason)
    if os.geteuid() != 0:
        pytest.skip("a site's file has to belong to another user than the server's: the tests run as root for that")
    root = tmp_path_factory.mktemp("signed-policy")
    site, policy = root / "site", root / "policy.json"
    site.mkdir(mode=0o755)
    policy.write_text(
        json.dumps({"rules": ALLOW, "local": LOCAL, "mcpServers": {"ledger": LEDGER}, "auditors": ["auditors"]})
    )
    config = CONFIG.format(launch=LAUNCH, site=str(site), policy=str(policy))
    with kept_ports(4) as ports:
        source = {
            "url": f"http://127.0.0.1:{ports[0]}/{SERVICE}api/policy",
            "public_key": public_key_of(read_key(root / "agentbox_hub_policy_key")),
            "hub": "demo",
        }
        (site / "agentbox_rules.json").write_text(json.dumps({"rules": [], "hub_policy": source}))
        with running_demo(root, ports, config) as hub:
            yield hub


def start_server(demo: DemoHub) -> str:
    demo.api("hub/api/users/ada/server", {})
    until(lambda: demo.api("hub/api/users/ada")["servers"].get("", {}).get("ready"))
    return demo.token_of("ada")


def policy_of(demo: DemoHub, token: str) -> Any:
    return demo.api("user/ada/jupyter-agentbox/policy", token=token)


def test_a_users_server_goes_by_the_policy_also_if_they_delete_it_and_allow_everything(demo: DemoHub) -> None:
    token = start_server(demo)
    found = demo.api("user/ada/jupyter-agentbox/policy/evaluate", CALL, token=token)
    sent = policy_of(demo, token)["hub_policy"]
    assert (found["effect"], found["layer"], found["reason"]) == ("deny", "site", "not from notebooks")
    assert found["file"] == f"the policy of demo, version {sent['version']}"
    assert sent["problem"] is None
    assert policy_of(demo, token)["features"]["grants"]["message"].endswith("set by your administrator")

    home = demo.root / "homes" / "ada"
    (kept,) = home.rglob("hub-policy.json")
    allow = json.dumps({"rules": [{"effect": "allow", "server": "*", "tool": "*"}]})
    (demo.root / "rules.json").write_text(allow)  # the file that the demo has for rules of users
    for change in (kept.unlink, lambda: kept.write_text("{}"), lambda: _lose(kept)):
        change()
        assert demo.api("user/ada/jupyter-agentbox/policy/evaluate", CALL, token=token)["effect"] == "deny"
    other = {"server": "git", "tool": "log"}
    assert demo.api("user/ada/jupyter-agentbox/policy/evaluate", other, token=token)["effect"] == "allow"


def test_a_kernel_calls_a_central_tool_of_which_the_users_server_knows_by_the_policy_only(
    demo: DemoHub, kernel: BlockingKernelClient
) -> None:
    said = run(kernel, "from jupyter_agentbox import tools\nprint(tools.ledger.list_orders())")

    assert "1210" in said
    listed = demo.api("user/ada/jupyter-agentbox/servers", token=demo.token_of("ada"))["servers"]
    assert [one["state"] for one in listed if one["name"] == "ledger"] == ["running"]
    records = [one for one in audit_of(demo) if one["call"]["server"] == "ledger"]
    assert [(one["asked_by"], one["call"]["tool"], one["outcome"]["state"]) for one in records] == [
        ("ada", "list_orders", "succeeded")
    ]


def _lose(kept: Path) -> None:
    kept.unlink(missing_ok=True)
    kept.mkdir()
