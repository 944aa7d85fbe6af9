"""Users' sign-ins to central servers: each user's own, kept by the service, and gone when they should be."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import sqlite3
import sys
from collections.abc import Iterator
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.tools import ServerState
from jupyter_agentbox.exceptions import SignInRequiredError, ToolServerError
from jupyter_agentbox.hub.app import main
from jupyter_agentbox.hub.sign_in_keys import SignInKeys
from jupyter_agentbox.services.servers.sign_ins import SignInManager
from tests.oauth_server import OAuthServer, query_of, running_oauth_server

from .service import TIMEOUT, USERS, Service, running_service

SERVER = "crm"


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as found:
        yield found


def policy_with(remote: OAuthServer, **entry: Any) -> dict[str, Any]:
    rule = {"effect": "allow", "server": "*", "tool": "*"}
    return {
        "rules": [rule],
        "mcpServers": {SERVER: {"url": remote.url, "oauth": True, **entry}},
        "auditors": ["auditors"],
    }


def at(directory: Path) -> dict[str, Any]:
    """Return the settings of a service that knows its address and has its key in a directory."""
    return {"sign_in_key": directory / "sign-in-key", "knows_address": True}


class Browser:
    """The browser of a user who is logged in at the Hub."""

    def __init__(self, service: Service, user: str) -> None:
        self.service = service
        self.cookies = {"service-agentbox": service.cookie(f"session:{user}").partition("=")[2]}

    async def fetch(self, url: str, form: dict[str, str] | None = None, /, **headers: str) -> HTTPResponse:
        url = url if "://" in url else f"{self.service.url}{url}"
        body = None if form is None else "&".join(f"{key}={value}" for key, value in form.items())
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = await AsyncHTTPClient().fetch(
            url,
            method="GET" if body is None else "POST",
            body=body,
            headers={"Cookie": cookie, **headers},
            raise_error=False,
            follow_redirects=False,
            request_timeout=TIMEOUT,
        )
        for line in answer.headers.get_list("Set-Cookie"):
            self.cookies |= {name: found.value for name, found in SimpleCookie(line).items()}
        return answer

    async def press(self, path: str) -> HTTPResponse:
        """Press a button of the list of servers."""
        if "_xsrf" not in self.cookies:
            await self.fetch("servers")
        return await self.fetch(path, {"_xsrf": self.cookies["_xsrf"]})

    async def begin(self) -> str:
        """Press *Sign in…*; return the address of the provider's page."""
        answer = await self.press(f"servers/{SERVER}/sign-in")
        assert answer.code == 200, answer.body
        found = re.search(r'<a class="button" href="([^"]+)"', answer.body.decode())
        assert found is not None, answer.body
        return unescape(found[1])

    async def sign_in(self, remote: OAuthServer, account: str) -> HTTPResponse:
        """Sign in from the list of servers to the provider's page and back."""
        address = await self.begin()
        return await self.fetch(await asyncio.to_thread(remote.grant, address, account))

    async def status(self) -> str:
        """Return what the list says of the server."""
        answer = await self.fetch("servers")
        (found,) = re.findall(r"<td>((?:not )?signed in.*?)</td>", answer.body.decode())
        return str(found)


async def whoami(service: Service, user: str) -> str:
    """Return as whom the tool acts for a user's code."""
    async with service.tools_of(user, SERVER) as tools:
        result = await tools.call_tool(ToolCall(server=SERVER, tool="whoami", arguments={}))
    assert not result.is_error, result
    return str(result.content[0]["text"])


async def record_of(service: Service) -> list[Any]:
    """Return the service's record, as an auditor reads it."""
    answer = await service.get("api/audit", token="dan")
    return [json.loads(line) for line in answer.body.splitlines()]


async def test_each_user_signs_in_and_acts_as_themselves(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada, bob = Browser(service, "ada"), Browser(service, "bob")
        assert await ada.status() == "not signed in"
        for browser, account in ((ada, "ada@crm"), (bob, "bob@crm")):
            answer = await browser.sign_in(remote, account)
            assert (answer.code, b"You are signed in" in answer.body) == (200, True), answer.body
            assert await browser.status() == "signed in"
        assert await whoami(service, "ada") == "you are ada@crm"
        assert await whoami(service, "bob") == "you are bob@crm"
        with pytest.raises(SignInRequiredError):
            await whoami(service, "cleo")

        record = await record_of(service)
    signed_in = [
        (row["call"]["tool"], row["call"]["arguments"], row["decision"]["reviewer"])
        for row in record
        if row["call"]["tool"] == "sign_in"
    ]
    assert sorted(signed_in) == [("sign_in", {"name": SERVER}, "ada"), ("sign_in", {"name": SERVER}, "bob")]
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("hub.sqlite*")) + json.dumps(record).encode()
    assert not [secret for secret in remote.secrets if secret.encode() in kept]


async def test_who_has_not_signed_in_is_told_where_and_goes_on_at_once_afterwards(
    remote: OAuthServer, tmp_path: Path
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        async with service.tools_of("ada", SERVER) as tools:
            page = f"{service.url}servers"
            for _ in range(3):  # nobody has to wait longer after each attempt
                with pytest.raises(SignInRequiredError, match=f"it wants you to sign in: open {re.escape(page)}"):
                    await tools.list_tools(SERVER)
            (status,) = tools.servers()
            assert (status.state, status.sign_in_url) == (ServerState.NEEDS_SIGN_IN, page)
            await Browser(service, "ada").sign_in(remote, "ada")
            assert [tool.name for tool in await tools.list_tools(SERVER)] == ["whoami"]
            (status,) = tools.servers()
            assert (status.state, status.sign_in_url) == (ServerState.RUNNING, "")

            # The provider ends the sign-in while the connections stand.
            remote.valid.clear()
            remote.refreshable.clear()
            with pytest.raises(SignInRequiredError, match=r"`crm\.whoami` did not run.* the sign-in has ended: open"):
                await tools.call_tool(ToolCall(server=SERVER, tool="whoami", arguments={}))
            assert tools.servers()[0].sign_in_url == page
        record = await record_of(service)
        assert [row["outcome"]["state"] for row in record if row["call"]["tool"] == "whoami"] == ["failed"]


async def test_who_lacks_rights_is_told_on_which_page_to_sign_in_with_others(
    remote: OAuthServer, tmp_path: Path
) -> None:
    me = ToolCall(server=SERVER, tool="whoami", arguments={})
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        page = f"{service.url}servers"
        await Browser(service, "ada").sign_in(remote, "ada")
        async with service.tools_of("ada", SERVER) as tools:
            await tools.list_tools(SERVER)
            remote.missing_scope = "orders.write"
            told = rf"lacks rights .*\(orders.write\): open {re.escape(page)},"
            with pytest.raises(SignInRequiredError, match=told) as caught:
                await tools.call_tool(me)
            assert caught.value.url == page
            assert tools.servers()[0].sign_in_url == page
        # A user's server that does not know the service gets the text alone.
        async with service.tools_of("ada", SERVER, hub_service="https://another.example/") as tools:
            with pytest.raises(
                ToolServerError, match=rf"lacks rights .*: open {re.escape(page)}, sign out of it there"
            ):
                await tools.call_tool(me)
        remote.missing_scope, remote.forbids_calls = "", True
        async with service.tools_of("ada", SERVER) as tools:
            refused = await tools.call_tool(me)
            assert refused.is_error
            assert f"HTTP 403 Forbidden; if the sign-in lacks rights: open {page}, sign out of it" in refused.text
        assert await Browser(service, "ada").status() == "signed in"


async def test_a_server_that_is_not_the_hub_service_cannot_send_people_to_a_page(
    remote: OAuthServer, tmp_path: Path
) -> None:
    async with (
        running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service,
        service.tools_of("ada", SERVER, hub_service="https://another.example/") as tools,
    ):
        with pytest.raises(ToolServerError, match="sign in") as caught:
            await tools.list_tools(SERVER)
        assert not isinstance(caught.value, SignInRequiredError)
        assert tools.servers()[0].sign_in_url == ""


async def test_a_sign_in_survives_a_restart_and_ends_with_sign_out(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        browser = Browser(service, "ada")
        assert await whoami(service, "ada") == "you are ada"
        assert await browser.status() == "signed in"
        refresh = next(iter(remote.refreshable))
        answer = await browser.press(f"servers/{SERVER}/sign-out")
        assert (answer.code, answer.headers["Location"]) == (303, "/services/agentbox/servers")
        assert await browser.status() == "not signed in"
        assert ("revoke", refresh) in [(what, form.get("token")) for what, form in remote.asked]
        with pytest.raises(SignInRequiredError):
            await whoami(service, "ada")


async def test_a_sign_in_is_for_the_groups_that_its_user_has_now(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_with(remote, url=f"{remote.url}?groups=${{HUB_GROUPS}}")
    async with running_service(tmp_path, policy, **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        await ada.sign_in(remote, "ada")
        monkeypatch.setitem(USERS, "ada", ["managers"])
        assert await ada.status() == "not signed in"  # at this address
        answer = await ada.sign_in(remote, "ada")
        assert answer.code == 200, answer.body
        assert await ada.status() == "signed in"


async def test_a_renewed_token_replaces_the_old_one_for_the_next_service(remote: OAuthServer, tmp_path: Path) -> None:
    remote.expires_in = 1  # it is renewed before each use
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        assert await whoami(service, "ada") == "you are ada"
    first = set(remote.issued[:2])
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        assert await whoami(service, "ada") == "you are ada"
    renewed_with = [form["refresh_token"] for what, form in remote.asked if what == "refresh_token"]
    assert len(renewed_with) == len(set(renewed_with)) >= 2
    assert first & set(renewed_with[:1])


async def test_of_the_renewals_of_a_sign_in_the_second_does_not_begin_before_the_first_has_ended(
    remote: OAuthServer, tmp_path: Path
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        mine, others = service.box.sign_ins.of("ada"), service.box.sign_ins.of("bob")
        let_go = mine.begin_renewal(SERVER)
        free = [others.begin_renewal(SERVER), mine.begin_renewal("mail")]
        assert mine.begin_renewal(SERVER) is None
        for end in (let_go, *free):
            assert end is not None
            end()
        again = mine.begin_renewal(SERVER)
        assert again is not None
        again()


@pytest.mark.parametrize("harm", ["another key", "another user's row", "another server"])
async def test_a_sign_in_counts_only_for_its_user_server_and_key(
    remote: OAuthServer, tmp_path: Path, harm: str
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
    user, policy = "ada", policy_with(remote)
    if harm == "another key":
        (tmp_path / "sign-in-key").unlink()
    elif harm == "another user's row":
        user = "bob"
        with sqlite3.connect(tmp_path / "hub.sqlite") as database:
            assert database.execute("UPDATE agentbox_sign_ins SET tenant = 'bob'").rowcount == 1
    else:
        policy = policy_with(remote, url=f"{remote.url}?of=another")
    async with running_service(tmp_path, policy, **at(tmp_path)) as service:
        assert await Browser(service, user).status() == "not signed in"
        remote.bearers.clear()
        with pytest.raises(SignInRequiredError):
            await whoami(service, user)
    assert not any(remote.bearers)


async def test_a_second_key_still_reads_what_the_first_encrypted(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
    old = (tmp_path / "sign-in-key").read_bytes()
    (tmp_path / "new").mkdir()
    async with running_service(tmp_path / "new", policy_with(remote), **at(tmp_path / "new")):
        pass
    (tmp_path / "sign-in-key").write_bytes((tmp_path / "new" / "sign-in-key").read_bytes() + old)
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        assert await whoami(service, "ada") == "you are ada"


async def test_the_answer_of_a_provider_counts_only_for_who_began_in_the_browser_where_they_did(
    remote: OAuthServer, tmp_path: Path
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        back = await asyncio.to_thread(remote.grant, await ada.begin(), "ada")
        # The attacker sends the victim the last step of a sign-in of their own, or takes the victim's.
        for user, why in (("eve", b"never begun here"), ("ada", b"begun by somebody else, or in another browser")):
            answer = await Browser(service, user).fetch(back)
            assert (answer.code, why in answer.body) == (403, True), answer.body
        nobody = Browser(service, "ada")
        nobody.cookies.clear()
        answer = await nobody.fetch(back)
        assert (answer.code, b"this browser is not logged in here" in answer.body) == (403, True)
        assert "Location" not in answer.headers
        # A script of a page asks for it, with all cookies.
        script = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
        assert (await ada.fetch(back, **script)).code == 403
        assert (await ada.fetch(back)).code == 200
        assert (await ada.fetch(back)).code == 403  # a second time
        assert await whoami(service, "ada") == "you are ada"


async def test_nobody_signs_in_for_a_user_whose_login_a_script_added(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        logins = {user: service.cookie(f"session:{user}") for user in ("ada", "eve")}
        sessions = {user: f"jupyterhub-session-id=s-{user}" for user in ("ada", "eve")}
        pages = {
            "both logins": [logins["ada"], logins["eve"]],
            "both sessions": [logins["eve"], sessions["ada"], sessions["eve"]],
            "the login of the other": [logins["eve"], sessions["ada"]],
            "their own": [logins["ada"], sessions["ada"]],
        }
        for path in ("servers", f"sign-in/callback/{SERVER}?state=a&code=b"):
            answers = {name: await service.fetch(path, {"Cookie": "; ".join(page)}) for name, page in pages.items()}
            codes = [answer.code for answer in answers.values()]
            if path == "servers":
                assert codes == [403, 403, 302, 200]
                assert b"logins of several people" in answers["both logins"].body
                assert "/hub/api/oauth2/authorize" in answers["the login of the other"].headers["Location"]
            else:
                assert codes == [403] * 4
                assert b"never begun here" in answers["their own"].body
                assert b"your login has ended" in answers["the login of the other"].body
        ada = Browser(service, "ada")
        ada.cookies["jupyterhub-session-id"] = "s-ada"
        assert (await ada.sign_in(remote, "ada")).code == 200
        ada.cookies["jupyterhub-session-id"] = "s-eve"
        assert (await ada.press(f"servers/{SERVER}/sign-out")).code == 403


async def test_no_log_line_has_what_a_provider_sent_with_a_browser(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_off(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    caplog.set_level(logging.DEBUG, "tornado")
    caplog.set_level(logging.DEBUG, "jupyter_agentbox")
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada, nobody = Browser(service, "ada"), Browser(service, "ada")
        nobody.cookies.clear()
        back = await asyncio.to_thread(remote.grant, await ada.begin(), "ada")
        codes = [
            (await nobody.fetch(back)).code,
            (await ada.fetch(back, **{"Sec-Fetch-Mode": "cors"})).code,
            (await ada.fetch(f"{back}&iss=%ff")).code,
            (await ada.fetch(back.replace(f"/{SERVER}?", "/another?"))).code,
        ]
        with monkeypatch.context() as patch:
            patch.setattr(SignInManager, "finish", break_off)
            codes.append((await ada.fetch(back)).code)
        codes.append((await ada.fetch(back)).code)
    assert codes == [403, 403, 400, 404, 500, 200]
    assert "a defect" in caplog.text
    secrets = [query_of(back)["code"], query_of(back)["state"], *remote.secrets]
    assert not [secret for secret in secrets if secret in caplog.text]


async def test_nobody_begins_or_ends_a_sign_in_without_their_own_page(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        await ada.sign_in(remote, "ada")
        for path in (f"servers/{SERVER}/sign-in", f"servers/{SERVER}/sign-out"):
            answer = await ada.fetch(path, {})  # without `_xsrf`
            assert (answer.code, b"opened before your last login or logout" in answer.body) == (403, True)
            code, _ = await service.post(path, "", {"Authorization": "Bearer ada"})
            assert code == 403  # a token, which code has
        assert (await ada.press("servers/nothing/sign-in")).code == 404
        again = await ada.fetch(f"servers/{SERVER}/sign-in")  # the address of the form's answer, opened anew
        assert (again.code, again.headers["Location"]) == (302, "/services/agentbox/servers")
        assert await ada.status() == "signed in"


async def test_a_refusal_at_the_provider_is_shown_and_keeps_nothing(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        ada = Browser(service, "ada")
        answer = await ada.sign_in(remote, "nobody")
        assert (answer.code, b"it was cancelled there, or denied" in answer.body) == (403, True), answer.body
        assert "cancelled there, or denied" in await ada.status()
        assert await Browser(service, "bob").status() == "not signed in"


async def test_who_opens_a_service_without_a_safe_address_is_told_why(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), sign_in_key=tmp_path / "key") as service:
        answer = await Browser(service, "ada").press(f"servers/{SERVER}/sign-in")
        async with service.tools_of("ada", SERVER) as tools:
            with pytest.raises(ToolServerError) as refused:
                await tools.list_tools(SERVER)
    why = b"`HubService.public_url` is not set to the address that people open"
    assert (answer.code, why in answer.body) == (409, True), answer.body
    assert "nobody can, because `HubService.public_url` is not set" in str(refused.value)
    assert "elicitation" not in str(refused.value)


async def test_an_administrator_deletes_the_sign_ins_of_a_user(
    remote: OAuthServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(tmp_path, policy_with(remote), **at(tmp_path)) as service:
        await Browser(service, "ada").sign_in(remote, "ada")
        await Browser(service, "bob").sign_in(remote, "bob")
        command = [f"--HubService.database_url=sqlite:///{service.database}", "--forget-sign-ins-of=ada"]
        assert await asyncio.to_thread(main, command) == 0
        assert capsys.readouterr().out == "ada: 1 sign-in deleted\n"
        assert await Browser(service, "ada").status() == "not signed in"
        assert await Browser(service, "bob").status() == "signed in"


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (base64.urlsafe_b64encode(bytes(32)), 0o644, "other users can read the key in .*: run `chmod 600` on it"),
        (b"no key", 0o600, "does not contain keys, each of 32 bytes"),
        (b"", 0o600, "does not contain keys, each of 32 bytes"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, mode: int, says: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(ValueError, match=says):
        SignInKeys(path).read()


async def test_a_sign_in_that_no_key_can_encrypt_is_not_kept(remote: OAuthServer, tmp_path: Path) -> None:
    key = tmp_path / "sign-in-key"
    key.write_bytes(b"no key")
    key.chmod(0o600)
    async with running_service(tmp_path, {"rules": []}, **at(tmp_path)) as service:  # nobody signs in yet
        (tmp_path / "policy.json").write_text(json.dumps(policy_with(remote)))
        await service.box.policy.look()
        ada = Browser(service, "ada")
        answer = await ada.sign_in(remote, "ada")
        assert (answer.code, b"cannot read the key that protects sign-ins" in answer.body) == (409, True), answer.body
        key.write_bytes(Fernet.generate_key())
        assert (await ada.sign_in(remote, "ada")).code == 200
        assert await ada.status() == "signed in"


async def test_old_sign_ins_are_removed(remote: OAuthServer, tmp_path: Path) -> None:
    async with running_service(tmp_path, policy_with(remote), sign_in_days=30.0, **at(tmp_path)) as service:
        ada, bob = Browser(service, "ada"), Browser(service, "bob")
        await ada.sign_in(remote, "ada")
        await bob.sign_in(remote, "bob")
        with sqlite3.connect(tmp_path / "hub.sqlite") as database:
            database.execute(
                "UPDATE agentbox_sign_ins SET changed_at = changed_at - 31 * 86400000000 WHERE tenant = 'ada'"
            )
        await service.box.sign_ins.remove_old()
        assert (await ada.status(), await bob.status()) == ("not signed in", "signed in")


#: Prints a token of the user in its argument.
HELPER = """
import json, sys
from pathlib import Path
user = sys.argv[2].removeprefix("--user=")
token = (Path(sys.argv[1]) / user).read_text()
print(json.dumps({"Authorization": f"Bearer {token}"}))
"""


async def test_a_program_of_the_administrator_can_give_each_user_a_token(remote: OAuthServer, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    for user in ("ada", "bob"):
        remote.valid[f"token-of-{user}"] = user
        (tmp_path / user).write_text(f"token-of-{user}")
    words = (sys.executable, str(tmp_path / "helper.py"), str(tmp_path), "--user=${HUB_USER}")
    servers = {SERVER: {"url": remote.url, "headersHelper": " ".join(words)}}
    policy = {"rules": [{"effect": "allow", "server": "*", "tool": "*"}], "mcpServers": servers}
    async with running_service(tmp_path, policy) as service:
        assert await whoami(service, "ada") == "you are ada"
        assert await whoami(service, "bob") == "you are bob"
        remote.valid = {"second-token-of-ada": "ada"}  # the others have ended
        (tmp_path / "ada").write_text("second-token-of-ada")
        assert await whoami(service, "ada") == "you are ada"
        async with service.tools_of("bob", SERVER) as tools:
            refused = await tools.call_tool(ToolCall(server=SERVER, tool="whoami", arguments={}))
    assert "it does not accept the headers that its `headersHelper` printed" in refused.text
    assert "token-of" not in refused.text
