from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from tests.sandbox.conftest import can_reach
from tests.terminals import TerminalCommand

SERVER = Path(__file__).parent / "headless" / "executor" / "mini_server.py"
QUESTION = "[?]: "
CALL = "from jupyter_agentbox import tools\nprint(tools.mini.add(a=1, b=2))"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    config = tmp_path / "config"
    config.mkdir()
    servers = {"mini": {"command": sys.executable, "args": [str(SERVER)]}}
    (config / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    places = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    return {**os.environ, **places, "PYTHONPATH": str(Path(__file__).parents[1])}


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "jupyter_agentbox.cli", "exec", *args]


def run(environment: dict[str, str], *args: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run code from standard input, with no terminal."""
    return subprocess.run(
        command("-", *args),
        input=code,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
        start_new_session=True,
    )


def with_terminal(environment: dict[str, str], path: Path, answers: str) -> tuple[int, str]:
    """Run a file in a terminal of its own, answer each question; return the exit code and what the terminal showed."""
    with TerminalCommand(environment, command(str(path))) as running:
        question = QUESTION
        for answer in answers.splitlines(keepends=True):
            running.read_until(question)
            running.type(answer)
            question = "Reason: " if answer == "r\n" else QUESTION
        return running.end()


def test_output_is_written_and_success_is_0(environment: dict[str, str]) -> None:
    done = run(environment, code="print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_an_error_is_1_with_the_traceback(environment: dict[str, str]) -> None:
    done = run(environment, code="1 / 0")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_without_a_terminal_and_a_rule_a_call_is_refused(environment: dict[str, str]) -> None:
    done = run(environment, code=CALL)
    assert done.returncode == 3
    assert "NobodyToAskError" in done.stderr
    assert done.stderr.count("nobody could be asked") == 1


def test_without_a_terminal_a_call_can_be_answered_by_except(environment: dict[str, str]) -> None:
    code = f"""
from jupyter_agentbox.exceptions import NobodyToAskError
try:
    {CALL.strip().replace(chr(10), chr(10) + "    ")}
except NobodyToAskError as error:
    print("went on:", error.reason)
"""
    assert "went on: nobody could be asked" in run(environment, code=code).stdout


@pytest.mark.parametrize(("effect", "code", "output"), [("allow", 0, "3\n"), ("deny", 1, "")])
def test_rules_decide_without_a_terminal(
    environment: dict[str, str], tmp_path: Path, effect: str, code: int, output: str
) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"server": "mini", "tool": "*", "effect": effect, "reason": "as told"}]}))
    done = run(environment, "--rules", str(rules), code=CALL)
    assert (done.returncode, done.stdout) == (code, output)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"rules": [{"server": "*", "tool": "*", "effect": "perhaps"}]}', '{"rules": [{"x": 1}]}']
)
def test_rules_that_are_not_understood_are_an_error_and_nothing_runs(
    environment: dict[str, str], tmp_path: Path, text: str
) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(text)
    done = run(environment, "--rules", str(rules), code="print('ran')")
    assert (done.returncode, done.stdout) == (2, "")


def test_time_that_is_over_is_124(environment: dict[str, str]) -> None:
    done = run(environment, "--timeout", "0.3", code="while True: pass")
    assert done.returncode == 124


def test_a_notebooks_code_cells_run_in_order(environment: dict[str, str], tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "source": ["x = 1\n", "print(x)"]},
        {"cell_type": "markdown", "source": "# no code"},
        {"cell_type": "code", "source": "print(x + 1)"},
    ]
    path = tmp_path / "some.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    done = subprocess.run(command(str(path)), capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.stdout == "1\n2\n"


@pytest.mark.parametrize(
    ("answers", "code", "shown"),
    [("y\n", 0, "3\r\n"), ("n\n", 3, "ToolCallRejectedError"), ("what?\nr\nnot today\n", 3, "not today")],
)
def test_a_person_decides_in_the_terminal(
    environment: dict[str, str], tmp_path: Path, answers: str, code: int, shown: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(CALL)
    status, text = with_terminal(environment, script, answers)
    assert "mini.add(a=1, b=2)" in text
    assert shown in text
    assert status == code
    with closing(sqlite3.connect(tmp_path / "data" / "agentbox" / "approvals.sqlite")) as database:
        [(progress,)] = database.execute("SELECT progress FROM agentbox_approvals")
    assert json.loads(progress)["decision"]["reviewer"]["via"] == "terminal"


def records(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the decisions of the calls, with the grant that allowed each without asking."""
    with closing(sqlite3.connect(tmp_path / "data" / "agentbox" / "approvals.sqlite")) as database:
        rows = database.execute("SELECT progress FROM agentbox_approvals ORDER BY created_at").fetchall()
    return [json.loads(progress)["decision"] for (progress,) in rows]


def test_answer_for_all_of_a_tool_is_a_grant_that_also_settles_what_waits(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio\nfrom jupyter_agentbox import tools\n"
        "print(await asyncio.gather(*(tools.mini.add.aio(a=n, b=0) for n in (1, 2))))\n"
        "print(tools.mini.add(a=3, b=0))"
    )
    status, shown = with_terminal(environment, script, "a\n")

    assert status == 0
    assert shown.count(QUESTION) == 1
    assert shown.count("allowed by your answer for this tool in this run: mini.add(a=") == 2
    first, second, third = records(tmp_path)
    assert first["answer"] == "allow_always"
    assert second["grant"]["id"] == first["grant"]["id"]
    assert third is None


def test_edited_arguments_run_and_are_recorded_and_those_that_do_not_fit_are_asked_about_again(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(CALL)
    plain = {name: value for name, value in environment.items() if name not in ("VISUAL", "EDITOR")}
    with TerminalCommand(plain, command(str(script))) as running:
        for typed in ("e", '{"a": "x", "b": 2}', "y", "e", '{"a": 40, "b": 2}', "y"):
            running.read_until("changes nothing: " if typed.startswith("{") else QUESTION)
            running.type(f"{typed}\n")
        status, shown = running.end()

    assert status == 0
    assert "is not of type" in shown
    assert "+a = 40" in shown
    assert "42\r\n" in shown
    [decision] = records(tmp_path)
    assert decision["arguments"] == {"a": 40, "b": 2}


def test_editor_has_the_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\ntest -t 0 && test -t 1 && sed -i "s/2/41/" "$2"\n')
    editor.chmod(0o700)
    script = tmp_path / "script.py"
    script.write_text(CALL)

    status, shown = with_terminal({**environment, "VISUAL": f"{editor} --wait"}, script, "e\ny\n")

    assert (status, "42\r\n" in shown) == (0, True), shown


@pytest.mark.parametrize(("quiet", "lines"), [((), 1), (("--quiet",), 0)])
@pytest.mark.parametrize(("effect", "verb"), [("allow", "allowed"), ("deny", "denied")])
def test_what_a_rule_decided_is_one_line_on_standard_error(
    environment: dict[str, str], tmp_path: Path, effect: str, verb: str, quiet: tuple[str, ...], lines: int
) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"server": "mini", "tool": "a*", "effect": effect}]}))
    done = run(environment, "--rules", str(rules), *quiet, code=CALL)

    line = f"jupyter agentbox: {verb} by rule mini.a* ({rules}, line 1): mini.add(a=1, b=2)\n"
    assert done.stderr.count(line) == lines


def test_an_answer_that_was_typed_before_the_question_is_forgotten(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"print('Run shop.look? [y]es', flush=True)\nopen({str(tmp_path / 'pipe')!r}).read()\n{CALL}")
    os.mkfifo(tmp_path / "pipe")
    with TerminalCommand(environment, command(str(script))) as running:
        running.read_until("[y]es")
        running.type("y\n")
        running.read_until("y\r\n")  # the terminal's echo: it is there
        (tmp_path / "pipe").write_text("")
        running.read_until("Run mini.add? [y]es, [n]o, ")
        running.type("n\n")
        status, _ = running.end()

    assert status == 3


def test_an_answer_without_a_line_leaves_none_of_the_question_to_write_over(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"try:\n    {CALL.splitlines()[0]}\n    tools.mini.add(a=1, b=2)\nexcept Exception: print('\\rnext')"
    )
    with TerminalCommand(environment, command(str(script))) as running:
        running.read_until(QUESTION)
        running.type("\x04")
        _, shown = running.end()

    assert "[?]: \r\n\r\x1b[Knext" in shown.replace("^D\x08\x08", "")


def test_ctrl_c_at_a_question_ends_the_command_and_the_call_does_not_run(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(CALL)
    with TerminalCommand(environment, command(str(script))) as running:
        running.read_until(QUESTION)
        running.type("\x03")
        status, shown = running.end()

    assert status == 130
    assert "Traceback" not in shown
    with closing(sqlite3.connect(tmp_path / "data" / "agentbox" / "approvals.sqlite")) as database:
        [(found,)] = database.execute("SELECT status FROM agentbox_approvals")
    assert found not in ("pending", "approved", "completed")


def test_output_in_a_terminal_has_colors_and_nothing_else_that_a_terminal_obeys(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "print('\\x1b[31mred\\x1b[0m \\x1b]52;c;aGk=\\x07\\x1b[2Jend', '\\u202e')\nraise ValueError('\\x1b[2J')"
    )
    with TerminalCommand(environment, command(str(script))) as running:
        _, shown = running.end()

    assert "\x1b[31mred\x1b[0m end <U+202E>" in shown
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown


def test_output_in_a_file_is_as_it_was_printed(environment: dict[str, str], tmp_path: Path) -> None:
    script, output = tmp_path / "script.py", tmp_path / "output"
    script.write_text("print('a\\x1b[2J\\rb\\r')")
    in_a_shell = ["/bin/sh", "-c", f'"$@" > {output}', "sh", *command(str(script))]
    with TerminalCommand(environment, in_a_shell) as running:
        running.end()

    assert output.read_bytes() == b"a\x1b[2J\rb\r\n"


def test_a_pipe_gets_no_more_than_the_terminal_at_which_somebody_sits(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('\\x1b[31mred\\x1b[2J\\x1b]52;c;aGk=\\x07 a\\r\\nb')")
    piped = ["/bin/sh", "-c", '"$@" | cat -v', "sh", *command(str(script))]
    with TerminalCommand(environment, piped) as running:
        _, shown = running.end()

    assert "^[[31mred a\r\nb\r\n" in shown


def test_terminal_names_a_letter_that_is_not_what_it_looks_like(environment: dict[str, str], tmp_path: Path) -> None:
    configuration = Path(environment["JUPYTER_CONFIG_DIR"]) / "mcp.json"
    configuration.write_text(configuration.read_text().replace('"mini"', '"min\\u0456"'))
    script = tmp_path / "script.py"
    script.write_text(CALL.replace("mini", "min\u0456"), encoding="utf-8")

    _, text = with_terminal(environment, script, "n\n")

    assert "In the server's name, U+0456 CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I looks like `i`." in text


def test_what_was_in_the_file_is_what_runs(environment: dict[str, str], tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.ipynb"
    cells = ["print('one')\n_ = open('notebook.ipynb', 'w').write('{\"cells\": []}')", "print('two')"]
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": source} for source in cells]}))

    found = subprocess.run(
        command(str(notebook), "--working-dir", str(tmp_path)),
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
        start_new_session=True,
    )

    assert (found.returncode, found.stdout.split()) == (0, ["one", "two"]), found.stderr
    assert json.loads(notebook.read_text()) == {"cells": []}


REPLACED = """
from IPython.display import HTML, clear_output
print("gone")
clear_output(wait=True)
handle = display(HTML("<b>0</b>"), display_id=True)
handle.update(HTML("<b>1</b>"))
"""


def run_notebook(
    environment: dict[str, str], tmp_path: Path, cells: list[str], *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a notebook whose cells have an old output each."""
    stale = {"output_type": "stream", "name": "stdout", "text": "stale"}
    code = {"cell_type": "code", "metadata": {}, "execution_count": 9, "outputs": [stale]}
    title = {"cell_type": "markdown", "metadata": {}, "source": "# Title"}
    shown = [title, *({**code, "source": one} for one in cells)]
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": shown}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "a.ipynb").chmod(0o640)
    return subprocess.run(
        command(str(tmp_path / "a.ipynb"), *options),
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
        start_new_session=True,
    )


def test_executed_notebook_has_outputs_and_the_error_at_which_it_ended(
    environment: dict[str, str], tmp_path: Path
) -> None:
    cells = [
        "import sys\nprint('one')\nprint('two')\nprint('no', file=sys.stderr)\n6 * 7",
        REPLACED,
        "print('before')\n1 / 0",
        "print('never')",
    ]
    source = tmp_path / "a.ipynb"
    done = run_notebook(environment, tmp_path, cells, "--output", str(tmp_path / "b.ipynb"))

    assert done.returncode == 1
    assert "stale" in source.read_text()
    assert stat.S_IMODE((tmp_path / "b.ipynb").stat().st_mode) == 0o640
    written = nbformat.read(tmp_path / "b.ipynb", as_version=nbformat.NO_CONVERT)
    nbformat.validate(written)
    title, one, two, three, four = written.cells
    assert title.source == "# Title"
    assert [output["output_type"] for output in one.outputs] == ["stream", "stream", "execute_result"]
    assert one.outputs[0]["text"] == "one\ntwo\n"
    assert (one.outputs[2]["data"]["text/plain"], one.outputs[2]["execution_count"]) == ("42", 1)
    assert [output["data"]["text/html"] for output in two.outputs] == ["<b>1</b>"]
    assert [output["output_type"] for output in three.outputs] == ["stream", "error"]
    assert three.outputs[1]["ename"] == "ZeroDivisionError"
    assert (four.outputs, four.execution_count) == ([], None)


def test_executed_notebook_has_what_ended_a_cell_that_raised_nothing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = run_notebook(
        environment, tmp_path, ["print('x', flush=True)\nwhile True: pass"], "--inplace", "--timeout", "1"
    )

    assert done.returncode == 124
    [cell] = [cell for cell in nbformat.read(tmp_path / "a.ipynb", as_version=4).cells if cell.cell_type == "code"]
    assert cell.outputs[0]["text"] == "x\n"
    assert cell.outputs[-1]["output_type"] == "error"


def test_executed_notebook_replaces_its_source_only_on_request(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "link.ipynb").symlink_to("a.ipynb")
    for options in (
        ["--output", str(tmp_path / "a.ipynb")],
        ["--output", str(tmp_path / "link.ipynb")],
        ["--output", str(tmp_path / "none" / "b.ipynb")],
        ["--output", str(tmp_path / "b.ipynb"), "--inplace"],
        ["--output", str(tmp_path / "b.ipynb"), "--ask", "jupyterlab"],
    ):
        done = run_notebook(environment, tmp_path, ["print('ran')"], *options)
        assert (done.returncode, done.stdout) == (2, ""), options
        assert "stale" in (tmp_path / "a.ipynb").read_text()

    assert run_notebook(environment, tmp_path, ["print('ran')"], "--inplace").returncode == 0
    assert '"ran\\n"' in (tmp_path / "a.ipynb").read_text()
    assert run(environment, "--output", str(tmp_path / "b.ipynb"), code="print('ran')").returncode == 2


def test_code_runs_in_a_sandbox_or_not_at_all(environment: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    place = ("--working-dir", str(work))
    refused = run(environment, "--sandbox", "--working-dir", str(tmp_path), code="print('ran')")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no sandbox" in refused.stderr or "would show" in refused.stderr

    settings = tmp_path / "box.json"
    settings.write_text('{"readble": []}')
    unknown = run(environment, "--sandbox-config", str(settings), *place, code="print('ran')")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "`readble` is not a setting" in unknown.stderr

    can_reach(SANDBOX_LEVELS[0])
    code = "import os\nprint(os.getcwd(), os.path.exists('../config'))"
    inside = run(environment, "--sandbox", *place, code=code)
    assert (inside.returncode, inside.stdout) == (0, f"{work} False\n"), inside.stderr
