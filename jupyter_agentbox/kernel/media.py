"""Displayable images, audio and other content blocks of a tool's result.

A tool's own HTML or SVG markup is never put into a page: only media as data, and text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

_RASTER: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/bmp", "image/webp"})
_MIME_TYPE: Final = re.compile(r"(image|audio)/[A-Za-z0-9][A-Za-z0-9.+-]{0,60}")


@dataclass(frozen=True, slots=True)
class Media:
    """An image or audio clip.

    Parameters
    ----------
    mime_type : str
        The tool's media type, such as ``image/png``.
    data : bytes
        The file's content.
    raw : object
        The whole result, a `jupyter_agentbox.kernel.results.CallResult`.
    """

    mime_type: str
    data: bytes
    raw: Any = None

    def __repr__(self) -> str:
        return f"<{self.mime_type}, {len(self.data)} bytes>"

    def _repr_mimebundle_(self, **_wanted: object) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        encoded = base64.b64encode(self.data).decode("ascii")
        if self.mime_type in _RASTER:
            bundle[self.mime_type] = encoded
        elif _MIME_TYPE.fullmatch(self.mime_type):
            # As the source of an element, an SVG cannot run scripts.
            source = f'src="data:{self.mime_type};base64,{encoded}"'
            is_audio = self.mime_type.startswith("audio/")
            bundle["text/html"] = f"<audio controls {source}></audio>" if is_audio else f"<img {source}>"
        return bundle


class Blocks(list[Any]):
    """The content blocks of a result that has more than text; displayed one below the other.

    Attributes
    ----------
    raw : object
        The whole result, a `jupyter_agentbox.kernel.results.CallResult`.
    """

    def __init__(self, blocks: Iterable[Any] = (), *, raw: Any = None) -> None:
        super().__init__(blocks)
        self.raw = raw

    def _ipython_display_(self) -> None:
        from IPython.display import display  # noqa: PLC0415  # results can also be read where IPython is not

        for block in self:
            if isinstance(block, str):
                display({"text/plain": str(block)}, raw=True)  # type: ignore[no-untyped-call]
            else:
                display(block)  # type: ignore[no-untyped-call]


def media_of(block: dict[str, Any], raw: Any) -> Media | None:
    """Return the image or audio clip in a content block, with the whole result; ``None`` if there is none."""
    source: Any = block
    data_key = "data"
    if block.get("type") == "resource":
        source, data_key = block.get("resource"), "blob"
    elif block.get("type") not in ("image", "audio"):
        return None
    if not isinstance(source, dict):
        return None
    mime_type, data = source.get("mimeType"), source.get(data_key)
    if not isinstance(mime_type, str) or not isinstance(data, str) or not _MIME_TYPE.fullmatch(mime_type):
        return None
    try:
        return Media(mime_type, base64.b64decode(data, validate=True), raw)
    except (binascii.Error, ValueError):
        return None
