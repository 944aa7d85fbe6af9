"""On a full disk, nothing can be allowed, and everything can be rejected."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jupyter_agentbox.core.approvals import Answer, Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.exceptions import InvalidTransitionError, StorageError, ToolCallRejectedError
from jupyter_agentbox.storage.database import JournalMode

from .users_server import ADA, running

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=False).returncode:
        pytest.skip("this system lets nobody mount")
    yield place
    subprocess.run(["umount", place], check=True)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))
    return ballast


@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_a_rejection_counts_at_once_and_is_recorded_when_there_is_room(disk: Path, mode: JournalMode) -> None:
    async with running(disk, mode) as server:
        rejected, first = await server.ask(1)
        waiting, second = await server.ask(2)
        ballast = fill(disk)
        reason = "x" * 3000  # more than has room anywhere
        with pytest.raises(StorageError):
            await server.decide(second, Answer.ALLOW_ONCE)
        decided = await server.decide(first, Answer.REJECT_ONCE, reason=reason)
        with pytest.raises(ToolCallRejectedError, match="xxxxx"):
            await rejected
        assert decided.status is Status.REJECTED
        assert (await server.box.approvals.get(first.id)).status is Status.REJECTED
        listed = (await server.box.approvals.list(ApprovalQuery())).approvals
        assert {one.id: one.status for one in listed} == {first.id: Status.REJECTED, second.id: Status.PENDING}
        with pytest.raises(InvalidTransitionError):
            await server.decide(first, Answer.ALLOW_ONCE)
        assert (not waiting.done(), server.runs) == (True, [])

        ballast.unlink()
        await server.decide(second, Answer.ALLOW_ONCE)
        await waiting
        assert server.runs == [2]
    async with running(disk, mode) as server:
        (record,) = [one for one in (await server.box.approvals.list(ApprovalQuery())).approvals if one.id == first.id]
        assert record.decision is not None
        assert (record.status, record.decision.reviewer, record.decision.reason) == (Status.REJECTED, ADA, reason)
