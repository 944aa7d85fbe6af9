"""Registrations take the way of all calls, on fakes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, OutcomeState, Status
from jupyter_agentbox.core.calls import JsonObject, JsonValue, Origin
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import (
    ServerConfigurationError,
    ToolArgumentsError,
    ToolCallRejectedError,
    UnknownApprovalError,
    UnknownServerError,
)
from jupyter_agentbox.services.registrations.manager import RegistrationManager
from tests.services.conftest import Services

ORIGIN = Origin(kernel_id="k1")
GIVEN: JsonObject = {"command": "shop-server", "env": {"KEY": "s3cret"}}
SHOWN: JsonObject = {"command": "shop-server", "env": {"KEY": "***"}}


class AnyArguments:
    """A checker that wants a configuration that is an object."""

    async def check(self, tool: ToolDescription, arguments: Mapping[str, JsonValue]) -> None:
        del tool
        if not isinstance(arguments["configuration"], dict):
            raise ToolArgumentsError("no object", parameter="configuration")


class FakeRegistry:
    """Keeps servers in memory."""

    def __init__(self) -> None:
        self.tried: list[JsonObject] = []
        self.kept: dict[str, Any] = {}

    def check(self, name: str, configuration: Mapping[str, JsonValue]) -> None:
        del configuration
        if name in self.kept:
            raise ServerConfigurationError(f"there is `{name}`")

    def shown(self, configuration: Mapping[str, JsonValue]) -> JsonObject:
        return {**configuration, **({"env": {"KEY": "***"}} if "env" in configuration else {})}

    def restored(self, shown: Mapping[str, JsonValue], given: Mapping[str, JsonValue]) -> JsonObject:
        return {**shown, "env": given["env"]}

    async def try_out(self, name: str, configuration: Mapping[str, JsonValue]) -> Sequence[ToolDescription]:
        del name
        self.tried.append(dict(configuration))
        return [ToolDescription(name="find")]

    def keep(self, name: str, configuration: Mapping[str, JsonValue]) -> None:
        self.kept[name] = dict(configuration)


class Registrations:
    """A manager, and what is around it."""

    def __init__(self, *rules: Rule) -> None:
        self.services = Services(policy=Policy(rules), checker=AnyArguments())
        self.registry = FakeRegistry()
        self.manager = RegistrationManager(calls=self.services.calls, registry=self.registry)

    async def ended(self, request_id: str) -> Any:
        return await self.services.announcer.until(
            lambda request: request.id == request_id and request.outcome_state not in (None, OutcomeState.RUNNING)
        )


@pytest.fixture
def registrations(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Registrations]:
    made = Registrations()
    yield made
    jp_asyncio_loop.run_until_complete(made.manager.aclose())


def allow(server: str, tool: str) -> Rule:
    return Rule(server=server, tool=tool, effect=Effect.ALLOW)


async def test_a_server_is_added_once_a_person_allowed_it_and_the_record_says_so(registrations: Registrations) -> None:
    request = await registrations.manager.begin("shop", GIVEN, ORIGIN)
    assert (request.status, registrations.registry.tried) == (Status.PENDING, [])
    assert request.call.arguments == {"name": "shop", "configuration": SHOWN}

    await registrations.services.decide(request, Answer.ALLOW_ONCE)
    await registrations.ended(request.id)

    assert registrations.registry.kept == {"shop": GIVEN}
    stored = await registrations.services.stored(request.id)
    assert (stored.status, stored.outcome_state) == (Status.APPROVED, OutcomeState.SUCCEEDED)
    assert stored.decision is not None
    assert "s3cret" not in repr(stored)


async def test_a_rule_that_names_it_in_full_allows_it_and_is_recorded() -> None:
    made = Registrations(allow("agentbox", "register_mcp_server"))
    request = await made.manager.begin("shop", GIVEN, ORIGIN)
    await made.ended(request.id)
    stored = await made.services.stored(request.id)
    assert (stored.status, stored.decision, made.registry.kept) == (Status.APPROVED, None, {"shop": GIVEN})
    assert stored.evaluation.rule == allow("agentbox", "register_mcp_server")


@pytest.mark.parametrize(
    ("server", "tool"),
    [("*", "*"), ("agentbox", "*"), ("*", "register_mcp_server"), ("[a]gentbox", "register_mcp_server")],
)
async def test_no_other_rule_allows_it(server: str, tool: str) -> None:
    made = Registrations(allow(server, tool))
    request = await made.manager.begin("shop", GIVEN, ORIGIN)
    assert request.status is Status.PENDING
    await made.manager.aclose()


async def test_a_rule_denies_it_before_anybody_is_asked() -> None:
    made = Registrations(Rule(server="agentbox", tool="*", effect=Effect.DENY, reason="as it is"))
    with pytest.raises(ToolCallRejectedError):
        await made.manager.begin("shop", GIVEN, ORIGIN)
    assert (made.registry.tried, (await made.services.stored("r1")).status) == ([], Status.REJECTED)


async def test_what_is_allowed_for_good_is_asked_about_again(registrations: Registrations) -> None:
    first = await registrations.manager.begin("shop", GIVEN, ORIGIN)
    await registrations.services.decide(first, Answer.ALLOW_ALWAYS)
    await registrations.ended(first.id)

    second = await registrations.manager.begin("other", GIVEN, ORIGIN)

    assert second.status is Status.PENDING


async def test_what_is_rejected_for_good_is_denied_to_that_kernel(registrations: Registrations) -> None:
    first = await registrations.manager.begin("shop", GIVEN, ORIGIN)
    await registrations.services.decide(first, Answer.REJECT_ALWAYS)

    with pytest.raises(ToolCallRejectedError):
        await registrations.manager.begin("other", GIVEN, ORIGIN)
    assert (await registrations.manager.begin("other", GIVEN, Origin(kernel_id="k2"))).status is Status.PENDING


async def test_a_lasting_answer_to_a_program_without_a_kernel_is_for_that_request_only(
    registrations: Registrations,
) -> None:
    first = await registrations.manager.begin("shop", GIVEN, Origin())
    await registrations.services.decide(first, Answer.REJECT_ALWAYS)
    assert (await registrations.manager.begin("shop", GIVEN, Origin())).status is Status.PENDING


async def test_no_code_of_a_kernel_reaches_the_tool(registrations: Registrations) -> None:
    request = await registrations.manager.begin("shop", GIVEN, ORIGIN)
    with pytest.raises(UnknownServerError):
        await registrations.services.calls.run(request.call, on_waiting=print, on_running=print)
    assert len(registrations.services.announcer.approvals) == 1


async def test_what_is_withdrawn_is_started_no_more(registrations: Registrations) -> None:
    request = await registrations.manager.begin("shop", GIVEN, ORIGIN)
    await registrations.manager.withdraw(request.id)
    assert (await registrations.services.stored(request.id)).status is Status.CANCELLED
    await asyncio.sleep(0)
    with pytest.raises(UnknownApprovalError):
        await registrations.manager.withdraw(request.id)
    assert registrations.registry.tried == []


async def test_where_none_may_be_added_nobody_is_asked() -> None:
    services = Services(checker=AnyArguments())
    with pytest.raises(ServerConfigurationError):
        await RegistrationManager(calls=services.calls, registry=None).begin("shop", GIVEN, ORIGIN)
    assert services.announcer.approvals == []
