"""Runs an agent's code within its cell, with the features of cells: top-level ``await``, magics, displays.

It runs without history: `In`, `Out`, `_` and the execution count remain the person's.
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
    """Runs the code of a turn.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    cells : Cells
        Tracks the running cell.
    interrupts : Interrupts
        Interrupts code.
    """

    def __init__(self, shell: Any, cells: Cells, interrupts: Interrupts) -> None:
        self._shell = shell
        self._cells = cells
        self._interrupts = interrupts

    @classmethod
    def blocking(cls) -> tuple[CodeType, ...]:
        """Return the code objects of the functions that run while code does."""
        return (cls._execute.__code__,)

    async def run(self, code: str) -> JsonObject:
        """Run code, with its outputs under the cell. Return the report for the server.

        Raises
        ------
        KeyboardInterrupt
            It was interrupted, however it handled that.
        """
        cell = self._cells.current()
        flush_streams()
        with collected(self._shell.kernel.session, cell.key) as output, self._cells.within():
            with self._without_history(code), self._without_last_words(), _marked():
                result = await self._execute(code)
            flush_streams()
        if self._interrupts.count:
            raise KeyboardInterrupt
        return _reply(result, output)

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
            shell.events.trigger("post_execute")  # shows plots now
            shell.events.trigger("post_run_cell", result)
        return result

    @contextmanager
    def _without_history(self, code: str) -> Iterator[None]:
        """Keep the results of code out of `Out` and `_`, and apply a final ``;`` of the code."""
        hook = self._shell.displayhook
        cache_size, hook.cache_size = hook.cache_size, 0
        hook.quiet = lambda: _ends_quietly(hook, code)
        try:
            yield
        finally:
            del hook.quiet
            hook.cache_size = cache_size
            if hasattr(self._shell, "_last_traceback_during_displayhook"):
                # ipykernel 7.4 considers the cell failed if one of its values could not be displayed.
                self._shell._last_traceback_during_displayhook = False

    @contextmanager
    def _without_last_words(self) -> Iterator[None]:
        """Suppress the traceback of interrupted code: the cell itself reports the interrupt in one line."""
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
    """Mark this code, and processes that it starts, as run by an agent: `Agent` cannot be used there."""
    before = os.environ.get(IN_AGENT_CODE)
    os.environ[IN_AGENT_CODE] = "1"
    try:
        yield
    finally:
        os.environ.pop(IN_AGENT_CODE, None)
        if before is not None:
            os.environ[IN_AGENT_CODE] = before


def _ends_quietly(hook: Any, code: str) -> bool:
    with suppress(Exception):  # magics are not Python tokens
        return bool(hook.semicolon_at_end_of_expression(code))
    return False


def _reply(result: Any, output: CodeOutput) -> JsonObject:
    failure = result.error_before_exec or result.error_in_exec
    error = "" if failure is None else output.error or f"{type(failure).__name__}: {failure}"
    return {
        "status": "completed" if failure is None else "failed",
        "text": output.text,
        "error": error,
        "images": output.images,
    }
