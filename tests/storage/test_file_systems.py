"""Which file systems machines share, by what Linux says of mounts."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_agentbox.storage import database
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.file_systems import shared_file_system
from jupyter_agentbox.testing import FakeClock

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/ada/local rw,relatime - tmpfs tmpfs rw
32 22 0:42 / /mnt/two\\040words rw,relatime - fuse.sshfs host: rw
33 22 0:43 / /over rw - nfs old: rw
34 22 0:44 / /over rw - ext4 /dev/sdb rw
a line of something else
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada/.local/share/x.sqlite", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/ada", ""),
        ("/home/ada/local/x.sqlite", ""),
        ("/mnt/two words/x", "fuse.sshfs"),
        ("/over/x", ""),
        ("/var/x", ""),
    ],
)
def test_the_innermost_mount_says_of_which_type_it_is(path: str, kind: str) -> None:
    assert shared_file_system(Path(path), MOUNTS) == kind


def test_without_mounts_nothing_is_known() -> None:
    assert shared_file_system(Path("/home"), "") == ""


async def test_where_machines_share_the_file_a_rollback_journal_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "shared_file_system", lambda _path: "nfs4")
    path = tmp_path / "approvals.sqlite"
    with closing(sqlite3.connect(path)) as before:
        before.execute("PRAGMA journal_mode=wal")
    caplog.set_level(logging.WARNING)
    async with SqlApprovalStore(sqlite_url(str(path)), clock=FakeClock(), journal_mode="wal"):
        with closing(sqlite3.connect(path)) as beside:
            assert beside.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert "of type `nfs4`: journal mode `delete` is used" in caplog.text
