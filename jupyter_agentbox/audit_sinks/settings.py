"""The type of the setting with the addresses of audit sinks."""

from __future__ import annotations

from typing import Any, NoReturn

from traitlets import List, TraitError


class Addresses(List[str]):
    """A list of addresses, whose errors do not contain them: an address may have a password or a key."""

    def error(self, obj: Any, value: Any, error: Exception | None = None, info: str | None = None) -> NoReturn:  # noqa: ARG002
        """Raise the error for a wrong type."""
        name = f"{type(obj).__name__}.{self.name}"
        raise TraitError(f"`{name}` must be a list of addresses, each of them a string")
