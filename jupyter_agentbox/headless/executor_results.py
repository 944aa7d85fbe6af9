"""What a `CodeExecutor` gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class CodeExecutionChunk:
    """A piece of text, as it came.

    Parameters
    ----------
    text : str
        Never empty.
    """

    text: str


@dataclass
class CodeExecutionResult:
    """What code gave that ran to its end.

    Parameters
    ----------
    text : str or None
        Streams, results and displays as text, in order, stripped; ``None`` if there was none.
    images : list of Path
        The PNG images, in order.
    mime_bundles : list of dict
        Results and displays that are more than text, in order: MIME type to data.
    """

    text: str | None
    images: list[Path]
    mime_bundles: list[dict[str, Any]] = field(default_factory=list)


class CodeExecutionError(Exception):
    """The code raised an error. The text has the kernel's traceback and, for a refused call, the reason.

    Attributes
    ----------
    result : CodeExecutionResult or None
        What the code gave before; ``None`` if it did not run.
    """

    def __init__(self, *args: object, result: CodeExecutionResult | None = None) -> None:
        super().__init__(*args)
        self.result = result
