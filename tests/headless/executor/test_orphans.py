"""What is left when an owner ends, watched from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes_alive import children, survivors

OWNER = """
import asyncio, signal
from jupyter_agentbox import CodeExecutor

CODE = '''
import subprocess
from jupyter_agentbox import tools
tools.mini.add(a=1, b=2)
child = subprocess.Popen(["sleep", "1000"])
'''

async def main():
    async with CodeExecutor() as one, CodeExecutor() as two:
        await asyncio.gather(one.execute(CODE), two.execute(CODE))
        print("ready", flush=True)
        await one.execute("while True: pass")

# as under a terminal, also where the tests were started in the background and ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_owner(places: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=places,
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        started = children(owner.pid)
        assert len(started) >= 10  # for each executor: two reapers, the kernel, its child, the MCP server
        owner.send_signal(number)
        assert not survivors(started)
    finally:
        owner.kill()
        owner.wait()
        assert owner.stdout is not None
        owner.stdout.close()
