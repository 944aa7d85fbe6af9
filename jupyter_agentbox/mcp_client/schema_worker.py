"""Validates arguments against schemas in a separate process that can be killed at any time.

It reads requests and writes answers, each a line of JSON. It exits when a request exceeds its computing time, and when
standard input is closed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from jupyter_agentbox.mcp_client.schemas import CompiledSchema, UncheckableError
from jupyter_agentbox.processes.worker_loop import answer_requests

#: How many compiled schemas are cached.
KEPT: Final = 512
#: Memory limit of the process, in bytes.
_MEMORY: Final = 2 * 1024**3
_TOO_DEEP: Final = {"refusal": "is nested too deeply to be checked"}


class Worker:
    """Handles requests."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[int, CompiledSchema] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compile a schema, validate arguments, or explain why they are invalid.

        A request is to ``compile`` a ``schema`` and cache it under a key, or to ``check`` or ``explain`` ``arguments``
        with a cached schema. An answer may be a ``refusal``: the schema is unusable. An empty one requests the schema.
        """
        key = request["key"]
        try:
            if request["do"] == "compile":
                self._schemas[key] = CompiledSchema(request["schema"], is_small=False)
                if len(self._schemas) > KEPT:
                    self._schemas.popitem(last=False)
                return {"compiled": True}
            schema = self._schemas.get(key)
            if schema is None:
                return {}
            if request["do"] == "check":
                return {"fits": schema.fits(request["arguments"])}
            problem = schema.explain(request["arguments"])
        except UncheckableError as error:
            return {"refusal": str(error)}
        except RecursionError:
            return _TOO_DEEP
        return {"path": problem.path, "message": problem.message}


def main() -> None:
    """Handle requests until the end of standard input."""
    answer_requests(Worker().answer, memory=_MEMORY, too_deep=_TOO_DEEP)


if __name__ == "__main__":
    main()
