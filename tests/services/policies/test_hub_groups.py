"""What is known of a user's groups, and for how long."""

from __future__ import annotations

from typing import Any

from jupyter_agentbox.exceptions import UnknownReviewerError
from jupyter_agentbox.services.policies.hub_groups import HOLDS, INTERVAL, HubGroups


class Hub:
    """A Hub whose answer a test sets, and a clock."""

    def __init__(self) -> None:
        self.answer: Any = {"kind": "user", "name": "ada", "groups": ["students"]}
        self.asked = 0
        self.time = 0.0

    async def ask(self) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def groups(self, *, are_needed: bool = True) -> HubGroups:
        return HubGroups(ask=self.ask, are_needed=lambda: are_needed, owner="ada", clock=lambda: self.time)


async def test_the_groups_are_what_the_hub_says_once_a_minute() -> None:
    hub = Hub()
    groups = hub.groups()
    assert groups.known is None
    await groups.look()
    assert groups.known == {"students"}

    hub.answer = {"kind": "user", "name": "ada", "groups": []}
    hub.time += INTERVAL - 1
    await groups.look()
    assert groups.known == {"students"}
    hub.time += 1
    await groups.look()
    assert (groups.known, hub.asked) == (frozenset(), 2)


async def test_an_answer_holds_for_a_while_when_the_hub_gives_no_other() -> None:
    hub = Hub()
    groups = hub.groups()
    await groups.look()
    hub.answer = UnknownReviewerError("JupyterHub does not answer")
    hub.time = HOLDS - 1
    await groups.look()
    assert groups.known == {"students"}
    hub.time = HOLDS
    assert groups.known is None


async def test_nothing_is_believed_of_a_token_that_is_not_the_owners() -> None:
    hub = Hub()
    groups = hub.groups()
    await groups.look()
    for answer in (
        None,
        {"kind": "user", "name": "bob", "groups": ["students"]},
        {"kind": "service", "name": "ada", "groups": ["students"]},
        {"kind": "user", "name": "ada"},
    ):
        hub.answer = answer
        hub.time += INTERVAL
        await groups.look()
        assert groups.known is None


async def test_the_hub_is_not_asked_where_no_rule_is_for_groups() -> None:
    hub = Hub()
    groups = hub.groups(are_needed=False)
    await groups.start()
    await groups.aclose()
    assert hub.asked == 0


async def test_without_a_hub_no_groups_are_known() -> None:
    groups = HubGroups(ask=None, are_needed=lambda: True)
    await groups.start()
    await groups.look()
    await groups.aclose()
    assert groups.known is None
