from __future__ import annotations

from collections.abc import Callable

import pytest

from jupyter_agentbox import ApprovalRequest, CodeExecutionError, CodeExecutionResult, CodeExecutor

Make = Callable[..., CodeExecutor]


async def run(executor: CodeExecutor, code: str) -> tuple[list[tuple[str, str]], str | None]:
    """Return the commands that asked, with their tools, and the text."""
    asked = []
    async for item in executor.stream(code):
        if isinstance(item, ApprovalRequest):
            assert item.server_name == "shell"
            asked.append((item.tool_name, item.tool_args["cmd"]))
            await item.accept()
        elif isinstance(item, CodeExecutionResult):
            return asked, item.text
    raise AssertionError("no result")


async def test_every_way_to_the_shell_asks_with_the_command_that_will_run(make_executor: Make) -> None:
    cells = {
        "!echo one": ([("shell", "echo one")], "one"),
        "name = 'x'\n!echo {name} $name": ([("shell", "echo x x")], "x x"),
        "out = !echo two\nout": ([("shell", "echo two")], "['two']"),
        "!!echo three": ([("shell", "echo three")], "['three']"),
        "%sx echo four": ([("shell", "echo four")], "['four']"),
        "%system echo five": ([("shell", "echo five")], "['five']"),
        "%%bash\necho six": ([("shell_magic", "echo six\n")], "six"),
        "%%sh\necho seven": ([("shell_magic", "echo seven\n")], "seven"),
        "def f():\n    inner = 'eight'\n    !echo {inner}\nf()": ([("shell", "echo eight")], "eight"),
        "!echo '{nine}'": ([("shell", "echo '{nine}'")], "{nine}"),
    }
    async with make_executor(approve_shell_cmds=True) as executor:
        assert {code: await run(executor, code) for code in cells} == cells


async def test_an_edited_command_is_the_one_that_runs(make_executor: Make) -> None:
    async with make_executor(approve_shell_cmds=True) as executor:
        async for item in executor.stream("!echo as asked"):
            if isinstance(item, ApprovalRequest):
                await item.accept(arguments={"cmd": "echo as edited"})
            else:
                assert item == CodeExecutionResult(text="as edited", images=[])


async def test_a_rejected_command_does_not_run(make_executor: Make) -> None:
    async with make_executor(approve_shell_cmds=True) as executor:
        stream = executor.stream("!echo ran")
        request = await anext(stream)
        assert isinstance(request, ApprovalRequest)
        await request.reject("no shell")
        with pytest.raises(CodeExecutionError, match="no shell"):
            await anext(stream)


async def test_commands_ask_even_if_tool_calls_do_not(make_executor: Make) -> None:
    async with make_executor(approve_tool_calls=False, approve_shell_cmds=True) as executor:
        assert await run(executor, "!echo one") == ([("shell", "echo one")], "one")


async def test_commands_do_not_ask_by_default(make_executor: Make) -> None:
    async with make_executor() as executor:
        assert await run(executor, "!echo one") == ([], "one")


#: Code that starts a program, and what the error calls it.
DIRECT = {
    "import subprocess; subprocess.run(['true'])": "subprocess",
    "import os; os.system('true')": "os.system()",
    "import os; os.execv('/bin/true', ['true'])": "os.execv()",
    "import os; os.execlp('true', 'true')": "os.execlp()",
    "import os; os.spawnlp(os.P_WAIT, 'true', 'true')": "os.spawnlp()",
    "import os; os.posix_spawn('/bin/true', ['true'], {})": "os.posix_spawn()",
    "import pty; pty.spawn('/bin/true')": "pty.spawn()",
    "import asyncio; await asyncio.create_subprocess_exec('true')": "subprocess",
}


async def test_other_ways_to_start_a_program_are_refused_and_say_what_to_use(make_executor: Make) -> None:
    async with make_executor(approve_shell_cmds=True, require_shell_escape=True) as executor:
        for code, name in DIRECT.items():
            with pytest.raises(CodeExecutionError) as caught:
                await run(executor, code)
            assert f"RuntimeError: Direct {name} calls are not allowed here. Use `!command`" in str(caught.value)
        assert await run(executor, "!echo one") == ([("shell", "echo one")], "one")
        assert await run(executor, "%%bash\necho two") == ([("shell_magic", "echo two\n")], "two")


def test_the_escape_cannot_be_required_where_it_does_not_ask(make_executor: Make) -> None:
    with pytest.raises(ValueError, match="approve_shell_cmds"):
        make_executor(require_shell_escape=True)
