from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import SignInError
from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore
from jupyter_agentbox.services.servers.sign_ins import ProviderAnswer, SignInManager
from jupyter_agentbox.system import RandomIds
from tests.oauth_server import OAuthServer, query_of, running_oauth_server
from tests.remote_servers import REDIRECT, account_of, configured

from .attack import Attack

ATTACK = Attack(
    "sign a person in to a server as somebody else, by leading their browser to where a provider sends one's own",
    plain=False,
    control="test_a_server_that_asks_only_for_a_state_it_knows_acts_as_the_attacker",
)


class Trusting(SignInManager):
    """Takes a code from whoever brings a state that it knows, as many programs do."""

    async def finish(self, name: str, answer: ProviderAnswer, *, person: str, browser_key: str) -> None:
        del person, browser_key
        pending = self._pending[answer.state]
        await super().finish(name, answer, person=pending.person, browser_key=pending.browser_key)


async def attack(kind: type[SignInManager], remote: OAuthServer, directory: Path) -> str:
    """Return as whom tools act afterwards."""
    sign_ins = LocalSignInStore(directory / "sign-ins.json", place="file")
    async with configured(remote.url, directory, sign_ins) as servers:
        manager = kind(servers=servers, sign_ins=sign_ins, ids=RandomIds())
        begun = await manager.begin("remote", person="mallory", redirect=REDIRECT)
        back = query_of(await asyncio.to_thread(remote.grant, begun.address, "mallory"))
        answer = ProviderAnswer(state=back["state"], code=back["code"], issuer=back["iss"])
        try:
            await manager.finish("remote", answer, person="ada", browser_key="")
        finally:
            manager.close()
        return await account_of(servers)


def test_a_server_that_asks_only_for_a_state_it_knows_acts_as_the_attacker(tmp_path: Path) -> None:
    with running_oauth_server() as remote:
        assert asyncio.run(attack(Trusting, remote, tmp_path)) == "you are mallory"


def test_the_way_back_of_somebody_else_signs_nobody_in(tmp_path: Path) -> None:
    with running_oauth_server() as remote:
        with pytest.raises(SignInError):
            asyncio.run(attack(SignInManager, remote, tmp_path))
        assert remote.issued == []
