"""What a sandbox adds to a kernel's start: plain and sandboxed kernels, one after the other, side by side.

Run as ``python bench/sandbox_start.py [ROUNDS]``. Prints the median of each, in milliseconds, from the call of
`start_kernel` to the answer of the kernel.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.probes import reach


async def start(level: Isolation, work: str) -> float:
    """Start a kernel, and end it; return how long it took to answer, in milliseconds."""
    spec = kernelspec(sys.executable, display_name=level.value, config={"levels": [level.value]})
    if level is Isolation.NONE:
        del spec["metadata"]["kernel_provisioner"]
    manager = AsyncKernelManager(kernel_name=level.value)
    manager._kernel_spec = KernelSpec(**spec)
    began = time.perf_counter()
    await manager.start_kernel(cwd=work)
    client = manager.client()
    client.start_channels(hb=False)
    # `wait_for_ready` looks once a second: ask once and wait for the answer, ZeroMQ keeps the question until then.
    client.kernel_info()
    await client.get_shell_msg(timeout=30)
    took = time.perf_counter() - began
    client.stop_channels()
    await manager.shutdown_kernel(now=True)
    return took * 1000


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
    times: dict[Isolation, list[float]] = {level: [] for level in levels}
    with tempfile.TemporaryDirectory() as work:
        for level in levels:
            await start(level, work)  # caches of files
        for _ in range(rounds):
            for level in levels:
                times[level].append(await start(level, work))
    plain = statistics.median(times[Isolation.NONE])
    for level, measured in times.items():
        median = statistics.median(measured)
        sys.stdout.write(f"{level.value:<22} median {median:6.0f} ms   plain {median - plain:+5.0f} ms   of {rounds}\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
