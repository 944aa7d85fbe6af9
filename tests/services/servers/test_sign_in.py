"""Signing in over REST: from the button to the provider and back, and who is turned away on that way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.services.handlers import SETTINGS_KEY
from tests.oauth_server import OAuthServer, query_of, running_oauth_server


class Browser:
    """A browser that is logged in to the server, and keeps its cookies."""

    def __init__(self, client: Any, base_url: str, origin: str) -> None:
        self.client = client
        self.base_url = base_url
        self.origin = origin
        self.cookies: dict[str, str] = {"_xsrf": "0" * 32}
        self.set: list[str] = []
        self.kind = ""

    @property
    def page(self) -> str:
        return f"{self.origin}{self.base_url}"

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        """Ask the server, as a page of its own does, or as another page leads there."""
        shown = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            answer = await self.client.fetch(
                f"{self.base_url}{path}",
                method=method,
                body=None if body is None else json.dumps(body),
                headers={"Cookie": shown, **headers},
                follow_redirects=False,
            )
        except HTTPClientError as error:
            return error.code, error.response.body.decode() if error.response else ""
        self.kind = answer.headers["Content-Type"] if answer.body else ""
        self.set += answer.headers.get_list("Set-Cookie")
        found = SimpleCookie()
        for header in answer.headers.get_list("Set-Cookie"):
            found.load(header)
        self.cookies |= {name: morsel.value for name, morsel in found.items()}
        return answer.code, answer.body.decode()

    async def begin(self, page: str = "") -> Any:
        """Press the button."""
        code, body = await self.ask(
            "POST",
            "jupyter-agentbox/servers/remote/sign-in",
            {"page": page or self.page},
            **{"X-XSRFToken": "0" * 32, "Origin": self.origin},
        )
        return json.loads(body) if code == 200 else (code, json.loads(body)["reason"])

    async def come_back(self, address: str) -> tuple[int, str]:
        """Follow the provider's redirect."""
        assert address.startswith(self.page)
        path = address.removeprefix(self.page)
        return await self.ask("GET", path, **{"Sec-Fetch-Site": "cross-site", "Referer": "https://provider.example/"})


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as server:
        yield server


@pytest.fixture
def jp_server_config(tmp_path: Path, remote: OAuthServer) -> Any:
    servers = {"remote": {"url": remote.url}, "local": {"command": "nothing"}, "far": {"url": "http://a.example/mcp"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
            "decide_with": "person",
            "sign_in_storage": "file",
        },
    }


@pytest.fixture
def new_browser(
    http_server_client: Any, jp_base_url: str, jp_serverapp: Any, http_server_port: Any
) -> Callable[[], Awaitable[Browser]]:
    async def new() -> Browser:
        browser = Browser(http_server_client, jp_base_url, f"http://127.0.0.1:{http_server_port[1]}")
        assert (await browser.ask("GET", f"api/me?token={jp_serverapp.identity_provider.token}"))[0] == 200
        return browser

    return new


@pytest.fixture
def catalog(jp_serverapp: Any) -> Any:
    return jp_serverapp.web_app.settings[SETTINGS_KEY].catalog


async def granted(remote: OAuthServer, address: str, account: str = "ada") -> str:
    return await asyncio.to_thread(remote.grant, address, account)


async def who_tools_act_as(catalog: Any) -> str:
    return str((await catalog.call_tool(ToolCall(server="remote", tool="whoami", arguments={}))).text)


async def test_a_person_signs_in_uses_the_server_and_signs_out(
    new_browser: Any, remote: OAuthServer, catalog: Any, jp_data_dir: Path
) -> None:
    browser = await new_browser()
    begun = await browser.begin()
    assert begun["host"] == urlsplit(remote.origin).netloc
    assert begun["redirect"] == f"{browser.page}jupyter-agentbox/oauth/callback/remote"

    code, page = await browser.come_back(await granted(remote, begun["address"]))

    assert (code, "You are signed in" in page, "<script" in page) == (200, True, False)
    assert browser.kind == "text/html; charset=utf-8"
    assert await who_tools_act_as(catalog) == "you are ada"
    _, body = await browser.ask("GET", "jupyter-agentbox/servers")
    state = {server["name"]: server for server in json.loads(body)["servers"]}["remote"]
    assert (state["state"], state["is_signed_in"]) == ("running", True)

    code, _ = await browser.ask("DELETE", "jupyter-agentbox/servers/remote/sign-in", **{"X-XSRFToken": "0" * 32})
    assert code == 204
    assert remote.refreshable == {}
    assert not (jp_data_dir / "agentbox" / "sign-ins.json").exists()
    _, body = await browser.ask("GET", "jupyter-agentbox/servers")
    assert not {server["name"]: server for server in json.loads(body)["servers"]}["remote"]["is_signed_in"]


async def test_the_cookie_that_ties_the_way_back_is_for_it_alone(new_browser: Any) -> None:
    browser = await new_browser()
    await browser.begin()
    (cookie,) = (header for header in browser.set if header.startswith("jupyter-agentbox-sign-in-"))
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert f"Path={browser.base_url}jupyter-agentbox/oauth/callback" in cookie


async def test_what_comes_back_counts_once(new_browser: Any, remote: OAuthServer) -> None:
    browser = await new_browser()
    back = await granted(remote, (await browser.begin())["address"])
    assert (await browser.come_back(back))[0] == 200
    code, page = await browser.come_back(back)
    assert (code, "You are not signed in" in page) == (403, True)


async def status_of(browser: Browser) -> Any:
    _, body = await browser.ask("GET", "jupyter-agentbox/servers")
    return {server["name"]: server for server in json.loads(body)["servers"]}["remote"]


async def test_a_sign_in_that_was_denied_or_got_no_token_is_told_until_the_next_begins(
    new_browser: Any, remote: OAuthServer
) -> None:
    browser = await new_browser()
    begun = await browser.begin()
    assert (await status_of(browser))["sign_in_error"] == ""
    code, page = await browser.come_back(await granted(remote, begun["address"], "nobody"))
    told = (await status_of(browser))["sign_in_error"]
    assert (code, told) == (403, "the provider did not sign you in to `remote`: it was cancelled there, or denied")
    assert told in page

    begun = await browser.begin()
    assert (await status_of(browser))["sign_in_error"] == ""
    remote.is_down = True
    code, _ = await browser.come_back(await granted(remote, begun["address"]))
    assert code == 502
    assert (await status_of(browser))["sign_in_error"].startswith("signing in to `remote` failed: ")

    remote.is_down = False
    begun = await browser.begin()
    assert (await browser.come_back(await granted(remote, begun["address"])))[0] == 200
    assert (await status_of(browser))["sign_in_error"] == ""


async def test_what_a_stranger_sends_back_is_told_as_nobodys_failure(new_browser: Any, remote: OAuthServer) -> None:
    mallory, ada = await new_browser(), await new_browser()
    back = await granted(remote, (await mallory.begin())["address"], "nobody")
    assert (await ada.come_back(back))[0] == 403
    assert (await status_of(ada))["sign_in_error"] == ""


async def test_a_sign_in_that_was_cancelled_signs_nobody_in(new_browser: Any, remote: OAuthServer) -> None:
    browser = await new_browser()
    begun = await browser.begin()
    path = "jupyter-agentbox/servers/remote/sign-in/cancel"
    assert (await browser.ask("POST", path, {}, **{"X-XSRFToken": "0" * 32}))[0] == 204
    assert (await browser.come_back(await granted(remote, begun["address"])))[0] == 403
    assert remote.issued == []


async def test_a_state_that_was_never_given_is_refused(new_browser: Any, remote: OAuthServer) -> None:
    browser = await new_browser()
    await browser.begin()
    for query in ({}, {"state": "guessed", "code": "x"}, {"code": "x"}):
        code, _ = await browser.come_back(f"{browser.page}jupyter-agentbox/oauth/callback/remote?{urlencode(query)}")
        assert code == 403
    assert remote.issued == []


async def test_a_code_of_somebody_elses_sign_in_signs_nobody_in_and_leaves_theirs_alone(
    new_browser: Any, remote: OAuthServer, catalog: Any
) -> None:
    """Login CSRF: mallory signs in with her account, and leads ada's browser to where the provider sends her."""
    mallory, ada = await new_browser(), await new_browser()
    back = await granted(remote, (await mallory.begin())["address"], "mallory")

    assert (await ada.come_back(back))[0] == 403
    assert remote.issued == []
    assert (await mallory.come_back(back))[0] == 200
    assert await who_tools_act_as(catalog) == "you are mallory"


async def test_the_same_person_in_another_browser_is_refused(new_browser: Any, remote: OAuthServer) -> None:
    browser = await new_browser()
    back = await granted(remote, (await browser.begin())["address"])
    browser.cookies = {name: value for name, value in browser.cookies.items() if "sign-in" not in name}
    assert (await browser.come_back(back))[0] == 403
    assert remote.issued == []


async def test_the_way_back_of_one_server_is_none_of_another(new_browser: Any, remote: OAuthServer) -> None:
    """A provider that mixes up two sign-ins, to be sent the other one's code."""
    browser = await new_browser()
    back = await granted(remote, (await browser.begin())["address"])
    assert (await browser.come_back(back.replace("/callback/remote?", "/callback/other?")))[0] == 403
    assert remote.issued == []


async def test_a_provider_that_says_no_is_quoted_as_text(new_browser: Any, remote: OAuthServer) -> None:
    browser = await new_browser()
    back = await granted(remote, (await browser.begin())["address"], "nobody")
    code, page = await browser.come_back(back.replace("access_denied", "%3Cb%3Edenied"))
    assert code == 403
    assert "&lt;b&gt;denied" in page
    assert "<b>" not in page
    assert (await browser.come_back(back))[0] == 403


async def test_a_program_with_the_servers_token_neither_begins_nor_ends_a_sign_in(
    jp_fetch: Any, new_browser: Any, remote: OAuthServer, fetch: Any
) -> None:
    code, body = await fetch("servers", "remote", "sign-in", body={"page": "http://127.0.0.1:1/a%40b/"})
    assert (code, body["reason"]) == (403, "needs_person")
    back = await granted(remote, (await (await new_browser()).begin())["address"], "mallory")
    for path, more in [
        (("oauth", "callback", "remote"), {"params": query_of(back)}),
        (("servers", "remote", "sign-in"), {"method": "DELETE"}),
        (("servers", "remote", "sign-in", "cancel"), {"method": "POST", "body": "{}"}),
    ]:
        with pytest.raises(HTTPClientError) as caught:
            await jp_fetch("jupyter-agentbox", *path, **more)
        assert caught.value.code == 403
    assert remote.issued == []


async def test_without_a_login_the_way_back_leads_nowhere(new_browser: Any, remote: OAuthServer) -> None:
    browser = await new_browser()
    back = await granted(remote, (await browser.begin())["address"])
    browser.cookies = {name: value for name, value in browser.cookies.items() if not name.startswith("username")}
    assert (await browser.come_back(back))[0] == 403
    assert remote.issued == []


async def test_a_page_of_another_site_begins_none(new_browser: Any) -> None:
    browser = await new_browser()
    body = {"page": browser.page}
    assert (await browser.ask("POST", "jupyter-agentbox/servers/remote/sign-in", body))[0] == 403
    assert (await browser.begin("https://evil.example/"))[0] == 422


@pytest.mark.parametrize("body", [{}, {"page": 7}, {"page": "x", "redirect": "y"}, {"page": "x" * 9000}])
async def test_a_body_of_another_form_is_refused(new_browser: Any, body: Any) -> None:
    browser = await new_browser()
    headers = {"X-XSRFToken": "0" * 32}
    assert (await browser.ask("POST", "jupyter-agentbox/servers/remote/sign-in", body, **headers))[0] == 422


@pytest.mark.parametrize(("name", "code"), [("local", 409), ("far", 409), ("none", 404)])
async def test_a_server_to_which_nobody_can_sign_in_says_so(new_browser: Any, name: str, code: int) -> None:
    browser = await new_browser()
    headers = {"X-XSRFToken": "0" * 32}
    path = f"jupyter-agentbox/servers/{name}/sign-in"
    assert (await browser.ask("POST", path, {"page": browser.page}, **headers))[0] == code


async def test_a_second_try_gives_the_first_one_up(new_browser: Any, remote: OAuthServer) -> None:
    browser = await new_browser()
    first = await granted(remote, (await browser.begin())["address"])
    second = await granted(remote, (await browser.begin())["address"])
    assert (await browser.come_back(first))[0] == 403
    assert (await browser.come_back(second))[0] == 200


async def test_no_token_is_in_the_database_an_event_a_log_or_an_answer(
    new_browser: Any,
    remote: OAuthServer,
    catalog: Any,
    tmp_path: Path,
    jp_data_dir: Path,
    caplog: pytest.LogCaptureFixture,
    jp_serverapp: Any,
) -> None:
    events: list[str] = []
    heard = asyncio.Event()

    async def hear(logger: Any, schema_id: str, data: Any) -> None:
        del logger
        events.append(f"{schema_id} {json.dumps(data)}")
        heard.set()

    jp_serverapp.event_logger.add_listener(schema_id="https://events.jupyter-agentbox.org/servers/v1", listener=hear)
    caplog.set_level("DEBUG")
    browser = await new_browser()
    begun = await browser.begin()
    _, page = await browser.come_back(await granted(remote, begun["address"]))
    await who_tools_act_as(catalog)
    remote.valid.clear()
    remote.refreshable.clear()
    answers = [json.dumps(begun), page]
    for path in ("servers", "servers/remote/log", "audit", "approvals"):
        answers.append((await browser.ask("GET", f"jupyter-agentbox/{path}"))[1])

    async with asyncio.timeout(60):
        await heard.wait()
    files = [path for root in (tmp_path, jp_data_dir) for path in root.rglob("*") if path.is_file()]
    kept = {path.name: path.read_bytes().decode("utf-8", "replace") for path in files}
    assert remote.issued[0] in kept.pop("sign-ins.json")  # the one place: so the search finds what is there
    shown = "\n".join([*answers, *events, caplog.text, *kept.values()])
    assert [secret for secret in remote.secrets if secret in shown] == []
