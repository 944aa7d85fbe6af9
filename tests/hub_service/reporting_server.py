"""A user's server, as a process: calls a tool again and again, and says which calls ran."""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path
from typing import Any

from jupyter_agentbox.composition import Settings, build
from jupyter_agentbox.core.audit_trail import AuditSettings
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeAnnouncer, FakeTools


async def serve(directory: Path, url: str, first: int, most: int) -> None:
    """Call as often; the number of each call that ran goes to standard output."""

    async def find(call: ToolCall, report: Any) -> Any:
        sys.stdout.write(f"{call.arguments['n']}\n")
        sys.stdout.flush()
        return {}

    audit = AuditSettings(sinks=(f"agentbox+{url}",), spool=str(directory / "spool"), pause=0.01, last_patience=60.0)
    box = build(
        Settings(mcp_config_path=(), database_url=sqlite_url(str(directory / "approvals.sqlite")), audit=audit),
        announcer=FakeAnnouncer(),
        own_tools={"shop": FakeTools({"shop.find": find})},
        policy=Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),)),
    )
    await box.start()
    for number in count(first):
        if number == first + most:
            break
        asked = ToolCall(server="shop", tool="find", arguments={"n": number})
        await box.calls.run(asked, on_waiting=lambda _: None, on_running=lambda _: None)
    await box.aclose()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
