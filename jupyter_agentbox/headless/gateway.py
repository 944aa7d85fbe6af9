"""`KernelGateway`: a headless Jupyter server in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.core.terminal import TerminalFilter
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.processes.directories import PrivateDirectory
from jupyter_agentbox.processes.environment import process_environment
from jupyter_agentbox.processes.process import Command, OwnedProcess

from .results import ExecutionError
from .sandbox_config import SandboxConfig, read_sandbox_config
from .server_api import ServerAddress, ServerApi

#: Run by path, so that it also works from a source tree; never imported here.
_SERVER: Final = Path(__file__).with_name("gateway_server.py")
#: Jupyter's directories, if the user has moved them.
_PLACES: Final = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_PATH")
_START_TIMEOUT: Final = 60.0
#: The server's exit status if it cannot create sandboxes, and the prefix of its error message.
GATEWAY_REFUSED: Final = 77
REFUSAL: Final = "no sandbox: "
_POLL: Final = 0.05
#: Seconds between SIGTERM and SIGKILL, in which a server shuts down its kernels.
_GRACE: Final = 5.0


class KernelGateway:
    """A headless Jupyter server whose kernels outlive a client, or serve several clients.

    Tool calls of its kernels are approved as in JupyterLab: through the server's REST API, with its token.

    Parameters
    ----------
    host : str
        The address to bind to.
    port : int
        The port to listen on; 0 for any free port, which the attribute `port` then holds.
    log_level : str
        The server's log level.
    log_to_stderr : bool
        Whether to forward the server's log to standard error.
    env : mapping, optional
        Environment variables of the kernels. From this process they inherit only the basics, not its secrets.
    working_dir : Path, optional
        Working directory of the server and its kernels; the current one by default.
    sandbox : bool
        Whether kernels run in sandboxes, and only there. If no sandbox can be created, `start` raises.
    sandbox_config : mapping, Path or str, optional
        The sandboxes' settings, or the path of a JSON file with them; the keys are the trait names of sandboxed
        kernels. Implies `sandbox`.

    Attributes
    ----------
    token : str
        The token that clients must send; a new one for each gateway.
    host, port, log_level, log_to_stderr, env, working_dir, sandbox, sandbox_config
        The constructor's arguments, with `working_dir` absolute.

    Raises
    ------
    SandboxConfigError
        If `sandbox_config` is invalid. It is also a `ValueError`.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 8888,
        *,
        log_level: str = "WARNING",
        log_to_stderr: bool = False,
        env: Mapping[str, str] | None = None,
        working_dir: Path | str | None = None,
        sandbox: bool = False,
        sandbox_config: SandboxConfig | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.token = secrets.token_urlsafe(32)
        self.log_level = log_level
        self.log_to_stderr = log_to_stderr
        self.env = dict(env or {})
        self.working_dir = Path(working_dir if working_dir is not None else ".").resolve()
        self.sandbox_config = sandbox_config
        self._sandbox = None
        if sandbox or sandbox_config is not None:
            given = self.working_dir if working_dir is not None else None
            self._sandbox = read_sandbox_config(sandbox_config, work_dir=given)
        self.sandbox = self._sandbox is not None
        self._process: OwnedProcess | None = None
        self._directory: PrivateDirectory | None = None
        self._words: deque[str] = deque(maxlen=50)
        self._filter = TerminalFilter()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the server and wait until it answers.

        Raises
        ------
        RuntimeError
            If it is already running, or does not start; the message has its last output.
        SandboxRefusedError
            If sandboxes are required but cannot be created; the message says what to install.
        TimeoutError
            If it does not answer within a minute.
        """
        if self._process is not None:
            raise RuntimeError("the gateway is already running")
        with self._own_port():
            await self._start()

    async def _start(self) -> None:
        self._directory = await in_thread(PrivateDirectory, "gateway-")
        self._process = OwnedProcess(
            self._command(self._directory.path),
            grace=_GRACE,
            on_output=self._on_output,
            on_error_output=self._on_output,
            on_closed=lambda: None,
        )
        try:
            await self._process.start()
            async with asyncio.timeout(_START_TIMEOUT):
                await self._wait_until_it_answers(self._process)
        except BaseException:
            await asyncio.shield(self.stop())
            raise

    @contextmanager
    def _own_port(self) -> Iterator[None]:
        """Choose a free port if none was given. On Linux, also reserve it until the server has it.

        There, a bound socket that does not listen keeps away all programs but those that ask for this very port.
        """
        if self.port:
            yield
            return
        with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, sys.platform.startswith("linux"))
            holder.bind((self.host, 0))
            self.port = int(holder.getsockname()[1])
            if not sys.platform.startswith("linux"):
                holder.close()
            yield

    async def stop(self) -> None:
        """Stop the server and its kernels. Do nothing if not running."""
        process, self._process = self._process, None
        directory, self._directory = self._directory, None
        if process is not None:
            await process.stop(patience=0)
        if directory is not None:
            await in_thread(directory.remove)

    async def join(self) -> None:
        """Wait until the server has ended."""
        if self._process is not None:
            await self._process.wait(None)

    def _command(self, directory: Path) -> Command:
        settings = directory / "settings.json"
        settings.touch(mode=0o600)
        settings.write_text(
            json.dumps(
                {
                    "ip": self.host,
                    "port": self.port,
                    "token": self.token,
                    "log_level": {"WARNING": "WARN"}.get(self.log_level, self.log_level),
                    "root_dir": str(self.working_dir),
                    "sandbox": self._sandbox_json(),
                    "kernel_env": self.env if self._sandbox is not None else {},
                }
            )
        )
        places = {name: os.environ[name] for name in _PLACES if name in os.environ}
        return Command(
            argv=(sys.executable, "-P", str(_SERVER), str(settings)),
            # sandboxed kernels do not inherit it: their environment is in their kernelspec
            env=process_environment(os.environ, places if self._sandbox is not None else {**places, **self.env}),
            cwd=str(self.working_dir),
        )

    def _sandbox_json(self) -> dict[str, Any] | None:
        if self._sandbox is None:
            return None
        return {**self._sandbox.as_json(), "work_dir": self._sandbox.work_dir or str(self.working_dir)}

    async def _wait_until_it_answers(self, process: OwnedProcess) -> None:
        host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104
        api = ServerApi(ServerAddress(url=f"http://{host}:{self.port}/", token=self.token))
        try:
            while not await process.wait(_POLL):
                try:
                    await api.ask("GET", "api", "status")
                except ExecutionError:
                    continue
                return
        finally:
            api.close()
        words = "".join(self._words).strip()
        if process.returncode == GATEWAY_REFUSED:
            raise SandboxRefusedError(words.rpartition(REFUSAL)[2])
        raise RuntimeError(f"the gateway did not start.\n{words[-2000:]}")

    def _on_output(self, chunk: bytes) -> None:
        text = chunk.decode("utf-8", "replace")
        self._words.append(text)
        if self.log_to_stderr:
            sys.stderr.write(self._filter.feed(text))
