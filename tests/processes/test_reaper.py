from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from jupyter_agentbox.processes import reaper
from tests.processes_alive import survivors

AS_IF_ELSEWHERE = (
    f"import runpy, sys; sys.platform = 'darwin'; runpy.run_path({reaper.__file__!r}, run_name='__main__')"
)


def run(*argv: str, code: tuple[str, ...] = (reaper.__file__,)) -> tuple[subprocess.Popen[str], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", *code, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            text=True,
        )
    spec = {"argv": argv, "env": dict(os.environ), "cwd": None, "pass_fds": [], "grace": 0.2}
    ours.sendall(json.dumps(spec).encode() + b"\n")
    return process, ours


@pytest.mark.parametrize("code", [(reaper.__file__,), ("-c", AS_IF_ELSEWHERE)], ids=["subreaper", "process-group"])
@pytest.mark.parametrize("shield", ["", "trap '' TERM; "])
def test_the_tree_ends_when_the_lifeline_is_cut(code: tuple[str, ...], shield: str) -> None:
    process, lifeline = run("sh", "-c", f"{shield}sleep 600 & echo $! $$; wait; sleep 600", code=code)
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        tree = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        lifeline.close()
        assert process.wait(5) in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    assert not survivors(tree)


def test_the_tree_ends_when_the_reaper_is_told_to_end() -> None:
    process, lifeline = run("sh", "-c", "echo $$; exec sleep 600")
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        child = psutil.Process(int(process.stdout.readline()))
        process.terminate()
        assert process.wait(5) == 128 + signal.SIGTERM
    assert not child.is_running()


def test_the_command_ends_even_if_its_reaper_is_killed() -> None:
    process, lifeline = run("sh", "-c", "echo $$; exec sleep 600")
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
        process.wait(5)
    assert not survivors([child])


def test_nothing_is_started_if_the_owner_goes_away_before_it_said_what() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-I", "-S", reaper.__file__, str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
            theirs.close()
            ours.sendall(b'{"argv": ["true"]')
            ours.close()
            assert process.wait(5) == reaper.CANNOT_EXECUTE


def test_the_command_gets_ordinary_signals_back() -> None:
    code = "import signal; print([signal.getsignal(n).name for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)])"
    process, lifeline = run(sys.executable, "-c", code)
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        assert process.stdout.read() == "['SIG_DFL', 'SIG_DFL', 'SIG_DFL']\n"
        assert process.wait(5) == 0
