from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.headless import execution_queue as module
from jupyter_agentbox.headless.execution_queue import MOST_WAITING, Execution, ExecutionQueue
from jupyter_agentbox.headless.ports import Lost, Receive
from jupyter_agentbox.headless.reports import ServerLogMessage
from jupyter_agentbox.headless.signing import Message
from jupyter_agentbox.testing import TIMEOUT


class ScriptedKernel:
    """A kernel whose answers to an interrupt are the test's own messages."""

    id = "k1"

    def __init__(self, *on_interrupt: tuple[str, str, dict[str, Any]]) -> None:
        self.interrupts = 0
        self._on_interrupt = on_interrupt
        self._request = ""
        self._count = 0
        self._receive: Receive = lambda _: None

    def listen(self, receive: Receive, lost: Lost) -> None:  # noqa: ARG002 - it is never lost
        self._receive = receive

    async def start(self) -> None: ...

    def send(self, kind: str, content: JsonObject) -> str:  # noqa: ARG002 - any code will do
        self._count += 1
        self._request = f"{kind}-{self._count}"
        asyncio.get_running_loop().call_soon(self.say, "iopub", "execute_input", {})
        return self._request

    def say(self, channel: str, kind: str, content: dict[str, Any]) -> None:
        self._receive(Message(channel=channel, kind=kind, parent_id=self._request, content=content))

    async def interrupt(self) -> None:
        self.interrupts += 1
        for message in self._on_interrupt:
            self.say(*message)

    async def close(self) -> None: ...


IDLE = ("iopub", "status", {"execution_state": "idle"})
REPLY = ("shell", "execute_reply", {"status": "error", "ename": "KeyboardInterrupt"})


@pytest.fixture
def turns_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedKernel], ExecutionQueue]:
    monkeypatch.setattr(module, "_INTERRUPTS", (0.01, 0.01))
    return lambda kernel: ExecutionQueue(kernel, images_dir=tmp_path)


@pytest.mark.parametrize("answer", [(IDLE, REPLY), (REPLY, IDLE), (IDLE,)], ids=["both", "reply first", "no reply"])
async def test_interrupted_turn_is_over_when_the_kernel_is_idle_and_has_answered_or_never_will(
    turns_of: Callable[[ScriptedKernel], ExecutionQueue], answer: Any
) -> None:
    kernel = ScriptedKernel(*answer)
    turns = turns_of(kernel)
    async with asyncio.timeout(TIMEOUT):
        assert await turns.end(await turns.begin("while True: pass"))
        assert (kernel.interrupts, turns.resists()) == (1, None)
        assert await turns.end(await turns.begin("1"))  # it can be used on


async def test_kernel_that_goes_on_after_every_interrupt_cannot_be_used(
    turns_of: Callable[[ScriptedKernel], ExecutionQueue],
) -> None:
    kernel = ScriptedKernel()
    turns = turns_of(kernel)
    async with asyncio.timeout(TIMEOUT):
        assert not await turns.end(await turns.begin("while True: pass"))
    assert (kernel.interrupts, bool(turns.resists())) == (2, True)


def a_report(number: int) -> ServerLogMessage:
    return ServerLogMessage(server_name="shop", level="info", logger="", text=str(number))


def test_a_slow_reader_gets_the_latest_of_what_is_said_and_all_else() -> None:
    turn = Execution("1")
    turn.wants_reports = True
    for number in range(2 * MOST_WAITING):
        turn.report(a_report(number))
    turn.put("text")
    turn.report(a_report(-1))

    items = [turn.take() for _ in range(MOST_WAITING + 2)]
    assert items[-3:] == [a_report(2 * MOST_WAITING - 1), "text", a_report(-1)]
    assert not turn.has_items


def test_what_is_said_is_not_kept_for_a_reader_that_does_not_want_it() -> None:
    turn = Execution("1")
    turn.report(a_report(1))
    assert not turn.has_items
