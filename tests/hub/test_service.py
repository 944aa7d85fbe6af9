"""The Hub service at a real JupyterHub, as `make demo-hub` starts it: a notebook asks, another user allows."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from playwright.sync_api import Page, expect

from tests.browser.accessibility import violations
from tests.browser.person import Person, decide

from .hub import PROXY, ROOT, TIMEOUT, answered, frozen_server, kept_ports, missing, run, told
from .test_page import log_in

SERVICE = "services/agentbox/"
#: Milliseconds within which JupyterLab asks once more what waits at the service, on a busy machine.
ASKS = 120_000

#: The demo as it is, but for the seconds that its Hub gives servers and the service, and for what tests ask pages.
PATIENTLY = """
load_subconfig({demo!r})
c.Spawner.start_timeout = c.Spawner.http_timeout = {timeout}
c.Spawner.args = [*c.Spawner.args, "--LabApp.expose_app_in_browser=True"]
from jupyterhub.services.service import Service
if hasattr(Service, "timeout"):  # JupyterHub 5 has none
    for service in c.JupyterHub.services:
        if "url" in service:
            service["timeout"] = {timeout}
"""

#: One more central server, which asks. It runs for each user: over standard streams, it does not say whose call it is.
ASKING = """
import json
from pathlib import Path
policy = json.loads(Path({policy!r}).read_text())
policy["rules"].append({{"effect": "allow", "server": "asking", "tool": "*"}})
entry = {{"command": {python!r}, "args": [{script!r}], "protocolEra": "legacy", "env": {{"FOR_USER": "${{HUB_USER}}"}}}}
policy["mcpServers"]["asking"] = entry
Path("policy.json").write_text(json.dumps(policy))
for service in c.JupyterHub.services:
    if service["name"] == "agentbox":
        kept = [word for word in service["command"] if not word.startswith("--policy=")]
        service["command"] = [*kept, f"--policy={{Path.cwd()}}/policy.json"]
servers = json.loads(Path("mcp.json").read_text())["mcpServers"]
servers["asking"] = {{**servers["shop"], "url": servers["shop"]["url"].replace("/shop", "/asking")}}
Path("mcp.json").write_text(json.dumps({{"mcpServers": servers}}))
rules = [{{"effect": "allow", "server": name, "tool": "*"}} for name in servers]
Path("rules.json").write_text(json.dumps({{"rules": rules}}))
"""


@dataclass(frozen=True)
class DemoHub:
    """The running demo."""

    root: Path
    url: str
    password: str
    admin: str

    def api(self, path: str, body: Any = None, token: str = "", method: str | None = None) -> Any:
        code, answer = self.ask(path, body, token=token or self.admin, method=method)
        assert code < 300, (path, code, answer)
        return answer

    def ask(
        self, path: str, body: Any = None, *, token: str, method: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        opener, sent = urllib.request.build_opener(), {"Authorization": f"Bearer {token}", **headers}
        return answered(opener, f"{self.url}{path}", body, headers=sent, method=method)

    def token_of(self, user: str) -> str:
        token: str = self.api(f"hub/api/users/{user}/tokens", {})["token"]
        return token

    def pending(self, user: str) -> list[Any]:
        found: list[Any] = self.api(f"{SERVICE}api/requests", token=self.token_of(user))["pending"]
        return found


class Browser:
    """A browser in which a user logs in, and then opens the service."""

    def __init__(self, hub: DemoHub, user: str) -> None:
        self._hub = hub
        self._jar = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))
        login = f"{hub.url}hub/login?next=%2F{SERVICE}"  # without it, the user's server would start as well
        self._opener.open(login, timeout=TIMEOUT).close()
        form = {"username": user, "password": hub.password, "_xsrf": self._xsrf("/hub/")}
        self._opener.open(login, urllib.parse.urlencode(form).encode(), timeout=TIMEOUT).close()
        self.inbox = self.page("")

    def page(self, path: str) -> str:
        with self._opener.open(f"{self._hub.url}{SERVICE}{path}", timeout=TIMEOUT) as page:
            text: str = page.read().decode()
        return text

    def decide(self, request: Any, answer: str = "allow_once", **more: Any) -> tuple[int, Any]:
        body = {"decision": answer, "digest": request["call"]["digest"], **more}
        url = f"{self._hub.url}{SERVICE}api/requests/{request['id']}/decision"
        return answered(self._opener, url, body, headers={"X-XSRFToken": self._xsrf(f"/{SERVICE}")})

    def _xsrf(self, path: str) -> str:
        return next((one.value or "" for one in self._jar if (one.name, one.path) == ("_xsrf", path)), "")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoHub]:
    if reason := missing():
        pytest.skip(reason)
    script, policy = ROOT / "tests" / "mcp_client" / "servers" / "asking.py", ROOT / "examples" / "hub" / "policy.json"
    more = ASKING.format(policy=str(policy), python=sys.executable, script=str(script))
    with kept_ports(4) as ports, running_demo(tmp_path_factory.mktemp("demo-hub"), ports, more) as hub:
        yield hub


@contextmanager
def running_demo(
    root: Path, ports: Sequence[int], more: str = "", hub_type: type[DemoHub] = DemoHub
) -> Iterator[DemoHub]:
    assert PROXY
    config = root / "jupyterhub_config.py"
    demo = PATIENTLY.format(demo=str(ROOT / "examples" / "hub" / "jupyterhub_config.py"), timeout=TIMEOUT)
    config.write_text(demo + more)
    password, admin = secrets.token_hex(16), secrets.token_hex(16)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "XDG", "CONFIGPROXY"))}
    given = {
        "HOME": str(root),
        "DEMO_HUB_PORTS": " ".join(map(str, ports)),
        "DEMO_HUB_PASSWORD": password,
        "DEMO_HUB_ADMIN_TOKEN": admin,
        "DEMO_HUB_PROXY": PROXY,
    }
    command = [sys.executable, "-m", "jupyterhub", "-f", str(config)]
    with (
        (root / "hub.log").open("wb") as log,
        subprocess.Popen(
            command, cwd=root, env={**kept, **given}, stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        hub = hub_type(root, f"http://127.0.0.1:{ports[0]}/", password, admin)
        try:
            until(lambda: is_up(hub), process)
            yield hub
        finally:
            process.terminate()
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise


def is_up(hub: DemoHub) -> bool:
    try:
        return hub.ask(f"{SERVICE}health/ready", token="")[0] == 200
    except OSError:
        return False


def until(condition: Any, process: Any = None) -> Any:
    """Wait until a process of another kind has come so far; it tells nobody."""
    end = time.monotonic() + TIMEOUT
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        assert process is None or process.poll() is None, "the Hub has ended"
        time.sleep(0.1)
    return found


def start_server(demo: DemoHub, user: str) -> None:
    code, _ = demo.ask(f"hub/api/users/{user}/server", {}, token=demo.admin)
    assert code in (201, 202, 400)  # with JupyterHub 5 it may run already: logging in started it
    until(lambda: demo.api(f"hub/api/users/{user}")["servers"].get("", {}).get("ready"))


def run_in_lab(demo: DemoHub, page: Page, user: str, path: str, source: str) -> Person:
    """Start the server of ``user``, open a new notebook there in JupyterLab as they do, and run its only cell."""
    start_server(demo, user)
    cell = {"id": "c1", "cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [cell], "metadata": spec, "nbformat": 4, "nbformat_minor": 5}
    body = {"type": "notebook", "content": notebook}
    demo.api(f"user/{user}/api/contents/{path}", body, token=demo.token_of(user), method="PUT")
    person = log_in(page, demo.password, user, f"{demo.url}user/{user}/")
    page.goto(f"{demo.url}user/{user}/lab/tree/{path}?reset")  # and no notebook of an earlier test
    person.await_kernel()
    person.run(0)
    return person


@pytest.fixture(scope="module")
def kernel(demo: DemoHub) -> Iterator[BlockingKernelClient]:
    """A kernel of ada's server."""
    start_server(demo, "ada")
    session = demo.api(
        "user/ada/api/sessions",
        {"path": "shop.ipynb", "name": "shop", "type": "notebook", "kernel": {"name": "python3"}},
        token=demo.token_of("ada"),
    )
    runtime = demo.root / "homes" / "ada" / ".local" / "share" / "jupyter" / "runtime"
    client = BlockingKernelClient(connection_file=str(runtime / f"kernel-{session['kernel']['id']}.json"))
    client.load_connection_file()
    client.start_channels(hb=False)
    try:
        client.wait_for_ready(timeout=TIMEOUT)
        yield client
    finally:
        client.stop_channels()
        client.context.destroy(linger=0)


def test_a_notebook_calls_a_central_tool_that_another_user_allows(demo: DemoHub, kernel: BlockingKernelClient) -> None:
    assert "1210" in run(kernel, "from jupyter_agentbox import tools; print(tools.shop.list_orders())")  # allowed
    running = kernel.execute("print(tools.shop.delete_order(order_id=1210))")
    (request,) = until(lambda: demo.pending("bob"))
    assert (request["asked_by"], request["call"]["arguments"]) == ("ada", {"order_id": 1210})
    ada, bob = Browser(demo, "ada"), Browser(demo, "bob")
    assert demo.ask("user/ada/jupyter-agentbox/approvals", token=demo.token_of("bob"))[0] == 403  # it is ada's
    assert request["id"] in bob.inbox
    assert "waits for 1 approval by shop-keepers" in ada.inbox

    own = ada.decide(request)
    in_body = ada.decide(request, reviewer="bob")
    path, body = f"{SERVICE}api/requests/{request['id']}/decision", {"decision": "allow_once"}
    body["digest"] = request["call"]["digest"]
    by_token = demo.ask(path, body, token=demo.token_of("bob"))
    by_header = demo.ask(path, body, token=demo.token_of("ada"), **{"X-Forwarded-User": "bob"})
    by_server = decide_as_server(demo, path, body)
    (still,) = demo.pending("bob")

    assert (own[0], own[1]["reason"]) == (403, "not_an_approver")
    assert in_body[0] == 422
    assert (by_token[0], by_token[1]["reason"]) == (403, "needs_person")
    assert (by_header[0], by_header[1]["reason"]) == (403, "needs_person")
    assert by_server == 403
    assert still["status"] == "pending"
    assert bob.decide(request)[0] == 200
    assert "1210" in result_of(kernel, running)
    assert "approved, succeeded" in Browser(demo, "ada").inbox
    records = audit_of(demo)
    (record,) = (one for one in records if one["id"] == request["id"])
    assert (record["asked_by"], record["decision"]["reviewer"], record["decision"]["via"]) == ("ada", "bob", "browser")
    verified = subprocess.run(
        [
            Path(sys.executable).with_name("jupyter-agentbox"), "audit", "verify",
            "--database", demo.root / "agentbox_hub.sqlite",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (verified.returncode, verified.stdout[:7]) == (0, "Intact:")


def test_the_login_page_says_what_to_try_but_not_the_password(demo: DemoHub) -> None:
    with urllib.request.urlopen(f"{demo.url}hub/login", timeout=TIMEOUT) as page:
        text = page.read().decode()

    assert "Log in as <code>ada</code>, and in another browser" in text
    assert f'href="{demo.url}{SERVICE}"' in text
    assert demo.password not in text


def test_who_approves_while_the_users_server_is_frozen_lets_the_call_run_once(
    demo: DemoHub, kernel: BlockingKernelClient
) -> None:
    running = kernel.execute("from jupyter_agentbox import tools; print(tools.shop.delete_order(order_id=1208))")
    (request,) = until(lambda: demo.pending("bob"))
    bob = Browser(demo, "bob")

    with frozen_server(demo.root / "homes" / "ada"):
        code, answer = bob.decide(request)
        assert (code, answer["status"]) == (200, "approved")

    assert "1208" in result_of(kernel, running)
    found = [one for one in audit_of(demo) if one["call"]["arguments"] == {"order_id": 1208}]
    assert [(one["id"], one["outcome"]["state"]) for one in found] == [(request["id"], "succeeded")]


@pytest.mark.browser
def test_an_approver_sees_it_in_their_own_jupyterlab_and_decides_on_the_page_that_it_leads_to(
    demo: DemoHub, kernel: BlockingKernelClient, page: Page
) -> None:
    start_server(demo, "bob")
    person = log_in(page, demo.password, "bob", f"{demo.url}user/bob/")
    expect(person.status).to_have_text("")
    running = kernel.execute("from jupyter_agentbox import tools; print(tools.shop.delete_order(order_id=1211))")
    expect(page.get_by_text("ada asks for your approval at the Hub (shop.delete_order)")).to_be_visible(timeout=ASKS)
    expect(person.status).to_contain_text("1")
    (request,) = demo.pending("bob")
    told = demo.api("user/bob/jupyter-agentbox/hub-requests", token=demo.token_of("bob"))
    code, _ = demo.ask("user/bob/jupyter-agentbox/hub-requests", token=demo.admin)

    person.status.click()
    section = page.get_by_role("region", name="Waiting for you at the Hub")
    expect(section).to_contain_text("ada asks")
    with page.context.expect_page() as opened:
        section.get_by_role("button", name="Review at the Hub").click()
    there = opened.value
    expect(there.get_by_text("1211")).to_be_visible()
    there.get_by_role("button", name="Allow").click()

    assert "1211" in result_of(kernel, running)
    assert [one["id"] for one in told["requests"]] == [request["id"]]
    assert "1211" not in json.dumps(told)
    assert code == 403  # a service that may use bob's server is not bob
    there.close()
    expect(section).to_be_hidden(timeout=ASKS)
    expect(person.status).to_have_text("")


@pytest.mark.browser
def test_the_pages_of_the_service_can_be_used_by_everybody(
    demo: DemoHub, kernel: BlockingKernelClient, page: Page
) -> None:
    start_server(demo, "bob")
    log_in(page, demo.password, "bob", f"{demo.url}user/bob/")
    running = kernel.execute("from jupyter_agentbox import tools; print(tools.shop.delete_order(order_id=1214))")
    (request,) = until(lambda: demo.pending("bob"))
    found = {}
    for path in ("", f"requests/{request['id']}", "?several=1"):
        page.goto(f"{demo.url}{SERVICE}{path}")
        expect(page.get_by_text("1214").first).to_be_visible()
        found[path] = violations(page, "body")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Reject selected").click()
    expect(page.get_by_role("heading", name="Answered")).to_be_visible()
    found["decisions"] = violations(page, "body")
    page.goto(f"{demo.url}{SERVICE}history")
    expect(page.get_by_role("heading", name="History", exact=True)).to_be_visible()
    found["history"] = violations(page, "body")

    assert not [line for lines in found.values() for line in lines], found
    page.evaluate("document.querySelector('label').before(document.createElement('input'))")
    assert violations(page, "body"), "axe looks at nothing"
    assert "ToolCallRejectedError" in result_of(kernel, running)


@pytest.mark.browser
def test_a_call_without_an_open_notebook_is_counted_while_it_waits_at_the_hub(
    demo: DemoHub, kernel: BlockingKernelClient, page: Page
) -> None:
    person = log_in(page, demo.password, "ada", f"{demo.url}user/ada/")
    expect(person.status).to_have_text("")
    running = kernel.execute("from jupyter_agentbox import tools; print(tools.shop.delete_order(order_id=1213))")
    expect(person.status).to_have_text("1 at the Hub", timeout=ASKS)
    person.status.click()
    line = page.get_by_text("1 call is waiting for approval at the Hub.")
    expect(line).to_be_visible()
    (request,) = demo.pending("bob")

    assert Browser(demo, "bob").decide(request)[0] == 200
    assert "1213" in result_of(kernel, running)
    expect(line).to_be_hidden()
    expect(person.status).to_have_text("")


@pytest.mark.browser
def test_who_asks_sees_under_the_cell_who_is_asked_and_then_who_allowed_it(demo: DemoHub, page: Page) -> None:
    source = "from jupyter_agentbox import tools\nprint(tools.shop.delete_order(order_id=1212))"
    person = run_in_lab(demo, page, "ada", "ask.ipynb", source)

    asked = person.card().get_by_role("group", name="Approval at the Hub")
    expect(asked).to_contain_text("Asked at the Hub: a member of shop-keepers. Nobody has approved yet.")
    expect(asked.get_by_role("timer")).to_be_visible()
    (request,) = demo.pending("bob")
    with page.context.expect_page() as opened:
        asked.get_by_role("button", name="Show it at the Hub").click()
    expect(opened.value).to_have_url(f"{demo.url}{SERVICE}requests/{request['id']}")
    opened.value.close()
    assert Browser(demo, "bob").decide(request)[0] == 200

    expect(person.card()).to_contain_text("Approved at the Hub by bob.")
    expect(asked).to_have_count(0)
    expect(person.cell(0)).to_contain_text("1212")
    person.save()
    token = demo.token_of("ada")
    saved = demo.api("user/ada/api/contents/ask.ipynb", token=token)["content"]["cells"][0]["outputs"]
    assert "at the Hub approved by bob" in json.dumps(saved)
    (record,) = (one for one in audit_of(demo) if one["id"] == request["id"])
    reported = record["reported"]
    records = demo.api("user/ada/jupyter-agentbox/audit?server=shop", token=token)["records"]
    (own,) = (one for one in records if one["id"] == reported["request_id"])
    for name in ("kernel_id", "notebook_path", "cell_id", "isolation"):
        assert reported[name] == own["call"][name]
    assert (reported["notebook_path"], reported["cell_id"]) == ("ask.ipynb", "c1")


@pytest.mark.browser
def test_what_a_central_server_asks_is_a_card_under_the_cell_of_the_user_whose_call_it_is(
    demo: DemoHub, page: Page
) -> None:
    start_server(demo, "bob")
    source = "from jupyter_agentbox import tools\nprint('told:', tools.asking.deliver())"
    person = run_in_lab(demo, page, "ada", "asked.ipynb", source)

    card = person.cell(0).get_by_role("group", name="The server “asking” asks you")
    expect(card).to_contain_text("Where to?")
    of_ada, of_bob = (
        demo.api(f"user/{user}/jupyter-agentbox/questions", token=demo.token_of(user))["questions"]
        for user in ("ada", "bob")
    )
    card.get_by_role("textbox", name="street").fill("Elm Street 1428")
    decide(card, "Answer")
    expect(person.cell(0)).to_contain_text("told: accept")
    expect(card).to_have_count(0)

    assert ([one["server"] for one in of_ada], of_bob) == (["asking"], [])
    record = next(one for one in audit_of(demo) if one["call"]["server"] == "asking")
    (question,) = record["outcome"]["questions"]
    assert (question["action"], question["reviewer"], question["content"]) == ("accept", "ada", {})


def result_of(kernel: BlockingKernelClient, id: str) -> str:
    """Return what code printed that was sent to the kernel, when it has run."""
    said: list[str] = []
    while True:
        message = kernel.get_iopub_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") != id:
            continue
        content = message["content"]
        said.append(content.get("text") or "".join(content.get("traceback", ())))
        if content.get("execution_state") == "idle":
            return "".join(said)


def decide_as_server(demo: DemoHub, path: str, body: Any) -> int:
    """Decide with the token that ada's server has."""
    (environ,) = (
        text
        for process in Path("/proc").iterdir()
        if process.name.isdecimal() and (text := told(process / "environ")).find(f"{demo.root}/homes/ada") >= 0
        and "jupyterhub.singleuser" in told(process / "cmdline")
    )  # fmt: skip
    found = re.search(r"JUPYTERHUB_API_TOKEN=(\w+)", environ)
    assert found is not None
    return demo.ask(path, body, token=found[1])[0]


def audit_of(demo: DemoHub) -> list[Any]:
    token = demo.token_of("bob")
    request = urllib.request.Request(f"{demo.url}{SERVICE}api/audit", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        return [json.loads(line) for line in answer.read().decode().splitlines()]
