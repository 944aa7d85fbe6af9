from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from jupyter_agentbox.core.kernel_exits import KernelExit


def test_an_end_names_a_limit_only_if_one_ended_the_kernel() -> None:
    crash = KernelExit(reason="it got signal SIGSEGV")

    assert crash.limit is None
    assert crash == KernelExit(reason="it got signal SIGSEGV", limit=None)
    assert crash != KernelExit(reason="it got signal SIGSEGV", limit="memory_limit")


def test_what_was_told_of_an_end_does_not_change() -> None:
    end = KernelExit(reason="it needed more than 512 MiB of memory", limit="memory_limit")

    with pytest.raises(FrozenInstanceError):
        end.reason = "something else"  # type: ignore[misc]
