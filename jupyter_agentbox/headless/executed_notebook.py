"""A notebook with the outputs of its execution, as nbformat 4 describes it."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.text import encodable
from jupyter_agentbox.private_files import replace_file
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE

from .results import OutputMessage

#: Permissions of the file if it is new and the notebook was not a file.
_MODE: Final = 0o644


class ExecutedNotebook:
    """Collects the outputs of a notebook's code cells. The outputs that the notebook had are dropped.

    Parameters
    ----------
    notebook : dict
        The notebook, as its file has it. It is changed.
    """

    def __init__(self, notebook: dict[str, Any]) -> None:
        cells = notebook.get("cells")
        self._notebook = {"metadata": {}, "nbformat": 4, "nbformat_minor": 4, **notebook}
        self._cells = [
            cell
            for cell in (cells if isinstance(cells, list) else [])
            if isinstance(cell, dict) and cell.get("cell_type") == "code"
        ]
        self._cell: dict[str, Any] | None = None
        self._outputs: list[dict[str, Any]] = []
        self._displays: dict[str, list[dict[str, Any]]] = {}
        self._is_to_clear = False
        for cell in self._cells:
            cell["outputs"], cell["execution_count"] = [], None
            cell.setdefault("metadata", {})

    @property
    def sources(self) -> list[str]:
        """The code of the code cells."""
        sources = [cell.get("source", "") for cell in self._cells]
        return [source if isinstance(source, str) else "".join(source) for source in sources]

    def begin_cell(self, index: int) -> None:
        """Let the following outputs be those of this code cell, counted from 0."""
        self._cell = self._cells[index]
        self._cell["execution_count"] = index + 1
        self._outputs = self._cell["outputs"]
        self._is_to_clear = False

    def add(self, message: OutputMessage) -> None:
        """Add an output of the current cell."""
        content = message.content
        if message.kind == "clear_output":
            self._is_to_clear = True
            if not content.get("wait"):
                self._clear()
        elif message.kind == "update_display_data":
            for shown in self._displays.get(_display_id(content), []):
                shown.update(_bundle(content))
        elif message.kind == "stream":
            self._clear()
            self._add_text(str(content.get("name", "stdout")), str(content.get("text", "")))
        elif (output := self._output(message.kind, content)) is not None:
            self._clear()
            self._outputs.append(output)

    def fail(self, error: BaseException) -> None:
        """Add an error that ended the current cell, unless the kernel has sent one."""
        if self._cell is None or any(output["output_type"] == "error" for output in self._outputs):
            return
        name, text = type(error).__name__, str(error)
        self._outputs.append({"output_type": "error", "ename": name, "evalue": text, "traceback": [text]})

    def write(self, path: Path, *, like: Path) -> None:
        """Write the notebook to a file, atomically, with the permissions of another one.

        Raises
        ------
        OSError
        """
        try:
            mode = stat.S_IMODE(like.stat().st_mode)
        except OSError:
            mode = _MODE  # the code has removed it
        text = json.dumps(self._notebook, indent=1, ensure_ascii=False) + "\n"
        replace_file(path, encodable(text).encode(), mode=mode)

    def _output(self, kind: str, content: Mapping[str, Any]) -> dict[str, Any] | None:
        if kind == "error":
            keys = ("ename", "evalue")
            frames = [str(frame) for frame in content.get("traceback") or ()]
            return {"output_type": kind, **{key: str(content.get(key, "")) for key in keys}, "traceback": frames}
        bundle = _bundle(content)
        if not bundle["data"]:
            return None
        count = {"execution_count": self._cell["execution_count"]} if kind == "execute_result" and self._cell else {}
        output = {"output_type": kind, **bundle, **count}
        if display := _display_id(content):
            self._displays.setdefault(display, []).append(output)
        return output

    def _add_text(self, name: str, text: str) -> None:
        last = self._outputs[-1] if self._outputs else {}
        if last.get("output_type") == "stream" and last.get("name") == name:
            last["text"] += text
        else:
            self._outputs.append({"output_type": "stream", "name": name, "text": text})

    def _clear(self) -> None:
        if self._is_to_clear:
            self._outputs.clear()
            self._is_to_clear = False


def _bundle(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an output's data, without the card, which no other kernel could show; its line of text stays."""
    data, metadata = content.get("data"), content.get("metadata")
    kept = {kind: value for kind, value in data.items() if kind != CARD_MIME_TYPE} if isinstance(data, dict) else {}
    return {"data": kept, "metadata": metadata if isinstance(metadata, dict) else {}}


def _display_id(content: Mapping[str, Any]) -> str:
    transient = content.get("transient")
    found = transient.get("display_id") if isinstance(transient, dict) else None
    return found if isinstance(found, str) else ""
