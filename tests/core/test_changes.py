from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jupyter_agentbox.core.approvals import OutcomeState, Status
from jupyter_agentbox.core.audit_search import decided_by, seconds_of
from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.changes import WHOEVER, Change, Facts, change_record, is_change

BEFORE = Facts(rules_file="/home/ada/rules.json", rules="r1", site_rules="s1", servers={"shop": "k1", "old": "k2"})


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (BEFORE, []),
        (
            Facts(rules_file="/home/ada/rules.json", rules="", site_rules="s2", servers=BEFORE.servers),
            [
                (Change.RULES, {"file": "/home/ada/rules.json", "from": "r1", "to": None}),
                (Change.SITE_RULES, {"from": "s1", "to": "s2"}),
            ],
        ),
        (
            Facts(rules="r1", site_rules="s1", servers={"shop": "k9", "new": ""}),
            [
                (Change.SERVER_ADDED, {"name": "new", "from": None, "to": None}),
                (Change.SERVER_REMOVED, {"name": "old", "from": "k2", "to": None}),
                (Change.SERVER_CHANGED, {"name": "shop", "from": "k1", "to": "k9"}),
            ],
        ),
    ],
)
def test_what_has_changed_is_named_with_digests(after: Facts, changes: list[tuple[Change, JsonObject]]) -> None:
    assert list(after.changes_since(BEFORE)) == changes


def test_record_of_a_change_has_ended_and_says_who_made_it() -> None:
    at = datetime(2026, 11, 25, 2, 0, tzinfo=UTC)

    record = change_record(Change.SIGNED_OUT, {"name": "shop"}, by=WHOEVER, at=at, id="c1")

    assert (record.status, record.outcome_state, record.is_open) == (Status.APPROVED, OutcomeState.SUCCEEDED, False)
    assert (record.created_at, record.ended_at, decided_by(record)) == (at, at, "whoever can write the file")
    assert is_change(record.call)
    assert seconds_of(record) is None
    assert not is_change(ToolCall(server="agentbox", tool="register_mcp_server", arguments={}))
    assert not is_change(ToolCall(server="shop", tool="sign_out", arguments={}))
