"""Results of tools as MCP content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent

from jupyter_agentbox.core.calls import JsonObject

from .sessions import Executed

#: What clients can show; SVG is text, and few of them can.
_IMAGES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")


def executed(done: Executed) -> CallToolResult:
    """Return a cell's text and images; of an error, the text before it, the error, and the images before it."""
    images = [image for bundle in done.bundles for image in _images(bundle)]
    if done.error is not None:
        before = [_text(done.text)] if done.text.strip() else []
        return CallToolResult(content=[*before, _text(done.error), *images], is_error=True)
    text = [_text(done.text or "(no output)")] if done.text or not images else []
    return CallToolResult(content=[*text, *images])


def told(text: str) -> CallToolResult:
    """Return a text."""
    return CallToolResult(content=[_text(text)])


def failed(text: str) -> CallToolResult:
    """Return an error that says what happened and what to do."""
    return CallToolResult(content=[_text(text)], is_error=True)


def structured(value: JsonObject) -> CallToolResult:
    """Return a value, and the same as text."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
    return CallToolResult(content=[_text(text)], structured_content=json.loads(text))


def _images(bundle: Mapping[str, Any]) -> Iterable[ContentBlock]:
    for kind in _IMAGES:
        data = bundle.get(kind)
        if isinstance(data, str):
            yield ImageContent(data="".join(data.split()), mime_type=kind)
            return


def _text(text: str) -> TextContent:
    # Lone surrogates are legal in Python strings, not in what is sent.
    return TextContent(text=text.encode("utf-8", "backslashreplace").decode("utf-8"))
