"""A kernel may send anything: nothing runs by it, and the next message is answered as ever."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import strategies as st

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.protocol.messages import ListServers
from jupyter_agentbox.testing import FakeKernelChannel
from tests.services.conftest import Services
from tests.services.kernel_connections.test_manager import COMM, Kernel

from .fuzzing import fuzz, limited, texts, values

KINDS = ["hello", "list_servers", "get_module", "list_pending", "call", "cancel", "ping"]
SERVER_KINDS = ["welcome", "waiting", "running", "reply", "failure", "pong", "decision", "approve", "allow_once"]
FIELDS = ["id", "ids", "server", "tool", "arguments", "cell_id", "version", "request_id", "decision", "status", "code"]

fields = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6)
kinds = st.sampled_from(KINDS + SERVER_KINDS) | texts
#: A call as it should be, with some fields replaced.
calls = st.builds(
    lambda id, arguments, more: {
        "type": "call",
        "id": id,
        "server": "shop",
        "tool": "delete_order",
        "arguments": arguments,
        **more,
    },
    st.sampled_from(["1", "2", "3"]) | texts,
    st.dictionaries(texts, values, max_size=3),
    fields,
)
messages = st.one_of(values, st.builds(lambda kind, more: {"type": kind, **more}, kinds, fields), calls)
comms = st.sampled_from([COMM, "agentbox-", "agentbox-" + "x" * 300, "other"]) | texts


@limited
def test_nothing_runs_and_the_next_message_is_answered(jp_asyncio_loop: asyncio.AbstractEventLoop) -> None:
    def check(sent: list[tuple[str, Any]]) -> None:
        jp_asyncio_loop.run_until_complete(_check(sent))

    assert fuzz(check, sent=st.lists(st.tuples(comms, messages), max_size=8))


async def _check(sent: list[tuple[str, Any]]) -> None:
    services = Services()
    kernel = Kernel(services)
    for comm, message in sent:
        kernel.links.message_received("k1", comm, message)
    kernel.links.message_received("unknown", COMM, {"type": "hello"})
    kernel.channel = await _attach_again(kernel)

    kernel.say(ListServers(id="asked last"))
    answered = await kernel.answer("reply", "asked last")

    assert answered["content"]["servers"]  # type: ignore[call-overload, index]
    assert services.tools.calls == []
    asked = [request for request in services.store.writes if request.status is Status.APPROVED]
    assert asked == []
    await kernel.links.aclose()
    await services.approvals.recorded()


async def _attach_again(kernel: Kernel) -> FakeKernelChannel:
    """Let what was sent have its turns of the loop, then lose the kernel and take it up again."""
    for _ in range(20):
        await asyncio.sleep(0)
    await kernel.links.kernel_lost("k1")
    channel = FakeKernelChannel()
    kernel.links.kernel_started("k1", channel)
    return channel
