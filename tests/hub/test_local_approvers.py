"""A call of a user's own tool, in their JupyterLab, that another user of a real Hub approves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .hub import LAUNCH, TIMEOUT, kept_ports, missing
from .test_service import SERVICE, Browser, DemoHub, run_in_lab, running_demo

CODE = "from jupyter_agentbox import tools\nprint(tools.mine.get_order(order_id=1001)['id'])"
#: Users' servers know the Hub service by a file of the site, and `mine` by a file of their own.
CONFIG = """
import json, sys
from pathlib import Path
root = Path({root!r})
c.Spawner.cmd = [sys.executable, "-c", {launch!r}, str(root / "site")]
command = c.JupyterHub.services[0]["command"]
command[:] = [f"--policy={{root}}/policy.json" if part.startswith("--policy=") else part for part in command]
servers = {{"mine": {{"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}}}}
(root / "mcp.json").write_text(json.dumps({{"mcpServers": servers}}))
(root / "rules.json").write_text(json.dumps({{"rules": [{{"effect": "allow", "server": "*", "tool": "*"}}]}}))
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoHub]:
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("local-approvers")
    with kept_ports(4) as ports:
        write_policy(root, f"http://127.0.0.1:{ports[0]}/{SERVICE}")
        with running_demo(root, ports, CONFIG.format(root=str(root), launch=LAUNCH)) as hub:
            yield hub


def write_policy(root: Path, service: str) -> None:
    """Write the policy, and the file of the site that names the service."""
    rule = {"effect": "ask", "server": "mine", "tool": "get_*", "approvers": {"group": "shop-keepers"}}
    policy: dict[str, Any] = {"rules": [], "mcpServers": {}, "auditors": ["auditors"]}
    (root / "policy.json").write_text(json.dumps({**policy, "local": {"hub": "demo", "rules": [rule]}}))
    command = [Path(sys.executable).with_name("jupyter-agentbox"), "hub", "--policy=policy.json", "--show-policy-key"]
    key = subprocess.check_output(command, cwd=root, timeout=TIMEOUT, text=True).split()[-1]
    source = {"url": f"{service}api/policy", "public_key": key, "hub": "demo"}
    site = root / "site"
    site.mkdir(mode=0o755)
    (site / "agentbox_rules.json").write_text(json.dumps({"rules": [], "hub_policy": source}))


@pytest.mark.browser
def test_an_approver_at_the_hub_lets_a_users_own_tool_run_which_the_users_rules_cannot(
    demo: DemoHub, page: Page
) -> None:
    person = run_in_lab(demo, page, "ada", "a.ipynb", CODE)

    asked = person.card().get_by_role("group", name="Approval at the Hub")
    expect(person.card()).to_contain_text("The Hub is asked because of the rule “site: ask mine.get_*”.")
    expect(asked).to_contain_text("Asked at the Hub: a member of shop-keepers. Nobody has approved yet.")
    (request,) = demo.pending("bob")
    assert (request["call"]["server"], request["asked_by"]) == ("local/mine", "ada")
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/asked.png")
    assert Browser(demo, "bob").decide(request)[0] == 200
    expect(person.card()).to_contain_text("Approved at the Hub by bob.")
    expect(person.cell(0)).to_contain_text("1001")
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/done.png")
    token = demo.token_of("ada")
    records = demo.api("user/ada/jupyter-agentbox/audit?server=mine", token=token)["records"]
    assert [one["outcome"]["review"]["approved_by"] for one in records] == [["bob"]]
