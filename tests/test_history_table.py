"""A record as a line of a terminal's table."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jupyter_agentbox.core.approvals import OutcomeState
from jupyter_agentbox.core.changes import Change, change_record
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.history_table import HistoryTable
from tests.samples import a_decision, a_request

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def test_a_change_was_done_and_not_allowed_in_no_time() -> None:
    by = Reviewer(name="ada", via=Via.BROWSER)
    record = change_record(Change.SERVER_STOPPED, {"name": "shop"}, by=by, at=NOON, id="c1")

    line = HistoryTable(120).line(record).splitlines()[1]

    assert line.split()[1:] == ["agentbox.stop_server(name='shop')", "done", "ada"]


def test_a_call_whose_caller_was_gone_was_allowed_and_did_not_run() -> None:
    by = Reviewer(name="bob", via=Via.BROWSER)
    waiting = a_request()
    approved = waiting.decide(replace(a_decision(waiting), reviewer=by))

    lines = [
        HistoryTable(120).line(one).splitlines()[1]
        for one in (
            approved,
            approved.record_not_run(at=NOON),
            approved.running_if_approved(at=NOON).record(OutcomeState.CANCELLED, at=NOON + timedelta(seconds=2)),
        )
    ]

    assert [re.split("  +", line)[2] for line in lines] == ["allowed", "allowed, not run", "allowed, cut off, 2.0…"]
