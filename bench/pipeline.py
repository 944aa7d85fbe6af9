"""Code from a mock generator, analyzed, approved and run: ``python pipeline.py jupyter_agentbox|osprey``.

Prints samples as JSON. Both packages get a request and give the results of code that does the same, which a program
approves at once. Both are warm: the service has been made, and a request has gone through it.

The peer runs code as it does where there are no containers, each piece in a process of its own. Its factory makes no
mock generator with a behavior, so it is replaced. Its service waits for an approval in the graph that it is part of;
outside one it raises an error, and is resumed from there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

PACKAGE = sys.argv[1]
REQUESTS = 3 if PACKAGE == "osprey" else 20
QUERY, OBJECTIVE = "What is the answer?", "Compute the answer."

#: Takes a request to its result.
Ask = Callable[[], Awaitable[dict[str, Any]]]

samples: dict[str, list[float]] = defaultdict(list)
root = Path(tempfile.mkdtemp(prefix="bench-"))

OSPREY_CONFIG = f"""
project_name: bench
project_root: {root}
approval:
  global_mode: selective
  capabilities:
    python_execution: {{enabled: true, mode: all_code}}
    memory: {{enabled: false}}
file_paths: {{agent_data_dir: _agent_data}}
execution:
  execution_method: local
  python_env_path: {sys.executable}
  code_generator: mock
  modes:
    read_only: {{kernel_name: python3, allows_writes: false, requires_approval: false}}
"""


@asynccontextmanager
async def jupyter_agentbox(*, fresh_kernel: bool = False) -> AsyncIterator[Ask]:
    from jupyter_agentbox import CodeRequest, CodeService, MockCodeGenerator

    generator = MockCodeGenerator(behavior="success")
    async with CodeService(generator=generator, approve=lambda _: True, fresh_kernel=fresh_kernel) as service:

        async def ask() -> dict[str, Any]:
            result = await service.run(CodeRequest(user_query=QUERY, task_objective=OBJECTIVE))
            return dict(result.results)

        yield ask


@asynccontextmanager
async def osprey() -> AsyncIterator[Ask]:
    (root / "config.yml").write_text(OSPREY_CONFIG)
    os.environ["CONFIG_FILE"] = str(root / "config.yml")
    from langgraph.types import Command
    from osprey.services.python_executor import PythonExecutionRequest, PythonExecutorService
    from osprey.services.python_executor.exceptions import CodeRuntimeError
    from osprey.services.python_executor.generation import MockCodeGenerator, node
    from osprey.utils.config import get_full_configuration

    logging.disable(logging.CRITICAL)  # on a terminal, its log takes a part of its time
    generator = MockCodeGenerator(behavior="success")
    node.create_code_generator = lambda: generator
    service = PythonExecutorService()
    threads = iter(range(1000))

    async def ask() -> dict[str, Any]:
        config = {"configurable": {**get_full_configuration(), "thread_id": f"thread-{next(threads)}"}}
        request = PythonExecutionRequest(user_query=QUERY, task_objective=OBJECTIVE, execution_folder_name="bench")
        try:
            await service.ainvoke(request, config)
        except CodeRuntimeError:
            state = await service.get_compiled_graph().aget_state(config)
            if state.next != ("python_approval_node",):
                raise
        done = await service.ainvoke(Command(resume={"approved": True}), config)
        return dict(done["execution_result"].results)

    yield ask


async def measure(name: str, ask: Ask) -> None:
    assert (await ask())["value"] == 42
    for _ in range(REQUESTS):
        begin = time.perf_counter()
        results = await ask()
        samples[name].append((time.perf_counter() - begin) * 1000)
        assert results["value"] == 42


async def main() -> None:
    """Do the work."""
    async with {"jupyter_agentbox": jupyter_agentbox, "osprey": osprey}[PACKAGE]() as ask:
        await measure("pipeline, mock generator", ask)
    if PACKAGE == "jupyter_agentbox":
        async with jupyter_agentbox(fresh_kernel=True) as ask:
            await measure("pipeline, a kernel for each request", ask)


if __name__ == "__main__":
    os.chdir(root)
    for place in ("CONFIG", "DATA", "RUNTIME"):
        os.environ[f"JUPYTER_{place}_DIR"] = str(root / place.lower())
    asyncio.run(main())
    print(json.dumps(samples), flush=True)
