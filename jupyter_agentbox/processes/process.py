"""A process of ours, under a reaper that ends its whole tree when we are gone, however we went."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from . import reaper

_REAPER: Final = Path(__file__).with_name("reaper.py")
#: What the reaper's own interpreter may need to start; the command's environment comes through the socket.
_INTERPRETER_NEEDS: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
#: Asked for as the size of the pipe that results come through, in bytes: fewer turns of the loop for a large one.
_PIPE_SIZE: Final = 1024 * 1024
_F_SETPIPE_SZ: Final = 1031


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run.

    Parameters
    ----------
    argv : tuple of str
        The program and its arguments.
    env : mapping
        The whole environment.
    cwd : str or None
        The working directory.
    pass_fds : tuple of int
        File descriptors of ours that it inherits, by these numbers, beside its standard streams.
    memory : int or None
        How many bytes of data it and each of its processes may have; ``None`` for no limit of ours.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None
    pass_fds: tuple[int, ...] = ()
    memory: int | None = None


class OwnedProcess:
    """A running command and its pipes.

    asyncio's own subprocesses are not used: they kill what they started when they are collected, and the reaper must
    outlive us to do its work.

    Parameters
    ----------
    command : Command
        What to run.
    grace : float
        Seconds between SIGTERM and SIGKILL.
    on_output, on_error_output : callable
        Get each chunk of standard output and standard error.
    on_closed : callable
        Called once, when standard output has ended.
    """

    def __init__(
        self,
        command: Command,
        *,
        grace: float,
        on_output: Callable[[bytes], None],
        on_error_output: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> None:
        self._command = command
        self._grace = grace
        self._output = _Output(on_output, on_closed)
        self._error_output = _Output(on_error_output, lambda: None)
        self._input = _Input()
        self._lifeline = _Lifeline()
        self._popen: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the command. That it cannot be run shows as a line on its standard error and an early end.

        Raises
        ------
        OSError
            If not even the reaper can be started.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                # blocks for a millisecond or two, as asyncio's own subprocesses do
                self._popen = popen = subprocess.Popen(  # noqa: ASYNC220
                    (sys.executable, "-I", "-S", str(_REAPER), str(theirs.fileno())),
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(theirs.fileno(), *self._command.pass_fds),
                    start_new_session=True,  # the terminal's Ctrl-C is for Jupyter alone
                    env={name: os.environ[name] for name in _INTERPRETER_NEEDS if name in os.environ},
                )
            except BaseException:
                ours.close()
                raise
        self._lifeline.process = popen
        if popen.stdout is not None:
            _enlarge(popen.stdout.fileno())
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self._lifeline, sock=ours)
        await loop.connect_write_pipe(lambda: self._input, popen.stdin)
        await loop.connect_read_pipe(lambda: self._output, popen.stdout)
        await loop.connect_read_pipe(lambda: self._error_output, popen.stderr)
        self._lifeline.send(self._command, self._grace)

    @property
    def returncode(self) -> int | None:
        """The command's exit status, 128 + n for signal n; ``None`` while it or a descendant runs."""
        return self._popen.returncode if self._popen else None

    async def write(self, data: bytes) -> None:
        """Write to standard input; returns when the server reads fast enough for more.

        Raises
        ------
        BrokenPipeError
            If the server closed it or ended.
        """
        if self._output.is_closed:
            raise BrokenPipeError
        await self._input.write(data)

    def pause_reading(self, paused: bool) -> None:
        """Stop reading standard output, or go on."""
        self._output.pause(paused)

    async def wait(self, seconds: float | None) -> bool:
        """Wait until the command and its tree have ended; say whether they have. ``None`` waits for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._lifeline.ended.wait()
        return self._lifeline.ended.is_set()

    async def stop(self, *, patience: float) -> None:
        """End the process: close its input, wait `patience` seconds, then have the reaper end the tree."""
        if self._popen is None:
            return
        try:
            self._input.close()
            if not await self.wait(patience):
                self._lifeline.cut()
                await self.wait(self._grace + 2)
        finally:
            # also when we are cancelled: cutting is enough, the reaper does the rest without us
            self._lifeline.cut()
            self._output.close()
            self._error_output.close()


class _Output(asyncio.Protocol):
    """The reading end of a pipe."""

    def __init__(self, on_data: Callable[[bytes], None], on_closed: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_closed = on_closed
        self._transport: asyncio.ReadTransport | None = None
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.is_closed = True
        self._on_closed()

    def pause(self, paused: bool) -> None:
        if self._transport is None or self.is_closed:
            return
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class _Input(asyncio.BaseProtocol):
    """The writing end of a pipe."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._may_write.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise BrokenPipeError
        self._transport.write(data)
        if not self._may_write.is_set():
            await self._may_write.wait()
            if self._transport is None:
                raise BrokenPipeError

    def close(self) -> None:
        # abort would lose what is not yet written; close waits for it, and the reaper bounds the wait
        if self._transport is not None:
            self._transport.close()


class _Lifeline(asyncio.Protocol):
    """Our end of the reaper's socket: it closes when the reaper has ended, and the reaper acts when we close it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, command: Command, grace: float) -> None:
        if self._transport is not None:
            message = reaper.message(
                list(command.argv),
                dict(command.env),
                command.cwd,
                list(command.pass_fds),
                float(grace),
                command.memory,
            )
            self._transport.write(message)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self.process is None or self.process.poll() is not None:
            self.ended.set()
        else:
            self._ending = asyncio.ensure_future(self._end(self.process))

    def cut(self) -> None:
        if self._transport is not None and not self.ended.is_set() and self._transport.can_write_eof():
            # only the sending half: the other one tells when the reaper has ended
            self._transport.write_eof()

    async def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, 1)  # a moment: its socket is closed already
        finally:
            self.ended.set()


def _enlarge(pipe: int) -> None:
    if sys.platform.startswith("linux"):
        import fcntl  # noqa: PLC0415  # not on every platform

        with contextlib.suppress(OSError):  # over the user's limit
            fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_SIZE)
