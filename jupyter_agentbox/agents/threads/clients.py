"""`ModelClients`: the clients of models, kept open from turn to turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .imports import without_collections

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from .models import ModelSettings

#: Clients that are kept open. Who uses one that is dropped goes on with it.
_MOST: Final = 8


class ModelClients:
    """Makes the client of a model when it is first used, and keeps it: the next turn has its connections, too.

    Parameters
    ----------
    settings : callable
        Returns how a model is reached, from its name. It is called in a thread each time: a key that was changed counts
        from the next turn on.
    """

    def __init__(self, settings: Callable[[str], ModelSettings]) -> None:
        self._settings = settings
        self._open: dict[ModelSettings, Model] = {}

    async def get(self, name: str) -> Model:
        """Return the client of a model, open.

        Raises
        ------
        AgentConfigurationError
            The model cannot be used.
        """
        # In a thread: it asks the keyring, which may ask a person, and imports the maker's library.
        settings = await asyncio.to_thread(self._settings, name)
        if settings not in self._open:
            made = await asyncio.to_thread(_make, settings)
            if self._open.setdefault(settings, made) is made:  # else another turn was quicker
                await made.__aenter__()
        client = self._open.pop(settings)
        self._open[settings] = client  # the last used is the last to be dropped
        while len(self._open) > _MOST:
            await self._open.pop(next(iter(self._open))).__aexit__(None, None, None)
        return client

    async def aclose(self) -> None:
        """Close all."""
        while self._open:
            await self._open.popitem()[1].__aexit__(None, None, None)


def _make(settings: ModelSettings) -> Model:
    from .models import make_model  # noqa: PLC0415  # it takes seconds to import

    with without_collections():
        return make_model(settings)
