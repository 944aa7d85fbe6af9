"""Two servers of one user, in processes of their own, on one home whose file system has no shared memory."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, OutcomeState, Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.exceptions import InvalidTransitionError

from .users_server import CALLS, TIMEOUT, running


async def work(home: Path, name: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.services.approvals.users_server", str(home), name),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(TIMEOUT):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return dict(json.loads(out))


async def test_both_write_at_once_and_nothing_is_lost_or_run_twice(tmp_path: Path) -> None:
    async with running(tmp_path, "delete") as third:
        calling, waiting = await third.ask(-1)
        told = await asyncio.gather(work(tmp_path, "one"), work(tmp_path, "two"))
        query = ApprovalQuery(limit=1000)
        ended = {one.id: one for one in (await third.box.approvals.list(query)).approvals if one.id != waiting.id}
        assert not calling.done()  # servers that came and went took nothing from one that is alive
        await third.decide(waiting, Answer.ALLOW_ONCE)
        await calling
    assert len(ended) == 2 * CALLS
    for one, name in zip(told, ("one", "two"), strict=True):
        assert one["runs"] == [number for number in range(CALLS) if number % 3]
        assert {ended[id].outcome_state for id in one["allowed"]} == {OutcomeState.SUCCEEDED}
        decisions = [(ended[id].status, ended[id].decision) for id in one["rejected"]]
        assert len(decisions) == CALLS / 3
        assert {(status, said and said.reason) for status, said in decisions} == {(Status.REJECTED, name)}
    with closing(sqlite3.connect(tmp_path / "approvals.sqlite")) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_each_decides_only_its_own_requests_and_reads_those_of_the_other(tmp_path: Path) -> None:
    async with running(tmp_path, "delete") as one, running(tmp_path, "delete") as two:
        calling, request = await one.ask(1)
        for answer in (Answer.ALLOW_ONCE, Answer.REJECT_ONCE):
            with pytest.raises(InvalidTransitionError, match="another Jupyter server"):
                await two.decide(request, answer)
        await one.decide(request, Answer.ALLOW_ONCE)
        await calling
        await one.box.approvals.recorded()
        assert (await two.box.approvals.get(request.id)).outcome_state is OutcomeState.SUCCEEDED
        assert (one.runs, two.runs) == ([1], [])
