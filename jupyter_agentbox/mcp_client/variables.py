"""Variables in configuration values: ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .secret_names import is_secret

_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
_REFERENCE: Final = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def names_in(text: str) -> frozenset[str]:
    """Return the names of all variables in a text."""
    found = (_REFERENCE.fullmatch(inner) for inner in _VARIABLE.findall(text))
    return frozenset(reference[1] for reference in found if reference is not None)


class UnsetVariableError(ValueError):
    """A value refers to an unset variable, which the message names."""


class Expander:
    """Expands variables, and remembers values that look secret.

    Parameters
    ----------
    environment : mapping
        The source of values.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.secrets: set[str] = set()

    def expand(self, text: str) -> str:
        """Return the text with all variables replaced. As in a shell, defaults apply to unset and empty ones.

        Raises
        ------
        UnsetVariableError
            If one has neither value nor default, or an unknown prefix.
        """
        return _VARIABLE.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        reference = _REFERENCE.fullmatch(found[1])
        if reference is None:
            raise UnsetVariableError(f"`{found[0]}` is not supported: use an environment variable, `${{NAME}}`")
        name, default = reference.groups()
        value = self._environment.get(name)
        if default is not None and not value:
            return default
        if value is None:
            raise UnsetVariableError(
                f"the environment variable `{name}` is not set: set it for the Jupyter server and restart that,"
                f" or write a default, `${{{name}:-value}}`"
            )
        if is_secret(name):
            self.secrets.add(value)
        return value
