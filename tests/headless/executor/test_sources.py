from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jupyter_agentbox import CodeExecutor, ToolServerError, generate_mcp_sources
from jupyter_agentbox.paths import registered_servers_path
from jupyter_agentbox.sandbox.server.run_directory import base_directory
from jupyter_agentbox.sandbox.server.writable_directories import record

from .conftest import MINI

SECRET = {**MINI, "env": {"API_KEY": "s3cret-key"}}
CODE = """
from mcptools.places.where_is import Params, run
result = run(Params(name="Oslo"))
print(result.place.x, result.place.from_, result.others[0].x, type(result.place).__name__)
"""


async def test_the_names_of_the_modules_are_returned_in_order(tmp_path: Path) -> None:
    assert await generate_mcp_sources("places", MINI, tmp_path) == ["add", "where_is", "fail", "chat", "pid"]


async def test_the_same_tools_give_the_same_files(tmp_path: Path) -> None:
    for root in ("one", "two", "two"):
        await generate_mcp_sources("places", SECRET, tmp_path / root)
    one, two = (
        {path.name: path.read_text() for path in (tmp_path / root / "places").iterdir()} for root in ("one", "two")
    )
    assert one == two
    assert "s3cret-key" not in json.dumps(one)


async def test_parameters_are_kept_for_this_user_alone(tmp_path: Path) -> None:
    await generate_mcp_sources("places", SECRET, tmp_path)
    path = registered_servers_path()
    assert json.loads(path.read_text())["mcpServers"]["places"] == SECRET
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_generated_tool_takes_params_and_gives_a_typed_result(
    tmp_path: Path, make_executor: Callable[..., CodeExecutor]
) -> None:
    await generate_mcp_sources("places", SECRET, tmp_path / "mcptools")
    async with make_executor(kernel_env={"PYTHONPATH": str(tmp_path)}) as executor:
        assert (await executor.execute(CODE)).text == '4 {"name": "Oslo"} 4 Place'
        nested = 'print(run(Params(name="a", near={"x": 1}, class_="town")).place.from_)'
        assert (await executor.execute(nested)).text == '{"class": "town", "name": "a", "near": {"x": 1}}'
        text = "from mcptools.places.add import Params, run\nprint(run(Params(a=1, b=2)))"
        assert (await executor.execute(text)).text == "3"
        missing = "try:\n    Params(a=1)\nexcept ValueError as error:\n    print(error)"
        assert (await executor.execute(missing)).text == "`Params` needs the field `b`"
        assert "s3cret-key" not in ((await executor.execute("import os; print(dict(os.environ))")).text or "")


async def test_an_async_package_is_awaited(tmp_path: Path, make_executor: Callable[..., CodeExecutor]) -> None:
    await generate_mcp_sources("places", MINI, tmp_path / "mcptools", async_api=True)
    async with make_executor(kernel_env={"PYTHONPATH": str(tmp_path)}) as executor:
        code = "from mcptools.places.add import Params, run\nprint(await run(Params(a=1, b=2)))"
        assert (await executor.execute(code)).text == "3"


async def test_a_server_starts_where_no_sandboxed_kernel_could_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    for place in (work, home):
        place.mkdir()
    (work / "planted.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    server = {"command": sys.executable, "args": ["-m", "planted"]}
    with TemporaryDirectory(dir="/tmp") as runtime:  # the path of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        with pytest.raises(ToolServerError):
            await generate_mcp_sources("places", server, tmp_path)
        ran_before = (work / "ran").exists()
        (work / "ran").unlink()

        record(base_directory(os.environ), [work.resolve()])
        with pytest.raises(ToolServerError, match="sandboxed kernel"):
            await generate_mcp_sources("places", server, tmp_path)

    assert (ran_before, (work / "ran").exists()) == (True, False)


async def test_what_is_not_ours_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "places").mkdir()
    (tmp_path / "places" / "mine.py").write_text("x = 1")
    with pytest.raises(FileExistsError):
        await generate_mcp_sources("places", MINI, tmp_path)
    assert (tmp_path / "places" / "mine.py").read_text() == "x = 1"


async def test_a_server_that_does_not_start_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ToolServerError):
        await generate_mcp_sources("places", {"command": "/no/such/program"}, tmp_path)
    assert not (tmp_path / "places").exists()
    assert not registered_servers_path().exists()


async def test_the_name_must_be_a_packages(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="package"):
        await generate_mcp_sources("not a name", MINI, tmp_path)
