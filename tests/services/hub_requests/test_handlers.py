"""What waits at the Hub service, over HTTP against a Jupyter server that belongs to a Hub, or to none."""

from __future__ import annotations

from typing import Any

import pytest
from traitlets import TraitError

from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.services.hub_requests.manager import HubList, HubRequestManager


class HubAuth:
    """That of a Hub's single-user server."""

    api_token = "the-servers"


@pytest.fixture
def jp_server_config(jp_server_config: Any) -> Any:
    more = {"hub_service_url": "http://127.0.0.1:9/services/agentbox/"}
    return {**jp_server_config, "AgentBoxApp": {**jp_server_config["AgentBoxApp"], **more}}


async def test_a_server_that_belongs_to_no_hub_asks_no_service(fetch: Any) -> None:
    assert await fetch("hub-requests") == (200, {"requests": [], "total": 0, "url": None, "problem": None})


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"kind": "user", "name": "ada"}, 200),
        ({"kind": "user", "name": "bob"}, 403),
        ({"kind": "service", "name": "ada"}, 403),
        (None, 403),
    ],
)
async def test_only_the_user_whose_server_it_is_is_told(
    fetch: Any, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch, model: Any, expected: int
) -> None:
    """Who is let into a shared server is not let into its owner's list."""
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    provider = jp_serverapp.identity_provider
    monkeypatch.setattr(type(provider), "hub_auth", HubAuth(), raising=False)
    found = provider.get_user

    async def user_of_hub(handler: Any) -> Any:
        user = await found(handler)
        user.hub_user = model
        return user

    async def asked(self: Any) -> HubList:
        del self
        return HubList(total=3)

    monkeypatch.setattr(provider, "get_user", user_of_hub)
    monkeypatch.setattr(HubRequestManager, "list", asked)
    code, answer = await fetch("hub-requests")
    assert (code, answer.get("total")) == (expected, 3 if expected == 200 else None)


@pytest.mark.parametrize("wrong", ["/services/agentbox/", "hub.example.org", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused_at_the_start(wrong: str) -> None:
    with pytest.raises(TraitError, match="whole address"):
        AgentBoxApp(hub_service_url=wrong)
