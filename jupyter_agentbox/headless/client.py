"""`KernelClient`: run code in a kernel of a gateway or of any Jupyter server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from jupyter_agentbox.trusted_imports import in_kernel

from .discovery import known_token
from .execution_queue import ExecutionQueue
from .remote_kernel import RemoteKernel
from .results import ExecutionError, ExecutionResult
from .server_api import RefusedError, ServerAddress

#: Code to run in a new kernel.
_WORK_IN: Final = "from jupyter_agentbox.kernel_app.workspace import work_in\nwork_in(get_ipython(), {directory!r})"


class KernelClient:
    """Run code in a kernel of a Jupyter server.

    By default it starts a new kernel and shuts it down at the end. With `kernel_id` it attaches to a running kernel and
    leaves it running.

    ::

        async with KernelGateway(port=8888) as gateway:
            async with KernelClient(port=8888, token=gateway.token) as client:
                print((await client.execute("6 * 7")).text)

    Parameters
    ----------
    host, port
        Address of the server.
    token : str, optional
        The server's token. For this user's servers on this machine it is found automatically.
    working_dir : Path, optional
        Directory on the server's machine in which each cell of a new kernel starts; by default the server chooses the
        kernel's first directory, and code may change it. The kernel's environment needs this package.
    images_dir : Path, optional
        Directory for PNG images, ``images`` by default; created for the first image.
    ping_interval : float
        Interval between WebSocket pings, in seconds.
    kernel_id : str, optional
        Id of a running kernel to attach to.
    kernel_name : str, optional
        The kernelspec to start; the server's default if omitted.
    url : str, optional
        The server's base URL, instead of `host` and `port`, such as ``https://hub.example.org/user/ada/``.
    kernel_init_timeout : float
        How long starting and connecting may take, in seconds.

    Attributes
    ----------
    host, port, working_dir, images_dir, ping_interval, kernel_init_timeout
        The constructor's arguments, with `images_dir` absolute.

    Raises
    ------
    ValueError
        If `working_dir` is given with `kernel_id`: other clients use that kernel.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 8888,
        *,
        token: str | None = None,
        working_dir: Path | str | None = None,
        images_dir: Path | str | None = None,
        ping_interval: float = 20.0,
        kernel_id: str | None = None,
        kernel_name: str | None = None,
        url: str | None = None,
        kernel_init_timeout: float = 60.0,
    ) -> None:
        self._url = url if url is not None else f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        if working_dir is not None and kernel_id is not None:
            raise ValueError("`working_dir` can be set only for a kernel that the client starts itself")
        self._token = token
        self.host = host
        self.port = port
        self.working_dir = Path(working_dir).absolute() if working_dir is not None else None
        # resolved before our code can put a link there
        self.images_dir = Path(images_dir if images_dir is not None else "images").resolve()
        self.ping_interval = ping_interval
        self.kernel_init_timeout = kernel_init_timeout
        self._attached_id = kernel_id
        self._kernel_name = kernel_name
        self._kernel: RemoteKernel | None = None
        self._turns: ExecutionQueue | None = None

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
            If not connected.
        """
        if self._kernel is None:
            raise RuntimeError(
                "there is no connection to a kernel: use the client with `async with`, or call `connect`"
            )
        return self._kernel.id

    async def connect(
        self, retries: int = 1, retry_interval: float = 1.0, kernel_init_timeout: float | None = None
    ) -> None:
        """Start a kernel, or attach to the one given.

        Parameters
        ----------
        retries : int
            How often to try if no server answers; more than once for a server that is just starting.
        retry_interval : float
            Interval between two tries, in seconds.
        kernel_init_timeout : float, optional
            Overrides the client's own.

        Raises
        ------
        ExecutionError
            If the server cannot be reached, refuses, or has no such kernel, or if the kernel cannot work in
            `working_dir`.
        TimeoutError
            If it takes longer than that.
        RuntimeError
            If already connected.
        """
        if self._kernel is not None:
            raise RuntimeError("the client is already connected")
        seconds = self.kernel_init_timeout if kernel_init_timeout is None else kernel_init_timeout
        for left in reversed(range(max(1, retries))):
            try:
                await self._connect(seconds)
            except RefusedError:
                raise
            except ExecutionError:
                if not left:
                    raise
                await asyncio.sleep(retry_interval)
            else:
                break
        if self.working_dir is not None:
            await self._work_in(self.working_dir, seconds)

    async def disconnect(self) -> None:
        """Disconnect, and shut down the kernel if this client started it. Do nothing if not connected."""
        kernel, self._kernel = self._kernel, None
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.lose("the client was disconnected")
        if kernel is not None:
            await asyncio.shield(kernel.close())

    async def reset(self) -> None:
        """Replace a kernel of its own with a new one, or restart an attached one.

        Raises
        ------
        ExecutionError, TimeoutError
            If that fails.
        """
        if self._attached_id is not None and self._kernel is not None:
            await self._kernel.restart()
        await self.disconnect()
        await self.connect()

    async def _connect(self, seconds: float) -> None:
        token = known_token(self._url) if self._token is None else self._token
        kernel = RemoteKernel(
            ServerAddress(url=self._url, token=token, ping_interval=self.ping_interval),
            kernel_id=self._attached_id,
            kernel_name=self._kernel_name,
            start_timeout=seconds,
        )
        turns = ExecutionQueue(kernel, images_dir=self.images_dir)
        await kernel.start()
        self._kernel, self._turns = kernel, turns

    async def _work_in(self, directory: Path, seconds: float) -> None:
        try:
            await self.execute(in_kernel(_WORK_IN.format(directory=str(directory))), seconds)
        except BaseException as error:
            await self.disconnect()
            if isinstance(error, ExecutionError):
                raise ExecutionError(f"the kernel cannot work in `{directory}`: {error}") from None
            raise

    async def interrupt(self) -> None:
        """Interrupt the code that the kernel is running."""
        if self._kernel is not None:
            await self._kernel.interrupt()

    async def stream(self, code: str, timeout: float | None = None) -> AsyncIterator[str | ExecutionResult]:
        """Run code; yield its text as it arrives, and the result at the end.

        Parameters
        ----------
        code : str
            Python, as in a notebook cell.
        timeout : float, optional
            How long the code may run, in seconds.

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
            The code timed out and was interrupted; the kernel remains usable.
        RuntimeError
            Not connected, or this task is itself iterating over one of this kernel's cells.
        """
        if self._turns is None:
            raise RuntimeError(
                "there is no connection to a kernel: use the client with `async with`, or call `connect`"
            )
        turns = self._turns
        turn = await turns.begin(code)
        deadline = None if timeout is None else time.monotonic() + timeout
        is_over = False
        try:
            async for item in turns.items(turn, lambda: deadline):
                if isinstance(item, str):
                    yield item
        except TimeoutError:
            is_over = True
        finally:
            has_ended = await turns.end(turn)
        if is_over:
            then = turns.resists() or "it was interrupted, and the kernel is still usable"
            raise TimeoutError(f"the code ran for more than {timeout or 0:.2f}s; {then}")
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
