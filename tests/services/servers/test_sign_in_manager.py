"""Sign-ins as their manager ends them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from jupyter_agentbox.core.tools import ServerState
from jupyter_agentbox.exceptions import SignInError
from jupyter_agentbox.mcp_client.authorization import TIME_TO_SIGN_IN
from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore
from jupyter_agentbox.services.servers.sign_ins import Begun, ProviderAnswer, SignInManager
from jupyter_agentbox.system import RandomIds
from tests.oauth_server import query_of, running_oauth_server
from tests.remote_servers import REDIRECT, account_of, configured


async def test_who_signs_out_has_stopped_the_server_before_its_provider_is_told(tmp_path: Path) -> None:
    sign_ins = LocalSignInStore(tmp_path / "sign-ins.json", place="file")
    states: list[tuple[ServerState, bool]] = []
    with running_oauth_server() as remote:
        async with configured(remote.url, tmp_path, sign_ins) as servers:
            manager = SignInManager(servers=servers, sign_ins=sign_ins, ids=RandomIds())
            begun = await manager.begin("remote", person="ada", redirect=REDIRECT)
            back = query_of(await asyncio.to_thread(remote.grant, begun.address))
            answer = ProviderAnswer(state=back["state"], code=back["code"], issuer=back["iss"])
            await manager.finish("remote", answer, person="ada", browser_key=begun.browser_key)
            assert await account_of(servers) == "you are ada"

            def note(path: str) -> None:
                (status,) = servers.servers()
                states.append((status.state, status.is_signed_in))

            remote.on_ask = note
            await manager.sign_out("remote")
    assert states == [(ServerState.STOPPED, False)]


async def test_a_sign_in_that_nobody_finishes_in_time_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_ins = LocalSignInStore(tmp_path / "sign-ins.json", place="file")
    ended = asyncio.Event()
    with running_oauth_server() as remote:
        async with configured(remote.url, tmp_path, sign_ins) as servers:
            manager = SignInManager(servers=servers, sign_ins=sign_ins, ids=RandomIds(), on_change=ended.set)
            begun = await manager.begin("remote", person="ada", redirect=REDIRECT)
            assert manager.failure_of("remote") == ""
            monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time.monotonic() + TIME_TO_SIGN_IN)
            await ended.wait()
            monkeypatch.undo()
            assert "nobody signed in to `remote` within" in manager.failure_of("remote")
            back = query_of(await asyncio.to_thread(remote.grant, begun.address))
            with pytest.raises(SignInError, match="this sign-in is over"):
                await manager.finish(
                    "remote",
                    ProviderAnswer(state=back["state"], code=back["code"], issuer=back["iss"]),
                    person="ada",
                    browser_key=begun.browser_key,
                )
            # One that is begun anew, and given up, leaves no word of it.
            await manager.begin("remote", person="ada", redirect=REDIRECT)
            manager.cancel("remote", person="ada")
            assert manager.failure_of("remote") == ""


def test_what_names_a_sign_in_is_in_no_representation() -> None:
    begun = Begun(address="https://a.example/?state=s3cret", state="s3cret", browser_key="s3cret")
    answer = ProviderAnswer(state="s3cret", code="s3cret")
    assert "s3cret" not in f"{begun!r}{answer!r}"
