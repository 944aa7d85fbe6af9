"""Checks arguments against schemas in a process of its own, which can be ended whatever it does.

It reads requests and writes answers, a line of JSON each. It ends itself when it computes longer for a request
than it may, and when its standard input closes.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sys
from collections import OrderedDict
from typing import Any, Final

from jupyter_agentbox.mcp_client.schemas import CompiledSchema, UncheckableError

#: How many schemas are kept compiled.
KEPT: Final = 512
#: Bytes of memory that all of it may take.
_MEMORY: Final = 2 * 1024**3


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
            return {"refusal": "is nested too deeply to be checked"}
        return {"path": problem.path, "message": problem.message}


def main() -> None:
    """Answer until the end of standard input."""
    for limit, value in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):  # not on every platform
            resource.setrlimit(limit, (value, value))
    worker = Worker()
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
        except RecursionError:
            answer = {"refusal": "is nested too deeply to be checked"}
        else:
            # Nobody catches the signal: it ends the process in the middle of whatever it does. What counts is the time
            # that this process computes, so that a busy machine does not refuse what is quickly checked.
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])
            answer = worker.answer(request)
            signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
