from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import SignInRequiredError
from jupyter_agentbox.mcp_client.authorization import Authorization
from jupyter_agentbox.mcp_client.configuration import HttpServer
from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore, SignIn
from tests.oauth_server import OAuthServer, query_of, running_oauth_server
from tests.remote_servers import REDIRECT, account_of, configured

from .attack import Attack

ATTACK = Attack(
    "get the token of a sign-in to an MCP server, by changing the server's address",
    plain=False,
    control="test_tokens_that_are_kept_by_name_alone_go_to_the_new_address",
)


class ByName(LocalSignInStore):
    """Keeps a token for a name, whatever stands behind it."""

    def load(self, name: str, trust_key: str) -> SignIn | None:
        assert self._path is not None
        kept = json.loads(self._path.read_text())["servers"][name]["trust_key"]
        found = super().load(name, kept)
        return None if found is None else replace(found, trust_key=trust_key)


async def attack(sign_ins: LocalSignInStore, remote: OAuthServer, thief: OAuthServer, directory: Path) -> None:
    """Sign in, and then let another address stand in the configuration."""
    authorization = Authorization(HttpServer(name="remote", url=remote.url), redirect=REDIRECT)
    await authorization.begin()
    back = query_of(await asyncio.to_thread(remote.grant, authorization.address))
    found = await authorization.finish(code=back["code"], state=back["state"], issuer=back["iss"])
    sign_ins.keep("remote", found)
    async with configured(remote.url, directory, sign_ins) as servers:
        assert await account_of(servers) == "you are ada"
    async with configured(thief.url, directory, sign_ins) as servers:
        with pytest.raises(SignInRequiredError):
            await account_of(servers)


def test_tokens_that_are_kept_by_name_alone_go_to_the_new_address(tmp_path: Path) -> None:
    with running_oauth_server() as remote, running_oauth_server() as thief:
        asyncio.run(attack(ByName(tmp_path / "kept.json", place="file"), remote, thief, tmp_path))
        assert f"Bearer {remote.issued[0]}" in thief.bearers


def test_no_token_goes_to_another_address(tmp_path: Path) -> None:
    with running_oauth_server() as remote, running_oauth_server() as thief:
        asyncio.run(attack(LocalSignInStore(tmp_path / "kept.json", place="file"), remote, thief, tmp_path))
        assert set(thief.bearers) == {""}
