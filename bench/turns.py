"""Turns of an agent, each one message: ``python turns.py jupyter_agentbox|openai_codex URL``. Prints samples as JSON.

Both packages ask the same model, a `MockModelServer` at the URL, in a process of its own and by the same interface, and
wait for the turn's last message. With ``first`` as a third argument, this does one turn and prints what that took in
milliseconds, with the import of the package and the start of all that it needs: each does much of it at another moment.
What our first turn cannot do without is measured by itself: the import of the library that asks OpenAI's models.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

begin = time.perf_counter()
PACKAGE, URL = sys.argv[1:3]
FIRST = "first turn, with import and start"
WARM = "a turn of one message"
LIBRARY = "import of pydantic-ai for OpenAI alone"
IMPORT = (
    "import time; t = time.perf_counter(); import pydantic_ai.models.openai; print((time.perf_counter() - t) * 1000)"
)

#: Does a turn and returns the last message.
Ask = Callable[[], Awaitable[str | None]]

samples: dict[str, list[float]] = defaultdict(list)
root = Path(tempfile.mkdtemp(prefix="bench-"))

CODEX_CONFIG = f"""
model = "scripted"
approval_policy = "never"
sandbox_mode = "read-only"
model_provider = "bench"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.bench]
name = "bench"
base_url = "{URL}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"""


@asynccontextmanager
async def jupyter_agentbox() -> AsyncIterator[Ask]:
    from jupyter_agentbox import AsyncAgent

    async with AsyncAgent("openai:scripted", base_url=URL, api_key="none") as agent:
        thread = await agent.thread_start()

        async def ask() -> str | None:
            return (await thread.run("go")).final_response

        yield ask


@asynccontextmanager
async def openai_codex() -> AsyncIterator[Ask]:
    from openai_codex import Codex, CodexConfig

    home, work = root / "codex", root / "work"
    home.mkdir()
    work.mkdir()
    (home / "config.toml").write_text(CODEX_CONFIG)
    config = CodexConfig(cwd=str(work), env={"CODEX_HOME": str(home), "HOME": str(root)})
    with Codex(config) as codex:  # its `AsyncCodex` does the same in threads, and takes longer
        thread = codex.thread_start()

        async def ask() -> str | None:
            return thread.run("go").final_response

        yield ask


async def printed_by(*arguments: str) -> float:
    """Return the number that Python, run with arguments, prints last."""
    command = [sys.executable, *arguments]
    done = await asyncio.to_thread(subprocess.run, command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


async def main() -> None:
    """Do the work."""
    is_first = sys.argv[3:] == ["first"]
    async with {"jupyter_agentbox": jupyter_agentbox, "openai_codex": openai_codex}[PACKAGE]() as ask:
        assert await ask() == "hello"
        if is_first:
            print((time.perf_counter() - begin) * 1000, flush=True)
            return
        for _ in range(3):
            samples[FIRST].append(await printed_by(*sys.argv, "first"))
            if PACKAGE == "jupyter_agentbox":
                samples[LIBRARY].append(await printed_by("-c", IMPORT))
        for _ in range(30):
            start = time.perf_counter()
            answer = await ask()
            samples[WARM].append((time.perf_counter() - start) * 1000)
            assert answer == "hello"


if __name__ == "__main__":
    os.chdir(root)
    for place in ("CONFIG", "DATA", "RUNTIME"):
        os.environ[f"JUPYTER_{place}_DIR"] = str(root / place.lower())
    asyncio.run(main())
    if samples:
        print(json.dumps(samples), flush=True)
