"""A user of a real Hub signs in to a central server with OAuth, from the panel to the provider and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.oauth_server import OAuthServer, running_oauth_server

from .hub import kept_ports, missing
from .test_service import SERVICE, DemoHub, run_in_lab, running_demo

CODE = "from jupyter_agentbox import tools\nprint(tools.crm.whoami())"
#: The service has a server to which each user signs in, and users' servers know it by the service's address only.
CONFIG = """
import json
from pathlib import Path
root = Path({root!r})
command = c.JupyterHub.services[0]["command"]
command[:] = [f"--policy={{root}}/policy.json" if part.startswith("--policy=") else part for part in command]
headers = {{"Authorization": "Bearer ${{JUPYTERHUB_API_TOKEN}}"}}
servers = {{"crm": {{"url": f"{{c.JupyterHub.bind_url}}services/agentbox/mcp/crm", "headers": headers}}}}
(root / "mcp.json").write_text(json.dumps({{"mcpServers": servers}}))
(root / "rules.json").write_text(json.dumps({{"rules": [{{"effect": "allow", "server": "*", "tool": "*"}}]}}))
"""


@pytest.fixture(scope="module")
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as found:
        yield found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, remote: OAuthServer) -> Iterator[DemoHub]:
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("sign-in")
    servers = {"crm": {"url": remote.url, "oauth": True}}
    rule = {"effect": "allow", "server": "crm", "tool": "*"}
    (root / "policy.json").write_text(json.dumps({"rules": [rule], "mcpServers": servers, "auditors": ["auditors"]}))
    with kept_ports(4) as ports, running_demo(root, ports, CONFIG.format(root=str(root))) as hub:
        yield hub


#: What a script of a notebook can try, which has the same origin as the service: send one of its forms in a new window,
#: with a token that is given, or that a frame with a file of the service may let it read.
FORGE = """async given => {
  const frame = document.createElement('iframe');
  frame.src = '/services/agentbox/static/pages.css';
  const loaded = new Promise(done => { frame.onload = frame.onerror = done; });
  document.body.append(frame);
  await loaded;
  const token = given || (frame.contentDocument?.cookie ?? '').match(/_xsrf=([^;]*)/)?.[1] || '';
  const form = document.createElement('form');
  Object.assign(form, {method: 'post', action: '/services/agentbox/servers/crm/sign-out', target: '_blank'});
  const field = document.createElement('input');
  Object.assign(field, {name: '_xsrf', value: token});
  form.append(field);
  document.body.append(form);
  form.submit();
  return token;
}"""


def forge(page: Page, token: str = "") -> Page:
    """Let a script of the notebook's page send the form; return the page that opened."""
    with page.context.expect_page() as opened:
        page.evaluate(FORGE, token)
    opened.value.wait_for_load_state()
    return opened.value


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


@pytest.mark.browser
def test_a_user_signs_in_from_the_panel_and_the_tool_acts_as_them(
    demo: DemoHub, remote: OAuthServer, page: Page, tmp_path: Path
) -> None:
    person = run_in_lab(demo, page, "ada", "a.ipynb", CODE)
    expect(person.cell(0)).to_contain_text("SignInRequiredError")
    expect(person.cell(0)).to_contain_text(f"it wants you to sign in: open {demo.url}{SERVICE}servers")
    picture(page, "refused")

    person.status.click()
    page.get_by_role("tab", name="Servers").click()
    page.get_by_role("button", name="Sign in to crm").click()
    expect(page.get_by_role("group", name="Sign in to crm")).to_contain_text("on this page of the Hub")
    picture(page, "panel")
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Open the page").click()
    hub_page = opened.value
    expect(hub_page.get_by_role("row", name="crm")).to_contain_text("not signed in")
    picture(hub_page, "servers")
    hub_page.get_by_role("button", name="Sign in to crm").click()
    host = remote.origin.removeprefix("http://")
    expect(hub_page.get_by_role("main")).to_contain_text(f"You will sign in on a page of {host}.")
    expect(hub_page.get_by_role("main")).to_contain_text("when code of the Hub's user ada calls them")
    picture(hub_page, "leave")
    hub_page.get_by_role("link", name=f"Go to {host}").click()
    hub_page.get_by_role("link", name="Allow as ada").click()
    expect(hub_page.get_by_role("heading", name="You are signed in")).to_be_visible()
    picture(hub_page, "signed-in")
    hub_page.get_by_role("link", name="Servers to sign in to").click()
    expect(hub_page.get_by_role("button", name="Sign out of crm")).to_be_visible()

    page.bring_to_front()
    page.get_by_role("button", name="Start crm").click()
    expect(page.get_by_role("group", name="Server crm")).to_contain_text("running")
    picture(page, "running")
    person.run(0)
    expect(person.cell(0)).to_contain_text("you are ada")

    # A script of the notebook has no token for the service's forms; with it, the form would do what it says.
    expect(forge(page).get_by_role("alert")).to_contain_text("nothing changed")
    hub_page.reload()
    out = hub_page.get_by_role("button", name="Sign out of crm")
    expect(out).to_be_visible()
    token = out.locator("xpath=ancestor::form").locator("[name=_xsrf]").input_value()
    expect(forge(page, token).get_by_role("row", name="crm")).to_contain_text("not signed in")

    kept = [path for path in demo.root.rglob("*") if path.is_file()]
    assert any(path.name == "agentbox_hub.sqlite" for path in kept)
    for path in kept:
        content = path.read_bytes()
        assert not [secret for secret in remote.secrets if secret.encode() in content], path
