"""What is kept, logged and announced of a call, by the parts that every front uses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jupyter_events import EventLogger

from jupyter_agentbox import composition
from jupyter_agentbox.composition import AgentBox, Settings, build
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import Progress
from jupyter_agentbox.events import APPROVAL_EVENT, EventAnnouncer
from jupyter_agentbox.exceptions import ToolError
from jupyter_agentbox.mcp_client.project_servers import TrustedServers
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeTools

TIMEOUT = 60
ARGUMENT, RESULT, REASON = "written-by-the-code", "given-by-the-tool", "said-by-a-person"


async def find(call: ToolCall, report: Any) -> Any:
    report(Progress(progress=1, message=RESULT))
    return {"found": RESULT}


async def fail(call: ToolCall, report: Any) -> Any:
    raise ToolError(f"no such order: {call.arguments['text']}")


@pytest.fixture
def events(jp_asyncio_loop: asyncio.AbstractEventLoop) -> EventLogger:
    return EventLogger()


@pytest.fixture
def box(tmp_path: Path, events: EventLogger) -> AgentBox:
    settings = Settings(mcp_config_path=(), database_url=sqlite_url(str(tmp_path / "store" / "approvals.sqlite")))
    tools = FakeTools({"shop.find": find, "shop.fail": fail})
    return build(settings, announcer=EventAnnouncer(events), own_tools={"shop": tools})


async def run(box: AgentBox, tool: str, arguments: dict[str, Any], answer: Answer) -> Any:
    """Call a tool, and decide about it."""
    asked: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
    call = ToolCall(server="shop", tool=tool, arguments=arguments, origin=Origin(kernel_id="k1"))
    running = asyncio.create_task(
        box.calls.run(call, on_waiting=asked.put_nowait, on_running=lambda _: None), name="the call"
    )
    request = await asked.get()
    verdict = Verdict(answer=answer, digest=request.call.digest, reason=REASON)
    await box.decisions.decide(request.id, verdict, reviewer=Reviewer(name="ada", via=Via.BROWSER))
    return (await asyncio.gather(running, return_exceptions=True))[0]


def test_one_object_writes_the_file_of_trusted_servers(
    tmp_path: Path, events: EventLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[TrustedServers] = []

    def make(path: Path, *, own: Sequence[Path]) -> TrustedServers:
        made.append(TrustedServers(path, own=own))
        return made[-1]

    monkeypatch.setattr(composition, "TrustedServers", make)
    settings = Settings(
        mcp_config_path=(tmp_path / "mcp.json",),
        project=tmp_path,
        trusted_servers=tmp_path / "trusted-servers.json",
        reviews_changed_servers=True,
        database_url=sqlite_url(str(tmp_path / "store" / "approvals.sqlite")),
    )
    assert build(settings, announcer=EventAnnouncer(events)).own_servers is not None
    assert len(made) == 1, "it has the lock"


async def test_the_database_has_no_results_and_neither_logs_nor_events_have_arguments_or_results(
    box: AgentBox, events: EventLogger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    announced: list[Any] = []

    async def listen(logger: EventLogger, schema_id: str, data: Any) -> None:  # by name
        announced.append(data)

    events.add_listener(schema_id=APPROVAL_EVENT, listener=listen)
    caplog.set_level(logging.DEBUG, logger="jupyter_agentbox")
    async with asyncio.timeout(TIMEOUT):
        await box.start()
        found = await run(box, "find", {"text": ARGUMENT}, Answer.ALLOW_ONCE)
        long = await run(box, "find", {"text": ARGUMENT * 2000}, Answer.ALLOW_ONCE)
        failed = await run(box, "fail", {"text": ARGUMENT}, Answer.ALLOW_ONCE)
        rejected = await run(box, "find", {"text": ARGUMENT}, Answer.REJECT_ONCE)
        await box.aclose()

    assert [found.result.structured, long.result.structured] == [{"found": RESULT}] * 2
    assert (ARGUMENT in str(failed), rejected.reason) == (True, REASON)
    stored = b"".join(file.read_bytes() for file in (tmp_path / "store").iterdir() if file.is_file())
    assert [word.encode() in stored for word in (ARGUMENT, REASON, RESULT)] == [True, True, False]
    told = json.dumps(announced) + caplog.text
    assert len(announced) >= 8
    assert [word in told for word in (ARGUMENT, REASON, RESULT)] == [False, False, False]
