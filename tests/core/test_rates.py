from __future__ import annotations

from jupyter_agentbox.core.rates import Rate


def test_so_many_times_are_allowed_and_then_the_time_has_to_pass() -> None:
    rate = Rate(2, 60.0)
    assert [rate.allows(now) for now in (0.0, 1.0, 2.0, 59.9, 60.0, 61.0, 62.0)] == [
        *(True, True, False, False),
        *(True, True, False),
    ]
