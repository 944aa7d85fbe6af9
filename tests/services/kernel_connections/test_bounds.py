"""What the calls of kernels may take in memory until they are answered, and calls of kernels that go away."""

from __future__ import annotations

import asyncio
import logging

import pytest

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.protocol.messages import Call, Cancel, Ping
from jupyter_agentbox.services.kernel_connections import manager
from jupyter_agentbox.services.kernel_connections.manager import KernelConnectionManager, MemoryLimits
from jupyter_agentbox.testing import FakeKernelChannel, FakeNotebookFinder, MemoryApprovalStore
from tests.services.conftest import Services
from tests.services.kernel_connections.test_manager import COMM, Kernel

ALLOW = Policy(rules=(Rule(server="*", tool="*", effect=Effect.ALLOW, layer=Layer.USER),))


def a_call(id: str, size: int = 1) -> Call:
    return Call(id=id, server="shop", tool="delete_order", arguments={"id": 7, "text": "x" * size})


def limited(services: Services, **limits: int) -> Kernel:
    kernel = Kernel(services)
    kernel.links = KernelConnectionManager(
        calls=services.calls,
        approvals=services.approvals,
        policies=services.policies,
        grants=services.grants,
        catalog=services.tools,
        notebooks=FakeNotebookFinder(),
        generate=lambda *_: {},
        welcome=kernel.links._welcome,
        limits=MemoryLimits(**limits),
    )
    kernel.links.kernel_started("k1", kernel.channel)
    return kernel


@pytest.fixture
def services(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Services:
    """The services with a checker that takes any argument."""
    services = Services()
    services.calls._checker = AnyArguments()
    return services


class AnyArguments:
    async def check(self, tool: object, arguments: object) -> None:
        pass


async def test_calls_that_take_more_memory_than_a_kernel_may_are_refused_until_others_end(services: Services) -> None:
    kernel = limited(services, kernel=1_000_000)
    kernel.say(a_call("1", 800_000))
    kernel.say(a_call("2", 300_000))
    refused = await kernel.answer("failure", "2")
    assert refused["code"] == "too_many_requests"
    assert "1,000,000" in str(refused["message"])
    await kernel.answer("waiting", "1")
    kernel.say(Cancel(ids=["1"]))
    request = await services.announcer.until(lambda request: request.status is Status.CANCELLED)
    await asyncio.wait(kernel.links._connections["k1"].tasks.values())
    kernel.say(a_call("3", 300_000))
    await kernel.answer("waiting", "3")
    assert request.call.arguments["text"] == "x" * 800_000
    await kernel.links.kernel_lost("k1")


async def test_a_refused_call_that_was_repeated_is_not_asked_about_once_there_is_room(services: Services) -> None:
    kernel = limited(services, kernel=1_000_000)
    kernel.say(a_call("1", 800_000))
    kernel.say(a_call("2", 300_000))
    await kernel.answer("failure", "2")
    await kernel.answer("waiting", "1")
    kernel.say(Cancel(ids=["1"]))
    await asyncio.wait(kernel.links._connections["k1"].tasks.values())
    kernel.say(a_call("2", 300_000))  # the kernel had sent it again before the answer came
    kernel.say(a_call("3", 300_000))
    await kernel.answer("waiting", "3")
    assert len(services.approvals.requests.pending_of("k1")) == 1
    await kernel.links.kernel_lost("k1")


async def test_a_lone_call_is_taken_whatever_it_takes(services: Services) -> None:
    kernel = limited(services, kernel=1_000_000)
    kernel.say(a_call("1", 2_000_000))
    await kernel.answer("waiting", "1")
    await kernel.links.kernel_lost("k1")


async def test_what_a_channel_weighed_is_believed(services: Services) -> None:
    kernel = limited(services, kernel=1_000_000)
    for id in ("1", "2"):
        data = {"type": "call", "id": id, "server": "shop", "tool": "delete_order", "arguments": {"id": 7}}
        kernel.links.message_received("k1", COMM, data, weight=800_000)  # type: ignore[arg-type]
    assert (await kernel.answer("failure", "2"))["code"] == "too_many_requests"
    await kernel.answer("waiting", "1")
    await kernel.links.kernel_lost("k1")


async def test_kernels_that_take_all_memory_do_not_keep_another_from_small_calls(services: Services) -> None:
    kernel = limited(services, kernel=10_000_000, total=1_000_000)
    other = FakeKernelChannel()
    kernel.links.kernel_started("k2", other)
    kernel.say(a_call("1", 990_000))
    for message in (a_call("2", 100_000), a_call("3", 20_000)):
        data = {"type": "call", "id": message.id, "server": "shop", "tool": "delete_order"}
        kernel.links.message_received("k2", COMM, {**data, "arguments": message.arguments})
    assert (await other.until(lambda sent: sent["type"] == "failure"))["id"] == "2"
    assert (await other.until(lambda sent: sent["type"] == "waiting"))["id"] == "3"
    await kernel.links.aclose()


async def test_a_ping_with_ids_without_end_is_answered_for_as_many_as_can_wait(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "MOST_WAITING", 3)
    kernel = limited(services)
    kernel.say(Ping(ids=[str(number) for number in range(100)]))
    assert (await kernel.answer("pong"))["unknown"] == ["0", "1", "2"]


async def test_the_log_says_only_so_often_that_messages_are_refused(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    kernel = limited(services)
    with caplog.at_level(logging.WARNING):
        for number in range(100):
            kernel.say({"type": "nonsense", "id": str(number)})
    assert len(caplog.records) == 5
    assert len(kernel.channel.sent) == 100  # each is told, though


async def test_a_call_that_is_being_prepared_when_its_kernel_goes_away_does_not_run(
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> None:
    services = Services(policy=ALLOW, store=MemoryApprovalStore(turns=5))
    kernel = Kernel(services)
    described, go_on = asyncio.Event(), asyncio.Event()
    describe = services.tools.describe

    async def slowly(server: str, tool: str) -> object:
        described.set()
        await go_on.wait()
        return await describe(server, tool)

    services.tools.describe = slowly  # type: ignore[method-assign, assignment]
    kernel.say(Call(id="1", server="shop", tool="delete_order", arguments={"id": 7}))
    await described.wait()
    orphan = services.approvals.orphan

    async def slow_orphan(kernel_id: str | None = None) -> None:
        go_on.set()
        for _ in range(50):  # as long as a busy store takes
            await asyncio.sleep(0)
        await orphan(kernel_id)

    services.approvals.orphan = slow_orphan  # type: ignore[method-assign]
    await kernel.links.kernel_lost("k1")
    assert (services.tools.calls, services.announcer.approvals) == ([], [])


async def test_a_call_that_is_being_kept_when_its_kernel_goes_away_does_not_run(
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> None:
    services = Services(policy=ALLOW)
    kernel = Kernel(services)
    add = services.store.add

    async def add_while_the_kernel_goes_away(request: object) -> None:
        kernel.links._connections["k1"].is_lost = True
        await add(request)  # type: ignore[arg-type]

    services.store.add = add_while_the_kernel_goes_away  # type: ignore[method-assign]
    kernel.say(Call(id="1", server="shop", tool="delete_order", arguments={"id": 7}))
    assert (await kernel.answer("failure"))["code"] == "cancelled"
    [request] = services.announcer.approvals[:1]
    await services.approvals.recorded()
    assert (services.tools.calls, (await services.stored(request.id)).outcome_state) == ([], "cancelled")
