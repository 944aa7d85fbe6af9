"""Code generators: their Protocol, and their lookup by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Protocol, runtime_checkable

from jupyter_agentbox.exceptions import CodeGeneratorConfigurationError

from .mock_generator import MockCodeGenerator
from .model_generator import ModelCodeGenerator
from .requests import CodeRequest
from .results import AttemptError

#: Entry-point group of packages' generators: a name, and a factory.
ENTRY_POINTS: Final = "jupyter_agentbox.code_generators"
#: Names reserved for the built-in generators.
_BUILT_IN: Final = {"mock": MockCodeGenerator, "model": ModelCodeGenerator}


@runtime_checkable
class CodeGenerator(Protocol):
    """Generates code for a task. Inheriting from it is not necessary.

    An optional method ``get_generation_metadata()`` returns a mapping that is stored with the attempt, such as model,
    tokens and cost.
    """

    async def generate_code(self, request: CodeRequest, error_chain: Sequence[AttemptError]) -> str:
        """Return Python code that stores its findings in a dictionary `results`.

        Parameters
        ----------
        request : CodeRequest
            The task.
        error_chain : sequence of AttemptError
            The errors of the last two attempts, older first; empty for the first attempt.

        Raises
        ------
        CodeGeneratorConfigurationError
            A person has to fix something, such as a key; it is not retried. Any other error counts as an attempt.
        """


def create_code_generator(name: str, config: Mapping[str, Any] | None = None, **options: Any) -> CodeGenerator:
    """Create a code generator by name.

    Parameters
    ----------
    name : str
        ``"mock"``, ``"model"``, or a name that an installed package registers in the entry-point group
        ``jupyter_agentbox.code_generators``.
    config : mapping, optional
        Keyword arguments for the generator's factory.
    **options
        Further keyword arguments, which take precedence.

    Raises
    ------
    CodeGeneratorConfigurationError
        There is no such generator, creating it fails, or it has no `generate_code`. It is also a `ValueError`.
    """
    make = _BUILT_IN.get(name) or _load(name)
    try:
        generator = make(**{**(config or {}), **options})
    except (TypeError, ValueError) as error:
        raise CodeGeneratorConfigurationError(f"the code generator `{name}` could not be created: {error}") from error
    if not isinstance(generator, CodeGenerator):
        raise CodeGeneratorConfigurationError(f"the object that `{name}` creates has no method `generate_code`")
    return generator


def _load(name: str) -> Any:
    found = [point for point in entry_points(group=ENTRY_POINTS) if point.name == name]
    if not found:
        known = sorted({*_BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINTS))})
        raise CodeGeneratorConfigurationError(f"there is no code generator `{name}`; installed are {', '.join(known)}")
    if len({point.value for point in found}) > 1:
        raise CodeGeneratorConfigurationError(f"several packages provide a code generator `{name}`: {_values(found)}")
    try:
        return found[0].load()
    except (ImportError, AttributeError) as error:
        raise CodeGeneratorConfigurationError(f"the code generator `{name}` cannot be loaded: {error}") from error


def _values(points: Sequence[EntryPoint]) -> str:
    return ", ".join(sorted(point.value for point in points))
