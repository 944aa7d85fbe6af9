"""The generator that asks a model, against a real local server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import CodeGenerator, CodeRequest, create_code_generator
from jupyter_agentbox.agents.code_prompts import code_in
from jupyter_agentbox.agents.model_generator import ModelCodeGenerator
from jupyter_agentbox.agents.results import AttemptError, Stage
from jupyter_agentbox.exceptions import CodeGenerationError, CodeGeneratorConfigurationError
from jupyter_agentbox.testing import MockModelServer

REQUEST = CodeRequest(
    user_query="Which sold best?", task_objective="Rank the products", expected_results={"best": str, "why": "a line"}
)


@pytest.fixture
def model() -> Iterator[MockModelServer]:
    with MockModelServer() as server:
        yield server


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def make(model: MockModelServer, provider: str = "openai", **options: Any) -> CodeGenerator:
    return create_code_generator("model", {"base_url": model.base_url}, model=f"{provider}:scripted", **options)


@pytest.mark.parametrize("provider", ["openai", "openai-chat", "anthropic"])
async def test_a_model_is_asked_for_code_and_what_it_cost_is_kept(provider: str, model: MockModelServer) -> None:
    model.enqueue_message("Here it is:\n\n```python\nresults = {'best': 'tea'}\nresults\n```\n")
    generator = make(model, provider, instructions="pandas is there")
    code = await generator.generate_code(REQUEST, [])

    assert code == "results = {'best': 'tea'}\nresults\n"
    asked = model.requests[0].user_texts()[-1]
    assert [word in asked for word in ("Which sold best?", "Rank the products", "- best: str", "- why: a line")] == [
        True
    ] * 4
    assert "pandas is there" in model.requests[0].body.decode()
    assert isinstance(generator, ModelCodeGenerator)
    metadata = generator.get_generation_metadata()
    assert (metadata["model"], metadata["requests"]) == (f"{provider}:scripted", 1)


async def test_what_went_wrong_before_is_in_the_question(model: MockModelServer) -> None:
    errors = [
        AttemptError(stage=Stage.EXECUTION, message="ZeroDivisionError", attempt=1, code="1 / 0"),
        AttemptError(stage=Stage.GENERATION, message="no code", attempt=2),
    ]
    model.enqueue_message("1")
    await make(model).generate_code(REQUEST, errors)

    asked = model.requests[0].user_texts()[-1]
    assert asked.index("1 / 0") < asked.index("ZeroDivisionError") < asked.index("Attempt 2")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("x = 1", "x = 1"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```py\nx = 1\n```\nand\n```python\nx = 12\n```", "x = 12\n"),
        ("```bash\npip install everything\n```\n```python\nx = 1\n```", "x = 1\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("```python\nx = 1", "```python\nx = 1"),
    ],
)
def test_the_code_is_the_longest_block_of_python(answer: str, code: str) -> None:
    assert code_in(answer) == code


async def test_a_key_that_is_not_accepted_is_not_tried_again_and_stays_out_of_the_error(model: MockModelServer) -> None:
    model.enqueue_error(401, text="bad key sk-secret")
    with pytest.raises(CodeGeneratorConfigurationError) as raised:
        await make(model, api_key="sk-secret").generate_code(REQUEST, [])

    assert "did not accept the key" in str(raised.value)
    assert "sk-secret" not in str(raised.value)


@pytest.mark.parametrize("answers", [[400], ["", "", "", ""]])
async def test_a_model_that_gives_nothing_is_an_attempt(answers: Sequence[int | str], model: MockModelServer) -> None:
    for answer in answers:
        model.enqueue_error(answer) if isinstance(answer, int) else model.enqueue_message(answer)
    with pytest.raises(CodeGenerationError) as raised:
        await make(model).generate_code(REQUEST, [])

    assert not isinstance(raised.value, CodeGeneratorConfigurationError)


async def test_a_model_that_takes_too_long_is_an_attempt(model: MockModelServer) -> None:
    model.enqueue_message("late", is_held=True)
    with pytest.raises(CodeGenerationError, match="within"):
        await make(model, timeout=0.2).generate_code(REQUEST, [])


@pytest.mark.parametrize("name", ["gpt", "openai:gpt-5.2"])
async def test_what_cannot_be_asked_needs_a_person(name: str) -> None:
    with pytest.raises(CodeGeneratorConfigurationError):
        await create_code_generator("model", model=name).generate_code(REQUEST, [])


def test_a_model_has_to_be_named() -> None:
    with pytest.raises(CodeGeneratorConfigurationError):
        create_code_generator("model", model="")
    with pytest.raises(CodeGeneratorConfigurationError):
        create_code_generator("model")
