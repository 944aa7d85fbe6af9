"""Run code and accept all of its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from jupyter_agentbox.exceptions import InvalidTransitionError

from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult
from .running_kernel import Item


async def accept_all(items: AsyncIterator[Item]) -> CodeExecutionResult:
    """Accept every request and return the cell's result, which is empty if there is none.

    Parameters
    ----------
    items : asynchronous iterator
        The items that a cell yields.

    Raises
    ------
    CodeExecutionError, TimeoutError, RuntimeError
        Raised by the iterator.
    """
    result = CodeExecutionResult(text=None, images=[])
    try:
        # Concurrently: calls accepted together share one wait for the disk.
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
    with suppress(InvalidTransitionError):  # withdrawn or expired, which the calling code was told
        await request.accept()


def _most_telling(errors: BaseExceptionGroup) -> BaseException:
    """Return the error that the code ended with, if there is one, or else the first."""
    own = [error for error in errors.exceptions if isinstance(error, CodeExecutionError | TimeoutError)]
    return (own or errors.exceptions)[0]
