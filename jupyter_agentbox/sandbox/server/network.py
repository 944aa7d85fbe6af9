"""Starts and ends the proxy through which a sandbox reaches the domains that it is allowed to reach."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from jupyter_agentbox.core.network_hints import SANDBOX_DOMAINS
from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.sandbox.inside.port_forwarder import PORT

from . import spawner
from .settings import Domains

#: Our package comes last on the path, so that it hides none of Python's.
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[2]); from jupyter_agentbox.sandbox.egress.main import main; main(sys.argv[1])"
)
_PACKAGES: Final = Path(__file__).parents[3]
_URL: Final = f"http://127.0.0.1:{PORT}"
#: What Python and the C library need to start and to look up names. No secrets, and none of another proxy.
_KEPT: Final = ("PATH", "HOME", "LANG", "PYTHONPATH", "PYTHONUSERBASE", "LD_LIBRARY_PATH", "RES_OPTIONS", "LOCALDOMAIN")
#: What a sandbox has itself; not asked of the proxy unless a rule names it.
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Network:
    """The proxy of one sandbox.

    Parameters
    ----------
    domains : Domains
        The domains that can be reached.
    place : Path
        Where the proxy's socket is created.
    on_refused : callable
        Called with every domain that was refused.
    """

    def __init__(self, domains: Domains, *, place: Path, on_refused: Callable[[str], None]) -> None:
        self.place = place
        self._domains = domains
        self._on_refused = on_refused
        self._process: subprocess.Popen[bytes] | None = None
        # Listens from the start: clients that come before the proxy runs wait for it.
        self._listener: socket.socket | None = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(place))
        self._listener.listen(128)

    def start(self, sandbox: int) -> None:
        """Start the proxy.

        Parameters
        ----------
        sandbox : int
            A child of this process that nobody has waited for yet; the proxy ends when it does.
        """
        listener = self._listener
        if listener is None:
            return
        watched = os.pidfd_open(sandbox)
        try:
            settings = {
                "parent": os.getpid(),
                "listener": listener.fileno(),
                "sandbox": watched,
                "allowed": self._domains.allowed,
                "private": self._domains.private,
            }
            self._process = spawner.start(
                [sys.executable, "-P", "-B", "-c", _PROGRAM, json.dumps(settings), str(_PACKAGES)],
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                pass_fds=[listener.fileno(), watched],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        finally:
            os.close(watched)
            self._let_go()
        if self._process.stdout is not None:
            threading.Thread(
                target=_listen, args=(self._process.stdout, self._on_refused), name="agentbox-proxy", daemon=True
            ).start()

    def close(self) -> None:
        """End the proxy."""
        self._let_go()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            spawner.await_end(self._process)

    def _let_go(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None


def proxy_variables(domains: Domains) -> Mapping[str, str]:
    """Return the environment variables that lead programs inside to the proxy; none if there are no domains.

    Parameters
    ----------
    domains : Domains
        The domains that can be reached.
    """
    rules = domains.rules()
    if not rules:
        return {}
    direct = ",".join(name for name in _LOCAL if not any(rule.covers(name) for rule in rules.rules))
    values = {"HTTP_PROXY": _URL, "HTTPS_PROXY": _URL, "ALL_PROXY": _URL, "NO_PROXY": direct}
    return values | {name.lower(): value for name, value in values.items()}


def domains_variable(domains: Domains, settings: SandboxSettings) -> Mapping[str, str]:
    """Return the environment variable that tells the kernel what it may reach, for a hint below errors.

    Parameters
    ----------
    domains : Domains
        The domains that can be reached.
    settings : SandboxSettings
        The sandbox's settings. If they include some for Anthropic's sandbox runtime, those may allow other domains, and
        the kernel is told nothing.
    """
    return {} if settings.srt_settings else {SANDBOX_DOMAINS: ",".join((*domains.allowed, *domains.private))}


def _listen(lines: IO[bytes], on_refused: Callable[[str], None]) -> None:
    with lines:
        for line in lines:
            on_refused(line.decode("ascii", "replace").strip())
