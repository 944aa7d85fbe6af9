"""The blocks of the README run as they stand there."""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import CodeExecutor
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import select_level

README = Path(__file__).parents[3] / "README.md"


def blocks(language: str) -> list[str]:
    """Return what stands in the README between fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def configured(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the README's servers, and the `python` that has them on the path."""
    [configuration] = blocks("json")
    (places / "config" / "mcp.json").write_text(configuration)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    # A sandboxed kernel can write where it works, and programs that stand there are not used for sandboxes again.
    (places / "work").mkdir()
    monkeypatch.chdir(places / "work")


async def test_the_cell_runs_and_says_why_an_order_was_not_deleted() -> None:
    cell = blocks("python")[0]
    async with CodeExecutor() as executor:
        stream = executor.stream(f"{cell}\nprint(order.total, len(tea), len(coffee))")
        said = [await _answer(item) async for item in stream]

    reason, numbers = "".join(filter(None, said)).splitlines()
    assert (reason, all(float(number) > 0 for number in numbers.split())) == ("keep it", True)


async def _answer(item: Any) -> str | None:
    """Allow what reads, reject what deletes; return what was printed."""
    if hasattr(item, "accept"):
        await (item.reject(reason="keep it") if item.tool_name == "delete_order" else item.accept())
        return None
    return item.text if hasattr(item, "images") else None


async def test_the_program_without_a_browser_runs() -> None:
    try:
        select_level(SANDBOX_LEVELS)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))
    program = compile(blocks("python")[1], "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = io.StringIO()
    with redirect_stdout(printed):
        running = eval(program, {})
        assert inspect.iscoroutine(running)
        await running

    assert int(printed.getvalue().split()[0]) > 0
