"""How often a user's server asks a Hub service that does not answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tornado import httpserver, netutil, web

from jupyter_agentbox.core.site_policy import HubPolicySource
from jupyter_agentbox.services.policies.hub_policy_link import INTERVAL, HubPolicyLink


class Target:
    """What takes the policy."""

    def __init__(self, url: str) -> None:
        self.source = HubPolicySource(url=url, public_key="", hub="hub")
        self.problems: list[str] = []

    def accept(self, data: bytes) -> None:
        assert data == b"a policy"

    def fail(self, problem: str) -> None:
        self.problems.append(problem)


class Answer(web.RequestHandler):
    status = 200

    def get(self) -> None:
        self.set_status(self.status)
        self.finish(b"a policy" if self.status == 200 else b"")


@asynccontextmanager
async def answering() -> AsyncIterator[Target]:
    Answer.status = 200
    (at,) = netutil.bind_sockets(0, "127.0.0.1")
    server = httpserver.HTTPServer(web.Application([("/.*", Answer)]))
    server.add_sockets([at])
    yield Target(f"http://127.0.0.1:{at.getsockname()[1]}/api/policy")
    server.stop()
    await server.close_all_connections()


@pytest.mark.parametrize("status", [403, 424, 503])
async def test_a_service_that_refuses_is_asked_less_and_less_often_and_then_as_before(status: int) -> None:
    async with answering() as target:
        link = HubPolicyLink(target, token=lambda: "token")
        await link.start()
        assert link.pause == INTERVAL
        Answer.status = status
        pauses = []
        for _ in range(6):
            await link.look()
            pauses.append(link.pause / INTERVAL)
        Answer.status = 200
        await link.look()
        await link.aclose()

    assert pauses == [1, 2, 4, 8, 8, 8]
    assert [str(status) in problem for problem in target.problems] == [*[True] * 6, False]
    assert link.pause == INTERVAL
    link._failures = 100_000  # months without an answer
    assert link.pause == 8 * INTERVAL
