"""A subprocess that answers lines of JSON, and can be ended at any time, whatever it is doing."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

_CHUNK: Final = 1024 * 1024


class OutOfTimeError(Exception):
    """The worker took too long or too much memory, and was ended."""


class WorkerProcess:
    """A process that answers each line with a line, started when needed. For use in one thread at a time.

    It inherits no environment, its working directory is ``/``, and it can import only the standard library and the
    modules in `path`.

    Parameters
    ----------
    module : str
        The module whose ``main`` it runs.
    path : callable
        Returns the directories with that module and its imports.
    margin : float
        Additional time on the clock, in seconds, after which it is ended from here: it must also start and read,
        perhaps on a busy machine.
    """

    def __init__(self, module: str, path: Callable[[], list[str]], *, margin: float = 20.0) -> None:
        self._module = module
        self._path = path
        self._margin = margin
        self._popen: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[Any, Any] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Process id, if it is running."""
        return self._popen.pid if self._popen else None

    def ask(self, line: bytes, *, seconds: float) -> dict[str, Any]:
        """Send a line and return the answer.

        Parameters
        ----------
        line : bytes
            JSON with a line feed at its end.
        seconds : float
            Maximum CPU time.

        Raises
        ------
        OutOfTimeError
            It ended, or was ended; the next request starts another one.
        OSError
            It cannot be started.
        """
        popen = self.start()
        try:
            if popen.stdin is None:
                raise OutOfTimeError
            popen.stdin.write(line)
            popen.stdin.flush()
            result = json.loads(_read_line(popen, time.monotonic() + seconds + self._margin))
        except (OSError, ValueError):
            self._stop()
            raise OutOfTimeError from None
        except OutOfTimeError:
            self._stop()
            raise
        return result if isinstance(result, dict) else {}

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process if it is not running.

        Raises
        ------
        OutOfTimeError
            If it was closed.
        OSError
            If it cannot be started.
        """
        if self._popen is not None and self._popen.poll() is None:
            return self._popen
        self._stop()  # the pipes of one that ended on its own
        if self._is_closed:
            raise OutOfTimeError
        code = f"import sys; sys.path[:] += {self._path()!r}; from {self._module} import main; sys.exit(main())"
        popen = subprocess.Popen(
            (sys.executable, "-I", "-S", "-c", code),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # a Ctrl-C in the terminal is only for Jupyter
        )
        self._popen, self._end = popen, weakref.finalize(self, _kill, popen)
        return popen

    def close(self) -> None:
        """End the process for good. May be called from any thread."""
        self._is_closed = True
        self._stop()

    def _stop(self) -> None:
        if self._end is not None:
            self._end()
        self._popen = self._end = None


def question(head: Mapping[str, Any], name: str, content: bytes) -> bytes:
    """Return a line for `ask`: an object with one more member, whose value is already JSON."""
    return b'%s, "%s": %s}\n' % (json.dumps(head).encode()[:-1], name.encode(), content)


def _read_line(popen: subprocess.Popen[bytes], deadline: float) -> bytes:
    if popen.stdout is None:
        raise OutOfTimeError
    parts: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        selector.register(popen.stdout, selectors.EVENT_READ)
        while not (parts and parts[-1].endswith(b"\n")):
            ready = selector.select(max(0, deadline - time.monotonic()))
            part = os.read(popen.stdout.fileno(), _CHUNK) if ready else b""
            if not part:
                raise OutOfTimeError
            parts.append(part)
    return b"".join(parts)


def _kill(popen: subprocess.Popen[bytes]) -> None:
    popen.kill()
    with contextlib.suppress(OSError):
        popen.wait(1)
    for pipe in (popen.stdin, popen.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
