"""The results of an analysis of code: findings, and the outcome that a table derives from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonObject

#: The code of a finding that says that the code is no Python.
SYNTAX_ERROR: Final = "AB001"
#: The code of a finding that says that the code, or a part of the analysis, could not be looked at.
NOT_ANALYSED: Final = "AB901"
#: The code of a finding that says that ruff is missing, or did not do its part.
NO_RUFF: Final = "AB902"


class Severity(str, Enum):
    """How serious a finding is for the person who reads it."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class AnalysisOutcome(str, Enum):
    """What happens to analyzed code, from the mildest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    BLOCK = "block"

    @property
    def strictness(self) -> int:
        """0 for the mildest; a higher number wins."""
        return ("allow", "ask", "block").index(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in the code that the person who decides should know.

    Parameters
    ----------
    code : str
        Ruff's code (``S602``), or one of ours (``AB205``).
    severity : Severity
        How serious it is.
    message : str
        A description for people.
    line, column : int
        Where it begins in the code, both from 1.
    """

    code: str
    severity: Severity
    message: str
    line: int
    column: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Finding:
        """Return the finding that `to_json` gave."""
        return cls(
            code=str(value["code"]),
            severity=Severity(value["severity"]),
            message=str(value["message"]),
            line=int(value["line"]),
            column=int(value["column"]),
        )

    def __str__(self) -> str:
        return f"{self.line}:{self.column} {self.code} {self.message}"

    def to_json(self) -> JsonObject:
        """Return the finding in the form of requests and the REST API."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "line": self.line,
            "column": self.column,
        }


#: Nothing is assigned to `results`.
NO_RESULTS: Final = "AB401"

#: Beginning of a finding's code -> outcome; the longest that fits counts.
#: What is not listed asks: unknown is never allow.
DEFAULT_OUTCOMES: Final[Mapping[str, AnalysisOutcome]] = MappingProxyType(
    {
        "": AnalysisOutcome.ASK,
        "S101": AnalysisOutcome.ALLOW,  # `assert`
        "S110": AnalysisOutcome.ALLOW,  # `except: pass`
        "S112": AnalysisOutcome.ALLOW,  # `except: continue`
        "S311": AnalysisOutcome.ALLOW,  # random numbers that are no secret
        "AB301": AnalysisOutcome.ALLOW,  # a call of a tool that reads, which asks for itself
        "AB303": AnalysisOutcome.ALLOW,  # a read of a domain
        NO_RESULTS: AnalysisOutcome.ALLOW,
    }
)

#: Calls that read or write a control system, by the names that its libraries have in common.
_READS: Final = ("read_channel", "read_channels", "caget", "caget_many")
_WRITES: Final = ("write_channel", "write_channels", "caput", "caput_many")


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainCalls:
    """Calls that read or write something of importance, such as the channels of a machine.

    Parameters
    ----------
    name : str
        What is read or written, for people.
    reads, writes : tuple of str
        Names of functions or methods. One with dots (``epics.caput``) matches exactly that; one without matches every
        function and method of the name, whatever it belongs to.
    """

    name: str = "control system"
    reads: tuple[str, ...] = _READS
    writes: tuple[str, ...] = _WRITES


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisSettings:
    """The settings of the analysis, which a person or a site may change.

    Parameters
    ----------
    outcomes : mapping
        The prefix of findings' codes to ``"allow"``, ``"ask"`` or ``"block"``, which overrides `DEFAULT_OUTCOMES`:
        ``{"S": "block"}`` blocks what ruff's security rules find.
    domains : tuple of DomainCalls
        Calls that are reported as reads and writes.
    most_characters : int
        Longer code is not analyzed, and a person is asked about it.
    seconds : float
        The analysis's limit of processor time. A person is asked about code that needs more.
    expects_results : bool
        Whether code that assigns nothing to `results` gets a note.

    Raises
    ------
    ValueError
        If an outcome is none of the three, or a limit is not positive.
    """

    outcomes: Mapping[str, AnalysisOutcome | str] = field(default_factory=dict)
    domains: tuple[DomainCalls, ...] = (DomainCalls(),)
    most_characters: int = 100_000
    seconds: float = 3.0
    expects_results: bool = True

    def __post_init__(self) -> None:
        if self.most_characters <= 0 or self.seconds <= 0:
            raise ValueError("`most_characters` and `seconds` must be greater than 0")
        for outcome in self.outcomes.values():
            AnalysisOutcome(outcome)

    def outcome_of(self, code: str) -> AnalysisOutcome:
        """Return the table's outcome for a finding's code. What could not be analyzed is never allowed."""
        table = {**DEFAULT_OUTCOMES, **self.outcomes}
        outcome = AnalysisOutcome(table[max((begin for begin in table if code.startswith(begin)), key=len)])
        is_unknown = code in (NOT_ANALYSED, NO_RUFF) and outcome is AnalysisOutcome.ALLOW
        return AnalysisOutcome.ASK if is_unknown else outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The result of the analysis of a piece of code.

    Parameters
    ----------
    findings : tuple of Finding
        The findings, by line.
    outcome : AnalysisOutcome
        The strictest outcome of any of them in the table; ``allow`` if there are none.
    reason : str
        What determined the outcome, for people.
    """

    findings: tuple[Finding, ...] = ()
    outcome: AnalysisOutcome = AnalysisOutcome.ALLOW
    reason: str = ""

    @classmethod
    def of(cls, findings: Iterable[Finding], settings: AnalysisSettings) -> Analysis:
        """Return the analysis that follows from findings and settings."""
        ordered = tuple(sorted(set(findings), key=lambda found: (found.line, found.column, found.code, found.message)))
        outcomes = [settings.outcome_of(found.code) for found in ordered]
        outcome = max(outcomes, key=lambda each: each.strictness, default=AnalysisOutcome.ALLOW)
        decisive = [each for each, its in zip(ordered, outcomes, strict=True) if its is outcome]
        reason = "; ".join(f"line {each.line}: {each.message} ({each.code})" for each in decisive[:3])
        return cls(findings=ordered, outcome=outcome, reason=reason)

    @property
    def syntax_error(self) -> Finding | None:
        """Why the code is not valid Python; ``None`` if it is."""
        return next((found for found in self.findings if found.code == SYNTAX_ERROR), None)
