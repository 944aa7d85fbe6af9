"""Files that only this user can read, and that are replaced atomically."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int | None = None, is_synced: bool = False) -> None:
    """Replace a file atomically: readers see the old or the new content. Missing directories are created.

    Parameters
    ----------
    path : Path
        The file. A link is replaced, not followed.
    content : bytes
        The new content.
    mode : int, optional
        Its permissions; by default, those of a file for this user only.
    is_synced : bool
        Whether to sync it to the disk, so that the old or the new content survives a power cut.

    Raises
    ------
    OSError
        If it cannot be written. It is unchanged.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(
        dir=path.parent, prefix=".jupyter-agentbox-"
    )  # created readable only by this user
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
