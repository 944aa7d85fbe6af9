"""The server's end of the process that checks what may take long."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonValue

#: Seconds by the clock, more than the process may compute, after which it is ended from here: it has to start and to
#: read as well, perhaps on a busy machine.
_MARGIN: Final = 20.0
_CHUNK: Final = 1024 * 1024
#: What the process runs; it inherits no environment, and no path but this one.
_RUN: Final = (
    "import sys; sys.path[:] += {path!r}; from jupyter_agentbox.mcp_client.schema_worker import main; sys.exit(main())"
)


class OutOfTimeError(Exception):
    """It took too long, or more memory than there is for it, and was ended."""


class SchemaProcess:
    """A process that compiles schemas and checks arguments, started when it is needed. For one thread at a time."""

    def __init__(self) -> None:
        self._popen: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[Any, Any] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        return self._popen.pid if self._popen else None

    def compile(self, key: int, schema: Mapping[str, JsonValue], *, seconds: float) -> dict[str, Any]:
        """Have a schema compiled; returns the worker's answer.

        Raises
        ------
        OutOfTimeError
        RecursionError
            If it nests too deeply to be sent.
        """
        head = {"do": "compile", "key": key, "seconds": seconds}
        return self._ask(head, b"schema", json.dumps(schema).encode(), seconds)

    def check(self, do: str, key: int, arguments: bytes, *, seconds: float) -> dict[str, Any]:
        """Have arguments, as JSON, checked against a schema, or have it explained why they do not fit.

        Raises
        ------
        OutOfTimeError
        """
        return self._ask({"do": do, "key": key, "seconds": seconds}, b"arguments", arguments, seconds)

    def close(self) -> None:
        """End the process; none is started again. From any thread."""
        self._is_closed = True
        self._stop()

    def _ask(self, head: dict[str, Any], name: bytes, content: bytes, seconds: float) -> dict[str, Any]:
        popen = self._popen if self._popen is not None and self._popen.poll() is None else self._start()
        line = b'%s, "%s": %s}\n' % (json.dumps(head).encode()[:-1], name, content)
        try:
            if popen.stdin is None:
                raise OutOfTimeError
            popen.stdin.write(line)
            popen.stdin.flush()
            answer = _read_line(popen, time.monotonic() + seconds + _MARGIN)
            result = json.loads(answer)
        except (OSError, ValueError):
            self._stop()
            raise OutOfTimeError from None
        except OutOfTimeError:
            self._stop()
            raise
        return result if isinstance(result, dict) else {}

    def _start(self) -> subprocess.Popen[bytes]:
        self._stop()  # the pipes of one that ended by itself
        if self._is_closed:
            raise OutOfTimeError
        popen = subprocess.Popen(
            (sys.executable, "-I", "-S", "-c", _RUN.format(path=_import_path())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # the terminal's Ctrl-C is for Jupyter alone
        )
        self._popen, self._end = popen, weakref.finalize(self, _kill, popen)
        return popen

    def _stop(self) -> None:
        if self._end is not None:
            self._end()
        self._popen = self._end = None


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


def _import_path() -> list[str]:
    """Return where the process finds the two packages that it needs, and nothing that was put there for others."""
    path = [str(Path(__file__).parent.parent.parent)]
    spec = find_spec("jsonschema_rs")
    if spec is not None and spec.origin is not None:
        path.append(str(Path(spec.origin).parent.parent))
    return path
