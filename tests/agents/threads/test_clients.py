"""Clients of models, kept open from turn to turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_agentbox.agents.threads.clients import ModelClients
from jupyter_agentbox.agents.threads.models import ModelSettings
from jupyter_agentbox.exceptions import AgentConfigurationError
from jupyter_agentbox.testing import MockModelServer

from .conftest import MakeAgent


def is_open(client: Any) -> bool:
    return not client.client.is_closed()


async def test_a_model_has_one_client_until_its_key_changes() -> None:
    keys = {"openai:a": "first"}
    clients = ModelClients(lambda name: ModelSettings(model=name, api_key=keys.get(name)))
    first, same = await asyncio.gather(clients.get("openai:a"), clients.get("openai:a"))
    keys["openai:a"] = "second"
    other = await clients.get("openai:a")

    assert first is same
    assert other is not first
    assert other.client.api_key == "second"  # type: ignore[attr-defined]  # OpenAI's
    await clients.aclose()
    assert not is_open(first)
    assert not is_open(other)


async def test_of_many_models_the_last_used_are_kept_and_who_works_goes_on() -> None:
    clients = ModelClients(lambda name: ModelSettings(model=name, api_key="key"))
    first = await clients.get("openai:0")
    async with first:
        for number in range(1, 9):
            await clients.get(f"openai:{number}")
        assert is_open(first)
    assert not is_open(first)
    assert await clients.get("openai:0") is not first
    await clients.aclose()


async def test_what_cannot_be_made_is_not_kept() -> None:
    clients = ModelClients(lambda name: ModelSettings(model=name))
    for _ in range(2):
        with pytest.raises(AgentConfigurationError):
            await clients.get("openai:a")
    await clients.aclose()


async def test_turns_of_an_agent_share_a_connection_that_ends_with_it(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    async with make_agent() as agent:
        thread = await agent.thread_start()
        for _ in range(3):
            model.enqueue_message("hello")
            await thread.run("go")
        (client,) = agent._threads._clients._open.values()
        assert is_open(client)

    assert not is_open(client)
