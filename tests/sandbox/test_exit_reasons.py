"""What is said of a sandboxed kernel's end."""

from __future__ import annotations

import pytest

from jupyter_agentbox.core.kernel_exits import KernelExit
from jupyter_agentbox.sandbox.server.exit_reasons import LimitExceeded, exit_of, size

WATCHED = LimitExceeded(limit="memory_limit", most=512 << 20, words="the sandbox was ended: …", is_end=True)
BY_LINUX = LimitExceeded(limit="memory_limit", most=512 << 20, words="Linux ended 1 of …", is_end=False)
MEMORY = KernelExit(reason="it needed more than 512 MiB of memory", limit="memory_limit", most=512 << 20)
PROCESSES = LimitExceeded(limit="process_limit", most=100, words="the sandbox was ended: …", is_end=True)


@pytest.mark.parametrize("status", [137, 143, -9])
def test_a_limit_for_which_the_sandbox_was_ended_is_the_reason(status: int) -> None:
    assert exit_of(status, WATCHED) == MEMORY
    assert exit_of(status, PROCESSES) == KernelExit(
        reason="it had more than 100 processes and threads", limit="process_limit", most=100
    )


@pytest.mark.parametrize(("status", "end"), [(137, MEMORY), (-9, MEMORY), (0, None)])
def test_memory_is_the_reason_if_linux_can_have_ended_the_kernel_for_it(status: int, end: KernelExit | None) -> None:
    assert exit_of(status, BY_LINUX) == end


def test_a_kernel_that_outlived_another_process_ended_for_a_reason_of_its_own() -> None:
    assert exit_of(139, BY_LINUX) == KernelExit(reason="its process was killed by SIGSEGV", signal="SIGSEGV")


@pytest.mark.parametrize(
    ("status", "name"),
    [(-11, "SIGSEGV"), (134, "SIGABRT")],
)
def test_without_a_limit_the_signal_is_the_reason(status: int, name: str) -> None:
    assert exit_of(status, None) == KernelExit(reason=f"its process was killed by {name}", signal=name)


@pytest.mark.parametrize("status", [1, 128, 255])
def test_without_a_signal_the_status_is_the_reason(status: int) -> None:
    assert exit_of(status, None) == KernelExit(reason=f"its process exited with status {status}", status=status)


def test_a_kernel_that_ended_of_its_own_accord_needs_none() -> None:
    assert exit_of(0, None) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1000, "1000 bytes"),
        (1536, "1.5 KiB"),
        (512 << 20, "512 MiB"),
        (8_000_000_000, "7.45 GiB"),
        (1 << 51, "2048 TiB"),
    ],
)
def test_sizes_are_short(number: int, text: str) -> None:
    assert size(number) == text
