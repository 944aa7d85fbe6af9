"""The chunks in which a kernel sends what code prints.

A chunk may end anywhere: `print` writes a line and its end one after the other, and ipykernel sends what was written so
far in between, when the time has come.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Any

from jupyter_agentbox import CodeExecutionChunk


def text_of(item: Any) -> str | None:
    """Return the text of a chunk, and None for anything else."""
    if isinstance(item, CodeExecutionChunk):
        return item.text
    return item if isinstance(item, str) else None


async def take_until(text: str, stream: AsyncIterator[Any]) -> None:
    """Take chunks from a stream until they make a text; whatever else comes is an error."""
    taken = ""
    while taken != text:
        chunk = text_of(await anext(stream))
        assert chunk is not None
        taken += chunk
        assert text.startswith(taken)


def joined(items: Iterable[Any]) -> list[Any]:
    """Return the items of a stream, with chunks that follow each other as one text."""
    together: list[Any] = []
    for item in items:
        text = text_of(item)
        if text is not None and together and isinstance(together[-1], str):
            together[-1] += text
        else:
            together.append(item if text is None else text)
    return together
