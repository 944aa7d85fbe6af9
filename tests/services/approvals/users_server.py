"""A user's server without its web part; as a process, it makes calls and decides them.

``python -m tests.services.approvals.users_server HOME NAME``
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jupyter_agentbox.composition import AgentBox, Settings, build
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.exceptions import ToolCallRejectedError
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.database import JournalMode
from jupyter_agentbox.testing import FakeAnnouncer, FakeTools

ADA = Reviewer(name="ada")
TIMEOUT = 120
#: How many calls a process makes, of which each third is rejected.
CALLS = 30


class Server:
    """A user's server, whose tool notes that it ran.

    Attributes
    ----------
    runs : list
        The arguments of the calls that ran.
    has_run : asyncio.Event
        Set when the tool has begun.
    may_end : asyncio.Event
        The tool ends when this is set, as it is at first.
    """

    def __init__(self, place: Path | str, mode: JournalMode = "wal") -> None:
        self.runs: list[Any] = []
        self.has_run, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()
        self.announcer = FakeAnnouncer()

        async def delete(call: ToolCall, report: Any) -> Any:
            self.runs.append(call.arguments["id"])
            self.has_run.set()
            await self.may_end.wait()
            return {}

        url = place if isinstance(place, str) else sqlite_url(str(place / "approvals.sqlite"))
        settings = Settings(mcp_config_path=(), database_url=url, journal_mode=mode)
        self.box: AgentBox = build(
            settings,
            announcer=self.announcer,
            own_tools={"shop": FakeTools({"shop.delete": delete})},
            policy=Policy((Rule(server="*", tool="*", effect=Effect.ASK),)),
        )

    async def ask(self, number: int) -> tuple[asyncio.Task[Any], ApprovalRequest]:
        """Start a call; return it and its request."""
        waiting: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
        call = ToolCall(server="shop", tool="delete", arguments={"id": number}, origin=Origin(kernel_id="k1"))
        run = self.box.calls.run(call, on_waiting=waiting.put_nowait, on_running=lambda _: None)
        return asyncio.create_task(run), await waiting.get()

    async def decide(self, request: ApprovalRequest, answer: Answer, **more: Any) -> ApprovalRequest:
        verdict = Verdict(answer=answer, digest=request.call.digest, **more)
        return await self.box.decisions.decide(request.id, verdict, reviewer=ADA)


@asynccontextmanager
async def running(place: Path | str, mode: JournalMode = "wal") -> AsyncIterator[Server]:
    """Run a server with its store in a directory, or at a URL."""
    server = Server(place, mode)
    async with asyncio.timeout(TIMEOUT):
        await server.box.start()
        try:
            yield server
        finally:
            await server.box.aclose()


async def main(home: Path, name: str) -> None:
    """Make calls one after the other, and write which were allowed, rejected and run."""
    allowed, rejected = [], []
    async with running(home, "delete") as server:
        for number in range(CALLS):
            calling, request = await server.ask(number)
            if number % 3:
                await server.decide(request, Answer.ALLOW_ONCE)
                await calling
                allowed.append(request.id)
                continue
            await server.decide(request, Answer.REJECT_ONCE, reason=name)
            try:
                await calling
            except ToolCallRejectedError:
                rejected.append(request.id)
    sys.stdout.write(json.dumps({"allowed": allowed, "rejected": rejected, "runs": server.runs}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
