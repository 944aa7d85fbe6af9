"""Rights that a real Hub gives: the scope for the record, and what the service may ask about groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .hub import kept_ports, missing
from .test_service import SERVICE, Browser, DemoHub, running_demo, until

COLLECTOR = "collector-token-of-this-test"
AUDIT = "custom:agentbox:audit"
ACCESS = "access:services!service=agentbox"
CONFIG = """
root = {root!r}
command = c.JupyterHub.services[0]["command"]
command[:] = [f"--policy={{root}}/policy.json" if part.startswith("--policy=") else part for part in command]
c.JupyterHub.custom_scopes = {{{audit!r}: {{"description": "Read the record of jupyter_agentbox"}}}}
c.JupyterHub.services[0]["oauth_client_allowed_scopes"] = [{access!r}, {audit!r}]
c.JupyterHub.services += [{{"name": "collector", "api_token": {collector!r}}}]
c.JupyterHub.load_groups["review"] = {{"users": ["ada"]}}
c.JupyterHub.load_roles += [
    {{"name": "readers", "scopes": [{audit!r}, {access!r}], "groups": ["review"], "services": ["collector"]}},
]
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoHub]:
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("rights")
    write_policy(root, "shop-keepers", "gone")
    more = CONFIG.format(root=str(root), audit=AUDIT, collector=COLLECTOR, access=ACCESS)
    with kept_ports(4) as ports, running_demo(root, ports, more) as hub:
        yield hub


def write_policy(root: Path, *groups: str) -> None:
    rules = [{"effect": "ask", "server": "*", "tool": "t", "approvers": {"group": group}} for group in groups]
    (root / "policy.json").write_text(json.dumps({"rules": rules, "mcpServers": {}, "auditors": ["auditors"]}))


def token_of(demo: DemoHub, user: str, *scopes: str) -> str:
    """Return a token of a user with all of the user's rights, or with some of them only."""
    token: str = demo.api(f"hub/api/users/{user}/tokens", {"scopes": [*scopes]} if scopes else {})["token"]
    return token


def code_of(demo: DemoHub, path: str, token: str) -> int:
    return demo.ask(f"{SERVICE}{path}", token=token)[0]


def test_a_service_and_a_group_with_the_scope_read_the_record_and_others_do_not(demo: DemoHub) -> None:
    reader = token_of(demo, "ada", AUDIT, ACCESS)
    for path in ("api/audit", "api/reports", "api/reports/gaps"):
        assert [code_of(demo, path, token) for token in (COLLECTOR, reader, token_of(demo, "ada"))] == [200] * 3
        assert code_of(demo, path, token_of(demo, "ada", ACCESS)) == 403  # a token without the right of its user
    for body in ({"user": "ada", "reason": "mine"}, {"user": None, "reason": "mine"}):
        assert demo.ask(f"{SERVICE}api/holds", body, token=reader)[0] == 403
    # The Hub gives nobody a token with a right that they do not have.
    code, answer = demo.ask("hub/api/users/bob/tokens", {"scopes": [AUDIT, ACCESS]}, token=demo.admin)
    assert code == 400, answer


def test_the_browser_of_who_has_the_scope_shows_the_history_of_all(demo: DemoHub) -> None:
    assert "Download all of these as CSV" in Browser(demo, "ada").page("history")
    assert "You are <strong>bob</strong>" in Browser(demo, "bob").page("")  # who lacks it can log in, too


def test_the_service_asks_the_hub_who_is_in_the_groups_of_the_policy(demo: DemoHub) -> None:
    def problems() -> Any:
        return demo.ask(f"{SERVICE}health/ready", token=COLLECTOR)[1]["group_problems"]

    until(lambda: problems() == 1)
    write_policy(demo.root, "shop-keepers")
    until(lambda: problems() == 0)
