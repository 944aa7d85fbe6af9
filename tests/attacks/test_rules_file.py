from __future__ import annotations

import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import TIMEOUT, Stage

ATTACK = Attack(
    "rewrite the rules of `jupyter agentbox exec --rules` in the work directory, so that the next run allows everything"
    " (Landlock: nothing is run there)"
)


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    pathlib.Path("rules.json").write_text('{"rules": [{"server": "*", "tool": "*", "effect": "allow"}]}')
    return "written"


def test_the_rules_stay_as_they_were(stage: Stage, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    rules = json.dumps({"rules": [{"server": "shop", "tool": "list", "effect": "allow"}]})
    (work / "rules.json").write_text(rules)
    (tmp_path / "sandbox.json").write_text(json.dumps({"levels": [stage.level.value]}))
    code = textwrap.dedent(inspect.getsource(attack)).replace("dict[str, Any]", "dict").replace("-> Any", "")
    (work / "code.py").write_text(f"{code}\nattack({{}})\n")
    sandbox = [] if stage.level is Isolation.NONE else ["--sandbox-config", str(tmp_path / "sandbox.json")]
    program = [sys.executable, "-c", "from jupyter_agentbox.cli import entry; entry()", "exec"]
    subprocess.run(
        [*program, "--rules", "rules.json", *sandbox, "code.py"],
        cwd=work,
        check=False,
        timeout=TIMEOUT,
        capture_output=True,
    )

    stage.judge(ATTACK, (work / "rules.json").read_text() != rules)
