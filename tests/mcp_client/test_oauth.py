"""Signing in to a server, and what is sent afterwards, against a real provider on this machine."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.tools import ServerState
from jupyter_agentbox.exceptions import ServerConfigurationError, SignInRequiredError, ToolServerError
from jupyter_agentbox.mcp_client.authorization import Authorization
from jupyter_agentbox.mcp_client.bearer_auth import SignedIn
from jupyter_agentbox.mcp_client.configuration import HttpServer, OAuthClient
from jupyter_agentbox.mcp_client.provider_addresses import is_safe_address, may_lead_to
from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore, SignIn
from jupyter_agentbox.mcp_client.token_requests import Revocation, revoke
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of
from tests.oauth_server import OAuthServer, query_of, running_oauth_server

from .conftest import Running

REDIRECT = "http://127.0.0.1:8888/jupyter-agentbox/oauth/callback/remote"
CALL = ToolCall(server="remote", tool="whoami", arguments={})


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as server:
        yield server


@pytest.fixture
def sign_ins(tmp_path: Path) -> LocalSignInStore:
    return LocalSignInStore(tmp_path / "sign-ins.json", place="file")


def server_at(url: str, **more: Any) -> HttpServer:
    return HttpServer(name="remote", url=url, **more)


async def sign_in(server: HttpServer, remote: OAuthServer, known: SignIn | None = None) -> SignIn:
    """Sign in as ada."""
    authorization = Authorization(server, redirect=REDIRECT, known=known)
    await authorization.begin()
    back = query_of(await asyncio.to_thread(remote.grant, authorization.address))
    return await authorization.finish(code=back["code"], state=back["state"], issuer=back["iss"])


async def signed_in(remote: OAuthServer, sign_ins: LocalSignInStore, **more: Any) -> SignIn:
    server = server_at(remote.url, **more)
    found = await sign_in(server, remote)
    sign_ins.keep("remote", found)
    return found


async def test_a_server_that_wants_a_sign_in_says_so_at_once_and_works_after_it(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        with pytest.raises(SignInRequiredError, match=r"Sign in.*`headers`"):
            await servers.call_tool(CALL)
        assert servers.servers()[0].state is ServerState.NEEDS_SIGN_IN
        assert remote.clients == {}  # nothing is registered before a person wants that

        await signed_in(remote, sign_ins)
        assert (await servers.call_tool(CALL)).text == "you are ada"
        (status,) = servers.servers()
        assert (status.state, status.is_signed_in) == (ServerState.RUNNING, True)


async def test_the_way_to_the_provider_has_pkce_a_state_and_the_resource(remote: OAuthServer) -> None:
    authorization = Authorization(server_at(remote.url), redirect=REDIRECT)
    await authorization.begin()
    query = query_of(authorization.address)
    authorization.cancel()

    assert query["code_challenge_method"] == "S256"
    assert len(query["code_challenge"]) == 43
    assert query["state"] == authorization.state
    assert query["resource"] == remote.url
    assert query["redirect_uri"] == REDIRECT
    (client,) = remote.clients.values()
    assert (client["application_type"], client["redirect_uris"]) == ("native", [REDIRECT])


async def test_a_configured_client_and_its_scopes_are_used_and_nothing_is_registered(remote: OAuthServer) -> None:
    oauth = OAuthClient(client_id="ours", client_secret="s3cret", scopes=("read", "write"))
    await sign_in(server_at(remote.url, oauth=oauth), remote)

    (_, asked), (_, exchanged) = remote.asked
    assert (asked["client_id"], asked["scope"], remote.clients) == ("ours", "read write", {})
    assert "client_secret" not in exchanged  # it goes in a header of its own


async def test_a_second_sign_in_uses_the_registration_of_the_first_unless_the_way_back_is_another(
    remote: OAuthServer,
) -> None:
    server = server_at(remote.url)
    found = await sign_in(server, remote)
    await sign_in(server, remote, found)
    assert len(remote.clients) == 1

    other = Authorization(server, redirect=REDIRECT.replace("8888", "8889"), known=found)
    await other.begin()
    other.cancel()
    assert len(remote.clients) == 2


async def test_a_token_that_ends_is_renewed_without_a_word_and_the_next_one_is_kept(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    remote.expires_in = 5  # within the margin: it is renewed before it is ever sent
    first = await signed_in(remote, sign_ins)
    remote.valid.clear()
    remote.expires_in = 3600
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        results = await asyncio.gather(*(servers.call_tool(CALL) for _ in range(5)))

    assert {result.text for result in results} == {"you are ada"}
    assert [kind for kind, _ in remote.asked] == ["authorize", "authorization_code", "refresh_token"]
    assert remote.asked[-1][1]["resource"] == remote.url
    kept = sign_ins.load("remote", first.trust_key)
    assert kept is not None
    assert kept.tokens["access_token"] in remote.valid
    assert remote.bearers.count(f"Bearer {first.tokens['access_token']}") == 1  # by the sign-in itself


async def test_a_token_that_is_refused_is_renewed_once_and_the_call_is_sent_again(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    await signed_in(remote, sign_ins)
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        await servers.list_tools("remote")
        remote.valid.clear()
        assert (await servers.call_tool(CALL)).text == "you are ada"


async def test_a_sign_in_that_was_taken_back_says_so_and_is_forgotten(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    found = await signed_in(remote, sign_ins)
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        await servers.list_tools("remote")
        remote.valid.clear()
        remote.refreshable.clear()
        with pytest.raises(SignInRequiredError, match="the sign-in has ended"):
            await servers.call_tool(CALL)
        assert sign_ins.load("remote", found.trust_key) is None
        with pytest.raises(SignInRequiredError):
            await servers.call_tool(CALL)
        assert servers.servers()[0].state is ServerState.NEEDS_SIGN_IN

        await signed_in(remote, sign_ins)
        assert (await servers.call_tool(CALL)).text == "you are ada"
        (status,) = servers.servers()
        assert (status.error, status.last_error) == ("", "")  # neither tells anybody to sign in, who has


async def test_whoever_lacks_rights_is_still_signed_in_and_can_sign_out(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    await signed_in(remote, sign_ins)
    remote.missing_scope = "orders.write"
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        with pytest.raises(SignInRequiredError, match=r"lacks rights that it needs \(orders.write\)"):
            await servers.call_tool(CALL)
        (status,) = servers.servers()
        assert (status.state, status.is_signed_in) == (ServerState.NEEDS_SIGN_IN, True)


async def test_a_provider_that_is_down_loses_no_sign_in(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    found = await signed_in(remote, sign_ins)
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        await servers.list_tools("remote")
        remote.valid.clear()
        remote.is_down = True
        with pytest.raises(ToolServerError, match="could not be renewed") as caught:
            await servers.call_tool(CALL)
        assert type(caught.value) is ToolServerError
        assert sign_ins.load("remote", found.trust_key) is not None
        remote.is_down = False
        assert (await servers.call_tool(CALL)).text == "you are ada"


async def test_a_server_that_refuses_only_calls_can_be_signed_in_to(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    remote.is_open_until_called = True
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        await servers.list_tools("remote")
        with pytest.raises(SignInRequiredError):
            await servers.call_tool(CALL)
        await signed_in(remote, sign_ins)
        assert (await servers.call_tool(CALL)).text == "you are ada"


async def test_a_token_never_goes_to_another_address_of_the_same_name(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    await signed_in(remote, sign_ins)
    with running_oauth_server() as thief:
        async with running({"remote": {"url": thief.url}}, sign_ins=sign_ins) as servers:
            with pytest.raises(SignInRequiredError):
                await servers.call_tool(CALL)
        assert set(thief.bearers) == {""}


async def test_a_configured_header_wins_and_nobody_is_asked_to_sign_in(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    await signed_in(remote, sign_ins)
    entry = {"url": remote.url, "headers": {"Authorization": "Bearer of-the-file"}}
    async with running({"remote": entry}, sign_ins=sign_ins) as servers:
        with pytest.raises(ToolServerError, match="`Authorization`") as caught:
            await servers.call_tool(CALL)
    assert type(caught.value) is ToolServerError
    assert set(remote.bearers[3:]) == {"Bearer of-the-file"}
    with pytest.raises(ServerConfigurationError):
        await Authorization(server_at(remote.url, headers={"authorization": "x"}), redirect=REDIRECT).begin()


async def test_without_a_place_for_sign_ins_the_error_names_headers(running: Running, remote: OAuthServer) -> None:
    async with running({"remote": {"url": remote.url}}) as servers:
        with pytest.raises(ToolServerError, match="`headers`") as caught:
            await servers.call_tool(CALL)
    assert type(caught.value) is ToolServerError


@pytest.mark.parametrize(
    "metadata",
    [
        {"authorization_endpoint": "http://provider.example/authorize"},
        {"registration_endpoint": "http://192.0.2.1/register"},
        {"issuer": "https://other.example"},
    ],
)
async def test_a_provider_that_leads_elsewhere_is_not_followed(remote: OAuthServer, metadata: dict[str, str]) -> None:
    remote.metadata = metadata
    with pytest.raises(ToolServerError, match="signing in to `remote` failed"):
        await Authorization(server_at(remote.url), redirect=REDIRECT).begin()
    assert [kind for kind, _ in remote.asked] == []


async def test_a_provider_whose_page_is_no_page_is_not_believed(remote: OAuthServer) -> None:
    remote.metadata = {"authorization_endpoint": "javascript:alert(1)"}
    authorization = Authorization(server_at(remote.url), redirect=REDIRECT)
    await authorization.begin()
    authorization.cancel()
    assert authorization.address.startswith(f"{remote.origin}/authorize?")


async def test_a_code_of_another_provider_is_not_exchanged(remote: OAuthServer) -> None:
    remote.metadata = {"authorization_response_iss_parameter_supported": True}
    for issuer in ("https://other.example", None):
        authorization = Authorization(server_at(remote.url), redirect=REDIRECT)
        await authorization.begin()
        back = query_of(await asyncio.to_thread(remote.grant, authorization.address))
        with pytest.raises(ToolServerError):
            await authorization.finish(code=back["code"], state=back["state"], issuer=issuer)
    assert remote.valid == {}


@pytest.mark.parametrize("step", ["_register", "_token"])
async def test_an_answer_that_a_provider_compresses_is_not_read(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    answer = getattr(OAuthServer, step)

    async def compressed(self: OAuthServer, asked: Request) -> Response:
        body = (await answer(self, asked)).body
        return Response(gzip.compress(body), media_type="application/json", headers={"Content-Encoding": "gzip"})

    monkeypatch.setattr(OAuthServer, step, compressed)
    with running_oauth_server() as remote, pytest.raises(ToolServerError, match="signing in to `remote` failed"):
        await sign_in(server_at(remote.url), remote)


@pytest.mark.parametrize("url", ["http://shop.example/mcp", "http://127.0.0.1.evil.example/mcp"])
async def test_nobody_signs_in_where_a_token_could_be_read_on_the_way(url: str) -> None:
    with pytest.raises(ServerConfigurationError, match="https"):
        await Authorization(server_at(url), redirect=REDIRECT).begin()


@pytest.mark.parametrize(
    ("address", "is_safe"),
    [
        ("https://provider.example/authorize?a=b", True),
        ("http://localhost:9/x", True),
        ("http://[::1]:9/x", True),
        ("http://provider.example/", False),
        ("javascript:alert(1)//https://a", False),
        ("data:text/html,x", False),
        ("https://google.com@evil.example/", False),
        ("https:///x", False),
        ("https://[", False),
    ],
)
def test_only_tls_and_this_machine_are_safe_addresses(address: str, is_safe: bool) -> None:
    assert is_safe_address(address) is is_safe


@pytest.mark.parametrize(
    ("server", "url", "may"),
    [
        ("https://shop.example/mcp", "https://login.example/authorize", True),
        ("https://shop.example/mcp", "http://login.example/authorize", False),
        ("https://shop.example/mcp", "https://192.0.43.7/authorize", True),
        ("https://shop.example/mcp", "http://localhost:8888/lab/tree/x.ipynb", False),
        ("https://shop.example/mcp", "https://localhost./x", False),
        ("https://shop.example/mcp", "https://a.localhost/x", False),
        ("https://shop.example/mcp", "https://127.0.0.2/x", False),
        ("https://shop.example/mcp", "https://127.1/x", False),
        ("https://shop.example/mcp", "https://2130706433/x", False),
        ("https://shop.example/mcp", "https://0x7f.1/x", False),
        ("https://shop.example/mcp", "https://0x000000000007f.1/x", False),
        ("https://shop.example/mcp", "https://\uff11\uff12\uff17.0.0.1/x", False),
        ("https://shop.example/mcp", "https://127\u30020.0.1/x", False),
        ("https://shop.example/mcp", "https://127.0.0.%31/x", False),
        ("https://shop.example/mcp", "https://localhos%74/x", False),
        ("https://shop.example/mcp", "https://0.0.0.0/x", False),
        ("https://shop.example/mcp", "https://[::1]/x", False),
        ("https://shop.example/mcp", "https://[::ffff:127.0.0.1]/x", False),
        ("https://shop.example/mcp", "https://[fe80::1]/x", False),
        ("https://shop.example/mcp", "https://10.1.2.3/x", False),
        ("https://shop.example/mcp", "https://169.254.169.254/x", False),
        ("https://10.1.2.3/mcp", "https://10.1.2.4/x", True),
        ("https://10.1.2.3/mcp", "http://127.0.0.1/x", False),
        ("http://localhost:9/mcp", "https://10.1.2.4/x", True),
        ("http://localhost:9/mcp", "http://127.0.0.1:8/x", True),
        ("http://localhost:9/mcp", "file:///etc/passwd", False),
    ],
)
def test_a_server_leads_no_further_inside_than_it_is(server: str, url: str, may: bool) -> None:
    assert may_lead_to(server, url) is may


@pytest.mark.parametrize(
    "page",
    [
        "/authorize#",
        "/authorize?state=mine#",
        "/authorize?state=mine",
        "/authorize?redirect_uri=https://evil.example",
        "/authorize?x=" + "y" * 8000,
    ],
)
async def test_a_page_whose_address_says_what_is_ours_to_say_is_not_used(remote: OAuthServer, page: str) -> None:
    remote.metadata = {"authorization_endpoint": f"{remote.origin}{page}"}
    with pytest.raises(ToolServerError, match="the provider's page is not used"):
        await Authorization(server_at(remote.url), redirect=REDIRECT).begin()


async def test_a_page_whose_address_has_parameters_of_its_own_gets_ours_besides(remote: OAuthServer) -> None:
    remote.metadata = {"authorization_endpoint": f"{remote.origin}/authorize?p=sign_in"}
    authorization = Authorization(server_at(remote.url), redirect=REDIRECT)
    await authorization.begin()
    authorization.cancel()
    query = query_of(authorization.address)
    assert (query["p"], query["response_type"], query["state"]) == ("sign_in", "code", authorization.state)


async def test_a_provider_that_does_not_bind_codes_is_not_used(remote: OAuthServer) -> None:
    remote.metadata = {"code_challenge_methods_supported": ["plain"]}
    with pytest.raises(ToolServerError, match="PKCE"):
        await Authorization(server_at(remote.url), redirect=REDIRECT).begin()


UNUSABLE = [
    {"access_token": "a\r\nX-Evil: 1"},
    {"access_token": "t\u00f6ken"},
    {"access_token": "two words"},
    {"access_token": ""},
    {"access_token": "x" * 40_000},
    {"refresh_token": "\u2028"},
]


@pytest.mark.parametrize("token", UNUSABLE)
async def test_a_token_that_cannot_be_sent_signs_nobody_in(remote: OAuthServer, token: dict[str, str]) -> None:
    remote.token = token
    with pytest.raises(ToolServerError, match="did not give a token"):
        await sign_in(server_at(remote.url), remote)


@pytest.mark.parametrize("token", UNUSABLE)
async def test_a_renewed_token_that_cannot_be_sent_ends_the_sign_in_and_nothing_else(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore, token: dict[str, str]
) -> None:
    await signed_in(remote, sign_ins)
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        await servers.list_tools("remote")
        remote.valid.clear()
        remote.token = token
        with pytest.raises(SignInRequiredError):
            await servers.call_tool(CALL)


@pytest.mark.parametrize("seconds", [10**30, -(10**30)])
async def test_a_life_beyond_all_measure_is_no_trouble(remote: OAuthServer, seconds: int) -> None:
    remote.token = {"expires_in": seconds}
    found = await sign_in(server_at(remote.url), remote)
    assert found.expires_at is not None
    assert found.expires_at < 1e11


async def test_a_life_that_is_no_number_signs_nobody_in_and_fails_as_all_else_does(remote: OAuthServer) -> None:
    remote.token = {"expires_in": 10**400}
    with pytest.raises(ToolServerError, match="signing in to `remote` failed"):
        await sign_in(server_at(remote.url), remote)


async def test_two_programs_that_renew_the_same_sign_in_ask_for_one_token(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore, tmp_path: Path
) -> None:
    found = await signed_in(remote, sign_ins)
    other = LocalSignInStore(tmp_path / "sign-ins.json", place="file")
    server = server_at(remote.url)
    both = [SignedIn(server, kept, on_secret=lambda _: None) for kept in (sign_ins, other)]
    for one in both:
        await one.load()
    remote.valid.clear()
    async with asyncio.timeout(60), httpx2.AsyncClient() as client:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answers = await asyncio.gather(*(client.post(remote.url, json=ping, auth=one) for one in both))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [kind for kind, _ in remote.asked].count("refresh_token") == 1
    assert sign_ins.load("remote", found.trust_key) is not None


async def test_a_refusal_forgets_no_sign_in_that_was_made_meanwhile(
    remote: OAuthServer, sign_ins: LocalSignInStore
) -> None:
    found = await signed_in(remote, sign_ins)
    newer = replace(found, tokens={**found.tokens, "access_token": "newer"})
    remote.valid = {"newer": "ada"}
    remote.refreshable.clear()
    remote.on_ask = lambda _: sign_ins.keep("remote", newer)
    signed = SignedIn(server_at(remote.url), sign_ins, on_secret=lambda _: None)
    await signed.load()
    async with httpx2.AsyncClient() as client:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await client.post(remote.url, json=ping, auth=signed)).status_code == 200
    assert sign_ins.load("remote", found.trust_key) == newer


async def test_signing_out_tells_the_provider(remote: OAuthServer, sign_ins: LocalSignInStore) -> None:
    found = await signed_in(remote, sign_ins)
    assert await revoke(server_at(remote.url), found) is Revocation.DONE
    assert (remote.refreshable, remote.asked[-1][0]) == ({}, "revoke")
    for broken in (replace(found, tokens={}), replace(found, client={}), replace(found, provider={"issuer": 3})):
        await revoke(server_at(remote.url), broken)


@pytest.mark.parametrize(
    ("status", "error", "outcome"),
    [
        (400, "invalid_token", Revocation.DONE),
        (400, "invalid_grant", Revocation.DONE),
        (400, "unsupported_token_type", Revocation.REFUSED),
        (400, "", Revocation.REFUSED),
        (401, "invalid_token", Revocation.REFUSED),
        (403, "", Revocation.REFUSED),
        (302, "", Revocation.UNANSWERED),
        (404, "", Revocation.UNANSWERED),
        (408, "", Revocation.UNANSWERED),
        (429, "", Revocation.UNANSWERED),
        (503, "", Revocation.UNANSWERED),
    ],
)
async def test_not_every_answer_to_a_revocation_means_that_the_sign_in_is_revoked(
    remote: OAuthServer, sign_ins: LocalSignInStore, status: int, error: str, outcome: Revocation
) -> None:
    found = await signed_in(remote, sign_ins)
    remote.revocation_status, remote.revocation_error = status, error
    assert await revoke(server_at(remote.url), found) is outcome


async def test_no_log_line_has_a_token_or_what_a_provider_answered(
    running: Running, remote: OAuthServer, sign_ins: LocalSignInStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    found = await signed_in(remote, sign_ins)
    async with running({"remote": {"url": remote.url}}, sign_ins=sign_ins) as servers:
        await servers.call_tool(CALL)
        remote.valid.clear()
        await servers.call_tool(CALL)
        told = [repr(status.to_json()) for status in servers.servers()]
    authorization = Authorization(server_at(remote.url), redirect=REDIRECT)
    await authorization.begin()
    with pytest.raises(ToolServerError) as caught:
        await authorization.finish(code="wrong", state=authorization.state, issuer=remote.origin)

    shown = "\n".join([caplog.text, *told, repr(found), repr(sign_ins), str(caught.value)])
    assert len(remote.issued) == 4
    assert [secret for secret in remote.secrets if secret in shown] == []


def test_the_trust_key_that_binds_a_token_has_the_address_and_the_names_of_headers() -> None:
    servers = [
        server_at("https://a.example/mcp"),
        server_at("https://b.example/mcp"),
        server_at("https://a.example/mcp", headers={"X-Tenant": "1"}),
    ]
    assert len({trust_key_of(server) for server in servers}) == len(servers)
