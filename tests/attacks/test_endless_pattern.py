from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .attack import Attack
from .conftest import Stage
from .desk_server import input_schema

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
#: Seconds in which a server that works answers, also on a busy machine.
PATIENCE = 30.0
#: Seconds in which a schema that can be checked at all was checked.
LONG = 3.0


def attack(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    try:
        return runtime.link().call("desk", facts["tool"], facts["arguments"]).text
    except ValueError as error:
        return type(error).__name__


@pytest.mark.parametrize("tool", TOOLS)
def test_the_server_answers_others_meanwhile(stage: Stage, tool: str) -> None:
    has_ended = threading.Event()

    def slowest_answer() -> float:
        slowest = 0.0
        while not has_ended.is_set():
            began = time.monotonic()
            stage.world.api("GET", "api/status")
            slowest = max(slowest, time.monotonic() - began)
        return slowest

    with (
        ThreadPoolExecutor(max_workers=1) as others,
        stage.running(attack, tool=tool, arguments=ARGUMENTS) as evidence,
    ):
        slowest = others.submit(slowest_answer)
        try:
            assert evidence() == "ToolArgumentsError", stage.said
        finally:
            has_ended.set()
        stage.judge(ATTACK, slowest.result() > PATIENCE)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_schema_holds_whoever_checks_it_in_their_own_process(tool: str) -> None:
    code = f"import json, sys; schema, arguments = json.load(sys.stdin); {TOOLS[tool]}"
    given = json.dumps([input_schema(tool), ARGUMENTS])
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], input=given, text=True, timeout=LONG, check=True)
