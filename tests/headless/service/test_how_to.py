"""The blocks of the guide run as they stand there."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from jupyter_agentbox.agents.generators import ENTRY_POINTS

GUIDE = (Path(__file__).parents[3] / "docs" / "how-to" / "generate-code.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Return what stands in the guide between fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


async def run(block: str, names: dict[str, Any]) -> str:
    """Run a block as a cell does; return what it prints."""
    code = block.replace("asyncio.run(main())", "await main()")
    compiled = compile(code, "generate-code.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(io.StringIO()) as said:
        running = eval(compiled, names)
        if inspect.isawaitable(running):
            await running
    return said.getvalue()


async def test_the_blocks_run_one_after_the_other(places: Path) -> None:
    names: dict[str, Any] = {"images_dir": places}
    said = [await run(block, names) for block in blocks("python")]

    assert said[0].startswith("notebook.run_code(code=")
    assert said[0].endswith("succeeded 42\n")
    assert said[1:] == ["", "", "Hello, Ada\n", "waiting\n", ""]
    assert names["result"].results == {"greeting": "Hello, Ada"}


def test_the_entry_point_has_the_name_of_the_group() -> None:
    [block] = blocks("toml")

    assert list(tomllib.loads(block)["project"]["entry-points"]) == [ENTRY_POINTS]
