"""The server's side of updating a cell's code: asks a process that it starts, and decides what silence means."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

from jupyter_agentbox.processes.worker_process import OutOfTimeError, WorkerProcess

from .analyzer import import_path
from .edited_call import EditedCall, NotUpdatableError

_WORKER: Final = "jupyter_agentbox.analysis.cell_update_worker"
#: Seconds that it may compute.
_SECONDS: Final = 5.0
#: Seconds by the clock that it may take besides, to start and to be given the processor.
_MARGIN: Final = 15.0


def update_cell(source: str, call: EditedCall) -> str:
    """Return a cell's code with the edited arguments of a call. It blocks.

    Parameters
    ----------
    source : str
        The code of the cell.
    call : EditedCall
        The call.

    Raises
    ------
    NotUpdatableError
        If it cannot be done, or if there is any doubt.
    """
    worker = WorkerProcess(_WORKER, import_path, margin=_MARGIN)
    try:
        line = json.dumps({"source": source, "call": asdict(call), "seconds": _SECONDS}).encode()
        found = worker.ask(line + b"\n", seconds=_SECONDS)
        result, reason = found["source"], found["reason"]
    except (OutOfTimeError, OSError, LookupError, ValueError):
        raise NotUpdatableError("The cell's code could not be read. Change it there.") from None
    finally:
        worker.close()
    if not isinstance(result, str):
        raise NotUpdatableError(str(reason))
    return result
