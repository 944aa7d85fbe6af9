"""Updates the code of cells in a separate process, which can be killed whatever the code makes Python's parser do.

It reads requests and writes answers, one line of JSON each, as the analysis worker does.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

from jupyter_agentbox.analysis.cell_update import updated
from jupyter_agentbox.analysis.edited_call import EditedCall, NotUpdatableError
from jupyter_agentbox.processes.worker_loop import answer_requests

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
    warnings.simplefilter("ignore")  # Python warns about invalid escapes in what it parses
    answer_requests(answer, memory=_MEMORY)


if __name__ == "__main__":
    main()
