"""A real JupyterHub that gives each user, and the services, a domain of their own (`subdomain_host`)."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from playwright.sync_api import Page, expect

from tests.browser.person import decide

from .conftest import new_page
from .hub import API, answered, kept_ports, missing
from .test_page import log_in
from .test_service import ASKS, DemoHub, kernel, result_of, running_demo, start_server

__all__ = ["kernel"]

pytestmark = pytest.mark.browser

#: A name that only the browser looks up; what the tests ask goes to 127.0.0.1 and says which host it is for.
HOST = "hub.example"
#: The domain that the Hub gives the service.
SERVICE_DOMAIN = "agentbox--service"
SUBDOMAINS = """
import json, os
from pathlib import Path
public, _, _, service = os.environ["DEMO_HUB_PORTS"].split()
c.JupyterHub.subdomain_host = f"http://{host}:{{public}}"
# Users' servers reach the Hub service at its own port: they cannot look up the name.
near = f"http://127.0.0.1:{{service}}/services/agentbox/"
servers = json.loads(Path("mcp.json").read_text())
servers["mcpServers"]["shop"]["url"] = f"{{near}}mcp/shop"
Path("mcp.json").write_text(json.dumps(servers))
c.Spawner.args = [one for one in c.Spawner.args if "hub_service_url" not in one]
c.Spawner.args += [f"--AgentBoxApp.hub_service_url={{near}}"]
for one in c.JupyterHub.services:
    if one["name"] == "agentbox":
        kept = [word for word in one["command"] if "public_url" not in word]
        address = f"http://{service_domain}.{host}:{{public}}/services/agentbox/"
        one["command"] = [*kept, f"--HubService.public_url={{address}}"]
"""


class Subdomains(DemoHub):
    """The demo with subdomains; `url` is the Hub's own address."""

    def ask(
        self, path: str, body: Any = None, *, token: str, method: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        port = self.url.rstrip("/").rpartition(":")[2]
        kind, _, rest = path.partition("/")
        domain = {"user": f"{rest.partition('/')[0]}.", "services": f"{SERVICE_DOMAIN}."}.get(kind, "")
        sent = {"Authorization": f"Bearer {token}", "Host": f"{domain}{HOST}:{port}", **headers}
        opener = urllib.request.build_opener()
        return answered(opener, f"http://127.0.0.1:{port}/{path}", body, headers=sent, method=method)

    def address(self, domain: str) -> str:
        """Return where the browser finds a domain."""
        return f"http://{domain}.{HOST}:{self.url.rstrip('/').rpartition(':')[2]}/"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoHub]:
    if reason := missing():
        pytest.skip(reason)
    more = SUBDOMAINS.format(host=HOST, service_domain=SERVICE_DOMAIN)
    with kept_ports(4) as ports, running_demo(tmp_path_factory.mktemp("hub"), ports, more, Subdomains) as hub:
        yield hub


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a chromium that finds the Hub's names on this machine."""
    with new_page(f"--host-resolver-rules=MAP *.{HOST} 127.0.0.1, MAP {HOST} 127.0.0.1") as page:
        yield page


def test_a_person_decides_in_jupyterlab_on_a_domain_of_their_own(demo: Subdomains, page: Page) -> None:
    start_server(demo, "ada")
    path, token = f"user/ada/{API}", demo.token_of("ada")
    request = demo.api(f"{path}servers/shop/calls", {"tool": "list_orders", "arguments": {}}, token=token)
    person = log_in(page, demo.password, "ada", f"{demo.address('ada')}user/ada/")
    person.status.click()

    decide(person.item("shop.list_orders"), "Allow once")
    expect(person.item("shop.list_orders")).to_have_count(0)

    found = demo.api(f"{path}approvals/{request['id']}", token=token)
    assert (found["status"], found["decision"]["via"]) == ("approved", "browser")


def test_an_approver_goes_from_their_domain_to_that_of_the_service(
    demo: Subdomains, kernel: BlockingKernelClient, page: Page
) -> None:
    start_server(demo, "bob")
    running = kernel.execute("from jupyter_agentbox import tools; print(tools.shop.delete_order(order_id=1210))")
    person = log_in(page, demo.password, "bob", f"{demo.address('bob')}user/bob/")
    expect(person.status).to_contain_text("1", timeout=ASKS)
    person.status.click()
    section = page.get_by_role("region", name="Waiting for you at the Hub")
    with page.context.expect_page() as opened:
        section.get_by_role("button", name="Review at the Hub").click()
    there = opened.value
    expect(there.get_by_text("1210")).to_be_visible()
    assert there.url.startswith(demo.address(SERVICE_DOMAIN))
    there.get_by_role("button", name="Allow").click()
    assert "1210" in result_of(kernel, running)
    there.close()
    expect(section).to_be_hidden(timeout=ASKS)
