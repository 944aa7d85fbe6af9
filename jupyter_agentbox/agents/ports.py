"""What the pipeline needs from outside, as Protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from jupyter_agentbox.analysis.findings import Analysis

from .results import CodeStatus

#: Called with whether somebody is waited for now.
Waiting = Callable[[bool], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What became of one piece of code, from its approval to its end.

    Parameters
    ----------
    status : CodeStatus
        ``succeeded`` or ``failed`` if it ran; else ``rejected``, ``expired``, ``blocked`` or ``cancelled``. Code that
        failed and of which a call was refused has the status of that call.
    error : str
        What went wrong.
    request_id : str or None
        The approval request.
    approved_code : str or None
        What ran; ``None`` if nothing did.
    analysis : Analysis or None
        Of what ran, if that is another code than was asked for.
    results : object
        What the code left in `results`, as JSON; ``None`` if nothing.
    text : str or None
        What it printed and showed, as text.
    outputs : tuple of mapping
        What it showed, as MIME bundles.
    figures : tuple of Path
        Its images.
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
    """Looks at code before it runs."""

    async def analyze(self, code: str) -> Analysis:
        """Return what is found in a piece of code."""


class CodeRunner(Protocol):
    """Has code approved, and runs what was approved, once."""

    async def run(self, code: str, analysis: Analysis, *, on_waiting: Waiting) -> Execution:
        """Ask, and run if it may run. Cancelling the task withdraws the request or interrupts the code.

        Raises
        ------
        AgentBoxError
            Nobody can be asked, or nothing can be run, until a person sets something right.
        """
