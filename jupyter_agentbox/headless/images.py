"""Writes a kernel's images to a directory in which that kernel may have created links to elsewhere."""

from __future__ import annotations

import os
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from jupyter_agentbox.no_follow import NO_FOLLOW, open_directory

#: Windows has none of these, and no kernel there is kept from anything.
_HAS_LINKS: Final = os.open in os.supports_dir_fd and os.mkdir in os.supports_dir_fd
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | NO_FOLLOW


def write_images(pngs: Sequence[str], directory: Path) -> list[Path]:
    """Write images under new names and return their paths. Invalid Base64 is skipped.

    Parameters
    ----------
    pngs : sequence of str
        In Base64.
    directory : Path
        Where to; made if it is missing. No part of it may be a link: resolve it before the kernel can make one.

    Raises
    ------
    OSError
        If an image cannot be written, or a part of the path is a link.
    """
    images = [data for png in pngs if (data := _decoded(png)) is not None]
    if not images:
        return []
    paths = [directory / f"{uuid4().hex[:8]}.png" for _ in images]
    if not _HAS_LINKS:
        directory.mkdir(parents=True, exist_ok=True)
        for path, data in zip(paths, images, strict=True):
            path.write_bytes(data)
        return paths
    absolute = directory.absolute()
    place = open_directory(Path(absolute.anchor), absolute.parts[1:], make=True)
    try:
        for path, data in zip(paths, images, strict=True):
            with os.fdopen(os.open(path.name, _NEW, 0o644, dir_fd=place), "wb") as file:
                file.write(data)
    finally:
        os.close(place)
    return paths


def _decoded(png: str) -> bytes | None:
    try:
        return b64decode(png)
    except (Base64Error, ValueError):  # the kernel runs any code, which can display anything
        return None
