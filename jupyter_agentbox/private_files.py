"""Files that only this user may read, and that are never there by half."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int | None = None, is_synced: bool = False) -> None:
    """Write a file as a whole: whoever reads it meanwhile has the old one. Directories that are missing are made.

    Parameters
    ----------
    path : Path
        The file. A link is replaced, not followed.
    content : bytes
        What it is to have.
    mode : int, optional
        Its permissions; by default, those of a file for this user only.
    is_synced : bool
        Whether it has to be on the disk, so that a machine which loses its power keeps the old one or the new one.

    Raises
    ------
    OSError
        If it cannot be written; it is as it was.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".jupyter-agentbox-")  # made for this user only
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:
            Path(draft).chmod(mode)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
