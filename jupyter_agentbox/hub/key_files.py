"""Files with the service's keys, which nobody else can read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def read_key_file(path: Path, new_content: Callable[[], bytes]) -> bytes:
    """Return the content of a file with keys. The file is created if it does not exist, readable only by its owner.

    Parameters
    ----------
    path : Path
        The file.
    new_content : callable
        Returns the content of a new file.

    Raises
    ------
    OSError
        If the file can be neither read nor created.
    ValueError
        If it is no file, or other users can read it.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if not path.is_file():
            raise ValueError(f"`{path}` should be a file with a key, but is a directory, or leads to no file") from None
        if path.stat().st_mode & 0o077:
            raise ValueError(
                f"other users can read the key in `{path}`: run `chmod 600` on it, or use another key"
            ) from None
        return path.read_bytes()
    content = new_content()
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return content
