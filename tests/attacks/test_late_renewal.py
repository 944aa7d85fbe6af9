from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2

from jupyter_agentbox.mcp_client.authorization import Authorization
from jupyter_agentbox.mcp_client.bearer_auth import SignedIn
from jupyter_agentbox.mcp_client.configuration import HttpServer
from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore, SignIn
from tests.oauth_server import OAuthServer, query_of, running_oauth_server
from tests.remote_servers import REDIRECT

from .attack import Attack

ATTACK = Attack(
    "keep a person signed in who signs out, by a provider that answers a renewal only afterwards",
    plain=False,
    control="test_a_program_that_keeps_whatever_comes_is_signed_in_again",
)


class Keeping(SignedIn):
    """Keeps what a provider gives, whenever it comes."""

    def _replace(self, used: SignIn, renewed: SignIn | None) -> SignIn | None:
        del used
        if renewed is not None:
            self._sign_ins.keep(self._server.name, renewed)
        return renewed


async def attack(kind: type[SignedIn], remote: OAuthServer, directory: Path) -> SignIn | None:
    """Return what is kept of a sign-in that ended while it was renewed."""
    sign_ins = LocalSignInStore(directory / "sign-ins.json", place="file")
    server = HttpServer(name="remote", url=remote.url)
    authorization = Authorization(server, redirect=REDIRECT)
    await authorization.begin()
    back = query_of(await asyncio.to_thread(remote.grant, authorization.address))
    found = await authorization.finish(code=back["code"], state=back["state"], issuer=back["iss"])
    sign_ins.keep("remote", found)
    signed_in = kind(server, sign_ins, on_secret=lambda _: None)
    await signed_in.load()
    remote.valid.clear()
    remote.on_ask = lambda _: sign_ins.forget("remote")
    async with httpx2.AsyncClient() as client:
        await client.post(remote.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, auth=signed_in)
    assert len(remote.issued) == 4  # it did answer
    return sign_ins.load("remote", found.trust_key)


def test_a_program_that_keeps_whatever_comes_is_signed_in_again(tmp_path: Path) -> None:
    with running_oauth_server() as remote:
        assert asyncio.run(attack(Keeping, remote, tmp_path)) is not None


def test_who_signed_out_stays_signed_out(tmp_path: Path) -> None:
    with running_oauth_server() as remote:
        assert asyncio.run(attack(SignedIn, remote, tmp_path)) is None
        assert remote.bearers[-1] not in {f"Bearer {token}" for token in remote.issued[2:]}
        assert not remote.refreshable  # the provider was told
