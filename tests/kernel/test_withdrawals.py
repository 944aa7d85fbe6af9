from __future__ import annotations

from jupyter_agentbox.kernel.withdrawals import Withdrawals
from jupyter_agentbox.protocol.messages import Cancel

from .fakes import FakeTimers


def test_calls_that_end_together_are_withdrawn_in_two_messages() -> None:
    sent: list[Cancel] = []
    timers = FakeTimers()
    withdrawals = Withdrawals(sent.append, later=timers.later)
    withdrawals.add([])
    assert sent == []

    for number in range(1000):
        withdrawals.add([str(number)])
    assert sent == [Cancel(ids=["0"])]  # a lone one waits for nothing

    timers.go_off()
    assert sent[1:] == [Cancel(ids=[str(number) for number in range(1, 1000)])]
    withdrawals.add(["1000"])
    assert sent[2:] == [Cancel(ids=["1000"])]


def test_what_waits_for_others_is_told_at_the_end_of_the_cell() -> None:
    sent: list[Cancel] = []
    timers = FakeTimers()
    withdrawals = Withdrawals(sent.append, later=timers.later)
    withdrawals.add(["1"])
    withdrawals.add(["2"])

    withdrawals.tell()
    assert sent == [Cancel(ids=["1"]), Cancel(ids=["2"])]
    timers.go_off()
    assert len(sent) == 2
