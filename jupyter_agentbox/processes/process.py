"""Subprocesses, each under a reaper that ends its whole process tree when this process ends, however it ends."""

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
#: Variables that the reaper's interpreter may need to start; the command's environment is sent through the socket.
_INTERPRETER_NEEDS: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
#: Requested size of the pipe for results, in bytes: with a larger one, the event loop takes fewer turns.
_PIPE_SIZE: Final = 1024 * 1024
_F_SETPIPE_SZ: Final = 1031


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to run.

    Parameters
    ----------
    argv : tuple of str
        The program and its arguments.
    env : mapping
        The complete environment.
    cwd : str or None
        The working directory.
    pass_fds : tuple of int
        File descriptors that it inherits, with the same numbers, besides its standard streams.
    memory : int or None
        Maximum size of data of each of its processes, in bytes; ``None`` for no limit.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None
    pass_fds: tuple[int, ...] = ()
    memory: int | None = None


class OwnedProcess:
    """A running command and its pipes.

    It is not one of asyncio's subprocesses: these kill their process when they are garbage-collected, but the reaper
    must outlive this process.

    Parameters
    ----------
    command : Command
        What to run.
    grace : float
        Seconds between SIGTERM and SIGKILL.
    on_output, on_error_output : callable
        Receive each chunk of standard output and standard error.
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
        """Start the command. If it cannot be run, its standard error says so, and it ends early.

        Raises
        ------
        OSError
            If the reaper cannot be started.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                # blocks for one or two milliseconds, as asyncio's subprocesses do
                self._popen = popen = subprocess.Popen(  # noqa: ASYNC220
                    (sys.executable, "-I", "-S", str(_REAPER), str(theirs.fileno())),
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(theirs.fileno(), *self._command.pass_fds),
                    start_new_session=True,  # a Ctrl-C in the terminal is only for Jupyter
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
        """Write to standard input; return when the process can take more.

        Raises
        ------
        BrokenPipeError
            If the process closed it or ended.
        """
        if self._output.is_closed:
            raise BrokenPipeError
        await self._input.write(data)

    def pause_reading(self, paused: bool) -> None:
        """Pause or resume reading of standard output."""
        self._output.pause(paused)

    async def wait(self, seconds: float | None) -> bool:
        """Wait until the command and its process tree have ended; return whether they have. ``None`` waits for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._lifeline.ended.wait()
        return self._lifeline.ended.is_set()

    async def stop(self, *, patience: float) -> None:
        """Stop the process: close its input, wait for `patience` seconds, then have the reaper end the tree."""
        if self._popen is None:
            return
        try:
            self._input.close()
            if not await self.wait(patience):
                self._lifeline.cut()
                await self.wait(self._grace + 2)
        finally:
            # even if cancelled: once the socket is closed, the reaper does the rest
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
        # `abort` would lose unwritten data; `close` waits for it, and the reaper limits that wait
        if self._transport is not None:
            self._transport.close()


class _Lifeline(asyncio.Protocol):
    """The near end of the reaper's socket. It closes when the reaper ends; the reaper acts when this closes."""

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
            # only the sending half: the other one shows when the reaper has ended
            self._transport.write_eof()

    async def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, 1)  # briefly: its socket is already closed
        finally:
            self.ended.set()


def _enlarge(pipe: int) -> None:
    if sys.platform.startswith("linux"):
        import fcntl  # noqa: PLC0415  # not on every platform

        with contextlib.suppress(OSError):  # above the user's limit
            fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_SIZE)
