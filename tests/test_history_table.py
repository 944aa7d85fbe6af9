"""A record as a line of a terminal's table."""

from __future__ import annotations

from datetime import UTC, datetime

from jupyter_agentbox.core.changes import Change, change_record
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.history_table import HistoryTable

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def test_a_change_was_done_and_not_allowed_in_no_time() -> None:
    by = Reviewer(name="ada", via=Via.BROWSER)
    record = change_record(Change.SERVER_STOPPED, {"name": "shop"}, by=by, at=NOON, id="c1")

    line = HistoryTable(120).line(record).splitlines()[1]

    assert line.split()[1:] == ["agentbox.stop_server(name='shop')", "done", "ada"]
