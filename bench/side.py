"""The work, done with one of the packages: ``python side.py jupyter_agentbox|ipybox``. Prints samples as JSON.

Both packages are used through the same names. Times are in milliseconds, memory in megabytes.
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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = sys.argv[1]
SERVER = Path(__file__).with_name("server.py")
QUICK = bool(os.environ.get("BENCH_QUICK"))
#: Of `main`'s parts, those to do, with commas between; all if it is empty.
PARTS = os.environ.get("BENCH_PARTS", "")

IMPORT = f"import time; t = time.perf_counter(); from {PACKAGE} import CodeExecutor; print(time.perf_counter() - t)"
IN_CELL = """
import time
from mcptools.mini.add import run, Params
run(Params(a=0, b=0))
samples = []
for i in range(100):
    begin = time.perf_counter()
    run(Params(a=i, b=i))
    samples.append((time.perf_counter() - begin) * 1000)
print(samples)
"""
HUNDRED = "from mcptools.mini.add import run, Params\nfor i in range(100): run(Params(a=i, b=i))"
THREADS = """
from concurrent.futures import ThreadPoolExecutor
from mcptools.mini.add import run, Params
with ThreadPoolExecutor(16) as pool:
    assert len(list(pool.map(lambda i: run(Params(a=i, b=i)), range(50)))) == 50
"""
GATHER = """
import asyncio
from mcptools.mini_async.add import run as run_async, Params as ParamsAsync
assert len(await asyncio.gather(*(run_async(ParamsAsync(a=i, b=i)) for i in range(50)))) == 50
"""
WARM = """
from mcptools.mini_async.add import run as run_async, Params as ParamsAsync
await run_async(ParamsAsync(a=1, b=1))
"""
FLUSHED = "for i in range(10_000): print(i, flush=True)"
DISPLAYS = "for i in range(10_000): display(i)"

#: Seconds that a part may take.
PART_TIMEOUT = 120

samples: dict[str, list[float]] = defaultdict(list)
root = Path(tempfile.mkdtemp(prefix="bench-"))


def milliseconds_since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000


def params(tools: int) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVER), str(tools)]}


def pss() -> float:
    """Return the proportional set size of this process and all below it, in megabytes."""
    import psutil

    me = psutil.Process()
    total = 0
    for process in [me, *me.children(recursive=True)]:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


@asynccontextmanager
async def executor(**options: Any) -> AsyncIterator[Any]:
    package = import_module(PACKAGE)
    options = {"kernel_env": {"PYTHONPATH": str(root)}, "images_dir": root / "images", **options}
    async with package.CodeExecutor(**options) as made:
        yield made


async def timed(name: str, made: Any, code: str) -> str:
    begin = time.perf_counter()
    result = await made.execute(code)
    samples[name].append(milliseconds_since(begin))
    return result.text or ""


async def starts() -> None:
    for _ in range(2 if QUICK else 5):
        found = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
        samples["import"].append(float(found.stdout) * 1000)
    for _ in range(2 if QUICK else 5):
        begin = time.perf_counter()
        async with executor() as made:
            while (await made.execute("print(6 * 7)")).text != "42":
                pass  # the peer loses the output of some cells
            samples["start to first result"].append(milliseconds_since(begin))


async def cells() -> None:
    async with executor() as made:
        await made.execute("1")
        await asyncio.sleep(2)
        samples["memory, idle"].append(pss())
        for _ in range(100):
            await timed("warm execute", made, "1")
        texts = [(await made.execute(f"print({i})")).text for i in range(300 if QUICK else 1000)]
        samples["lost outputs of 1,000" if not QUICK else "lost outputs of 300"].append(
            sum(text != str(i) for i, text in enumerate(texts))
        )
        for _ in range(2):
            await timed("10,000 flushed prints", made, FLUSHED)
            await timed("10,000 displays", made, DISPLAYS)


async def cancels() -> None:
    async with executor() as made:
        for _ in range(5):
            stream = made.stream("print('begun', flush=True)\nwhile True: pass", chunks=True)
            await anext(stream)
            begin = time.perf_counter()
            made.cancel()
            async for _ in stream:
                pass
            samples["cancel"].append(milliseconds_since(begin))


async def calls(name: str, *, approve: bool) -> None:
    async with executor(approve_tool_calls=approve) as made:
        await made.execute("1")
        await asyncio.sleep(2)
        if approve:
            await timed("first tool import", made, "from mcptools.mini.add import run, Params")
            await timed("first call, server start included", made, "run(Params(a=1, b=2))")
        result = await made.execute(IN_CELL)
        samples[name] += json.loads(result.text)
        if approve:
            await made.execute(WARM)  # its server starts here, which is measured above
            for _ in range(3):
                await timed("100 calls in a cell, approvals", made, HUNDRED)
                await timed("50 calls from 16 threads, approvals", made, THREADS)
                await timed("50 calls by gather, approvals", made, GATHER)


async def sources() -> None:
    package = import_module(PACKAGE)
    target = root / "mcptools"
    await package.generate_mcp_sources("mini", params(1), target)
    await package.generate_mcp_sources("mini_async", params(1), target, async_api=True)
    for _ in range(2):
        begin = time.perf_counter()
        await package.generate_mcp_sources("small", params(1), target)
        samples["tool API of 1 tool (the start)"].append(milliseconds_since(begin))
        begin = time.perf_counter()
        names = await package.generate_mcp_sources("large", params(200), target)
        samples["tool API of 200 tools"].append(milliseconds_since(begin))
        assert len(names) == 200


async def main() -> None:
    """Do the work. A part that hangs is left, with what it has measured until then."""
    parts = {
        "starts": starts(),
        "sources": sources(),
        "calls": calls("call, no approval", approve=False),
        "approvals": calls("call, approval accepted at once", approve=True),
        "cells": cells(),
        "cancels": cancels(),
    }
    for name, part in parts.items():
        if PARTS and name not in PARTS.split(","):
            part.close()
            continue
        try:
            async with asyncio.timeout(PART_TIMEOUT):
                await part
        except Exception as error:
            print(f"{PACKAGE}: {name}: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    os.chdir(root)
    for place in ("CONFIG", "DATA", "RUNTIME"):
        os.environ[f"JUPYTER_{place}_DIR"] = str(root / place.lower())
    asyncio.run(main())
    print(json.dumps(samples), flush=True)
    os._exit(0)  # what hangs must not keep us
