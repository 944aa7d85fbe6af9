"""`KernelClient`: runs code in a kernel of a gateway, or of any Jupyter server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Self

from .remote import RemoteKernel
from .results import ExecutionError, ExecutionResult
from .running import known_token
from .server_api import ServerAddress
from .turns import Turns


class KernelClient:
    """Runs code in a kernel of a Jupyter server.

    By default it starts a kernel of its own, which ends with it. With `kernel_id` it attaches to one that runs and
    leaves it running.

    ::

        async with KernelGateway(port=8888) as gateway:
            async with KernelClient(port=8888, token=gateway.token) as client:
                print((await client.execute("6 * 7")).text)

    Parameters
    ----------
    host, port
        Where the server is.
    token : str, optional
        The server's token. For a server of this user on this machine it is found without.
    images_dir : Path, optional
        Where PNG images are written, ``images`` by default; made when there is one.
    kernel_id : str, optional
        A kernel that runs.
    kernel_name : str, optional
        Which kind of kernel to start, by default the server's.
    url : str, optional
        The server's base URL instead of `host` and `port`, such as ``https://hub.example.org/user/ada/``.
    kernel_init_timeout : float
        Seconds that starting and connecting may take.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 8888,
        *,
        token: str | None = None,
        images_dir: Path | str | None = None,
        kernel_id: str | None = None,
        kernel_name: str | None = None,
        url: str | None = None,
        kernel_init_timeout: float = 60.0,
    ) -> None:
        self._url = url if url is not None else f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        self._token = token
        # resolved before code of ours could put a link there
        self._images_dir = Path(images_dir if images_dir is not None else "images").resolve()
        self._attached_id = kernel_id
        self._kernel_name = kernel_name
        self._timeout = kernel_init_timeout
        self._kernel: RemoteKernel | None = None
        self._turns: Turns | None = None

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disconnect()

    @property
    def kernel_id(self) -> str:
        """The kernel's id on its server.

        Raises
        ------
        RuntimeError
            If there is no connection.
        """
        if self._kernel is None:
            raise RuntimeError("there is no connection to a kernel: use the client as `async with`, or call `connect`")
        return self._kernel.id

    async def connect(self) -> None:
        """Start a kernel, or attach to the one that was named.

        Raises
        ------
        ExecutionError
            If the server cannot be reached, refuses, or has no such kernel.
        TimeoutError
            If it takes too long.
        RuntimeError
            If there is a connection already.
        """
        if self._kernel is not None:
            raise RuntimeError("the client is connected already")
        token = known_token(self._url) if self._token is None else self._token
        kernel = RemoteKernel(
            ServerAddress(url=self._url, token=token),
            kernel_id=self._attached_id,
            kernel_name=self._kernel_name,
            start_timeout=self._timeout,
        )
        turns = Turns(kernel, images_dir=self._images_dir)
        await kernel.start()
        self._kernel, self._turns = kernel, turns

    async def disconnect(self) -> None:
        """Hang up, and end the kernel if this client started it. Does nothing if there is no connection."""
        kernel, self._kernel = self._kernel, None
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.lose("the client was disconnected")
        if kernel is not None:
            await asyncio.shield(kernel.close())

    async def reset(self) -> None:
        """Start again with a fresh kernel: of its own a new one, of an attached one a restart.

        Raises
        ------
        ExecutionError, TimeoutError
            If that fails.
        """
        if self._attached_id is not None and self._kernel is not None:
            await self._kernel.restart()
        await self.disconnect()
        await self.connect()

    async def interrupt(self) -> None:
        """Interrupt what the kernel runs."""
        if self._kernel is not None:
            await self._kernel.interrupt()

    async def stream(self, code: str, timeout: float | None = None) -> AsyncIterator[str | ExecutionResult]:
        """Run code; yield its text as it comes, and the result at the end.

        Parameters
        ----------
        code : str
            As in a notebook cell.
        timeout : float, optional
            Seconds that it may run.

        Yields
        ------
        str
            Text, in pieces.
        ExecutionResult
            Once, at the end.

        Raises
        ------
        ExecutionError
            The code raised an error, resisted an interrupt, or its kernel ended.
        TimeoutError
            The time is over; the code was interrupted and the kernel can be used on.
        RuntimeError
            There is no connection, or this task holds up a cell of it.
        """
        if self._turns is None:
            raise RuntimeError("there is no connection to a kernel: use the client as `async with`, or call `connect`")
        turns = self._turns
        turn = await turns.begin(code)
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            async for item in turns.items(turn, lambda: deadline):
                if isinstance(item, str):
                    yield item
        except TimeoutError:
            raise TimeoutError(f"the code ran for more than {timeout:g} s; it was interrupted") from None
        finally:
            has_ended = await turns.end(turn)
        if not has_ended:
            raise ExecutionError(turns.resists() or "")
        yield await turns.finish(turn)

    async def execute(self, code: str, timeout: float | None = None) -> ExecutionResult:
        """Run code and return the result.

        Parameters
        ----------
        code, timeout
            As in `stream`.

        Raises
        ------
        ExecutionError, TimeoutError, RuntimeError
            As in `stream`.
        """
        async for item in self.stream(code, timeout):
            if isinstance(item, ExecutionResult):
                return item
        raise AssertionError("the result comes last")
