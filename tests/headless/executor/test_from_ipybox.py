"""What programs that were written for ipybox rely on, as its documentation describes it, with the imports changed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_agentbox import (
    ApprovalRequest,
    CodeExecutionError,
    CodeExecutionResult,
    CodeExecutor,
    KernelClient,
    KernelGateway,
    generate_mcp_sources,
)
from tests.headless.chunks import joined, take_until

from .conftest import MINI

Make = Callable[..., CodeExecutor]
ADD = "from mcptools.numbers.add import Params, run\nprint(run(Params(a=1, b=2)))"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the program's own."""
    here = (tmp_path / "here").resolve()
    here.mkdir()
    monkeypatch.chdir(here)
    return here


async def test_what_is_generated_here_is_imported_from_here(here: Path, make_executor: Make) -> None:
    names = await generate_mcp_sources("numbers", MINI, Path("mcptools"))
    assert "add" in names
    async with make_executor() as executor:
        async for item in executor.stream(ADD):
            match item:
                case ApprovalRequest(tool_name=name, tool_args=arguments):
                    assert (str(item), name, arguments) == ("numbers.add(a=1, b=2)", "add", {"a": 1, "b": 2})
                    await item.accept()
                case CodeExecutionResult(text=text, images=images):
                    assert (text, images) == ("3", [])
        module = "from mcptools.numbers import add\nprint(add.run(add.Params(a=2, b=2)))"
        assert (await executor.execute(module)).text == "4"
        dumped = "from mcptools.numbers.add import Params\nprint(Params(a=1, b=2).model_dump(exclude_none=True))"
        assert (await executor.execute(dumped)).text == "{'a': 1, 'b': 2}"


async def test_a_gateways_kernels_import_from_their_directory_too(here: Path, places: Path) -> None:
    (here / "mine.py").write_text("value = 42")
    async with KernelGateway(port=0) as gateway, KernelClient(port=gateway.port) as client:
        assert (await client.execute("import mine; print(mine.value)")).text == "42"


async def test_the_standard_library_comes_before_the_working_directory(here: Path, make_executor: Make) -> None:
    (here / "calendar.py").write_text("raise ImportError('not the right one')")
    async with make_executor() as executor:
        assert (await executor.execute("import calendar; print(calendar.MONDAY)")).text == "0"


async def test_relative_paths_of_a_server_are_relative_to_the_program(here: Path, make_executor: Make) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "server.py").write_text(Path(MINI["args"][0]).read_text())
    await generate_mcp_sources("numbers", {**MINI, "args": [Path("server.py")], "cwd": "sub"}, Path("mcptools"))
    async with make_executor() as executor:
        assert (await executor.execute(ADD)).text == "3"


async def test_a_package_that_ipybox_generated_is_replaced(here: Path) -> None:
    package = here / "mcptools" / "numbers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import os\nfrom mcpygen.tool_exec.client import ToolRunner\n\nCLIENT = 1\n")
    (package / "old.py").write_text(
        "class Params: ...\n\nfrom . import CLIENT\n\ndef run(params: Params) -> str: ...\n"
    )
    await generate_mcp_sources("numbers", MINI, Path("mcptools"))
    assert not (package / "old.py").exists()
    assert (package / "add.py").exists()


async def test_code_may_be_indented_and_begin_with_empty_lines(make_executor: Make) -> None:
    cells = {
        "\n    name = 'world'\n    !echo hello {name}\n    ": "hello world",
        "\n%%bash\nfor i in 1 2; do\n  echo $i\ndone\n": "1\n2",
        "\n    files = !ls -d /\n    print(len(files))\n": "1",
    }
    async with make_executor() as executor:
        assert {code: (await executor.execute(code)).text for code in cells} == cells


async def test_what_is_printed_at_two_times_is_two_chunks(make_executor: Make, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    wait = f"import os, time\nwhile not os.path.exists({str(seen)!r}): time.sleep(0.01)\n"
    items = []
    async with make_executor() as executor:
        async for item in executor.stream(f"print('first')\n{wait}print('second')", chunks=True):
            items.append(item)
            seen.touch()  # or the cell waits for ever
        assert joined(items[:-1]) == ["first\nsecond\n"]


async def test_a_timeout_names_its_limit(make_executor: Make) -> None:
    async with make_executor() as executor:
        with pytest.raises(asyncio.TimeoutError, match=r"0\.20s"):
            await executor.execute("import time; time.sleep(60)", timeout=0.2)


async def test_the_working_directory_is_restored_and_the_cell_says_so(make_executor: Make, here: Path) -> None:
    async with make_executor(working_dir=here) as executor:
        left = await executor.execute("import os; os.chdir('/')")
        assert left.text == f"[agentbox] cwd reset to {here}"
        assert (await executor.execute("print(os.getcwd())")).text == str(here)


async def test_a_client_has_a_working_directory_too(places: Path, here: Path, tmp_path: Path) -> None:
    async with (
        KernelGateway(port=0, working_dir=tmp_path) as gateway,
        KernelClient(port=gateway.port, working_dir=here, ping_interval=5) as client,
    ):
        for _ in range(2):
            assert (await client.execute("import os; print(os.getcwd())")).text == str(here)
            assert (await client.execute("os.chdir('/')")).text == f"[agentbox] cwd reset to {here}"
            await client.reset()
        assert (await client.execute("'_work_in' in globals()")).text == "False"


async def test_what_was_given_can_be_read(here: Path) -> None:
    executor = CodeExecutor(working_dir=here, images_dir=Path("images"), connect_timeout=15, kernel_env={"A": "b"})
    assert (executor.working_dir, executor.images_dir) == (here, here / "images")
    assert (executor.connect_timeout, executor.kernel_env) == (15, {"A": "b"})
    assert (executor.sandbox, executor.approve_tool_calls, executor.approve_shell_cmds) == (False, True, False)
    gateway = KernelGateway(port=1, log_level="ERROR", env={"A": "b"})
    assert (gateway.host, gateway.port, gateway.log_level, gateway.env) == ("localhost", 1, "ERROR", {"A": "b"})
    client = KernelClient(gateway.host, gateway.port)
    assert (client.host, client.port, client.working_dir, client.images_dir) == ("localhost", 1, None, here / "images")


async def test_ports_of_servers_that_are_gone_are_taken_with_a_warning(make_executor: Make) -> None:
    with pytest.warns(UserWarning, match="no effect"):
        executor = make_executor(tool_server_port=8901, kernel_gateway_port=8902)
    async with executor:
        assert (await executor.execute("1")).text == "1"


async def test_an_error_has_what_the_code_gave_before(make_executor: Make) -> None:
    code = "from IPython.display import Image\nprint('a')\ndisplay(Image(data=b'\\x89PNG', format='png'))\n1 / 0"
    async with make_executor() as executor:
        with pytest.raises(CodeExecutionError, match="ZeroDivisionError") as caught:
            await executor.execute(code)
        assert caught.value.result is not None
        assert (caught.value.result.text or "").startswith("a\n")
        assert [path.read_bytes() for path in caught.value.result.images] == [b"\x89PNG"]
        await executor.reset()
        pid = int((await executor.execute("import os; print(os.getpid())")).text or "")
        stream = executor.stream("print('b')\nwhile True: pass", chunks=True)
        await take_until("b\n", stream)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(CodeExecutionError) as killed:
            await anext(stream)
        assert killed.value.result == CodeExecutionResult(text="b", images=[])
        with pytest.raises(CodeExecutionError) as refused:
            await executor.execute("1")
        assert refused.value.result is None


async def test_an_image_that_cannot_be_written_does_not_hide_the_error(make_executor: Make, here: Path) -> None:
    (here / "images").write_text("a file")
    picture = "from IPython.display import Image\ndisplay(Image(data=b'\\x89PNG', format='png'))\n"
    async with make_executor(images_dir=here / "images") as executor:
        with pytest.raises(CodeExecutionError, match="ZeroDivisionError") as caught:
            await executor.execute(f"{picture}1 / 0")
        assert "could not be written" in str(caught.value)
        with pytest.raises(OSError, match="images"):
            await executor.execute(picture)
    assert [path.name for path in here.iterdir()] == ["images"]
