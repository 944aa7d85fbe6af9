"""`ModelClients`: models' clients, kept open between turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .imports import without_collections

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from .models import ModelSettings

#: Maximum number of open clients. A dropped one remains usable for its users.
_MOST: Final = 8


class ModelClients:
    """Creates a model's client on first use and keeps it, with its connections, for further turns.

    Parameters
    ----------
    settings : callable
        Returns a model's settings, given its name. Called in a thread each time: a changed key applies from the next
        turn on.
    """

    def __init__(self, settings: Callable[[str], ModelSettings]) -> None:
        self._settings = settings
        self._open: dict[ModelSettings, Model] = {}

    async def get(self, name: str) -> Model:
        """Return the opened client of a model.

        Raises
        ------
        AgentConfigurationError
            The model cannot be used.
        """
        # In a thread: it accesses the keyring, which may ask a person, and imports the provider's library.
        settings = await asyncio.to_thread(self._settings, name)
        if settings not in self._open:
            made = await asyncio.to_thread(_make, settings)
            if self._open.setdefault(settings, made) is made:  # otherwise another turn was faster
                await made.__aenter__()
        client = self._open.pop(settings)
        self._open[settings] = client  # the most recently used is dropped last
        while len(self._open) > _MOST:
            await self._open.pop(next(iter(self._open))).__aexit__(None, None, None)
        return client

    async def aclose(self) -> None:
        """Close all clients."""
        while self._open:
            await self._open.popitem()[1].__aexit__(None, None, None)


def _make(settings: ModelSettings) -> Model:
    from .models import make_model  # noqa: PLC0415  # it takes seconds to import

    with without_collections():
        return make_model(settings)
