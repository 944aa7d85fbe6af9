"""Reads a notebook's cells, as last saved, for an agent with permission from a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.utils import ensure_async
from tornado.web import HTTPError

from jupyter_agentbox.core.terminal import without_controls

#: Maximum length of a cell's source, in characters; below, of its outputs and of all cells.
_SOURCE: Final = 20_000
_OUTPUT: Final = 2_000
_ALL: Final = 200_000


class NotebookCells:
    """Reads notebooks.

    Parameters
    ----------
    contents : ContentsManager
        The server's contents manager.
    """

    def __init__(self, contents: ContentsManager) -> None:
        self._contents: Any = contents  # its methods have no types

    async def read(self, path: str, with_outputs: bool) -> str:
        """Return the cells of a notebook as text.

        Parameters
        ----------
        path : str
            The notebook's path, relative to the server's root.
        with_outputs : bool
            Whether to include outputs.
        """
        try:
            model = await ensure_async(self._contents.get(path, content=True, type="notebook"))
            cells = model["content"]["cells"]
        except (HTTPError, OSError, KeyError, TypeError, ValueError):
            return "The notebook cannot be read: perhaps it was not saved yet."
        parts = (part for number, cell in enumerate(cells, 1) for part in _parts(number, cell, with_outputs))
        return "\n".join(parts)[:_ALL] or "The notebook has no cells."


def _parts(number: int, cell: Mapping[str, Any], with_outputs: bool) -> Iterator[str]:
    yield f"# Cell {number} ({cell.get('cell_type', 'unknown')})"
    yield _joined(cell.get("source", ""))[:_SOURCE]
    if with_outputs and (text := "\n".join(map(_output, cell.get("outputs", ())))):
        yield f"# Output of cell {number}\n{without_controls(text)[:_OUTPUT]}"


def _output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    return _joined(output.get("text") or (output.get("data") or {}).get("text/plain") or "")


def _joined(text: Any) -> str:
    """Return a notebook's text, which may be a list of lines."""
    return "".join(map(str, text)) if isinstance(text, list) else str(text)
