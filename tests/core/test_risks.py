from __future__ import annotations

import re
from pathlib import Path

import pytest

from jupyter_agentbox.core.risks import Risk, RiskOfCall, risk_of, risk_of_call


@pytest.mark.parametrize(
    ("annotations", "risk"),
    [
        ({"readOnlyHint": True}, Risk.READ_ONLY),
        ({"readOnlyHint": True, "destructiveHint": True}, Risk.DESTRUCTIVE),
        ({"destructiveHint": False}, Risk.CHANGES),
        ({"readOnlyHint": False}, Risk.UNSAID),
        ({"readOnlyHint": "yes", "destructiveHint": 1}, Risk.UNSAID),
        ({}, Risk.UNSAID),
    ],
)
def test_of_contradicting_hints_the_graver_counts_and_a_missing_one_is_not_harmless(
    annotations: dict[str, bool], risk: Risk
) -> None:
    assert risk_of(annotations) is risk


def test_what_a_server_says_is_a_claim_and_what_this_packages_tools_do_is_not() -> None:
    assert risk_of_call("shop.query", {"readOnlyHint": True}) == RiskOfCall(
        risk=Risk.READ_ONLY, text="read-only", is_claim=True, is_own=False
    )
    assert risk_of_call("shop.query", {}) == RiskOfCall(
        risk=Risk.UNSAID, text="server does not say what it changes", is_claim=False, is_own=False
    )
    assert risk_of_call("shell.shell", {"readOnlyHint": True}) == RiskOfCall(
        risk=Risk.UNSAID, text="runs code", is_claim=False, is_own=True
    )


def test_words_are_those_of_the_card() -> None:
    card = Path(__file__).parents[2] / "labextension" / "src" / "ui" / "text" / "risk.ts"
    words = {word.lower() for word in re.findall(r"trans\.__\('(.*)'\)", card.read_text("utf-8"))}

    own = ("agentbox.register_mcp_server", "notebook.set_approval_mode", "notebook.run_code")
    assert words == {*(risk.value for risk in Risk), *(risk_of_call(name, {}).text for name in own)}
