"""Variables in configuration values: ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from .secret_names import is_secret

#: How to set a variable, for messages.
TO_SET: Final = "set it for the Jupyter server and restart that"

#: A reference to a variable; below, what is within its braces.
REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
_INNER: Final = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def names_in(text: str) -> frozenset[str]:
    """Return the names of all variables in a text."""
    found = (_INNER.fullmatch(inner) for inner in REFERENCE.findall(text))
    return frozenset(reference[1] for reference in found if reference is not None)


class UnsetVariableError(ValueError):
    """A value refers to an unset variable, which the message names."""


class Expander:
    """Expands variables, and remembers values that look secret.

    Parameters
    ----------
    environment : mapping
        The source of values.
    of_others : frozenset of str
        The variables whose values other people choose, such as the name of a user: in a URL, these are escaped.
    to_set : str
        How to set a variable, for messages.
    """

    def __init__(
        self, environment: Mapping[str, str], *, of_others: frozenset[str] = frozenset(), to_set: str = TO_SET
    ) -> None:
        self._environment = environment
        self._of_others = of_others
        self._to_set = to_set
        self.secrets: set[str] = set()

    def expand(self, text: str) -> str:
        """Return the text with all variables replaced. As in a shell, defaults apply to unset and empty ones.

        Raises
        ------
        UnsetVariableError
            If one has neither value nor default, or an unknown prefix.
        """
        return REFERENCE.sub(self._value, text)

    def expand_url(self, text: str) -> str:
        """Return a URL with all variables replaced. Values of others stay in the part of the URL where they are.

        Raises
        ------
        UnsetVariableError
            As for `expand`, or if such a value is ``.`` or ``..``, which no escaping keeps from being a path.
        """
        return REFERENCE.sub(self._value_in_url, text)

    def _value_in_url(self, found: re.Match[str]) -> str:
        value, name = self._value(found), _INNER.fullmatch(found[1])
        if name is None or name[1] not in self._of_others:
            return value
        if value in (".", ".."):
            raise UnsetVariableError(f"the value of `{name[1]}` is `{value}`, which cannot be part of a URL")
        return quote(value, safe="")

    def _value(self, found: re.Match[str]) -> str:
        reference = _INNER.fullmatch(found[1])
        if reference is None:
            raise UnsetVariableError(f"`{found[0]}` is not supported: use an environment variable, `${{NAME}}`")
        name, default = reference.groups()
        value = self._environment.get(name)
        if default is not None and not value:
            return default
        if value is None:
            raise UnsetVariableError(
                f"the environment variable `{name}` is not set: {self._to_set}, or write a default,"
                f" `${{{name}:-value}}`"
            )
        if is_secret(name):
            self.secrets.add(value)
        return value
