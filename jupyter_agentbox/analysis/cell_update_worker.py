"""Updates the code of cells in a process of its own, which can be ended whatever the code makes Python's parser do.

It reads requests and writes answers, a line of JSON each, as the worker of the analysis does.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sys
import warnings
from typing import Any, Final

from jupyter_agentbox.analysis.cell_update import updated
from jupyter_agentbox.analysis.edited_call import EditedCall, NotUpdatableError

#: Bytes of memory that all of it may take.
_MEMORY: Final = 1024**3


def answer(request: dict[str, Any]) -> dict[str, str | None]:
    """Return the new code, or why there is none."""
    try:
        return {"source": updated(request["source"], EditedCall(**request["call"])), "reason": None}
    except NotUpdatableError as error:
        return {"source": None, "reason": str(error)}


def main() -> None:
    """Answer until the end of standard input."""
    for limit, value in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):  # not on every platform
            resource.setrlimit(limit, (value, value))
    warnings.simplefilter("ignore")  # Python warns about invalid escapes in what it parses
    for line in sys.stdin.buffer:
        request = json.loads(line)
        # Nobody catches the signal: it ends the process in the middle of whatever it does.
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        found = answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(json.dumps(found).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
