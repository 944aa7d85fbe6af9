"""What stands on the first pages runs as it stands there: their `mcp.json`, and their Python, block after block."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agentbox import ApprovalRequest, CodeExecutionError, CodeExecutionResult, CodeExecutor
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.headless.rules import read_rules
from jupyter_agentbox.sandbox.server.probes import select_level
from jupyter_agentbox.testing import MockModelServer

ROOT = Path(__file__).parents[2]
#: A tool whose requests the pages reject, and what they say then.
REFUSED = "delete_order"
REASON = "not this one"


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the README's `mcp.json`. A `python` that is first on the `PATH` and has nothing installed is not taken."""
    (tmp_path / "bin").mkdir()
    other = tmp_path / "bin" / "python"
    other.write_text("#!/bin/sh\necho another Python >&2\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent), prepend=":")
    path = tmp_path / "config" / "mcp.json"
    path.parent.mkdir()
    path.write_text(blocks("README.md", "json")[0])
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(path.parent))
    return path


async def run(executor: CodeExecutor, code: str) -> tuple[str, list[str]]:
    """Run code as a person of the page would: return its text, and the tools that asked."""
    asked = []
    async for item in executor.stream(code):
        match item:
            case ApprovalRequest(tool_name=name) if name == REFUSED:
                asked.append(name)
                await item.reject(reason=REASON)
            case ApprovalRequest(tool_name=name):
                asked.append(name)
                await item.accept()
            case CodeExecutionResult(text=text):
                return text or "", asked
    raise AssertionError("the code has no result")


@pytest.mark.parametrize(
    ("page", "tools"),
    [
        ("README.md", ["delete_order", "get_order", "list_products", "list_products"]),
        ("docs/tutorial.md", ["delete_order", "list_products", "set_price"]),
    ],
)
async def test_python_of_the_first_pages_runs(configuration: Path, page: str, tools: list[str]) -> None:
    cells = [code for code in blocks(page, "python") if "CodeExecutor" not in code]
    asked, texts = [], []
    async with CodeExecutor(mcp_config_path=configuration) as executor:
        for code in cells:
            try:
                text, names = await run(executor, code)
            except CodeExecutionError as error:
                raise AssertionError(f"{page} shows code that fails:\n{code}\n{error}") from None
            asked += names
            texts.append(text)

    assert sorted(asked) == tools
    assert any(REASON in text for text in texts), "the reason of the rejection reaches the code"


async def test_task_with_a_real_server_is_done_but_for_what_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/how-to/from-your-agent.md"
    servers, rules = blocks(page, "json")
    [task] = [code for code in blocks(page, "python") if "tools.git" in code]
    home = tmp_path / "home"
    repository = home / "report"
    repository.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    configuration = tmp_path / "mcp.json"
    configuration.write_text(servers)

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True
        ).stdout

    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
    git("init", "--quiet")
    for name in ("clean.py", "figures.py"):
        (repository / name).write_text("pass\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "Begin")
    for name in ("clean.py", "figures.py"):
        (repository / name).write_text("changed = True\n")

    asked, text = [], ""
    (tmp_path / "rules.json").write_text(rules)
    policy = read_rules(tmp_path / "rules.json")
    async with CodeExecutor(mcp_config_path=configuration, kernel_env={"HOME": str(home)}, policy=policy) as executor:
        async for item in executor.stream(task):
            match item:
                case ApprovalRequest(tool_name="git_commit", tool_args={"message": "Draw prices on a log scale"}):
                    asked.append(item.tool_name)
                    await item.reject(reason=REASON)
                case ApprovalRequest():
                    asked.append(item.tool_name)
                    await item.accept()
                case CodeExecutionResult():
                    text = item.text or ""

    assert asked == ["git_commit", "git_commit", "git_reset"]
    assert "+changed = True" in text
    assert f"figures.py: {REASON}" in text
    assert git("log", "--format=%an: %s").splitlines() == ["Ada: Drop rows without a date", "Ada: Begin"]
    assert git("status", "--porcelain").strip() == "M figures.py", "changed, and not staged"


@pytest.fixture
def sandbox() -> None:
    """Skip where no sandbox can be made."""
    try:
        select_level(SANDBOX_LEVELS)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))


async def output_of(program: str, directory: Path, answers: str = "") -> list[str]:
    """Run a program as its reader would, with these answers at the terminal, and return the lines that it prints."""
    directory.mkdir()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=directory, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate(answers.encode())
    assert process.returncode == 0, errors.decode()
    return output.decode().splitlines()


@pytest.mark.usefixtures("configuration", "sandbox")
async def test_program_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = [code for code in blocks("README.md", "python") if "CodeExecutor" in code]
    lines = ["import asyncio", *code.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("async with"))
    program = [*lines[:start], "async def main():", *("    " + line for line in lines[start:]), "asyncio.run(main())"]

    assert await output_of("\n".join(program), tmp_path / "work") == ["20 []"]


@pytest.mark.usefixtures("configuration", "sandbox")
async def test_program_of_an_agent_asks_at_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = [code for code in blocks("docs/how-to/from-your-agent.md", "python") if "pydantic_ai" in code]
    with MockModelServer() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        code = "from jupyter_agentbox import tools; print(len(tools.shop.list_orders()), 'orders')"
        model.enqueue_tool_call("run_python", {"code": code})
        model.enqueue_message("There are 20.")

        lines = await output_of(program, tmp_path / "work", answers="y\n")

    assert lines == ["Allow shop.list_orders({})? [y/N] There are 20."]
    assert "20 orders" in json.dumps(model.requests[-1].json()), "the model is told what its code printed"
