"""Whether a file is on a file system that machines share: there, what they map of it is not the same for all."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

#: Types of Linux's file systems on which SQLite's write-ahead log is not safe between machines, or not at all.
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
    """Return the type of the file system of a path if several machines share it; empty if not, or if that is not known.

    Parameters
    ----------
    path : Path
        A file or directory, which may be missing.
    mounts : str, optional
        What ``/proc/self/mountinfo`` says; by default it is read.
    """
    try:
        text = _MOUNTS.read_text("utf-8", "surrogateescape") if mounts is None else mounts
    except OSError:  # no Linux
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
        if is_above and len(point) >= len(found[0]):  # of two at one place, the later one lies over the other
            found = (point, after.split(" ")[0])
    return found[1] if found[1] in _SHARED else ""
