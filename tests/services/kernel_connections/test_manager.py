"""What kernels are told, on fakes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, Status
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.tools import ConfigurationProblem, ToolResult
from jupyter_agentbox.kernel.decision_lines import decision_line
from jupyter_agentbox.protocol.messages import (
    Call,
    Cancel,
    GetModule,
    Hello,
    ListPending,
    ListServers,
    Ping,
    ToolsChanged,
    Welcome,
    to_json,
)
from jupyter_agentbox.services.kernel_connections.manager import KernelConnectionManager
from jupyter_agentbox.testing import FakeKernelChannel, FakeNotebookFinder
from tests.services.conftest import Services

COMM = "agentbox-1"


async def delete_order(call: ToolCall, report: Any) -> Any:
    return {"deleted": call.arguments["id"]}


class Kernel:
    """A kernel side of the link, by hand."""

    def __init__(self, services: Services, *, is_lossy: bool = False, **options: Any) -> None:
        services.tools.tools["shop.delete_order"] = delete_order
        self.services = services
        self.channel = FakeKernelChannel()
        self.channel.is_lossy = is_lossy
        self.links = KernelConnectionManager(
            calls=services.calls,
            approvals=services.approvals,
            policies=services.policies,
            grants=services.grants,
            catalog=services.tools,
            notebooks=FakeNotebookFinder({"k1": "a.ipynb"}),
            generate=lambda server, tools: {"source": f"# {server}", "tools": [tool.name for tool in tools]},
            welcome=lambda: Welcome(server_version="0", url="http://x/"),
            servers_file="/home/ada/.jupyter/mcp.json",
            **options,
        )
        self.links.kernel_started("k1", self.channel)

    def say(self, message: Any) -> None:
        data = message if isinstance(message, (dict, str)) else to_json(message)
        self.links.message_received("k1", COMM, data)

    async def answer(self, kind: str, id: str | None = None) -> JsonObject:
        return await self.channel.until(lambda sent: sent["type"] == kind and id in (None, sent.get("id")))


@pytest.fixture
def kernel(services: Services) -> Kernel:
    return Kernel(services)


CALL = Call(id="1", server="shop", tool="delete_order", arguments={"id": 7}, cell_id="c1")


async def test_hello_is_answered_with_welcome(kernel: Kernel) -> None:
    kernel.say(Hello())
    assert kernel.channel.sent == [(COMM, to_json(Welcome(server_version="0", url="http://x/")))]


async def test_call_waits_for_a_person_then_runs_and_replies(kernel: Kernel) -> None:
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))
    assert (request.call.origin.kernel_id, request.call.origin.notebook_path, request.call.origin.cell_id) == (
        "k1",
        "a.ipynb",
        "c1",
    )

    await kernel.services.decide(request, Answer.ALLOW_ONCE)
    reply = await kernel.answer("reply", "1")

    assert [message["type"] for _, message in kernel.channel.sent] == ["waiting", "running", "reply"]
    assert reply["content"]["structured"] == {"deleted": 7}  # type: ignore[index, call-overload]


async def test_the_server_says_how_far_the_kernel_is_isolated(kernel: Kernel) -> None:
    kernel.channel.isolation = Isolation.LANDLOCK
    kernel.channel.has_own_settings = True
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))

    assert request.call.origin.isolation is Isolation.LANDLOCK
    assert request.call.origin.has_own_settings


async def test_a_repeated_call_is_one_call(kernel: Kernel) -> None:
    kernel.say(CALL)
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))
    await kernel.services.decide(request, Answer.ALLOW_ONCE)
    await kernel.answer("reply")
    kernel.say(CALL)
    kernel.say(ListPending(id="2"))
    assert (await kernel.answer("reply", "2"))["content"] == {"approvals": []}
    assert len(kernel.services.tools.calls) == 1


async def test_rejection_reaches_the_kernel_with_its_reason(kernel: Kernel) -> None:
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))
    await kernel.services.decide(request, Answer.REJECT_ONCE, reason="too many")
    failure = await kernel.answer("failure")
    record = {
        "status": "rejected",
        "by": "ada",
        "at": "2026-05-01T12:00:00.000Z",
        "is_edited": False,
        "arguments": None,
        "with_arguments": True,
        "comment": None,
        "hub": None,
    }
    assert (failure["code"], failure["details"], failure["request_id"]) == (
        "rejected",
        {"reason": "too many", "record": record},
        request.id,
    )


async def test_the_line_of_a_call_that_the_hub_rejected_says_who_did(kernel: Kernel) -> None:
    review = HubReview(status="rejected", rejected_by="cleo", reason="too broad")

    async def refused(*_: object) -> ToolResult:
        text: JsonObject = {
            "type": "text",
            "text": "`shop.delete_order` was rejected by cleo; it did not run: too broad",
        }
        return ToolResult(content=(text,), is_error=True, review=review)

    kernel.services.tools.tools["shop.delete_order"] = refused
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))
    await kernel.services.decide(request, Answer.ALLOW_ONCE)
    failure = await kernel.answer("failure")

    details: Any = failure["details"]
    assert (failure["code"], details["reason"]) == ("rejected", "too broad")
    line = decision_line("shop.delete_order", {"id": 7}, details["record"], "too broad; did not run", has_run=False)
    assert line.endswith(", at the Hub rejected by cleo: too broad; did not run")


@pytest.mark.parametrize("saves_arguments", [True, False])
async def test_the_kernel_is_told_what_ran_unless_no_arguments_may_be_saved(
    services: Services, saves_arguments: bool
) -> None:
    kernel = Kernel(services, saves_arguments=saves_arguments)
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))

    await kernel.services.decide(request, Answer.ALLOW_ONCE, arguments={"id": 8})
    content = (await kernel.answer("reply", "1"))["content"]

    assert isinstance(content, dict)
    assert content["record"] == {
        "status": "approved",
        "by": "ada",
        "at": "2026-05-01T12:00:00.000Z",
        "is_edited": True,
        "arguments": {"id": 8} if saves_arguments else None,
        "with_arguments": saves_arguments,
        "comment": None,
        "hub": None,
    }


@pytest.mark.parametrize("tell", [True, False])
async def test_the_kernel_gets_the_comment_of_who_allowed_only_if_they_want_the_code_to_be_told(
    kernel: Kernel, tell: bool
) -> None:
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))

    await kernel.services.decide(request, Answer.ALLOW_ONCE, reason="the last one", tell=tell)
    content = (await kernel.answer("reply", "1"))["content"]

    assert isinstance(content, dict)
    assert isinstance(content["record"], dict)
    assert content["record"]["comment"] == ("the last one" if tell else None)


async def test_cancel_withdraws_the_request(kernel: Kernel) -> None:
    kernel.say(CALL)
    await kernel.answer("waiting")
    kernel.say(Cancel(ids=["1"]))
    await kernel.services.announcer.until(lambda request: request.status is Status.CANCELLED)


async def test_one_message_withdraws_many_requests(kernel: Kernel) -> None:
    waiting: dict[str, str] = {}
    for id in ("1", "2", "3"):
        kernel.say(replace(CALL, id=id))
        waiting[str((await kernel.answer("waiting", id))["request_id"])] = id
    kernel.say(Cancel(ids=["1", "unknown", "3"]))
    await kernel.links.withdrawn("k1")
    assert [waiting[request.id] for request in kernel.services.approvals.requests.pending_of("k1")] == ["2"]


async def test_lost_kernel_orphans_what_waits_and_cancels_what_runs(kernel: Kernel) -> None:
    stopped = asyncio.Event()

    async def slow(call: ToolCall, report: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    kernel.services.tools.tools["shop.slow"] = slow
    kernel.say(CALL)
    waiting = await kernel.answer("waiting", "1")
    kernel.say(Call(id="2", server="shop", tool="slow", arguments={}))
    second = await kernel.answer("waiting", "2")
    running = await kernel.services.approvals.get(str(second["request_id"]))
    await kernel.services.decide(running, Answer.ALLOW_ONCE)
    await kernel.answer("running", "2")

    await kernel.links.kernel_lost("k1")

    assert stopped.is_set()
    assert (await kernel.services.stored(str(waiting["request_id"]))).status is Status.ORPHANED


async def test_ping_names_the_calls_that_are_unknown_here(kernel: Kernel) -> None:
    kernel.say(CALL)
    kernel.say(Ping(ids=["1", "9"]))
    assert (await kernel.answer("pong"))["unknown"] == ["9"]
    await kernel.links.kernel_lost("k1")


async def test_servers_modules_and_pending_requests_are_told(kernel: Kernel) -> None:
    kernel.say(ListServers(id="1"))
    kernel.say(GetModule(id="2", server="shop"))
    servers = await kernel.answer("reply", "1")
    assert servers["content"] == {
        "servers": [{"name": "shop", "state": "running", "error": "", "tool_count": 1}],
        "problems": [],
        "file": "/home/ada/.jupyter/mcp.json",
    }
    assert (await kernel.answer("reply", "2"))["content"] == {"source": "# shop", "tools": ["delete_order"]}
    kernel.say(GetModule(id="3", server="nope"))
    assert (await kernel.answer("failure", "3"))["code"] == "unknown_server"


async def test_what_is_wrong_with_rules_is_told_to_kernels(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ConfigurationProblem(path="rules.json", message="not so", line=2, column=3)
    monkeypatch.setattr(kernel.services.policies, "problems", lambda: (problem,))
    kernel.say(ListServers(id="1"))
    assert (await kernel.answer("reply", "1"))["content"]["problems"] == [problem.to_json()]


@pytest.mark.parametrize(
    "forged",
    [
        {"type": "decision", "id": "1", "decision": "allow_once"},
        {"type": "running", "id": "1", "request_id": "r1"},
        {"type": "reply", "id": "1", "content": {}},
        {"type": "call", "id": "1", "server": "shop", "tool": "delete_order", "arguments": {}, "status": "approved"},
        "nonsense",
    ],
)
async def test_a_kernel_cannot_decide_by_any_message(kernel: Kernel, forged: Any) -> None:
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    kernel.say(forged)
    kernel.say(ListPending(id="2"))
    await kernel.answer("reply", "2")  # by now the message before has had its effect, if it has any
    request = await kernel.services.approvals.get(str(waiting["request_id"]))
    assert request.status is Status.PENDING
    await kernel.services.decide(request, Answer.REJECT_ONCE)
    await kernel.channel.until(lambda sent: sent["type"] == "failure" and sent["code"] == "rejected")
    assert kernel.services.tools.calls == []


async def test_a_comm_that_is_none_of_ours_is_ignored(kernel: Kernel) -> None:
    kernel.links.message_received("k1", "jupyter.widget-1", to_json(CALL))
    kernel.links.message_received("k9", COMM, to_json(CALL))
    kernel.say(Hello())
    assert [message["type"] for _, message in kernel.channel.sent] == ["welcome"]


async def test_a_kernel_that_asks_without_end_is_refused_at_the_limit(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_agentbox.services.kernel_connections.manager.MOST_WAITING", 3)
    for id in "1234":
        kernel.say(Call(id=id, server="shop", tool="delete_order", arguments={"id": 7}))
    assert (await kernel.answer("failure"))["id"] == "4"
    for id in "123":
        await kernel.answer("waiting", id)
    assert len(kernel.services.approvals.requests.pending_of("k1")) == 3
    await kernel.links.kernel_lost("k1")


async def test_only_the_latest_answered_ids_are_remembered(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_agentbox.services.kernel_connections.manager.MOST_ANSWERED", 2)
    for id in "123":
        kernel.say(ListPending(id=id))
        await kernel.answer("reply", id)
        await asyncio.sleep(0)  # the task that answered ends
    kernel.say(ListPending(id="3"))  # a repetition
    kernel.say(ListPending(id="1"))  # forgotten, so it is a new question
    kernel.say(ListPending(id="4"))
    await kernel.answer("reply", "4")
    assert [message["id"] for _, message in kernel.channel.sent] == ["1", "2", "3", "1", "4"]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "call", "id": "x" * 201, "server": "shop", "tool": "delete_order", "arguments": {}},
        {"type": "call", "id": "9", "server": "shop", "tool": "delete_order", "arguments": {}, "cell_id": "c" * 201},
        {"type": "call", "id": ["9"], "server": "shop", "tool": "delete_order", "arguments": {}},
        {"type": "call", "id": "9", "server": None, "tool": "delete_order", "arguments": {}},
        {"type": "ping", "ids": [1, None]},
        {"type": ["call"]},
        {"type": "hello", "version": 10**30},
        {},
        [],
        None,
        1e308,
        "\ud800",
    ],
)
async def test_nonsense_from_a_kernel_changes_nothing(kernel: Kernel, message: Any) -> None:
    kernel.links.message_received("k1", COMM, message)
    kernel.say(Hello())
    assert kernel.channel.sent[-1][1]["type"] == "welcome"
    assert kernel.services.store.writes == []


async def test_names_that_no_encoding_has_are_refused_as_unknown(kernel: Kernel) -> None:
    kernel.say(Call(id="1", server="\ud800", tool="\0", arguments={"\udfff": "\ud800"}))
    assert (await kernel.answer("failure", "1"))["code"] in ("unknown_server", "invalid_arguments")


async def test_a_kernel_does_not_see_what_another_one_asked(kernel: Kernel) -> None:
    other = FakeKernelChannel()
    kernel.links.kernel_started("k2", other)
    kernel.say(CALL)
    await kernel.answer("waiting")
    kernel.links.message_received("k2", COMM, to_json(Cancel(ids=["1"])))
    kernel.links.message_received("k2", COMM, to_json(ListPending(id="2")))
    reply = await other.until(lambda sent: sent["type"] == "reply")
    assert reply["content"] == {"approvals": []}
    assert [request.status for request in kernel.services.approvals.requests.pending_of("k1")] == [Status.PENDING]
    await kernel.links.aclose()


async def test_a_lasting_answer_given_while_its_kernel_goes_away_does_not_outlive_it(kernel: Kernel) -> None:
    kernel.services.store.turns = 3
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    request = await kernel.services.approvals.get(str(waiting["request_id"]))
    decided = asyncio.create_task(kernel.services.decide(request, Answer.ALLOW_ALWAYS))
    await asyncio.sleep(0)
    await kernel.links.kernel_lost("k1")
    await asyncio.gather(decided, return_exceptions=True)
    assert await kernel.services.grants.list() == []


async def test_a_call_has_those_who_sent_code_to_its_kernel_whatever_the_kernel_says(services: Services) -> None:
    kernel = Kernel(services, askers_of={"k1": (Asker(name="ada"), Asker(name="ben"))}.__getitem__)
    kernel.say(CALL)
    waiting = await kernel.answer("waiting")
    origin = (await services.stored(str(waiting["request_id"]))).call.origin
    assert (origin.asked_by, origin.askers) == (None, (Asker(name="ada"), Asker(name="ben")))


async def test_a_kernel_behind_a_line_that_loses_messages_is_told_what_is_unfinished(services: Services) -> None:
    kernel = Kernel(services, is_lossy=True, tell_again=0.01)
    kernel.say(CALL)
    assert (await kernel.answer("unfinished"))["ids"] == ["1"]
    kernel.say(Cancel(ids=["1"]))
    await kernel.links.withdrawn("k1")
    kernel.channel.sent.clear()
    await kernel.links.aclose()
    assert kernel.channel.sent == []


async def test_who_has_a_module_is_told_when_its_server_has_other_tools(kernel: Kernel) -> None:
    kernel.say(GetModule(id="1", server="shop"))
    await kernel.answer("reply", "1")
    kernel.links.servers_changed()  # it was started, for one
    other = FakeKernelChannel()
    kernel.links.kernel_started("k2", other)
    kernel.services.tools.tools["shop.refund"] = delete_order
    kernel.links.servers_changed()
    kernel.links.servers_changed()

    def told() -> list[JsonObject]:
        return [message for _, message in kernel.channel.sent if message["type"] == "tools_changed"]

    assert told() == [to_json(ToolsChanged(server="shop"))]
    assert other.sent == []
    del kernel.services.tools.tools["shop.refund"]
    kernel.links.servers_changed()
    assert len(told()) == 1, "it knows that its module is old, until it asks for a new one"
    kernel.say(GetModule(id="2", server="shop"))
    await kernel.answer("reply", "2")
    kernel.services.tools.tools["shop.refund"] = delete_order
    kernel.links.servers_changed()
    assert len(told()) == 2


async def test_of_a_server_that_is_no_longer_configured_nothing_is_said(kernel: Kernel) -> None:
    kernel.say(GetModule(id="1", server="shop"))
    await kernel.answer("reply", "1")
    kernel.services.tools.tools.clear()
    kernel.links.servers_changed()

    assert [message["type"] for _, message in kernel.channel.sent] == ["reply"]


async def test_on_a_line_that_loses_messages_a_kernel_is_told_of_changed_tools_again_until_it_asks(
    services: Services,
) -> None:
    kernel = Kernel(services, is_lossy=True, tell_again=60)
    kernel.say(GetModule(id="1", server="shop"))
    await kernel.answer("reply", "1")
    services.tools.tools["shop.refund"] = delete_order
    kernel.links.servers_changed()
    for id in ("2", "3"):
        kernel.say(ListPending(id=id))
        await kernel.answer("reply", id)
    kernel.say(GetModule(id="4", server="shop"))
    await kernel.answer("reply", "4")
    told = [message["type"] for _, message in kernel.channel.sent].count("tools_changed")
    kernel.say(ListPending(id="5"))
    await kernel.answer("reply", "5")

    assert told == 4
    assert [message["type"] for _, message in kernel.channel.sent].count("tools_changed") == told
    await kernel.links.aclose()
