"""Detects file systems shared between machines, on which memory-mapped files are not coherent."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

#: Linux file system types on which SQLite's write-ahead log is unsafe between machines, or does not work.
_SHARED: Final = frozenset(
    {
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "afs",
            "9p",
            "ceph",
            "lustre",
            "beegfs",
            "gpfs",
            "orangefs",
            "glusterfs",
        ),
        *("fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse", "fuse.blobfuse2"),
    }
)
_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


def shared_file_system(path: Path, mounts: str | None = None) -> str:
    """Return the type of a path's file system if it is shared between machines; empty if not, or unknown.

    Parameters
    ----------
    path : Path
        A file or directory, which need not exist.
    mounts : str, optional
        Contents of ``/proc/self/mountinfo``; read by default.
    """
    try:
        text = _MOUNTS.read_text("utf-8", "surrogateescape") if mounts is None else mounts
    except OSError:  # not Linux
        return ""
    place = os.path.realpath(path)
    found = ("", "")
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = _ESCAPE.sub(lambda code: chr(int(code[1], 8)), fields[4])
        is_above = place == point or place.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(found[0]):  # of two mounts at one point, the later one is on top
            found = (point, after.split(" ")[0])
    return found[1] if found[1] in _SHARED else ""
