"""Code that a language model writes, through the whole of a service: a real local model server and a real kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from jupyter_agentbox import CodeRequest, CodeService, CodeStatus, MockCodeGenerator
from jupyter_agentbox.agents.results import Stage
from jupyter_agentbox.exceptions import CodeGeneratorConfigurationError
from jupyter_agentbox.testing import MockModelServer

TIMEOUT = 60
REQUEST = CodeRequest(user_query="How many?", task_objective="Count.", expected_results={"n": "int"})


@pytest.fixture
def model() -> Iterator[MockModelServer]:
    with MockModelServer() as server:
        yield server


def a_service(model: MockModelServer) -> CodeService:
    config = {"model": "openai:scripted", "base_url": model.base_url, "api_key": "sk-secret"}
    return CodeService(generator="model", generator_config=config, approve=lambda _: True)


async def test_a_model_is_told_what_went_wrong_and_writes_the_code_again(model: MockModelServer) -> None:
    model.enqueue_message("```python\nresults = {'n': 'many'}\n```")
    model.enqueue_error(400, text="not now")
    model.enqueue_message("```python\nresults = {'n': 42}\nresults\n```")
    async with asyncio.timeout(TIMEOUT), a_service(model) as service:
        result = await service.run(REQUEST)

    assert (result.status, result.results) == (CodeStatus.SUCCEEDED, {"n": 42})
    assert [attempt.error.stage if attempt.error else None for attempt in result.attempts] == [
        Stage.RESULTS,
        Stage.GENERATION,
        None,
    ]
    asked = model.requests[2].user_texts()[-1]
    assert "results = {'n': 'many'}" in asked
    assert "must be of type int" in asked
    assert "not now" in asked
    assert result.attempts[2].metadata["model"] == "openai:scripted"


async def test_a_key_that_is_not_accepted_ends_the_request(model: MockModelServer) -> None:
    model.enqueue_error(401, text="sk-secret is no key")
    async with asyncio.timeout(TIMEOUT), a_service(model) as service:
        result = await service.run(REQUEST)

    assert (result.status, len(result.attempts), len(model.requests)) == (CodeStatus.FAILED, 1, 1)
    assert result.error is not None
    assert result.error.stage is Stage.CONFIGURATION
    assert "sk-secret" not in str(result)


def test_a_generator_is_named_or_given() -> None:
    with pytest.raises(CodeGeneratorConfigurationError):
        CodeService(generator="unheard-of")
    with pytest.raises(TypeError):
        CodeService(generator=MockCodeGenerator("success"), generator_config={"model": "openai:x"})
