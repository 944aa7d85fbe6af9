from __future__ import annotations

import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.server.probes import select_level
from tests.hub.hub import ANY, OWNER, Hub, kept_ports, missing, run, running_hub

from .attack import LEVELS, Attack

ATTACK = Attack(
    "on a JupyterHub, approve with the token that the Hub gave the server, in every way that it may be sent",
    plain=False,
    control="test_the_token_decides_where_programs_may",
)

pytestmark = pytest.mark.timeout(300)


def attack(facts: dict[str, Any]) -> Any:
    import contextlib
    import http.cookiejar
    import json
    import os
    import urllib.request

    # it is in no kernel's environment; a plain kernel finds it in that of the server, its parent
    with open(f"/proc/{os.getppid()}/environ", "rb") as environment:
        given = dict(entry.split("=", 1) for entry in environment.read().decode().split("\0") if "=" in entry)
    token, url = given["JUPYTERHUB_API_TOKEN"], facts["url"]
    decision = url + "jupyter-agentbox/approvals/" + facts["id"] + "/decision"
    body = json.dumps({"decision": "allow_once", "digest": facts["digest"]}).encode()
    with_token = {"Authorization": "token " + token}
    navigates = {"Sec-Fetch-Mode": "navigate"}

    def client(*cookies: Any) -> Any:
        jar = http.cookiejar.CookieJar()
        return jar, urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def post(browser: Any, jar: Any, headers: dict[str, str], query: str = "") -> None:
        tokens = [cookie.value for cookie in jar if cookie.name == "_xsrf"]
        xsrf = {"X-XSRFToken": tokens[0]} if tokens else {}
        try:
            request = urllib.request.Request(decision + query, data=body, headers={**headers, **xsrf})
            said.append(browser.open(request, timeout=10).status)
        except OSError as error:
            said.append(getattr(error, "code", str(error)))

    def visit(browser: Any, address: str, headers: dict[str, str]) -> None:
        with contextlib.suppress(OSError):
            browser.open(urllib.request.Request(address, headers=headers), timeout=10).close()

    said: list[Any] = []
    jar, browser = client()
    post(browser, jar, with_token)
    post(
        browser,
        jar,
        {**with_token, **navigates, "Origin": url, "Referer": url + "lab", "Cookie": "jupyterhub-session-id=x"},
    )
    post(browser, jar, navigates, "?token=" + token)
    for path in ("lab?token=" + token, "lab"):  # a login by the token; JupyterHub's own login, in the server's name
        jar, browser = client()
        visit(browser, url + path, {**with_token, **navigates})
        post(browser, jar, {})
        post(browser, jar, with_token)
    return 200 in said or None


def run_at(hub: Hub, level: Isolation, server: str = "") -> tuple[Any, str]:
    """Run the attack in a kernel; return the request that it is about, and what the kernel said."""
    request = hub.new_request(server)
    source = textwrap.dedent(inspect.getsource(attack))
    facts = {"url": hub.server(server), "id": request["id"], "digest": request["call"]["digest"]}
    code = f"from typing import Any\n{source}\nprint('evidence', attack({facts!r}))"
    with hub.kernel("python3" if level is Isolation.NONE else f"at-{level.value}", server) as kernel:
        said = run(kernel, code)
    return hub.read(request, server), said


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    if reason := missing():
        pytest.skip(reason)
    with kept_ports(3) as ports, running_hub(tmp_path_factory.mktemp("hub"), ports) as hub:
        for level in LEVELS[1:]:
            directory = hub.root / "homes" / OWNER / ".local" / "share" / "jupyter" / "kernels" / f"at-{level.value}"
            directory.mkdir(parents=True)
            spec = kernelspec(sys.executable, display_name=level.value, config={"levels": [level.value]})
            (directory / "kernel.json").write_text(json.dumps(spec))
        yield hub


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)
def test_the_servers_token_decides_nothing(hub: Hub, level: Isolation) -> None:
    if level is not Isolation.NONE:
        try:
            select_level([level])
        except SandboxRefusedError as refusal:
            pytest.skip(str(refusal))

    request, said = run_at(hub, level)

    assert ("evidence None" in said) is (level is Isolation.NONE), said  # in a sandbox it finds no token
    assert (request["status"] != "pending") is ATTACK.succeeds_at(level), said


def test_the_token_decides_where_programs_may(hub: Hub) -> None:
    request, said = run_at(hub, Isolation.NONE, ANY)

    assert "evidence True" in said, said
    assert (request["status"], request["decision"]["via"]) == ("approved", "server_token")
