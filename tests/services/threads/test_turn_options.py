from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.threads import ApprovalMode
from jupyter_agentbox.exceptions import ThreadError
from jupyter_agentbox.services.threads.turn_options import TurnOptions, read_options


def test_all_options_are_read() -> None:
    options: Any = {"thread": " sales ", "mode": "deny_all", "model": "openai:x", "steps": 3, "context": "cells"}

    assert read_options({**options, "backend": "loop"}) == TurnOptions(
        thread="sales", mode=ApprovalMode.DENY_ALL, model="openai:x", steps=3, context="cells"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"nwe": True},
        {"mode": "allow_all"},
        {"mode": ["ask"]},
        {"backend": "other"},
        {"steps": 0},
        {"steps": True},
        {"steps": "3"},
        {"context": "all"},
        {"thread": ""},
        {"thread": "x" * 201},
        {"model": 3},
    ],
)
def test_a_kernel_that_sends_anything_else_is_told_so(options: Any) -> None:
    with pytest.raises(ThreadError):
        read_options(options)
