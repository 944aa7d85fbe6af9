from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jupyter_agentbox.kernel.agent_magic import COMMANDS, complete, complete_options, read_options
from jupyter_agentbox.kernel.extension import load, unload


class Event(NamedTuple):
    line: str


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    load(made)
    yield made
    made.restore_sys_module_state()


@pytest.mark.parametrize(
    ("line", "options", "prompt"),
    [
        ("", {}, ""),
        ("--new", {"new": True}, ""),
        ('--thread "October sales" --steps 3', {"thread": "October sales", "steps": 3}, ""),
        ("--thread 'a b' --model=openai:x", {"thread": "a b", "model": "openai:x"}, ""),
        (
            "--mode deny_all --context cells --backend loop",
            {"mode": "deny_all", "context": "cells", "backend": "loop"},
            "",
        ),
        ("What's new, and what isn't?", {}, "What's new, and what isn't?"),
        ("--new Plot it", {"new": True}, "Plot it"),
        ("--steps 0", {"steps": 0}, ""),
    ],
)
def test_the_first_line_is_options_and_words(line: str, options: dict[str, Any], prompt: str) -> None:
    assert read_options(line) == (options, prompt)


@pytest.mark.parametrize("line", ["--nwe", "--steps many", "--thread", "--thread a --new", "--mod ask"])
def test_a_wrong_option_is_one_plain_line(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(line)

    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("head", ["%%agent", "%%agent --new", "\n\n%%agent"])
def test_a_cell_becomes_one_with_an_await_that_leaves_its_words_alone(shell: InteractiveShell, head: str) -> None:
    words = "Price {x} of $y?\n%time is short\n!ls\n'''"

    assert shell.transform_cell(f"{head}\n{words}").startswith("await get_ipython().find_cell_magic('agent').run(")
    assert shell.should_run_async("", transformed_cell=shell.transform_cell(f"{head}\n{words}"))


@pytest.mark.parametrize("cell", ["%%agents\nx", "%%agentbox", "%agent threads", "x = 1\n%%agent\n", "%%agent?"])
def test_other_cells_are_left_alone(shell: InteractiveShell, cell: str) -> None:
    assert "await" not in shell.transform_cell(cell)


def test_without_a_loop_for_cells_it_says_what_it_needs(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.autoawait = False

    shell.run_cell("%%agent\nPlot it")

    assert "%autoawait asyncio" in capsys.readouterr().err


def test_it_goes_with_the_extension(shell: InteractiveShell) -> None:
    load(shell)
    unload(shell)
    unload(shell)

    assert "agent" not in shell.magics_manager.magics["cell"]
    assert "run_cell_magic('agent'" in shell.transform_cell("%%agent\nx")


def test_help_needs_no_server_and_names_every_command(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_line_magic("agent", "help")

    told = capsys.readouterr().out
    assert [command for command in COMMANDS if command not in told] == []


def test_an_unknown_command_is_a_usage_error(shell: InteractiveShell) -> None:
    with pytest.raises(UsageError, match="it has threads, show"):
        shell.run_line_magic("agent", "thraeds")


@pytest.mark.parametrize(
    ("line", "completed"),
    [("%agent ", list(COMMANDS)), ("%agent th", list(COMMANDS)), ("%agent mode ", ["ask", "deny_all", "auto_review"])],
)
def test_commands_and_modes_are_completed(line: str, completed: list[str]) -> None:
    assert complete(None, Event(line)) == completed


@pytest.mark.parametrize(
    ("line", "one"), [("%%agent --", "--thread"), ("%%agent --mode ", "ask"), ("%%agent --context n", "none")]
)
def test_options_and_their_values_are_completed(line: str, one: str) -> None:
    assert one in complete_options(None, Event(line))
