"""Lets each Python process of the tests start and end faster.

`make pytest` copies this into the virtual environment, where `quick_processes.pth` has each process import it.
Imports create hundreds of thousands of objects that stay. Python would look through them for garbage again and again,
and once more when the process ends, which takes a fifth of the processor time of a server that does little else.
"""

import atexit
import gc

#: Objects before garbage is looked for the first time. A Jupyter server with the extension has as many when it listens.
_LATE = 300_000


def _collect_as_ever(phase: str, info: object) -> None:
    if phase == "stop" and gc.get_threshold()[0] == _LATE:
        gc.set_threshold(*_usual)


_usual = gc.get_threshold()
if gc.isenabled():
    gc.callbacks.append(_collect_as_ever)
    gc.set_threshold(_LATE, *_usual[1:])
atexit.register(gc.freeze)
