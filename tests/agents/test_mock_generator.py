"""The generator for tests gives what it was told to, and remembers what it was asked."""

from __future__ import annotations

import pytest

from jupyter_agentbox import AttemptError, CodeGenerator, CodeRequest, MockCodeGenerator
from jupyter_agentbox.agents.results import Stage

REQUEST = CodeRequest(user_query="Add.", task_objective="Add two numbers.")


def an_error(message: str, attempt: int = 1) -> AttemptError:
    return AttemptError(stage=Stage.EXECUTION, message=message, attempt=attempt)


async def test_it_is_a_code_generator() -> None:
    assert isinstance(MockCodeGenerator(), CodeGenerator)
    assert MockCodeGenerator().get_generation_metadata() == {}


async def test_a_sequence_stays_at_its_last() -> None:
    generator = MockCodeGenerator("success")
    generator.set_code_sequence(["a", "b"])

    assert [await generator.generate_code(REQUEST, []) for _ in range(4)] == ["a", "b", "b", "b"]


async def test_sequence_before_code_before_behavior() -> None:
    generator = MockCodeGenerator("success")
    generator.static_code = "static"
    generator.code_sequence = ["sequence"]
    given = [await generator.generate_code(REQUEST, [])]
    generator.code_sequence = []
    given.append(await generator.generate_code(REQUEST, []))
    generator.static_code = None
    given.append(await generator.generate_code(REQUEST, []))

    assert given[:2] == ["sequence", "static"]
    assert "results =" in given[2]


async def test_what_was_set_last_counts() -> None:
    generator = MockCodeGenerator()
    generator.set_code_sequence(["old"])
    generator.set_code("new")
    assert await generator.generate_code(REQUEST, []) == "new"

    generator.set_code_sequence(["newer"])
    generator.reset()
    assert await generator.generate_code(REQUEST, []) == "newer"


@pytest.mark.parametrize(
    "behavior",
    ["success", "runtime_error", "missing_results", "channel_write", "channel_read", "security_risk", "error_aware"],
)
async def test_all_behaviors_but_one_give_python(behavior: str) -> None:
    code = await MockCodeGenerator(behavior=behavior).generate_code(REQUEST, [])

    compile(code, "code", "exec")
    assert ("results =" in code) == (behavior != "missing_results")
    assert ("write_channel" in code) == (behavior == "channel_write")


async def test_one_gives_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        compile(await MockCodeGenerator("syntax_error").generate_code(REQUEST, []), "code", "exec")


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("NameError: name 'mean' is not defined", "import"),
        ("ZeroDivisionError: division by zero", "> 0"),
        ("SyntaxError: invalid syntax", "def mean"),
        ("OddError: what", "results"),
    ],
)
async def test_it_repairs_what_the_errors_name(message: str, part: str) -> None:
    generator = MockCodeGenerator("error_aware")

    for errors in ([an_error(message)], [message]):
        code = await generator.generate_code(REQUEST, errors)
        compile(code, "code", "exec")
        assert part in code


async def test_it_remembers_its_calls_until_it_is_reset() -> None:
    generator = MockCodeGenerator("success")
    errors = [an_error("one"), an_error("two", 2)]
    await generator.generate_code(REQUEST, [])
    await generator.generate_code(REQUEST, errors)
    assert (generator.call_count, generator.last_request, generator.last_error_chain) == (2, REQUEST, errors)

    generator.reset()
    assert (generator.call_count, generator.last_request, generator.last_error_chain) == (0, None, [])


async def test_an_unknown_behavior_and_none_are_errors() -> None:
    with pytest.raises(ValueError, match="Unknown behavior"):
        MockCodeGenerator("unknown")
    with pytest.raises(ValueError, match="not configured"):
        await MockCodeGenerator().generate_code(REQUEST, [])


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "3", None])
def test_a_request_has_at_least_one_attempt(most: object) -> None:
    with pytest.raises(ValueError):
        CodeRequest(user_query="", task_objective="", max_attempts=most)  # type: ignore[arg-type]  # a caller without types
