"""Generators by name: built in, or of an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox import (
    CodeGenerator,
    CodeGeneratorConfigurationError,
    CodeRequest,
    MockCodeGenerator,
    create_code_generator,
)
from tests.distributions import install

MODULE = """
class Fixed:
    def __init__(self, value=1):
        self.value = value

    async def generate_code(self, request, error_chain):
        return f"results = {{'value': {self.value}}}"


class Nothing:
    pass
"""
POINTS = """
[jupyter_agentbox.code_generators]
fixed = made_generators:Fixed
nothing = made_generators:Nothing
absent = made_generators:Absent
mock = made_generators:Fixed
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "made_generators.py").write_text(MODULE)
    install(tmp_path, "made-generators", POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_protocol_is_met_by_one_method() -> None:
    class Valid:
        async def generate_code(self, _request: object, _error_chain: object) -> str:
            return ""

    assert isinstance(Valid(), CodeGenerator)
    assert not isinstance(object(), CodeGenerator)


def test_the_mock_generator_is_built_in_and_no_package_takes_its_name() -> None:
    generator = create_code_generator("mock", behavior="success")

    assert isinstance(generator, MockCodeGenerator)
    assert generator.behavior == "success"


async def test_one_of_an_installed_package_is_found_by_its_name() -> None:
    generator = create_code_generator("fixed", {"value": 2}, value=3)

    assert await generator.generate_code(CodeRequest(user_query="", task_objective=""), []) == "results = {'value': 3}"


@pytest.mark.parametrize(
    ("name", "options"),
    [("unknown", {}), ("nothing", {}), ("absent", {}), ("fixed", {"odd": 1}), ("mock", {"behavior": "odd"})],
)
def test_what_cannot_be_made_is_a_value_error_that_names_it(name: str, options: dict[str, object]) -> None:
    with pytest.raises(CodeGeneratorConfigurationError, match=f"`{name}`") as raised:
        create_code_generator(name, options)
    assert isinstance(raised.value, ValueError)


def test_a_name_that_two_packages_have_is_nobodys(tmp_path: Path) -> None:
    install(tmp_path, "other-generators", "[jupyter_agentbox.code_generators]\nfixed = other:Fixed\n")

    with pytest.raises(CodeGeneratorConfigurationError, match="several packages"):
        create_code_generator("fixed")
