"""Running code whose calls are all accepted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from jupyter_agentbox.exceptions import InvalidTransitionError

from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult
from .running_kernel import Item


async def accept_all(items: AsyncIterator[Item]) -> CodeExecutionResult:
    """Accept every call that asks, and return the cell's result: one without text and images if there is none.

    Parameters
    ----------
    items : asynchronous iterator
        What a cell yields.

    Raises
    ------
    CodeExecutionError, TimeoutError, RuntimeError
        What the iterator raises.
    """
    result = CodeExecutionResult(text=None, images=[])
    try:
        # Not one after the other: what is accepted together waits for the disk together.
        async with asyncio.TaskGroup() as accepting:
            async for item in items:
                if isinstance(item, ApprovalRequest):
                    accepting.create_task(_accept(item))
                elif isinstance(item, CodeExecutionResult):
                    result = item
    except BaseExceptionGroup as errors:
        raise _most_telling(errors) from None
    return result


async def _accept(request: ApprovalRequest) -> None:
    with suppress(InvalidTransitionError):  # it was withdrawn or has expired, which the code that called was told
        await request.accept()


def _most_telling(errors: BaseExceptionGroup) -> BaseException:
    """Return the error that the code ended with, if it did, or else the first."""
    own = [error for error in errors.exceptions if isinstance(error, CodeExecutionError | TimeoutError)]
    return (own or errors.exceptions)[0]
