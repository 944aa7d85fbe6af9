from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.agents.threads.ports import CodeEnded
from jupyter_agentbox.core.threads import ItemStatus
from jupyter_agentbox.protocol.messages import MAX_CODE_TEXT
from jupyter_agentbox.services.threads.cell_kernel import read_code_ended


def test_what_a_kernel_says_of_code_is_read() -> None:
    told: Any = {"status": "completed", "text": "42", "error": "", "images": 2}

    assert read_code_ended("6 * 7", told) == CodeEnded(code="6 * 7", status=ItemStatus.COMPLETED, text="42", images=2)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"status": "declined"},
        {"status": ["completed"]},
        {"status": None, "text": {"a": 1}, "error": 3, "images": "many"},
        {"status": "in_progress", "images": True},
        {"status": "approved", "images": -5},
    ],
)
def test_what_a_hostile_kernel_says_is_a_failure_and_nothing_more(told: Any) -> None:
    assert read_code_ended("x", told) == CodeEnded(code="x", status=ItemStatus.FAILED)


def test_what_a_kernel_says_has_bounds() -> None:
    told: Any = {"status": "failed", "text": "a" * 1_000_000, "error": "b" * 1_000_000, "images": 10**30}

    ended = read_code_ended("x", told)

    assert (len(ended.text), len(ended.error), ended.images) == (MAX_CODE_TEXT, MAX_CODE_TEXT, 10_000)
