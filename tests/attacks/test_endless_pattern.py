from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil
import pytest

from jupyter_agentbox.mcp_client.arguments import TIME_LIMIT
from tests.processes_alive import running

from .attack import Attack
from .conftest import Stage
from .ledger_server import input_schema

ATTACK = Attack(
    "call a tool whose schema takes for ever to check, by a pattern or by alternatives that a reference hides, so that"
    " the server answers nobody",
    plain=False,
    control="test_the_same_schema_holds_whoever_checks_it_in_their_own_process",
)
ARGUMENTS = {"value": "a" * 60 + "!", "other": "{" + "1" * 100_000}
#: The tools, and what validates for ever that takes them by their word.
TOOLS = {
    "endless": "import jsonschema; jsonschema.validate(arguments, schema)",
    "doubling": "import jsonschema_rs; jsonschema_rs.validate(schema, arguments)",
}
#: Seconds of processor time that a check takes within one answer to others only if it keeps the server from answering.
#: If it does not, its time limit is shared out among many answers.
TOO_LONG = TIME_LIMIT / 2
#: Seconds in which a schema that can be checked at all was checked.
LONG = 3.0


class ProcessorTime:
    """The processor time of a server and of the workers that check for it."""

    def __init__(self, server: psutil.Process) -> None:
        self._server = server
        self._workers: set[psutil.Process] = set()  # of one that has ended nobody can say any more what it was

    def seconds(self) -> float:
        """Return it, with that of children which have ended."""
        while True:
            ended = self._server.cpu_times()[2:4]
            self._workers.update(running("schema_worker", self._server.children()))
            working = 0.0
            for worker in self._workers:
                with suppress(psutil.NoSuchProcess):
                    working += sum(worker.cpu_times()[:2])
            times = self._server.cpu_times()[:4]
            if times[2:] == ended:  # else one of them may count twice, or not at all
                return sum(times) + working


def attack(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    try:
        return runtime.link().call("ledger", facts["tool"], facts["arguments"]).text
    except ValueError as error:
        return type(error).__name__


@pytest.mark.parametrize("tool", TOOLS)
def test_the_server_answers_others_meanwhile(stage: Stage, tool: str) -> None:
    has_ended = threading.Event()
    processor_time = ProcessorTime(psutil.Process(stage.world.process.pid))

    def most_for_an_answer() -> float:
        most = 0.0
        while not has_ended.is_set():
            before = processor_time.seconds()
            stage.world.api("GET", "api/status")
            most = max(most, processor_time.seconds() - before)
        return most

    with (
        ThreadPoolExecutor(max_workers=1) as others,
        stage.running(attack, tool=tool, arguments=ARGUMENTS) as evidence,
    ):
        most = others.submit(most_for_an_answer)
        try:
            assert evidence() == "ToolArgumentsError", stage.said
        finally:
            has_ended.set()
        stage.judge(ATTACK, most.result() > TOO_LONG)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_schema_holds_whoever_checks_it_in_their_own_process(tool: str) -> None:
    code = f"import json, sys; schema, arguments = json.load(sys.stdin); {TOOLS[tool]}"
    given = json.dumps([input_schema(tool), ARGUMENTS])
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], input=given, text=True, timeout=LONG, check=True)
