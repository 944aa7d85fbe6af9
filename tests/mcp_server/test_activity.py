"""What a request does, in words."""

from __future__ import annotations

from jupyter_agentbox.mcp_server.activity import Activity


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_it_says_what_the_request_does_and_since_when() -> None:
    now = Time()
    activity = Activity(now=now)
    now.seconds = 2
    starting = str(activity)
    activity.run()
    now.seconds = 5
    running = str(activity)

    assert (starting, running) == ("waiting for the kernel for 2 s", "running for 3 s")


def test_of_several_decisions_it_names_the_one_that_waits_longest_and_then_runs_on() -> None:
    now = Time()
    activity = Activity(now=now)
    activity.run()
    said = []
    activity.wait_for_decision("a", "shop.order")
    now.seconds = 1
    activity.wait_for_decision("b", "shop.pay")
    activity.wait_for_decision("a", "shop.order")
    said.append(str(activity))
    activity.decided("a")
    now.seconds = 4
    said.append(str(activity))
    activity.decided("b")
    activity.decided("b")
    said.append(str(activity))

    assert said == [
        "waiting for a decision about shop.order for 1 s",
        "waiting for a decision about shop.pay for 3 s",
        "running for 4 s",
    ]


def test_one_that_waits_for_another_says_what_that_one_does() -> None:
    now = Time()
    ahead, behind = Activity(now=now), Activity(now=now)
    ahead.run()
    now.seconds = 60
    behind.wait_behind(ahead)
    ahead.wait_for_decision("a", "shop.order")
    now.seconds = 70
    waiting = str(behind)
    behind.run()

    assert waiting == (
        "waiting for an earlier request for 10 s, which has been waiting for a decision about shop.order for 10 s;"
        " call the tool `reset` to end it"
    )
    assert str(behind) == "running for 0 s"


def test_every_change_is_told_once() -> None:
    told: list[None] = []
    activity = Activity(lambda: told.append(None))
    activity.run()
    activity.wait_for_decision("a", "shop.order")
    activity.wait_for_decision("a", "shop.order")
    activity.decided("a")
    activity.decided("a")

    assert len(told) == 3
