"""What code is told of an error that a tool call raised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_agentbox import CodeExecutor, ExecutionError
from jupyter_agentbox.core.policy import Effect, Policy, Rule

Make = Callable[..., CodeExecutor]
HINT = "(%tb shows the whole traceback)"
DENIED = Policy((Rule(server="mini", tool="add", effect=Effect.DENY, reason="not today"),))


async def error_of(executor: CodeExecutor, code: str) -> list[str]:
    """Return the lines of the error that code ends with."""
    async with asyncio.timeout(60):
        with pytest.raises(ExecutionError) as raised:
            await executor.execute(code)
    return str(raised.value).splitlines()


async def test_an_error_shows_the_line_of_the_cell_and_the_message_once(make_executor: Make) -> None:
    async with make_executor(policy=DENIED) as executor:
        denied = await error_of(executor, "from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)")
        awaited = await error_of(executor, "await tools.mini.add.aio(a=1, b=2)")
        arguments = await error_of(executor, "tools.mini.add(a='x', b=2)")
        failed = await error_of(executor, "tools.mini.fail()")

    assert denied[:2] == ["Cell In[1], line 2: tools.mini.add(a=1, b=2)", HINT]
    assert awaited[0] == "Cell In[1], line 1: await tools.mini.add.aio(a=1, b=2)"
    assert "not today" in denied[2]
    assert [len(lines) for lines in (denied, awaited, arguments, failed)] == [3, 3, 3, 3]
    assert arguments[2].startswith("ToolArgumentsError: `a`: ")
    assert failed[2].startswith("ToolError: ")


async def test_a_name_that_no_server_and_no_tool_has_is_told_as_briefly(make_executor: Make) -> None:
    async with make_executor() as executor:
        server = await error_of(executor, "from jupyter_agentbox import tools\ntools.minni")
        tool = await error_of(executor, "tools.mini.ad(a=1, b=2)")

    assert server[:2] == ["Cell In[1], line 2: tools.minni", HINT]
    assert server[2].startswith("MissingNameError: there is no MCP server `minni`. Did you mean `mini`?")
    assert tool[:2] == ["Cell In[1], line 1: tools.mini.ad(a=1, b=2)", HINT]
    assert tool[2].startswith("MissingNameError: the MCP server `mini` has no tool `ad`. Did you mean `add`?")
    assert len(server) == len(tool) == 3


async def test_of_many_frames_it_shows_the_cells_and_the_one_that_called(make_executor: Make, places: Path) -> None:
    (places / "helper.py").write_text(
        "def call(tool):\n    return again(tool)\n\n\ndef again(tool):\n    tool(a=1, b=2)\n"
    )
    code = f"""
import sys
sys.path.insert(0, {str(places)!r})
import helper
from jupyter_agentbox import tools
helper.call(tools.mini.add)
"""
    async with make_executor(policy=DENIED) as executor:
        shown = await error_of(executor, code)
        timed = await error_of(executor, f"%%time\nhelper.call(tools.mini.add)  # {'x' * 500}")

    assert shown[:3] == [
        "Cell In[1], line 5: helper.call(tools.mini.add)",
        f"File {places / 'helper.py'}, line 6: tool(a=1, b=2)",
        HINT,
    ]
    assert len(shown) == len(timed) == 4
    assert all(len(line) < 300 for line in timed)


async def test_the_whole_traceback_is_there_for_the_asking_and_in_a_chain(make_executor: Make) -> None:
    code = "from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)"
    chained = "try:\n    tools.mini.add(a=1, b=2)\nexcept Exception as error:\n    raise ValueError('other') from error"
    async with make_executor(policy=DENIED) as executor:
        short = await error_of(executor, code)
        whole = (await executor.execute("%tb")).text or ""
        chain = await error_of(executor, chained)

    assert len(short) == 3
    assert "Traceback (most recent call last)" in whole
    assert "<agentbox mini>" in whole
    assert [line for line in chain if "direct cause" in line]


async def test_a_question_mark_shows_the_signature_and_the_help_of_a_tool(make_executor: Make) -> None:
    async with make_executor() as executor:
        shown = (await executor.execute("from jupyter_agentbox import tools\ntools.mini.add?")).text or ""

    assert "add(*, a: int, b: int)" in shown
    assert "Add two numbers." in shown
    assert "\x1b" not in shown


async def test_errors_that_are_none_of_tools_are_shown_as_ever(make_executor: Make) -> None:
    async with make_executor() as executor:
        lines = await error_of(executor, "1 / 0")

    assert lines[0] == "ZeroDivisionError: division by zero"
    assert "----> 1 1 / 0" in lines
