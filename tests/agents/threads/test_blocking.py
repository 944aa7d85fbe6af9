"""`Agent`, the class for programs without an event loop: Ctrl-C, several threads, and a close in the middle."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_agentbox import Agent
from jupyter_agentbox.core.threads import CodeRun, ItemStatus, TurnStatus
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import MockModelServer


@pytest.fixture
def agent(model: MockModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    database = sqlite_url(str(tmp_path / "approvals.db"))
    return Agent(model="openai:scripted", base_url=model.base_url, database_url=database)


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_ctrl_c_while_a_turn_begins_leaves_no_turn_in_progress(
    agent: Agent, model: MockModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get_password(_service: str, _name: str) -> str:  # is asked while the turn begins
        press_ctrl_c()
        return "a key"

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=get_password))
    model.enqueue_message("unwanted", is_held=True)
    with agent:
        thread = agent.thread_start()
        with pytest.raises(KeyboardInterrupt):
            thread.run("go")
        kept = thread.read(include_turns=True)
        for _ in range(2000):
            if kept.turns and kept.turns[0].status.is_final:
                break
            kept = thread.read(include_turns=True)

    assert [turn.status for turn in kept.turns] == [TurnStatus.INTERRUPTED]


def test_ctrl_c_interrupts_the_turn_that_runs(agent: Agent, model: MockModelServer) -> None:
    model.enqueue_message("late", is_held=True)

    def wait_and_press() -> None:
        model.wait_for_requests(1, timeout=60)
        press_ctrl_c()

    with agent, ThreadPoolExecutor() as pool:
        thread = agent.thread_start()
        pressing = pool.submit(wait_and_press)
        with pytest.raises(KeyboardInterrupt):
            thread.run("go")
        pressing.result()
        kept = thread.read(include_turns=True)

    assert [turn.status for turn in kept.turns] == [TurnStatus.INTERRUPTED]


def test_ctrl_c_is_heard_when_the_signal_does_not_wake_the_waiting_thread(agent: Agent, model: MockModelServer) -> None:
    """As when it comes just before the wait begins: here another thread is given it."""
    model.enqueue_message("late", is_held=True)
    heard = threading.Event()

    def wait_and_press() -> bool:
        model.wait_for_requests(1, timeout=60)
        os.kill(os.getpid(), signal.SIGINT)
        try:
            return heard.wait(20)
        finally:
            model.release()

    with agent, ThreadPoolExecutor() as pool:
        thread = agent.thread_start()
        pressing = pool.submit(wait_and_press)
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            with pytest.raises(KeyboardInterrupt):
                thread.run("go")
        finally:
            heard.set()
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        assert pressing.result()


def test_threads_of_two_threads_of_the_program_do_not_disturb_each_other(agent: Agent, model: MockModelServer) -> None:
    def ask(number: int) -> tuple[str | None, list[str]]:
        model.enqueue_message("done", "final_answer")
        result = agent.thread_start().run(f"question {number}")
        return result.final_response, [item.text for item in result.items if item.type == "user_message"]

    with agent, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(8)))

    assert answers == [("done", [f"question {number}"]) for number in range(8)]


def test_close_while_another_thread_waits_ends_its_turn_and_gives_it_the_result(
    agent: Agent, model: MockModelServer
) -> None:
    model.enqueue_message("late", is_held=True)
    with agent, ThreadPoolExecutor() as pool:
        running = pool.submit(agent.thread_start().run, "go")
        model.wait_for_requests(1, timeout=60)
        agent.close()
        result = running.result(60)

    assert result.status is TurnStatus.INTERRUPTED


def test_only_true_accepts(agent: Agent, model: MockModelServer) -> None:
    odd: Any = "no"
    model.enqueue_tool_call("run_code", {"code": "1"})
    model.enqueue_message("done")
    with agent:
        result = agent.thread_start().run("go", on_approval=lambda _: odd)

    assert [item.status for item in result.items if isinstance(item, CodeRun)] == [ItemStatus.DECLINED]


def test_a_coroutine_function_that_nobody_awaits_accepts_nothing(agent: Agent, model: MockModelServer) -> None:
    async def decide(_request: object) -> bool:
        return False

    model.enqueue_tool_call("run_code", {"code": "1"})
    with agent:
        thread = agent.thread_start()
        with pytest.raises(TypeError, match="AsyncAgent"):
            thread.run("go", on_approval=decide)  # type: ignore[arg-type]  # the mistake
        (turn,) = thread.read(include_turns=True).turns

    assert turn.status is TurnStatus.INTERRUPTED
    assert [item.status for item in turn.items if isinstance(item, CodeRun)] != [ItemStatus.COMPLETED]
