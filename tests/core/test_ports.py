from __future__ import annotations

import pytest

from jupyter_agentbox.core.ports import ApprovalQuery, ThreadQuery


@pytest.mark.parametrize(("limit", "size"), [(-1, 1), (0, 1), (1, 1), (500, 500), (501, 500)])
def test_a_page_has_between_1_and_500_rows(limit: int, size: int) -> None:
    assert ApprovalQuery(limit=limit).page_size == size
    assert ThreadQuery(limit=limit).page_size == size
