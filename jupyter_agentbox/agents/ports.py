"""Protocols for what the pipeline needs from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from jupyter_agentbox.analysis.findings import Analysis

from .results import CodeStatus

#: Called with whether a decision is pending.
Waiting = Callable[[bool], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The execution of one piece of code, from approval to end.

    Parameters
    ----------
    status : CodeStatus
        ``succeeded`` or ``failed`` if it ran; else ``rejected``, ``expired``, ``blocked`` or ``cancelled``. Code that
        failed because one of its calls was refused has the status of that call.
    error : str
        The error message.
    request_id : str or None
        The approval request.
    approved_code : str or None
        The code that ran, if any did.
    analysis : Analysis or None
        The analysis of the code that ran, if edited.
    results : object
        The code's `results`, as JSON; ``None`` if there are none.
    text : str or None
        Printed and displayed output, as text.
    outputs : tuple of mapping
        Displayed output, as MIME bundles.
    figures : tuple of Path
        Paths of its images.
    """

    status: CodeStatus
    error: str = ""
    request_id: str | None = None
    approved_code: str | None = field(default=None, repr=False)
    analysis: Analysis | None = None
    results: Any = None
    text: str | None = None
    outputs: tuple[Mapping[str, Any], ...] = ()
    figures: tuple[Path, ...] = ()


class Analyzer(Protocol):
    """Analyzes code before it runs."""

    async def analyze(self, code: str) -> Analysis:
        """Return the findings in a piece of code."""


class CodeRunner(Protocol):
    """Requests approval of code, and runs the approved version, once."""

    async def run(self, code: str, analysis: Analysis, *, on_waiting: Waiting) -> Execution:
        """Request approval, and run approved code. Cancelling the task withdraws the request or interrupts the code.

        Raises
        ------
        AgentBoxError
            Nobody can be asked, or nothing can run, until a person fixes something.
        """
