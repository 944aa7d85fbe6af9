"""Whether a process of this machine has ended."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jupyter_agentbox.processes.identity import has_ended, machine_of_this_process, start_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def test_a_process_that_was_killed_has_ended_also_before_its_parent_looks() -> None:
    process = subprocess.Popen(["sleep", "600"])
    started = start_of(process.pid)
    assert not has_ended(process.pid, started)

    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie
    assert has_ended(process.pid, started)
    process.wait()
    assert has_ended(process.pid, started)


def test_a_number_that_another_process_has_now_is_no_sign_of_life() -> None:
    assert not has_ended(os.getpid(), start_of(os.getpid()))
    assert has_ended(os.getpid(), "1")


@pytest.mark.parametrize(("pid", "started"), [(0, "1"), (-1, "1"), (4_194_303, "")])
def test_what_is_unknown_counts_as_alive(pid: int, started: str) -> None:
    assert not has_ended(pid, started)


def test_processes_of_one_machine_know_it() -> None:
    code = "from jupyter_agentbox.processes.identity import machine_of_this_process as m; print(m())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert said == machine_of_this_process() != ""
