from __future__ import annotations

import inspect
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from jupyter_agentbox.core.isolation import Isolation
from tests.terminals import TerminalCommand

from .attack import Attack
from .conftest import DESK_SERVER, Stage

ATTACK = Attack(
    "hide the question of `jupyter agentbox exec` behind another one, or set the clipboard, by what the code prints",
    plain=False,
    control="test_the_same_output_does_both_in_a_terminal_that_gets_it_raw",
)
CALL = "from jupyter_agentbox import tools\ntools.ledger.ready()"
QUESTION = "Run ledger.ready? [y]es, [n]o, [e]dit, "


def attack(facts: dict[str, Any]) -> Any:
    import sys

    sys.stdout.write("\x1b]52;c;cm0gLXJmIH4=\x07")  # the clipboard
    sys.stdout.write(
        "ledger.look()\n  Risk: read-only\nRun ledger.look? [y]es, [n]o, [e]dit, [c]omment, [r]eason, [?]: "
    )
    sys.stdout.write("\x1b[")  # what follows is concealed, in two pieces
    sys.stdout.flush()
    sys.stdout.write("8m\x9b8m")
    sys.stdout.flush()
    return "printed"


def code(after: str) -> str:
    """Return the attack as a script, and what follows."""
    return f"from typing import Any\n\n{inspect.getsource(attack)}\nattack({{}})\n{after}\n"


def seen(shown: str) -> str:
    """Return what stands in the terminal without what is concealed."""
    parts = re.split("\x1b\\[([0-9;]*)m", shown.replace("\x9b", "\x1b["))
    visible, concealed = [parts[0]], False
    for style, text in zip(parts[1::2], parts[2::2], strict=True):
        for one in style.split(";"):
            concealed = one == "8" or (concealed and one not in ("", "0", "28"))
        visible.append("" if concealed else text)
    return "".join(visible)


def succeeded(shown: str) -> bool:
    return QUESTION not in seen(shown) or "\x1b]52" in shown


def test_the_question_is_seen_and_the_clipboard_is_left_alone(stage: Stage, tmp_path: Path) -> None:
    work, settings = tmp_path / "work", tmp_path / "sandbox.json"
    work.mkdir()
    (tmp_path / "code.py").write_text(code(CALL))
    ledger = {"command": sys.executable, "args": [str(DESK_SERVER), str(tmp_path / "notes")]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"ledger": ledger}}))
    settings.write_text(json.dumps({"levels": [stage.level.value]}))
    argv = [sys.executable, "-m", "jupyter_agentbox.cli", "exec", str(tmp_path / "code.py")]
    argv += ["--working-dir", str(work), "--mcp-config", str(tmp_path / "mcp.json")]
    if stage.level is not Isolation.NONE:
        argv += ["--sandbox-config", str(settings)]
    places = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    with TerminalCommand({**os.environ, **places, "PYTHONPATH": str(Path.cwd())}, argv) as running:
        running.read_until(QUESTION)
        running.read_until("[?]: ")
        running.type("n\n")
        running.end()

    stage.said = repr(running.shown)
    assert "Run ledger.look?" in running.shown
    stage.judge(ATTACK, succeeded(running.shown))


def test_the_same_output_does_both_in_a_terminal_that_gets_it_raw() -> None:
    argv = [sys.executable, "-c", code(f"print({QUESTION!r})")]
    with TerminalCommand({**os.environ, "PYTHONIOENCODING": "utf-8"}, argv) as raw:
        _, shown = raw.end()

    assert QUESTION not in seen(shown)
    assert "\x1b]52" in shown
