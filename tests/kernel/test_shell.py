from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.shell import ask_before_commands

TIMEOUT = 60


class Asked:
    """A link whose questions wait until somebody allows them."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self._asked = threading.Condition()
        self._allowed: dict[str, threading.Event] = {}

    def call(self, _server: str, _tool: str, arguments: dict[str, Any]) -> SimpleNamespace:
        command = arguments["cmd"]
        with self._asked:
            self.shown.append(command)
            allowed = self._allowed.setdefault(command, threading.Event())
            self._asked.notify_all()
        assert allowed.wait(TIMEOUT)
        return SimpleNamespace(structured={"cmd": command})

    def wait_for(self, count: int) -> None:
        with self._asked:
            assert self._asked.wait_for(lambda: len(self.shown) == count, TIMEOUT), self.shown

    def allow(self, command: str) -> None:
        with self._asked:
            self._allowed.setdefault(command, threading.Event()).set()


@pytest.fixture
def asked() -> Iterator[Asked]:
    link: Any = Asked()
    runtime.use(link)
    yield link
    runtime.use(None)


@pytest.fixture
def shell(asked: Asked) -> Iterator[InteractiveShell]:
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    ask_before_commands(made)
    yield made
    made.restore_sys_module_state()


def test_what_is_approved_runs_whatever_other_threads_run_meanwhile(
    shell: InteractiveShell, asked: Asked, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waiting = f"cat {pipe}"
    shell.user_ns["x"] = "shown"
    with ThreadPoolExecutor() as threads:
        asked.allow(waiting)
        first = threads.submit(shell.getoutput, waiting)
        with pipe.open("w") as running:  # opens when the command reads
            second = threads.submit(shell.getoutput, "echo {x}")
            asked.wait_for(2)
            shell.user_ns["x"] = "not shown"
            running.write("done")
        assert list(first.result(TIMEOUT)) == ["done"]
        asked.allow("echo shown")

        assert list(second.result(TIMEOUT)) == ["shown"]
    assert asked.shown == [waiting, "echo shown"]


def test_a_command_that_was_shown_with_braces_runs_with_them(
    shell: InteractiveShell, asked: Asked, capfd: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns.update(text="{x} $x", x="harm")
    asked.allow("echo '{x} $x'")

    shell.system("echo '{text}'")

    assert (asked.shown, capfd.readouterr().out.strip()) == (["echo '{x} $x'"], "{x} $x")
    assert shell.user_ns["_exit_code"] == 0
    assert "var_expand" not in vars(shell)
