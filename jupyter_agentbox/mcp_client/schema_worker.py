"""Checks arguments against schemas in a process of its own, which can be ended whatever it does.

It reads requests and writes answers, a line of JSON each. It ends itself when it computes longer for a request
than it may, and when its standard input closes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from jupyter_agentbox.mcp_client.schemas import CompiledSchema, UncheckableError
from jupyter_agentbox.processes.worker_loop import answer_requests

#: How many schemas are kept compiled.
KEPT: Final = 512
#: Bytes of memory that all of it may take.
_MEMORY: Final = 2 * 1024**3
_TOO_DEEP: Final = {"refusal": "is nested too deeply to be checked"}


class Worker:
    """Answers requests."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[int, CompiledSchema] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compile a schema, say whether arguments fit one, or say why they do not.

        A request is to ``compile`` a ``schema`` and keep it by a key, or to ``check`` or ``explain`` ``arguments`` by
        the schema of a key. An answer may be a ``refusal``: the schema cannot be used. An empty one asks for it.
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
    """Answer until the end of standard input."""
    answer_requests(Worker().answer, memory=_MEMORY, too_deep=_TOO_DEEP)


if __name__ == "__main__":
    main()
