"""The line to a real kernel: what reaches the server, what does not, and what goes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_agentbox.bridge import channel

from .conftest import Kernels

#: Code that sends comm messages as the kernel side does, and, by its own hand, what no kernel side would.
TOOLS = """
import json
from comm import create_comm
kernel = get_ipython().kernel
line = create_comm(target_name="t", comm_id="agentbox-test", primary=False)

def raw(*frames):
    "Send frames as they are on IOPub, properly signed or not at all."
    kernel.iopub_socket.send_multipart([b"comm-agentbox-test", *frames])

def signed(header, content):
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, {}, {}, content)]
    raw(b"<IDS|MSG>", kernel.session.sign(parts), *parts)
"""
HOSTILE = [
    "raw()",
    "raw(b'')",
    "raw(b'no delimiter', b'at all')",
    "raw(b'<IDS|MSG>')",
    "raw(b'<IDS|MSG>', b'', b'{}', b'{}', b'{}', b'{}')",
    "raw(b'<IDS|MSG>', b'forged', b'{}', b'{}', b'{}', b'{}')",
    "signed({}, {})",
    "signed([], [])",
    "signed(1, None)",
    "signed({'msg_id': 1, 'msg_type': ['comm_msg']}, {})",
    "signed({'msg_id': '1', 'msg_type': 'comm_msg'}, [])",
    "signed({'msg_id': '1', 'msg_type': 'comm_msg'}, b'not json')",
    "signed({'msg_id': '1', 'msg_type': 'comm_msg'}, b'[' * 1_000_000)",
    "signed({'msg_id': '1', 'msg_type': 'comm_msg'}, b'9' * 10_000)",
    "signed({'msg_id': '1', 'msg_type': 'stream'}, {'comm_id': 'agentbox-test', 'data': 'forged'})",
]


async def test_messages_arrive_and_outputs_do_not(kernels: Kernels) -> None:
    kernel_id = await kernels.start_heard()
    await kernels.run(kernel_id, f"{TOOLS}\nprint('x' * 500_000)\ndisplay({{'text/plain': 'y'}}, raw=True)\n")
    await kernels.run(kernel_id, "create_comm(target_name='t', comm_id='other').send(data=1)\nline.send(data='last')")
    await kernels.heard.until(lambda: bool(kernels.heard.messages))
    assert kernels.heard.messages == [(kernel_id, "agentbox-test", "last")]


async def test_what_cannot_be_read_is_dropped_and_the_line_goes_on(kernels: Kernels) -> None:
    kernel_id = await kernels.start_heard()
    await kernels.run_unheard(kernel_id, TOOLS)
    for number, attack in enumerate(HOSTILE, 1):
        await kernels.run_unheard(kernel_id, f"{attack}\nline.send(data={number})")
        await kernels.heard.until(lambda: len(kernels.heard.messages) >= number)  # noqa: B023  # awaited here
    assert [data for _, _, data in kernels.heard.messages] == list(range(1, len(HOSTILE) + 1))


async def test_a_kernel_that_floods_does_not_stop_the_server(kernels: Kernels) -> None:
    kernel_id = await kernels.start_heard()
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    code = f"{TOOLS}\nfor number in range(3_000): line.send(data=number)"
    flooding = asyncio.create_task(kernels.run_unheard(kernel_id, code))  # by its end all may have been heard
    await kernels.heard.until(lambda: len(kernels.heard.messages) >= 500)
    before, heard = turns, len(kernels.heard.messages)
    await kernels.heard.until(lambda: len(kernels.heard.messages) >= heard + 200)
    assert turns - before >= 150
    counting.cancel()
    await flooding


async def test_a_message_that_is_too_large_is_dropped(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_MESSAGE", 100_000)
    kernel_id = await kernels.start_heard()
    await kernels.run(kernel_id, f"{TOOLS}\nline.send(data='x' * 200_000)\nline.send(data='after')")
    await kernels.heard.until(lambda: bool(kernels.heard.messages))
    assert [data for _, _, data in kernels.heard.messages] == ["after"]


async def test_answers_reach_a_kernel_whose_cell_is_busy_whatever_text_they_hold(kernels: Kernels) -> None:
    kernel_id = await kernels.start_heard()
    answer: Any = {"text": "lone \ud800, pair \U0001f600, nul \0", "number": float("inf")}

    def reply() -> bool:
        return any(data == "ready" for _, _, data in kernels.heard.messages)

    async def send() -> None:
        await kernels.heard.until(reply)
        kernels.heard.channels[kernel_id].send("agentbox-test", answer)

    code = f"""{TOOLS}
import threading
arrived, got = threading.Event(), []
def take(stream, ident, message):
    got.append(message["content"]["data"])
    arrived.set()
kernel.control_handlers["comm_msg"] = take
line.send(data="ready")
print(arrived.wait(60), got == [{{"text": "lone \\ud800, pair \\U0001f600, nul \\0", "number": float("inf")}}])
"""
    sending = asyncio.create_task(send())
    done = await kernels.run(kernel_id, code)
    await sending
    assert done["stdout"] == "True True\n"


async def test_what_cannot_be_said_in_json_is_refused_to_who_sends_it(kernels: Kernels) -> None:
    kernel_id = await kernels.start_heard()
    with pytest.raises((TypeError, ValueError)):
        kernels.heard.channels[kernel_id].send("agentbox-test", {"value": object()})  # type: ignore[dict-item]
