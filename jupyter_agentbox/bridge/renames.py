"""Follows renames and moves of files and directories through the server."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from jupyter_events import EventLogger

from jupyter_agentbox.core.calls import JsonObject

log = logging.getLogger(__name__)

#: Schema id of the event with which `jupyter_server` reports actions on files.
CONTENTS_ACTIONS: Final = "https://events.jupyter.org/jupyter_server/contents_service/v1"


class Renames:
    """Reports each rename.

    Parameters
    ----------
    events : EventLogger
        The server's.
    on_rename : callable
        Called with the old and the new path, relative to the server's root.
    """

    def __init__(self, events: EventLogger, on_rename: Callable[[str, str], Awaitable[None]]) -> None:
        self._on_rename = on_rename
        events.add_listener(schema_id=CONTENTS_ACTIONS, listener=self._on_action)

    async def _on_action(self, logger: EventLogger, schema_id: str, data: JsonObject) -> None:  # noqa: ARG002  # by name
        old, new = data.get("source_path"), data.get("path")
        if data.get("action") != "rename" or not isinstance(old, str) or not isinstance(new, str):
            return
        try:
            await self._on_rename(old.strip("/"), new.strip("/"))
        except Exception:
            # A boundary: Jupyter has already renamed it, whatever happens here.
            log.exception("a rename could not be followed")
