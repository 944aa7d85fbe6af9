"""The policy file while the service runs: what it says now holds, and what cannot be understood changes nothing."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import logging
import signal
from pathlib import Path
from typing import Any

import pytest

from bench.hub import Service as Process
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.hub import policy_in_force
from jupyter_agentbox.hub.policy_file import read_policy_file
from jupyter_agentbox.hub.policy_in_force import PolicyInForce
from jupyter_agentbox.system import SystemClock

from .service import TIMEOUT, Service, a_policy, ask, running_service

DENY = {"effect": "deny", "server": "warehouse", "tool": "*", "reason": "stock-taking"}
ALLOW = {"effect": "allow", "server": "warehouse", "tool": "*"}


def write(directory: Path, policy: Any) -> str:
    text = policy if isinstance(policy, str) else json.dumps(policy)
    (directory / "policy.json").write_text(text)
    return text


async def ready(service: Service) -> Any:
    return (await service.json("health/ready"))["policy"]


async def test_a_changed_file_holds_without_a_restart_and_a_broken_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    call = ToolCall(server="warehouse", tool="query", arguments={"sql": "select 1"})
    async with (
        asyncio.timeout(TIMEOUT),
        running_service(tmp_path, a_policy(ALLOW)) as service,
        service.tools_of("ada") as tools,
    ):
        first = await ready(service)
        assert not (await tools.call_tool(call)).is_error

        write(tmp_path, a_policy(DENY))
        await service.box.policy.look()
        assert "stock-taking" in (await tools.call_tool(call)).text
        second = await ready(service)
        assert (second["is_current"], second["version"] != first["version"]) == (True, True)

        write(tmp_path, '{"rules": [\n  {"effect": "alow", "server": "*", "tool": "*"}\n]}')
        with caplog.at_level(logging.ERROR):
            await service.box.policy.look()
        assert "stock-taking" in (await tools.call_tool(call)).text
        broken = await ready(service)
        assert (broken["version"], broken["is_current"]) == (second["version"], False)
        assert [place["line"] for place in broken["problems"]] == [2]
        assert "policy.json:2:" in caplog.text
        page = (await service.get(session="dan")).body.decode()
        assert "stays in force" in page
        assert "did you mean" in page
        others = (await service.get(session="ada")).body.decode()
        assert ("line 2, column 14" in others, "did you mean" in others) == (True, False)
        metrics = (await service.get("metrics", token="dan")).body.decode()
        assert f'version="{second["version"]}"}} 1.0' in metrics
        assert "agentbox_hub_policy_is_current 0.0" in metrics

        write(tmp_path, a_policy(ALLOW))
        service.box.policy.read_soon()  # as SIGHUP does
        await service.box.policy.look()
        assert not (await tools.call_tool(call)).is_error
        await service.box.changes.aclose()
        record = (await service.get("api/audit", session="dan")).body.decode().splitlines()
    changes = [one for one in map(json.loads, record) if one["call"]["tool"] == "change_site_rules"]
    assert [one["call"]["arguments"]["to"][:12] for one in reversed(changes)] == [second["version"], first["version"]]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (a_policy(DENY), "stock-taking"),
        (a_policy(ask("query", group="auditors")), "other people"),
        ({**a_policy(ask("query", group="data-stewards")), "mcpServers": {}}, "no longer a central server"),
    ],
)
async def test_what_waits_is_judged_by_the_policy_of_the_moment_in_which_it_is_decided(
    tmp_path: Path, policy: Any, words: str
) -> None:
    before = a_policy(ask("query", group="data-stewards"))
    async with (
        asyncio.timeout(TIMEOUT),
        running_service(tmp_path, before) as service,
        service.tools_of("ada") as tools,
    ):
        calling = asyncio.create_task(
            tools.call_tool(ToolCall(server="warehouse", tool="query", arguments={"sql": "select 1"}))
        )
        while not (waiting := await service.pending("bob")):
            pass
        write(tmp_path, policy)  # nobody has looked since

        code, answer = await service.decide(waiting[0], "bob")
        assert (code, words in json.dumps(answer)) == (403, True), answer
        code, _ = await service.decide(waiting[0], "bob", "reject_once")
        assert code == 200
        assert (await calling).is_error


async def test_what_was_allowed_does_not_run_on_a_central_server_that_was_exchanged_meanwhile(tmp_path: Path) -> None:
    before = a_policy(ask("query", group="data-stewards"))
    entry = before["mcpServers"]["warehouse"]
    other = {**entry, "args": [*entry["args"], "another"]}
    async with (
        asyncio.timeout(TIMEOUT),
        running_service(tmp_path, before) as service,
        service.tools_of("ada") as tools,
    ):
        call = ToolCall(server="warehouse", tool="query", arguments={"sql": "select 1"})
        calling = asyncio.create_task(tools.call_tool(call))
        while not (waiting := await service.pending("bob")):
            pass
        write(tmp_path, {**before, "mcpServers": {"warehouse": other}})

        assert (await service.decide(waiting[0], "bob"))[0] == 200
        result = await calling
    assert (result.is_error, "has changed since it was asked for" in result.text) == (True, True), result


async def test_the_record_says_which_version_of_the_policy_held_when_a_call_asked(tmp_path: Path) -> None:
    call = ToolCall(server="warehouse", tool="query", arguments={"sql": "select 1"})
    async with (
        asyncio.timeout(TIMEOUT),
        running_service(tmp_path, a_policy(ALLOW)) as service,
        service.tools_of("ada") as tools,
    ):
        first = (await ready(service))["version"]
        await tools.call_tool(call)
        write(tmp_path, a_policy(DENY))
        await service.box.policy.look()
        second = (await ready(service))["version"]
        await tools.call_tool(call)
        lines = (await service.get("api/audit", session="dan")).body.decode().splitlines()
        table = (await service.get("api/audit?format=csv", session="dan")).body.decode()

    records = [one for one in map(json.loads, lines) if one["call"]["server"] == "warehouse"]
    assert [one["evaluation"].get("policy_version") for one in reversed(records)] == [first, second]
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["server"] == "warehouse"]
    assert [row.get("policy_version") for row in reversed(rows)] == [first, second]


async def test_only_servers_whose_entry_changed_start_anew(tmp_path: Path) -> None:
    def policy(note: str) -> Any:
        found = a_policy(ALLOW)
        entry = found["mcpServers"]["warehouse"]
        return {**found, "mcpServers": {"warehouse": entry, "other": {**entry, "env": {**entry["env"], "NOTE": note}}}}

    async with asyncio.timeout(TIMEOUT), running_service(tmp_path, policy("a")) as service:
        shared = service.box.servers.shared
        for name in ("warehouse", "other"):
            await shared.start(name)
        write(tmp_path, policy("b"))
        await service.box.policy.look()

        states = {status.name: status.state.value for status in shared.servers()}
    assert states["warehouse"] == "running"
    assert states["other"] != "running"


async def test_users_servers_get_the_new_version_of_their_policy(tmp_path: Path) -> None:
    def policy(*rules: Any) -> Any:
        return a_policy(local={"hub": "hub.example", "valid": 3600, "rules": list(rules)})

    async with asyncio.timeout(TIMEOUT), running_service(tmp_path, policy()) as service:
        before = (await ready(service))["local_version"]
        old = (await service.get("api/policy", token="ada")).body
        write(tmp_path, policy(DENY))
        await service.box.policy.look()
        new = (await service.get("api/policy", token="ada")).body
        after = (await ready(service))["local_version"]
    assert after > before
    assert old != new
    assert json.loads(base64.b64decode(json.loads(new)["payload"]))["version"] == after


async def test_whatever_goes_wrong_with_a_new_policy_the_file_is_still_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Caught: a watch that ends at the first error that nobody thought of, while all seems to be in force."""
    path = tmp_path / "policy.json"

    def write_rule(reason: str) -> None:
        write(tmp_path, {"rules": [{**DENY, "reason": reason}]})

    def fail(*_: object) -> Any:
        raise RuntimeError

    write_rule("one")
    policy = PolicyInForce(read_policy_file(path, {}), {}, clock=SystemClock())
    seen: list[str] = []
    policy.follow(fail)
    policy.follow(lambda _, now: seen.append(now.policy.rules[0].reason))
    with caplog.at_level(logging.ERROR):
        write_rule("second")
        await policy.look()
        assert seen == ["second"]
        assert "could not be applied everywhere" in caplog.text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy_in_force, "read_policy_file", fail)
        write_rule("the third")
        await policy.look()
    assert (seen, [problem.message for problem in policy.problems]) == (["second"], ["it cannot be read: RuntimeError"])
    write_rule("the fourth one")
    await policy.look()
    assert (seen, policy.problems) == (["second", "the fourth one"], ())


async def test_a_running_service_follows_the_file_and_reads_it_on_sighup(tmp_path: Path) -> None:
    """Caught: a signal that ends the service, and a watch that is never started."""
    service = Process(tmp_path, "")

    async def policy_is(is_current: bool) -> None:
        while json.loads((await service.ask("health/ready")).body)["policy"]["is_current"] is not is_current:
            pass

    try:
        async with asyncio.timeout(2 * TIMEOUT):
            await service.start("--HubService.policy_check=3600")
            good = (tmp_path / "policy.json").read_text()
            write(tmp_path, "{")
            assert service.process is not None
            service.process.send_signal(signal.SIGHUP)
            await policy_is(False)
            service.kill()

            write(tmp_path, good)
            await service.start("--HubService.policy_check=0.1")
            write(tmp_path, "{")
            await policy_is(False)
            write(tmp_path, good)
            await policy_is(True)
    finally:
        service.end()
