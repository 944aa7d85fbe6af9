"""What a table makes of findings."""

from __future__ import annotations

import pytest

from jupyter_agentbox import AnalysisSettings, Finding
from jupyter_agentbox.analysis.findings import DEFAULT_OUTCOMES, Analysis, AnalysisOutcome, Severity


def a_finding(code: str, line: int = 1) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, message=f"about {code}", line=line, column=1)


def test_no_findings_are_allowed() -> None:
    assert Analysis.of([], AnalysisSettings()) == Analysis(findings=(), outcome=AnalysisOutcome.ALLOW)


def test_the_strictest_outcome_wins_and_findings_are_ordered_by_line() -> None:
    settings = AnalysisSettings(outcomes={"S605": "block"})

    analysis = Analysis.of([a_finding("S605", 3), a_finding("S101", 2), a_finding("S602", 1)], settings)

    assert [finding.line for finding in analysis.findings] == [1, 2, 3]
    assert analysis.outcome is AnalysisOutcome.BLOCK
    assert analysis.reason == "line 3: about S605 (S605)"


@pytest.mark.parametrize(
    ("code", "outcome"), [("S101", "allow"), ("S1012", "allow"), ("S602", "ask"), ("NEW1", "ask"), ("AB901", "ask")]
)
def test_the_longest_beginning_counts_and_the_unknown_asks(code: str, outcome: str) -> None:
    assert AnalysisSettings().outcome_of(code).value == outcome


def test_settings_change_the_table_by_beginning() -> None:
    settings = AnalysisSettings(outcomes={"S": "block", "S101": "ask", "AB203": "allow"})

    assert [settings.outcome_of(code).value for code in ("S602", "S101", "AB203", "AB204", "S311")] == [
        *("block", "ask", "allow", "ask", "allow"),
    ]


@pytest.mark.parametrize("code", ["AB901", "AB902"])
def test_what_could_not_be_looked_at_is_allowed_by_no_setting(code: str) -> None:
    settings = AnalysisSettings(outcomes={"": "allow", "AB": "allow", code: "allow"})

    assert settings.outcome_of(code) is AnalysisOutcome.ASK
    assert AnalysisSettings(outcomes={code: "block"}).outcome_of(code) is AnalysisOutcome.BLOCK


@pytest.mark.parametrize("options", [{"outcomes": {"S": "perhaps"}}, {"seconds": 0}, {"most_characters": -1}])
def test_settings_that_are_not_understood_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        AnalysisSettings(**options)  # type: ignore[arg-type]  # what a caller without types gives


def test_the_table_has_a_line_for_everything() -> None:
    assert DEFAULT_OUTCOMES[""] is AnalysisOutcome.ASK


def test_a_finding_is_the_same_after_json() -> None:
    finding = a_finding("AB205", 7)

    assert Finding.from_json(finding.to_json()) == finding
    assert finding.to_json() == {
        "code": "AB205", "severity": "warning", "message": "about AB205", "line": 7, "column": 1
    }  # fmt: skip
