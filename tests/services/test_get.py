"""No GET has an effect: an output can make a page send one, with a picture."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.questions import ServerQuestion
from jupyter_agentbox.core.threads import Thread, Turn, TurnStatus
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.services.handlers import SETTINGS_KEY, Services
from jupyter_agentbox.services.threads.manager import NotebookThreads
from tests.samples import NOON

#: Handler -> what of its route varies, for each that answers a GET.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "ApprovalsHandler": ("approvals",),
    "ApprovalHandler": ("approvals", "{request}"),
    "AuditHandler": ("audit",),
    "GrantsHandler": ("grants",),
    "QuestionsHandler": ("questions",),
    "QuestionHandler": ("questions", "{question}"),
    "PolicyHandler": ("policy",),
    "HealthHandler": ("health",),
    "HubRequestsHandler": ("hub-requests",),
    "ServersHandler": ("servers",),
    "OtherServersHandler": ("other-servers",),
    "ServerToolsHandler": ("servers", "shop", "tools"),
    "ServerCallHandler": ("servers", "shop", "calls", "{request}"),
    "ServerLogHandler": ("servers", "shop", "log"),
    "KernelHandler": ("kernels", "{kernel}"),
    "ThreadsHandler": ("threads",),
    "ThreadHandler": ("threads", "{thread}"),
    "ThreadMessagesHandler": ("threads", "{thread}", "messages"),
    "TurnHandler": ("turns", "{turn}"),
    "TurnEventsHandler": ("turns", "{turn}", "events"),
}
ASK = Evaluation(effect=Effect.ASK)


@pytest.fixture
def jp_server_config(tmp_path: Path) -> Any:
    started = f"import pathlib; pathlib.Path({str(tmp_path / 'started')!r}).touch()"
    servers = {"mcpServers": {"shop": {"command": sys.executable, "args": ["-c", started]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers))
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
        },
    }


async def a_thread(threads: NotebookThreads) -> tuple[Thread, Turn]:
    """Make a thread with a turn that has ended."""
    thread = await threads.start("a.ipynb")
    turn = Turn(id="t1", thread_id=thread.id, started_at=NOON)
    await threads._store.begin(turn)
    ended = turn.end(TurnStatus.COMPLETED, at=NOON)
    await threads._store.put_turn(ended, b"")
    return thread, ended


def test_every_handler_that_answers_a_get_is_tried() -> None:
    answering = {handler.__name__ for _, handler, *_ in AgentBoxApp.handlers if "get" in vars(handler)}

    # A provider sends a browser back by a GET, and what it brings has an effect once: see servers/test_sign_in.py.
    assert answering - {"SignInCallbackHandler"} == set(PARTS)


@pytest.mark.parametrize("handler", sorted(PARTS))
async def test_get_has_no_effect(jp_fetch: Any, jp_serverapp: Any, tmp_path: Path, handler: str) -> None:
    services: Services = jp_serverapp.web_app.settings[SETTINGS_KEY]
    call = ToolCall(server="shop", tool="buy", arguments={"id": 7}, origin=Origin(kernel_id="k1"))
    request = await services.approvals.open(call, ToolDescription(name="buy"), ASK)
    before = [status.to_json() for status in services.catalog.servers()]
    thread, turn = await a_thread(services.threads())
    running = await services.approvals.open(call, ToolDescription(name="buy"), Evaluation(effect=Effect.ALLOW))
    asking = asyncio.create_task(services.questions.ask(running.id, ServerQuestion.of_url("?", "https://a.example")))
    await asyncio.sleep(0)  # it has been put when its task has had its turn
    (question,) = services.questions.pending()
    names = {"question": question.id, "request": request.id, "kernel": "k1", "thread": thread.id, "turn": turn.id}

    answer = await jp_fetch("jupyter-agentbox", *(part.format(**names) for part in PARTS[handler]))

    assert answer.code == 200
    assert (await services.threads().read(thread.id)).thread == replace(thread, turns=(turn,))
    assert await services.approvals.get(request.id) == request
    assert services.questions.pending() == (question,)
    asking.cancel()
    assert [status.to_json() for status in services.catalog.servers()] == before
    assert not (tmp_path / "started").exists()


async def test_what_starts_a_server_answers_no_get(jp_fetch: Any, tmp_path: Path) -> None:
    for action in ("start", "stop", "restart"):
        with pytest.raises(HTTPClientError) as caught:
            await jp_fetch("jupyter-agentbox", "servers", "shop", action)
        assert caught.value.code == 405
    assert not (tmp_path / "started").exists()


async def test_what_starts_a_server_needs_more_than_a_cookie(
    jp_serverapp: Any, http_server_client: Any, jp_base_url: str, tmp_path: Path
) -> None:
    del jp_serverapp
    for action in ("tools", "start", "stop", "restart"):
        with pytest.raises(HTTPClientError) as caught:
            await http_server_client.fetch(
                f"{jp_base_url}jupyter-agentbox/servers/shop/{action}", method="POST", body="{}"
            )
        assert caught.value.code == 403
    assert not (tmp_path / "started").exists()
