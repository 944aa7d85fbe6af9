"""The output of code: text, images, rich outputs, or an error."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from jupyter_agentbox.core.terminal import without_controls
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE

from .images import write_images

#: A shell command as IPython rewrites it in the code that it runs.
_SYSTEM: Final = re.compile(r"get_ipython\(\)\.(system|getoutput)\((['\"])(.*?)\2\)")
_CELL_MAGIC: Final = re.compile(r"get_ipython\(\)\.run_cell_magic\((['\"])(\w+)\1, (['\"]).*?\3, (['\"])(.*?)\4\)")
#: Header of every traceback that IPython prints.
_TRACEBACK: Final = "Traceback (most recent call last)"
#: A frame of this package in a traceback.
_OWN_FRAME: Final = re.compile(r"\A(File )?\S*[/\\]jupyter_agentbox[/\\](kernel|tools)\b")


@dataclass
class ExecutionResult:
    """The output of code that ran to its end.

    Parameters
    ----------
    text : str or None
        Streams, results and displays as text, in order, stripped; ``None`` if there are none.
    images : list of Path
        The paths of the PNG images, in order.
    mime_bundles : list of dict
        Results and displays with other MIME types than text, in order: MIME type to data, as the kernel sent them.
    """

    text: str | None
    images: list[Path] = field(default_factory=list)
    mime_bundles: list[dict[str, Any]] = field(default_factory=list)


class ExecutionError(Exception):
    """Code raised an error, or its kernel ended.

    The message has the kernel's traceback, without colors, and the reason of a refused call.

    Attributes
    ----------
    result : ExecutionResult or None
        The output up to the error; ``None`` if the code did not run.
    """

    def __init__(self, *args: object, result: ExecutionResult | None = None) -> None:
        super().__init__(*args)
        self.result = result


@dataclass
class CodeExecutionChunk:
    """A piece of text output, as it arrived.

    Parameters
    ----------
    text : str
        Never empty.
    """

    text: str


@dataclass(frozen=True)
class OutputMessage:
    """An output as the kernel sent it.

    Parameters
    ----------
    kind : str
        ``stream``, ``display_data``, ``execute_result``, ``error``, ``update_display_data`` or ``clear_output``.
    content : mapping
        The message's content.
    """

    kind: str
    content: Mapping[str, Any]


#: The kinds of `OutputMessage`.
OUTPUTS: Final = frozenset({"stream", "display_data", "execute_result", "error", "update_display_data", "clear_output"})

#: What a `CodeExecutor` yields and raises, under ipybox's names.
CodeExecutionResult: TypeAlias = ExecutionResult
CodeExecutionError: TypeAlias = ExecutionError


class Outputs:
    """Collect the outputs of one execute request."""

    def __init__(self) -> None:
        self.error: Mapping[str, Any] | None = None
        self._chunks: list[str] = []
        self._pngs: list[str] = []
        self._bundles: list[dict[str, Any]] = []

    def add(self, kind: str, content: Mapping[str, Any]) -> str | None:
        """Add an output message and return its text, if any.

        Parameters
        ----------
        kind : str
            The ``msg_type``.
        content : mapping
            Its content.
        """
        if kind == "error":
            self.error = content
            return None
        text = content.get("text") if kind == "stream" else self._add_bundle(kind, content)
        if not isinstance(text, str):
            return None
        self._chunks.append(text)
        return text

    def result(self, images_dir: Path) -> ExecutionResult:
        """Write the images and return the result. The disk is accessed only if there are images.

        Raises
        ------
        OSError
            If an image cannot be written.
        """
        return ExecutionResult(
            text="".join(self._chunks).strip() if self._chunks else None,
            images=write_images(self._pngs, images_dir),
            mime_bundles=self._bundles,
        )

    def add_reply(self, reply: Mapping[str, Any]) -> None:
        """Add the pager text of code that ran to its end: an error (``%tb``), or help (``name?``).

        Parameters
        ----------
        reply : mapping
            The content of the ``execute_reply``.
        """
        if self.error is not None:
            self._chunks.append(error_text(self.error))
        payload = reply.get("payload")
        for page in payload if isinstance(payload, list) else []:
            data = page.get("data") if isinstance(page, dict) and page.get("source") == "page" else None
            text = data.get("text/plain") if isinstance(data, dict) else None
            if isinstance(text, str):
                self._chunks.append(without_controls(text))

    @property
    def has_images(self) -> bool:
        """Whether `result` will write files."""
        return bool(self._pngs)

    def _add_bundle(self, kind: str, content: Mapping[str, Any]) -> object:
        data = content.get("data")
        if kind not in {"execute_result", "display_data"} or not isinstance(data, dict) or CARD_MIME_TYPE in data:
            return None
        if isinstance(png := data.get("image/png"), str):
            self._pngs.append(png)
        if data.keys() - {"text/plain"}:
            self._bundles.append(data)
        return data.get("text/plain")


def error_text(content: Mapping[str, Any]) -> str:
    """Return an error message's text and traceback as plain text.

    Parameters
    ----------
    content : mapping
        Of an ``error`` message or of a reply with the status ``error``.
    """
    name, value = content.get("ename") or "Error", content.get("evalue") or ""
    frames = content.get("traceback")
    lines = [_plain(str(frame)) for frame in frames] if isinstance(frames, Sequence) else []
    shown = [line for line in lines if not _OWN_FRAME.match(line)]
    head = _plain(f"{name}: {value}")
    if shown and shown[-1] == head and not any(_TRACEBACK in line for line in shown):
        return "\n".join(shown)  # a tool's error: short, and ends with its message
    return "\n".join([head, *shown])


def _plain(text: str) -> str:
    text = without_controls(text)
    text = _SYSTEM.sub(lambda found: f"{'!' if found[1] == 'system' else '!!'}{found[3]}", text)
    return _CELL_MAGIC.sub(lambda found: f"%%{found[2]} {found[5]}", text)
