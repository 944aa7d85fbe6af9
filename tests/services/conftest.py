"""The services with fakes for everything outside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest
from jupyter_agentbox.core.calls import JsonValue, Origin, ToolCall
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.ports import ArgumentChecker
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.core.reviewers import DecideWith, Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.core.waiting_times import WaitingTimes
from jupyter_agentbox.exceptions import ToolArgumentsError
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.kept_requests import KeptRequests
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.approvals.running_calls import RunningCalls
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.services.calls.thread_modes import ThreadModes
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.handlers import SETTINGS_KEY
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.services.questions.manager import QuestionManager
from jupyter_agentbox.testing import FakeAnnouncer, FakeClock, FakeIds, FakeTools, MemoryApprovalStore

TIMEOUT = timedelta(minutes=10)


class NumbersOnly:
    """A checker that wants every argument to be a number."""

    async def check(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> None:
        """Refuse the first argument that is no number."""
        del tool
        for name, value in arguments.items():
            if not isinstance(value, int):
                raise ToolArgumentsError(f"`{name}` must be a number", parameter=name)


class ChangingPolicies(PolicyManager):
    """Policies whose rules a test can change while calls wait."""

    def replace(self, policy: Policy) -> None:
        """Put other rules in force."""
        self._policy = policy


class TimedApprovals(ApprovalManager):
    """Approvals whose time ends when a test says so; in the product, whoever waits for a request sees to that."""

    async def expire_due(self) -> None:
        """Let every request lapse whose time is over."""
        await asyncio.gather(*(self._expire(one.request) for one in self.requests))


@dataclass(kw_only=True)
class Services:
    """All managers on fakes."""

    policy: Policy = field(default_factory=Policy)
    most_pending: int | None = None
    waiting_times: WaitingTimes = field(default_factory=lambda: WaitingTimes(timeout=TIMEOUT))
    decide_with: DecideWith = DecideWith.ANY
    store: MemoryApprovalStore = field(default_factory=MemoryApprovalStore)
    announcer: FakeAnnouncer = field(default_factory=FakeAnnouncer)
    clock: FakeClock = field(default_factory=FakeClock)
    tools: FakeTools = field(default_factory=FakeTools)
    checker: ArgumentChecker = field(default_factory=NumbersOnly)
    ids: FakeIds = field(default_factory=FakeIds)
    question_timeout: timedelta | None = TIMEOUT
    question_owner_of: Callable[[ApprovalRequest], str] = lambda _: ""
    keeps_values: bool = True

    def __post_init__(self) -> None:
        self.trust_keys: dict[str, str] = {}
        self.entries: dict[str, str] = {}
        self.grants = GrantManager(
            store=self.store,
            clock=self.clock,
            ids=FakeIds("g"),
            trust_key=lambda server: self.trust_keys.get(server, ""),
            server_entry=lambda server: self.entries.get(server, ""),
            list_tools=self.tools.list_tools,
            announce=self.announcer.grants_changed,
        )
        self.policies = ChangingPolicies(policy=self.policy, grants=self.grants)
        self.approvals = TimedApprovals(
            store=self.store,
            announcer=self.announcer,
            clock=self.clock,
            ids=self.ids,
            waiting_times=self.waiting_times,
            policies=self.policies,
            grants=self.grants,
            most_pending=self.most_pending,
        )
        self.decisions = DecisionManager(
            approvals=self.approvals,
            clock=self.clock,
            waiting_times=self.waiting_times,
            policies=self.policies,
            grants=self.grants,
            checker=self.checker,
            decide_with=self.decide_with,
        )
        self.kept = KeptRequests(self.approvals)
        self.running_calls = RunningCalls(requests=self.approvals.requests, announcer=self.announcer)
        self.modes = ThreadModes()
        self.questions = QuestionManager(
            running_calls=self.running_calls,
            announcer=self.announcer,
            clock=self.clock,
            ids=FakeIds("q"),
            timeout=self.question_timeout,
            checker=self.checker,
            redaction=Redaction(),
            owner_of=self.question_owner_of,
            keeps_values=self.keeps_values,
        )
        self.calls = CallManager(
            approvals=self.approvals,
            policies=self.policies,
            tools=self.tools,
            checker=self.checker,
            modes=self.modes,
            questions=self.questions,
            running_calls=self.running_calls,
            decide_with=self.decide_with,
        )

    async def stored(self, request_id: str) -> ApprovalRequest:
        """Return what is kept of a request once nothing more is being kept."""
        await self.approvals.recorded()
        return await self.store.get(request_id)

    async def decide(self, request: ApprovalRequest, answer: Answer, **more: object) -> ApprovalRequest:
        """Answer a request as a person who saw the stored arguments."""
        verdict = Verdict(answer=answer, digest=request.call.digest, **more)  # type: ignore[arg-type]
        return await self.decisions.decide(request.id, verdict, reviewer=Reviewer(name="ada", via=Via.BROWSER))


def a_call(**arguments: JsonValue) -> ToolCall:
    """Return a call of ``shop.delete_order`` from kernel ``k1``."""
    origin = Origin(kernel_id="k1", notebook_path="a.ipynb", cell_id="c1")
    return ToolCall(server="shop", tool="delete_order", arguments=arguments, origin=origin)


@pytest.fixture
def services(jp_asyncio_loop: asyncio.AbstractEventLoop, request: pytest.FixtureRequest) -> Iterator[Services]:
    """The services with a policy that asks for everything; a test can name other fields by indirect parameters."""
    services = Services(**getattr(request, "param", {}))
    yield services
    jp_asyncio_loop.run_until_complete(services.approvals.recorded())


@pytest.fixture
def jp_server_config(tmp_path: Path) -> Any:
    """A server with the extension, its MCP servers and its database where the test is; modules add to it."""
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
        },
    }


@pytest.fixture
def approvals(jp_serverapp: Any) -> ApprovalManager:
    """The approvals of that server."""
    manager: ApprovalManager = jp_serverapp.web_app.settings[SETTINGS_KEY].approvals
    return manager


@pytest.fixture
def decisions(jp_serverapp: Any) -> DecisionManager:
    """What takes the answers to them."""
    manager: DecisionManager = jp_serverapp.web_app.settings[SETTINGS_KEY].decisions
    return manager


@pytest.fixture
def fetch(jp_fetch: Any) -> Any:
    """Ask the REST API of a Jupyter server; the answer is a status and JSON, also where that says what is wrong."""

    async def fetch(*parts: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        if body is not None:
            more |= {"method": "POST", "body": body if isinstance(body, str) else json.dumps(body)}
        try:
            response = await jp_fetch("jupyter-agentbox", *parts, **more)
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body if error.response else "null")
        return response.code, json.loads(response.body or "null")

    return fetch
