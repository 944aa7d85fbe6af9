"""Results of tools as MCP content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent

from jupyter_agentbox.core.calls import JsonObject

from .sessions import Executed

#: What JSON begins with that is no object.
_JSON_STARTS: Final = frozenset('["-0123456789tfn')
#: What clients can show; SVG is text, and few of them can.
_IMAGES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")


def executed(done: Executed) -> CallToolResult:
    """Return a cell's text and images; if it failed, the text before the error, the error, and the images before it.

    If an answer has no structured content, Gemini CLI reads a text that is JSON as if it were, and rejects the answer
    unless that is an object. So an answer whose text is a number, a list or the like gets an object as its structured
    content. Other answers have none: clients that find some give their model nothing else, and no image.
    """
    images = [image for bundle in done.bundles for image in _images(bundle)]
    texts = [_text(text) for text in _texts(done, has_images=bool(images))]
    is_error = done.error is not None
    if not (texts and _is_misread(texts[0].text)):
        return CallToolResult(content=[*texts, *images], is_error=is_error)
    if images:
        texts[0] = _text(f"{texts[0].text}\n({'an image' if len(images) == 1 else f'{len(images)} images'} below)")
        return CallToolResult(content=[*texts, *images], is_error=is_error)
    content = {"text": texts[0].text, **({"error": texts[1].text} if is_error else {})}
    return CallToolResult(content=list(texts), structured_content=content, is_error=is_error)


def told(text: str) -> CallToolResult:
    """Return a text."""
    return CallToolResult(content=[_text(text)])


def failed(text: str) -> CallToolResult:
    """Return an error whose text says what happened and what to do."""
    return CallToolResult(content=[_text(text)], is_error=True)


def structured(value: JsonObject) -> CallToolResult:
    """Return a value as structured content and as text."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
    return CallToolResult(content=[_text(text)], structured_content=json.loads(text))


def _texts(done: Executed, *, has_images: bool) -> list[str]:
    if done.error is not None:
        return [done.text, done.error] if done.text.strip() else [done.error]
    return [done.text or "(no output)"] if done.text or not has_images else []


def _is_misread(text: str) -> bool:
    """Whether a text is JSON but not an object."""
    if text.lstrip()[:1] not in _JSON_STARTS:
        return False
    try:
        json.loads(text, parse_int=str)  # an integer of any length
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _images(bundle: Mapping[str, Any]) -> Iterable[ContentBlock]:
    for kind in _IMAGES:
        data = bundle.get(kind)
        if isinstance(data, str):
            yield ImageContent(data="".join(data.split()), mime_type=kind)
            return


def _text(text: str) -> TextContent:
    # Lone surrogates are legal in Python strings, not in what is sent.
    return TextContent(text=text.encode("utf-8", "backslashreplace").decode("utf-8"))
