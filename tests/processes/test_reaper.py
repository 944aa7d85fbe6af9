from __future__ import annotations

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


def run(
    *argv: str, code: tuple[str, ...] = (reaper.__file__,), grace: float = 60
) -> tuple[subprocess.Popen[str], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", *code, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            text=True,
        )
    ours.sendall(reaper.message(list(argv), dict(os.environ), None, [], grace))
    return process, ours


@pytest.mark.parametrize("code", [(reaper.__file__,), ("-c", AS_IF_ELSEWHERE)], ids=["subreaper", "process-group"])
@pytest.mark.parametrize("shield", ["", "trap '' TERM; "])
def test_the_tree_ends_when_the_lifeline_is_cut(code: tuple[str, ...], shield: str) -> None:
    process, lifeline = run("sh", "-c", f"{shield}sleep 600 & echo $! $$; wait; sleep 600", code=code, grace=0.2)
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        tree = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        lifeline.close()
        assert process.wait(60) in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    assert not survivors(tree)


def test_the_tree_ends_when_the_reaper_is_told_to_end() -> None:
    process, lifeline = run("sh", "-c", "echo $$; exec sleep 600")
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        child = psutil.Process(int(process.stdout.readline()))
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not child.is_running()


def test_the_command_ends_even_if_its_reaper_is_killed() -> None:
    process, lifeline = run("sh", "-c", "echo $$; exec sleep 600")
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
        process.wait(60)
    assert not survivors([child])


@pytest.mark.parametrize("sent", [0, 2, 4, 20])
def test_nothing_is_started_if_the_owner_goes_away_before_it_said_what(sent: int) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-I", "-S", reaper.__file__, str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
            theirs.close()
            ours.sendall(reaper.message(["true"], {}, None, [], 0.2)[:sent])
            ours.close()
            assert process.wait(60) == reaper.CANNOT_EXECUTE


def test_the_command_gets_ordinary_signals_back() -> None:
    code = "import signal; print([signal.getsignal(n).name for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)])"
    process, lifeline = run(sys.executable, "-c", code)
    assert process.stdout is not None
    with process, process.stdout, lifeline:
        assert process.stdout.read() == "['SIG_DFL', 'SIG_DFL', 'SIG_DFL']\n"
        assert process.wait(60) == 0


class Text(str):
    """As a setting of another library may give it."""


def test_arguments_and_variables_arrive_as_they_are() -> None:
    names = {"AN_ODD": "\udcff", "A_LONG": "x" * 100_000, "OF_A_CLASS": Text("text")}
    code = f"import os, sys; print(os.environ == { ({**names, 'LC_ALL': 'C.UTF-8'})!r}, ascii(sys.argv[1:]))"
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-I", "-S", reaper.__file__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, text=True)
    argv = [sys.executable, "-c", code, Text("\udcfe"), "\n"]
    ours.sendall(reaper.message(argv, {**names, "LC_ALL": "C.UTF-8"}, None, [], 0.2))

    assert process.stdout is not None
    with process, process.stdout, ours:
        assert process.stdout.read() == "True ['\\udcfe', '\\n']\n"


def test_it_imports_little() -> None:
    """Each server and each kernel waits for it: `json` alone was a fifth of its start."""
    look = "print(sorted({'json', 're', 'ctypes'} & set(sys.modules)))"
    code = f"import sys; exec(open({reaper.__file__!r}).read(), {{'__name__': 'reaper'}}); {look}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
