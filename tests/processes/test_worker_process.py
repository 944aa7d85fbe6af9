"""A process that answers lines, and what becomes of it when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agentbox.processes.worker_process import OutOfTimeError, WorkerProcess, question

WORKER = """
import json, os, sys, time

def main():
    for line in sys.stdin:
        request = json.loads(line)
        if request["text"] == "end":
            os._exit(1)
        if request["text"] == "hang":
            time.sleep(60)
        print(json.dumps({"text": request["text"], "env": sorted(os.environ), "cwd": os.getcwd()}), flush=True)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[WorkerProcess]:
    (tmp_path / "echo_worker.py").write_text(WORKER)
    worker = WorkerProcess("echo_worker", lambda: [str(tmp_path)], margin=0.5)
    yield worker
    worker.close()


def ask(worker: WorkerProcess, text: str) -> dict[str, object]:
    return worker.ask(question({"do": "echo"}, "text", f'"{text}"'.encode()), seconds=5 if text != "hang" else 0)


def test_it_answers_from_one_process_that_inherits_nothing(worker: WorkerProcess) -> None:
    first = ask(worker, "a")
    pid = worker.pid

    assert first["text"] == "a"
    assert first["cwd"] == "/"
    assert "PATH" not in str(first["env"])
    assert (ask(worker, "b")["text"], worker.pid) == ("b", pid)


@pytest.mark.parametrize("text", ["end", "hang"])
def test_what_does_not_answer_is_ended_and_the_next_question_has_another_one(worker: WorkerProcess, text: str) -> None:
    with pytest.raises(OutOfTimeError):
        ask(worker, text)

    assert worker.pid is None
    assert ask(worker, "again")["text"] == "again"


def test_a_closed_one_is_not_started_again(worker: WorkerProcess) -> None:
    ask(worker, "a")
    worker.close()

    with pytest.raises(OutOfTimeError):
        ask(worker, "b")
