from __future__ import annotations

import asyncio
import os
import sys

import psutil
import pytest

from jupyter_agentbox.processes.process import Command, OwnedProcess


class Output(list[bytes]):
    """What a process wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()

    def append(self, chunk: bytes) -> None:
        super().append(chunk)
        self.arrived.set()


def start(*argv: str, grace: float = 1.0, cwd: str | None = None) -> tuple[OwnedProcess, Output, asyncio.Event]:
    received = Output()
    closed = asyncio.Event()
    process = OwnedProcess(
        Command(argv=argv, env={"PATH": os.environ["PATH"], "ONLY": "this"}, cwd=cwd),
        grace=grace,
        on_output=received.append,
        on_error_output=received.append,
        on_closed=closed.set,
    )
    return process, received, closed


async def test_the_command_gets_its_environment_and_directory_and_what_is_written() -> None:
    process, received, closed = start("sh", "-c", 'echo "$ONLY $JUPYTER_TOKEN$HOME"; pwd; cat; exit 7', cwd="/")
    await process.start()
    await process.write(b"hello\n")
    await process.stop(patience=60)
    await closed.wait()
    assert b"".join(received) == b"this \n/\nhello\n"
    assert process.returncode == 7


async def test_a_command_that_ends_at_once_is_heard_of() -> None:
    process, _, closed = start("true")
    await process.start()
    async with asyncio.timeout(60):
        await closed.wait()
    await process.stop(patience=60)


@pytest.mark.parametrize(
    ("argv", "cwd", "words", "status"),
    [
        (("no-such-command",), None, b"cannot start `no-such-command`", 127),
        (("/etc/passwd",), None, b"cannot start `/etc/passwd`", 126),
        (("true",), "/no/such/directory", b"cannot start `/no/such/directory`", 127),
    ],
)
async def test_what_cannot_be_run_says_so(argv: tuple[str, ...], cwd: str | None, words: bytes, status: int) -> None:
    process, received, _ = start(*argv, cwd=cwd)
    await process.start()
    assert await process.wait(60)
    await process.stop(patience=0)
    assert words in b"".join(received)
    assert process.returncode == status


async def test_a_tree_that_ignores_its_end_is_killed_after_the_grace() -> None:
    process, received, _ = start("sh", "-c", "trap '' TERM; setsid sleep 600 & echo $! $$; sleep 600", grace=0.2)
    await process.start()
    async with asyncio.timeout(60):
        await received.arrived.wait()
    await process.stop(patience=0)
    assert process.returncode == 128 + 9
    assert not any(psutil.pid_exists(int(pid)) for pid in b"".join(received).split())


async def test_what_a_command_leaves_behind_ends_with_it() -> None:
    process, received, _ = start("sh", "-c", "setsid sleep 600 > /dev/null 2>&1 & echo $!")
    await process.start()
    assert await process.wait(60)
    assert not psutil.pid_exists(int(b"".join(received)))
    await process.stop(patience=0)


async def test_writing_to_a_process_that_has_ended_fails() -> None:
    process, _, closed = start("true")
    await process.start()
    await closed.wait()
    with pytest.raises(BrokenPipeError):
        await process.write(b"x")
    await process.stop(patience=0)


async def test_writing_waits_for_a_process_that_does_not_read_and_fails_when_it_ends() -> None:
    process, _, _ = start(sys.executable, "-c", "import time; time.sleep(600)", grace=0.2)
    await process.start()
    writing = asyncio.create_task(process.write(b"x" * 10_000_000))
    done, _ = await asyncio.wait([writing], timeout=0.2)
    assert not done
    await process.stop(patience=0)
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(writing, 60)
