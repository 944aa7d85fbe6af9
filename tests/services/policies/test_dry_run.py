from __future__ import annotations

from dataclasses import replace

from jupyter_agentbox.core.calls import Omission
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery
from jupyter_agentbox.services.policies.dry_run import MOST, dry_run
from tests.samples import a_call, a_request

RULE = Rule(server="shop", tool="delete_*", effect=Effect.ALLOW, arguments={"order_id": {"max": 5}})


async def test_all_pages_are_looked_at_up_to_a_bound() -> None:
    async def read(query: ApprovalQuery) -> ApprovalPage:
        requests = tuple(
            a_request(f"r{number}", call=a_call(arguments={"order_id": 5})) for number in range(query.limit)
        )
        return ApprovalPage(approvals=requests, next="more")

    found = await dry_run(RULE, Policy(), read)

    assert (found.looked_at, found.effects[Effect.ALLOW], found.unknown) == (MOST, MOST, 0)


async def test_of_arguments_that_are_not_kept_it_is_not_known_what_would_have_been() -> None:
    omitted = replace(a_call(), arguments={}, omitted=Omission(size=99_999, head="{"))
    requests = (
        a_request("r1", call=omitted),
        a_request("r2", call=replace(omitted, tool="list")),
        a_request("r3", call=a_call(arguments={"order_id": 9})),
    )

    async def read(query: ApprovalQuery) -> ApprovalPage:
        del query
        return ApprovalPage(approvals=requests, next=None)

    found = await dry_run(RULE, Policy(), read)
    assert found.to_json() == {"looked_at": 3, "matched": 0, "allow": 0, "ask": 0, "deny": 0, "unknown": 1}

    found = await dry_run(Rule(server="shop", tool="*", effect=Effect.DENY), Policy(), read)
    assert found.to_json() == {"looked_at": 3, "matched": 3, "allow": 0, "ask": 0, "deny": 3, "unknown": 0}
