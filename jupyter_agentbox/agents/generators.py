"""Who makes code: the Protocol, and generators by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Protocol, runtime_checkable

from jupyter_agentbox.exceptions import CodeGeneratorConfigurationError

from .mock_generator import MockCodeGenerator
from .model_generator import ModelCodeGenerator
from .requests import CodeRequest
from .results import AttemptError

#: Where packages say which generators they have: a name, and what makes one.
ENTRY_POINTS: Final = "jupyter_agentbox.code_generators"
#: Names that no other package can take.
_BUILT_IN: Final = {"mock": MockCodeGenerator, "model": ModelCodeGenerator}


@runtime_checkable
class CodeGenerator(Protocol):
    """Makes code for a task. Nothing has to be inherited.

    It can have a method ``get_generation_metadata()``, too, which returns a mapping that is kept with the attempt: the
    model, tokens, what it cost.
    """

    async def generate_code(self, request: CodeRequest, error_chain: Sequence[AttemptError]) -> str:
        """Return Python code that leaves what it found out in a dictionary `results`.

        Parameters
        ----------
        request : CodeRequest
            The task.
        error_chain : sequence of AttemptError
            What went wrong in the last two attempts, the older one first; empty for the first attempt.

        Raises
        ------
        CodeGeneratorConfigurationError
            A person has to set something right, such as a key; it is not tried again. Any other error counts as an
            attempt.
        """


def create_code_generator(name: str, config: Mapping[str, Any] | None = None, **options: Any) -> CodeGenerator:
    """Return a generator of code by its name.

    Parameters
    ----------
    name : str
        ``"mock"``, ``"model"``, or a name that an installed package has in the entry-point group
        ``jupyter_agentbox.code_generators``.
    config : mapping, optional
        Keyword arguments for whatever makes it.
    **options
        More of them; they win.

    Raises
    ------
    CodeGeneratorConfigurationError
        There is none of that name, it cannot be made, or what was made is no generator. It is a `ValueError`, too.
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
