"""What a sandbox adds to a kernel's start: plain and sandboxed kernels, one after the other, side by side.

Run as ``python bench/sandbox_start.py [ROUNDS]``. Prints the median of each, in milliseconds, from the call of
`start_kernel` to the answer of the kernel, the median of what each took more than the plain one of the same round, and
the same for the processor's time, which depends less on what else the machine does.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.server.probes import reach
from jupyter_agentbox.sandbox.watch.watchdog import tree


def processor_time() -> float:
    """Return the milliseconds that this process and all below it have run."""
    spent = 0
    for process in tree(os.getpid()):
        for thread in Path(f"/proc/{process.id}/task").glob("*/schedstat"):
            with suppress(OSError):
                spent += int(thread.read_text("ascii").split()[0])
    return spent / 1e6


async def start(level: Isolation, work: str) -> tuple[float, float]:
    """Start a kernel, and end it; return how long it took to answer and what it ran, in milliseconds."""
    spec = kernelspec(sys.executable, display_name=level.value, config={"levels": [level.value]})
    if level is Isolation.NONE:
        del spec["metadata"]["kernel_provisioner"]
    manager = AsyncKernelManager(kernel_name=level.value)
    manager._kernel_spec = KernelSpec(**spec)
    began, ran = time.perf_counter(), processor_time()
    await manager.start_kernel(cwd=work)
    client = manager.client()
    client.start_channels(hb=False)
    # `wait_for_ready` looks once a second: ask once and wait for the answer, ZeroMQ keeps the question until then.
    client.kernel_info()
    await client.get_shell_msg(timeout=30)
    took, ran = time.perf_counter() - began, processor_time() - ran
    client.stop_channels()
    await manager.shutdown_kernel(now=True)
    return took * 1000, ran


async def main(rounds: int) -> None:
    """Measure in turns, so that what else the machine does falls on all alike."""
    levels = []
    for level in Isolation:
        try:
            if level is not Isolation.NONE:
                reach([level])
            levels.append(level)
        except SandboxRefusedError as refusal:
            sys.stdout.write(f"{level.value}: {refusal}\n")
    times: dict[Isolation, list[tuple[float, float]]] = {level: [] for level in levels}
    with tempfile.TemporaryDirectory() as work:
        for level in levels:
            await start(level, work)  # caches of files
        for number in range(rounds):
            first = number % len(levels)  # each comes after each other one
            for level in levels[first:] + levels[:first]:
                times[level].append(await start(level, work))
    for level, measured in times.items():
        pairs = list(zip(measured, times[Isolation.NONE], strict=True))
        took, ran = (statistics.median(one[kind] for one in measured) for kind in (0, 1))
        more, more_ran = (statistics.median(one[kind] - plain[kind] for one, plain in pairs) for kind in (0, 1))
        sys.stdout.write(
            f"{level.value:<22} {took:6.0f} ms, plain {more:+5.0f} ms"
            f"   processor {ran:6.0f} ms, plain {more_ran:+5.0f} ms   medians of {rounds}\n"
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
