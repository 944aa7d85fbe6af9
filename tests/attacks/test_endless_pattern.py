from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from .attack import Attack
from .conftest import Stage
from .desk_server import input_schema

ATTACK = Attack(
    "call a tool whose schema has a pattern that takes for ever to match, so that the server answers nobody",
    plain=False,
    control="test_the_same_schema_holds_whoever_checks_it_in_their_own_process",
)
ARGUMENTS = {"value": "a" * 60 + "!", "other": "{" + "1" * 100_000}
#: Seconds in which a server that works answers, also on a busy machine.
PATIENCE = 5.0


def attack(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    try:
        return runtime.link().call("desk", "endless", facts["arguments"]).text
    except ValueError as error:
        return type(error).__name__


def test_the_server_answers_others_meanwhile(stage: Stage) -> None:
    slowest = 0.0
    with stage.running(attack, arguments=ARGUMENTS) as evidence:
        ends = time.monotonic() + 3
        while time.monotonic() < ends:
            began = time.monotonic()
            stage.world.api("GET", "api/status")
            slowest = max(slowest, time.monotonic() - began)
        assert evidence() == "ToolArgumentsError", stage.said
    stage.judge(ATTACK, slowest > PATIENCE)


def test_the_same_schema_holds_whoever_checks_it_in_their_own_process() -> None:
    code = "import json, jsonschema, sys; jsonschema.validate(*json.load(sys.stdin)[::-1])"
    given = json.dumps([input_schema("endless"), ARGUMENTS])
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], input=given, text=True, timeout=PATIENCE, check=True)
