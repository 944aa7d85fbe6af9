"""The server's end of the process for slow schema checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.processes.worker_process import OutOfTimeError, WorkerProcess, question

__all__ = ["OutOfTimeError", "SchemaProcess"]

_WORKER: Final = "jupyter_agentbox.mcp_client.schema_worker"


class SchemaProcess:
    """A process that compiles schemas and validates arguments, started on demand. For one thread at a time."""

    def __init__(self) -> None:
        self._worker = WorkerProcess(_WORKER, _import_path)

    @property
    def pid(self) -> int | None:
        """The process's id, if it is running."""
        return self._worker.pid

    def compile(self, key: int, schema: Mapping[str, JsonValue], *, seconds: float) -> dict[str, Any]:
        """Compile a schema; return the worker's answer.

        Raises
        ------
        OutOfTimeError
        RecursionError
            If it is nested too deeply to be sent.
        """
        head = {"do": "compile", "key": key, "seconds": seconds}
        return self._worker.ask(question(head, "schema", json.dumps(schema).encode()), seconds=seconds)

    def check(self, do: str, key: int, arguments: bytes, *, seconds: float) -> dict[str, Any]:
        """Validate arguments, given as JSON, against a schema, or explain why they are invalid.

        Raises
        ------
        OutOfTimeError
        """
        head = {"do": do, "key": key, "seconds": seconds}
        return self._worker.ask(question(head, "arguments", arguments), seconds=seconds)

    def close(self) -> None:
        """Stop the process permanently. May be called from any thread."""
        self._worker.close()


def _import_path() -> list[str]:
    """Return the import path of the two packages that the process needs, and nothing else."""
    path = [str(Path(__file__).parent.parent.parent)]
    spec = find_spec("jsonschema_rs")
    if spec is not None and spec.origin is not None:
        path.append(str(Path(spec.origin).parent.parent))
    return path
