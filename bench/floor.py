"""What the way of a call costs at least: the same changes of process and thread, with nothing of ours done on it.

Run ``python -m bench.floor``. Prints microseconds. The kernel's end is a process of its own, whose main thread waits
for another that reads the socket; ours is an event loop that hands each message to a thread and gets it back. What
happens between the two is added step by step: nothing but an echo, a bare MCP call, one row in SQLite besides.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from jupyter_agentbox import CodeExecutor
from jupyter_agentbox.composition import Settings, build
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.storage.approvals import sqlite_url

from .alone import IN_CELL, SERVER, Silent, milliseconds_since

ROUNDS: Final = 40
CALLS: Final = 20
#: As many bytes as a small call has on the socket.
MESSAGE: Final = b"x" * 200
PACKET: Final = 65_536
#: Sends so many messages as it is told, each when the one before was answered; then says how long each took.
KERNEL: Final = """
import json, queue, socket, sys, threading, time
link, inbox = socket.socket(fileno=int(sys.argv[1])), queue.SimpleQueue()
def read():
    while packet := link.recv(65_536):
        inbox.put(packet)
    inbox.put(b"")
threading.Thread(target=read, daemon=True).start()
while order := inbox.get():
    samples = []
    for _ in range(int(order)):
        begin = time.perf_counter()
        link.send(b"x" * 200)
        inbox.get()
        samples.append((time.perf_counter() - begin) * 1000)
    link.send(json.dumps(samples).encode())
"""
#: In a server's place.
ECHO: Final = "import os\nwhile data := os.read(0, 65_536): os.write(1, data)"

#: What is done for a message in the event loop, after the thread has had it.
Answer = Callable[[], Awaitable[None]]


class Thread:
    """A thread that gets work from the event loop, and wakes it when that is done."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], None], asyncio.Future[None]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, daemon=True).start()

    async def run(self, work: Callable[[], None]) -> None:
        """Do it there."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((work, done))
        await done

    def end(self) -> None:
        """Let the thread end."""
        self._queue.put(None)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            work()
            self._loop.call_soon_threadsafe(done.set_result, None)


class Kernel:
    """A process in a kernel's place."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-c", KERNEL, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        self._socket.setblocking(False)

    async def burst(self, answer: Answer) -> list[float]:
        """Have it send messages, answer each in a task of its own, and return the milliseconds that each took."""
        found: asyncio.Future[list[float]] = self._loop.create_future()
        tasks: set[asyncio.Task[None]] = set()

        async def reply() -> None:
            await answer()
            self._socket.send(MESSAGE)

        def read() -> None:
            packet = self._socket.recv(PACKET)
            if packet == MESSAGE:
                task = asyncio.create_task(reply())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            else:
                found.set_result(json.loads(packet))

        self._loop.add_reader(self._socket, read)
        self._socket.send(str(CALLS).encode())
        try:
            return await found
        finally:
            self._loop.remove_reader(self._socket)

    def end(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.wait()


class Echo:
    """A process in a server's place, which gives back what it gets."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = subprocess.Popen([sys.executable, "-c", ECHO], bufsize=0, stdin=-1, stdout=-1)
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("both are pipes")
        self._input, self._output = self._process.stdin, self._process.stdout

    async def ask(self) -> None:
        """Send a message and wait until it comes back."""
        came: asyncio.Future[None] = self._loop.create_future()

        def read() -> None:
            os.read(self._output.fileno(), PACKET)
            came.set_result(None)

        self._loop.add_reader(self._output, read)
        self._input.write(MESSAGE)
        try:
            await came
        finally:
            self._loop.remove_reader(self._output)

    def end(self) -> None:
        """End the process."""
        self._input.close()
        self._process.wait()
        self._output.close()


class Rows:
    """A table with one index, kept as the store keeps its own: in a write-ahead log that each commit does not sync."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=wal")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, content BLOB)")
        self._number = 0

    def add(self) -> None:
        """Keep a row, in a transaction of its own."""
        self._number += 1
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO rows VALUES (?, ?)", (f"row {self._number}", MESSAGE))
        self._connection.execute("COMMIT")

    def end(self) -> None:
        """Close the database."""
        self._connection.close()


def nothing() -> None:
    """Do nothing."""


async def measure(config: Path, root: Path) -> dict[str, list[float]]:
    """Measure each step in turn, many times, so that what others do meanwhile meets all of them."""
    samples: dict[str, list[float]] = defaultdict(list)
    box = build(
        Settings(mcp_config_path=(config,), database_url=sqlite_url(str(root / "f.sqlite"))), announcer=Silent()
    )
    await box.start()
    kernel, echo, thread, rows = Kernel(), Echo(), Thread(), Rows(root / "rows.sqlite")
    call = ToolCall(server="mini", tool="add", arguments={"a": 1, "b": 2})

    async def bare() -> None:
        await box.tools.call_tool(call)

    async def there_and_back() -> None:
        await thread.run(nothing)
        await echo.ask()

    async def with_call() -> None:
        await thread.run(nothing)
        await bare()

    async def with_row() -> None:
        await thread.run(rows.add)
        await bare()

    ladder = {"the changes alone": there_and_back, "with the bare MCP call": with_call, "and one row": with_row}
    async with CodeExecutor(mcp_config_path=config, approve_tool_calls=False) as executor:
        await executor.execute(IN_CELL)
        await bare()
        for _ in range(ROUNDS):
            for _ in range(CALLS):
                begin = time.perf_counter()
                await bare()
                samples["bare MCP call"].append(milliseconds_since(begin))
            for name, answer in ladder.items():
                samples[name] += await kernel.burst(answer)
            result = await executor.execute(IN_CELL)
            samples["a call from a cell"] += json.loads(result.text or "")
    for part in (kernel, echo, thread, rows):
        part.end()
    await box.aclose()
    return samples


def main() -> None:
    """Measure and print."""
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    os.chdir(root)
    for place in ("CONFIG", "DATA", "RUNTIME"):
        os.environ[f"JUPYTER_{place}_DIR"] = str(root / place.lower())
    config = root / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"mini": {"command": sys.executable, "args": [str(SERVER), "1"]}}}))
    samples = asyncio.run(measure(config, root))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"| {'µs':24} | median | 10th percentile | best | times the bare call (each) |\n|---|---|---|---|---|")
    bare = figures(samples["bare MCP call"])
    for name, values in samples.items():
        own = figures(values)
        times = ", ".join(f"{one / other:.1f}" for one, other in zip(own, bare, strict=True))
        print(f"| {name:24} | {' | '.join(f'{value:.0f}' for value in own)} | {times} |")
    print(f"\nChanges of thread that this process asked for: {used.ru_nvcsw}; that it did not: {used.ru_nivcsw}.")


def figures(values: list[float]) -> list[float]:
    """Return the median, the tenth percentile and the least, in microseconds."""
    return [value * 1000 for value in (statistics.median(values), sorted(values)[len(values) // 10], min(values))]


if __name__ == "__main__":
    main()
