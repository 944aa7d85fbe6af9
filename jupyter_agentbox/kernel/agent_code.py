"""Runs an agent's code within the cell that asked the agent, as a cell runs: top-level ``await``, magics, displays.

The shell runs it without history: `In`, `Out`, `_` and the number of executions stay the person's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import CodeType
from typing import Any

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.protocol.notebook import IN_AGENT_CODE

from .cells import Cells
from .code_output import CodeOutput, collected
from .interrupts import Interrupts
from .transport import flush_streams


class AgentCode:
    """Runs code of one turn.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    cells : Cells
        Knows the cell that runs.
    interrupts : Interrupts
        Breaks off code.
    """

    def __init__(self, shell: Any, cells: Cells, interrupts: Interrupts) -> None:
        self._shell = shell
        self._cells = cells
        self._interrupts = interrupts

    @classmethod
    def blocking(cls) -> tuple[CodeType, ...]:
        """Return what runs while code does."""
        return (cls._execute.__code__,)

    async def run(self, code: str) -> JsonObject:
        """Run code; its outputs appear under the cell. Return what the server is told.

        Raises
        ------
        KeyboardInterrupt
            It was interrupted, whatever it made of that.
        """
        cell = self._cells.current()
        flush_streams()
        with collected(self._shell.kernel.session, cell.key) as output, self._cells.within():
            with self._without_history(code), self._without_last_words(), _marked():
                result = await self._execute(code)
            flush_streams()
        if self._interrupts.count:
            raise KeyboardInterrupt
        return _told(result, output)

    async def _execute(self, code: str) -> Any:
        shell = self._shell
        problem = None
        try:
            transformed = shell.transform_cell(code)
        except Exception:  # noqa: BLE001  # whatever a transformer raises; the shell shows it
            transformed, problem = code, sys.exc_info()
        result = None
        try:
            result = await shell.run_cell_async(
                code, store_history=False, transformed_cell=transformed, preprocessing_exc_tuple=problem
            )
        finally:
            shell.events.trigger("post_execute")  # plots appear now
            shell.events.trigger("post_run_cell", result)
        return result

    @contextmanager
    def _without_history(self, code: str) -> Iterator[None]:
        """Keep the results of code out of `Out` and `_`, and take the code for the one whose last ``;`` counts."""
        hook = self._shell.displayhook
        cache_size, hook.cache_size = hook.cache_size, 0
        hook.quiet = lambda: _ends_quietly(hook, code)
        try:
            yield
        finally:
            del hook.quiet
            hook.cache_size = cache_size
            if hasattr(self._shell, "_last_traceback_during_displayhook"):
                # ipykernel 7.4 takes the cell for failed if a value of it could not be displayed.
                self._shell._last_traceback_during_displayhook = False

    @contextmanager
    def _without_last_words(self) -> Iterator[None]:
        """Show no traceback of code that is interrupted: the cell's own end says so in one line."""
        show = self._shell.showtraceback
        was_replaced = "showtraceback" in vars(self._shell)

        def show_unless_interrupted(*arguments: Any, **options: Any) -> None:
            if not self._interrupts.count:
                show(*arguments, **options)

        self._shell.showtraceback = show_unless_interrupted
        try:
            yield
        finally:
            if was_replaced:
                self._shell.showtraceback = show
            else:
                del self._shell.showtraceback


@contextmanager
def _marked() -> Iterator[None]:
    """Let code, and the processes that it starts, know that an agent runs it: there, `Agent` starts no other."""
    before = os.environ.get(IN_AGENT_CODE)
    os.environ[IN_AGENT_CODE] = "1"
    try:
        yield
    finally:
        os.environ.pop(IN_AGENT_CODE, None)
        if before is not None:
            os.environ[IN_AGENT_CODE] = before


def _ends_quietly(hook: Any, code: str) -> bool:
    with suppress(Exception):  # magics are no Python that can be split into tokens
        return bool(hook.semicolon_at_end_of_expression(code))
    return False


def _told(result: Any, output: CodeOutput) -> JsonObject:
    failure = result.error_before_exec or result.error_in_exec
    error = "" if failure is None else output.error or f"{type(failure).__name__}: {failure}"
    return {
        "status": "completed" if failure is None else "failed",
        "text": output.text,
        "error": error,
        "images": output.images,
    }
