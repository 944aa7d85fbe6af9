"""The server's side of the analysis: asks the worker process, and decides what it means if that does not answer."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from jupyter_agentbox.processes.worker_process import OutOfTimeError, WorkerProcess

from .findings import NO_RESULTS, NOT_ANALYSED, SYNTAX_ERROR, Analysis, AnalysisSettings, Finding, Severity
from .ruff import find_ruff

_WORKER: Final = "jupyter_agentbox.analysis.worker"
#: Seconds by the clock that the process may need to start, and to be given the processor, besides what it computes.
_MARGIN: Final = 15.0


class CodeAnalyzer:
    """Finds in code what the person who decides about it should know.

    A separate process analyzes the code, and never runs or imports it. If it cannot analyze code, a person is asked.

    Parameters
    ----------
    settings : AnalysisSettings, optional
        The table of outcomes, the names of domain calls, and the limits.
    ruff : str or None
        The path of ruff; by default the ruff that is installed beside this Python.
    """

    def __init__(self, settings: AnalysisSettings | None = None, *, ruff: str | None = None) -> None:
        self.settings = settings or AnalysisSettings()
        self._ruff = ruff or find_ruff()
        self._worker = _make_worker()
        self._lock = asyncio.Lock()

    async def preload(self) -> None:
        """Start the process, so that the first analysis is quick."""
        async with self._lock:
            await asyncio.to_thread(self._find, "")

    async def analyze(self, code: str) -> Analysis:
        """Return what is found in a piece of code.

        Parameters
        ----------
        code : str
            The code as it would run: Python as in a notebook cell, including magic commands.
        """
        if len(code) > self.settings.most_characters:
            most = self.settings.most_characters
            return self._of(_unknown(f"the code has {len(code):,} characters; at most {most:,} can be analyzed"))
        try:
            code.encode()
        except UnicodeEncodeError:
            message = "SyntaxError: the code contains characters that cannot be stored in a file"
            return self._of(
                Finding(code=SYNTAX_ERROR, severity=Severity.ERROR, message=message, line=1, column=1),
            )
        async with self._lock:
            return self._of(*await asyncio.to_thread(self._find, code))

    def close(self) -> None:
        """End the process. A later analysis starts another one."""
        worker, self._worker = self._worker, _make_worker()
        worker.close()

    def _of(self, *findings: Finding) -> Analysis:
        return Analysis.of(findings, self.settings)

    def _find(self, code: str) -> list[Finding]:
        seconds = self.settings.seconds
        request = {
            "code": code,
            "seconds": seconds,
            "domains": [asdict(domain) for domain in self.settings.domains],
            "ruff": self._ruff,
        }
        try:
            answer = self._worker.ask(json.dumps(request).encode() + b"\n", seconds=seconds)
            found = [Finding.from_json(each) for each in answer["findings"]]
        except (OutOfTimeError, OSError, LookupError, TypeError, ValueError):
            return [_unknown("the analysis took too long or failed: the code was not analyzed")]
        return [each for each in found if self.settings.expects_results or each.code != NO_RESULTS]


def _make_worker() -> WorkerProcess:
    return WorkerProcess(_WORKER, import_path, margin=_MARGIN)


def _unknown(message: str) -> Finding:
    return Finding(code=NOT_ANALYSED, severity=Severity.WARNING, message=message, line=1, column=1)


def import_path() -> list[str]:
    """Return the path on which the process finds this package and IPython: this process's, without relative entries."""
    own = str(Path(__file__).parent.parent.parent)
    return [own, *(path for path in sys.path if path != own and Path(path).is_absolute() and path != str(Path.cwd()))]
