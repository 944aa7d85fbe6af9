"""Groups of approvers that nobody is in are noticed before a request waits in vain."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from jupyterhub.services.auth import HubOAuth
from tornado import web
from tornado.httpserver import HTTPServer

from jupyter_agentbox.hub import approver_groups
from jupyter_agentbox.hub.app import main
from jupyter_agentbox.hub.approver_groups import GroupReport, report_on
from jupyter_agentbox.hub.group_members import HubGroupMembers
from jupyter_agentbox.hub.policy_file import read_policy_file

from .service import PREFIX, SCOPE, Service, a_policy, ask, listening, running_service

GROUPS = {"data-stewards": ["bob", "cleo"], "one": ["bob"], "none": [], "auditors": ["dan"], "a/b c": ["bob"]}
SCOPED = "grant it the Hub's scope `read:groups`"
NO_GROUP = {"message": "No such group: x"}


class FakeHub:
    """Answers about groups as a JupyterHub does.

    Parameters
    ----------
    groups : mapping
        The groups and their members.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]] = GROUPS) -> None:
        self.groups = {**groups}
        self.url = ""
        #: What it answers to all questions instead.
        self.answer: tuple[int, Any] | None = None
        self.asked: list[str] = []

    def auth(self) -> HubOAuth:
        """Return the connection to it."""
        return HubOAuth(api_token="service", api_url=self.url, base_url=PREFIX, access_scopes={SCOPE})


@asynccontextmanager
async def running_hub() -> AsyncIterator[FakeHub]:
    hub = FakeHub()

    class Handler(web.RequestHandler):
        def get(self, name: str) -> None:
            hub.asked.append(name)
            assert self.request.headers["Authorization"] == "token service"
            code, body = hub.answer or (
                (200, {"name": name, "users": hub.groups[name]}) if name in hub.groups else (404, NO_GROUP)
            )
            self.set_status(code)
            self.finish(body if isinstance(body, str) else json.dumps(body))

    at = listening()
    server = HTTPServer(web.Application([(r"/hub/api/groups/(.+)", Handler)], log_function=lambda _: None))
    server.add_sockets([at])
    hub.url = f"http://127.0.0.1:{at.getsockname()[1]}/hub/api"
    try:
        yield hub
    finally:
        server.stop()
        await server.close_all_connections()


def policy(directory: Path, *rules: Mapping[str, Any], **more: Any) -> Any:
    path = directory / "policy.json"
    path.write_text(json.dumps(a_policy(*rules, **more)))
    return read_policy_file(path, {"KEY": "k"})


async def found(hub: FakeHub, directory: Path, *rules: Mapping[str, Any], **more: Any) -> list[str]:
    """Return what is said of these rules, without the places."""
    report = await report_on(policy(directory, *rules, **more), HubGroupMembers(hub.auth()), {})
    assert not report.why_unknown
    return [text.split(": ", 1)[1] for text in (*report.problems, *report.of_own_calls)]


@pytest.mark.parametrize(
    ("approvers", "says"),
    [
        ({"group": "data-stewards"}, None),
        ({"group": "data-stewards", "count": 2, "self": True}, None),
        ({"group": "a/b c", "self": True}, None),
        ({"group": "one", "delegates": ["data-stewards"]}, None),
        ({"group": "none", "escalation": {"group": "data-stewards", "after": 60}}, None),
        (
            {"group": "stewards"},
            (
                "the Hub has no group `stewards`; nobody can get the 1 approval that this rule requires: `stewards` has"
                " 0 members"
            ),
        ),
        (
            {"group": "data-stewards", "delegates": ["x", "y"]},
            "the Hub has no group `x` or `y`",
        ),
        (
            {"group": "data-stewards", "break_glass": "on-call"},
            "the Hub has no group `on-call`",
        ),
        (
            {"group": "data-stewards", "count": 3},
            "nobody can get the 3 approvals that this rule requires: `data-stewards` has 2 members",
        ),
        (
            {"group": "data-stewards", "count": 3, "delegates": ["one"], "break_glass": "auditors"},
            (
                "nobody can get the 3 approvals that this rule requires: `data-stewards` and `one` have 2 members. Only"
                " members of `auditors` can allow such a call, by breaking the glass"
            ),
        ),
        (
            {"group": "data-stewards", "count": 2},
            (
                "members of `data-stewards` can never get the 2 approvals that this rule requires for their own calls,"
                " which they may not approve themselves: `data-stewards` has 2 members"
            ),
        ),
        (
            {"group": "one"},
            (
                "members of `one` can never get the 1 approval that this rule requires for their own calls, which they"
                " may not approve themselves: `one` has 1 member"
            ),
        ),
    ],
)
async def test_a_rule_that_nobody_or_not_everybody_can_get_approved_is_found(
    tmp_path: Path, approvers: dict[str, Any], says: str | None
) -> None:
    async with running_hub() as hub:
        assert await found(hub, tmp_path, ask("drop", **approvers)) == ([] if says is None else [says])


async def test_rules_for_users_own_tools_and_auditors_are_looked_at_too(tmp_path: Path) -> None:
    rule = {"effect": "ask", "server": "git", "tool": "push", "approvers": {"group": "gone"}}
    async with running_hub() as hub:
        del hub.groups["auditors"]
        own, auditors = await found(hub, tmp_path, local={"hub": "demo", "rules": [rule]})
    assert own.startswith("the Hub has no group `gone`")
    assert auditors == "the Hub has no group `auditors`, which `auditors` names"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((403, {"message": "Action is not authorized with current scopes"}), SCOPED),
        ((404, {"message": "No access to resources or resources not found"}), SCOPED),  # a scope for other groups
        ((200, {"name": "data-stewards"}), SCOPED),  # `read:groups:name`
        ((500, "<html>"), "HTTP 500"),
        ((200, "[]"), SCOPED),
        ((200, "[" * 100_000), SCOPED),
    ],
)
async def test_a_hub_that_does_not_tell_makes_no_group_unknown(
    tmp_path: Path, answer: tuple[int, Any], says: str
) -> None:
    seen = {"bob": frozenset({"data-stewards"}), "ada": frozenset({"analysts"})}
    async with running_hub() as hub:
        hub.answer = answer
        rules = policy(tmp_path, ask("drop", group="data-stewards", count=2), ask("query", group="data-stewards"))
        report = await report_on(rules, HubGroupMembers(hub.auth()), seen)
    assert says in report.why_unknown
    (text,) = report.problems
    assert text.endswith("this rule requires 2 approvals, and 1 member of `data-stewards` used this service so far")


async def test_a_hub_that_cannot_be_reached_is_no_error(tmp_path: Path) -> None:
    async with running_hub() as hub:
        pass
    report = await report_on(policy(tmp_path, ask(group="one")), HubGroupMembers(hub.auth()), {})
    assert "the Hub cannot be reached" in report.why_unknown


async def test_a_certificate_that_cannot_be_read_is_no_error(tmp_path: Path) -> None:
    hub = FakeHub()
    auth = hub.auth()
    auth.certfile = auth.keyfile = str(tmp_path / "gone.pem")
    report = await report_on(policy(tmp_path, ask(group="one")), HubGroupMembers(auth), {})
    assert "the Hub cannot be reached" in report.why_unknown


async def test_a_hub_that_takes_too_long_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approver_groups, "_PATIENCE", 0.1)
    rules = [ask(f"t{number}", group=f"g{number}") for number in range(1_000)]
    told: list[str] = []

    class SlowHub:
        async def members_of(self, group: str) -> frozenset[str] | None:
            told.append(group)
            await asyncio.sleep(0.04)  # each is quick enough, but all of them are not
            return frozenset({"bob", "cleo"})

    report = await report_on(policy(tmp_path, *rules), SlowHub(), {})
    assert report.why_unknown == "the Hub did not tell about 1,001 groups within 0.1 seconds"
    assert len(told) < 10


async def shown(service: Service, user: str) -> str:
    return (await service.get(session=user)).body.decode()


async def test_the_service_tells_in_its_log_once_for_each_version_and_on_the_page_of_auditors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        return [one.getMessage() for one in caplog.records if "approval" in one.getMessage()]

    caplog.set_level(logging.WARNING, "jupyter_agentbox")
    rule = ask("drop", group="<b>stewards")
    async with running_hub() as hub, running_service(tmp_path, a_policy(rule)) as service:
        groups = service.box.approver_groups
        assert (await service.json("health/ready"))["group_problems"] is None
        groups.begin_asking(HubGroupMembers(hub.auth()))
        for _ in range(3):
            await groups.look()
        assert len(said()) == 1
        assert "policy.json:1: the Hub has no group `<b>stewards`; nobody can get the 1 approval" in said()[0]
        assert (await service.json("health/ready"))["group_problems"] == 1
        assert "agentbox_hub_group_problems 1.0" in (await service.get("metrics", token="ada")).body.decode()
        assert "the Hub has no group `&lt;b&gt;stewards`" in await shown(service, "dan")
        assert "stewards" not in await shown(service, "eve")

        hub.groups["<b>stewards"] = ["bob", "cleo"]  # no new version is needed
        await groups.look()
        assert groups.report == GroupReport()
        assert "Groups of approvers" not in await shown(service, "dan")
        del hub.groups["<b>stewards"]
        await groups.look()
        assert len(said()) == 1
        (tmp_path / "policy.json").write_text(json.dumps(a_policy(rule, ask("query", group="one", count=2))))
        await service.box.policy.reload()
        await groups.look()
        assert len(said()) == 3


async def test_without_the_scope_the_service_says_which_and_goes_by_whom_it_has_seen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "jupyter_agentbox")
    rule = ask("drop", group="data-stewards", count=2)
    async with running_hub() as hub, running_service(tmp_path, a_policy(rule)) as service:
        hub.answer = 403, {}
        groups = service.box.approver_groups
        groups.begin_asking(HubGroupMembers(hub.auth()))
        await service.get("api/requests", token="bob")
        await service.get("api/requests", token="collector")
        await groups.look()
        page = await shown(service, "dan")
        assert SCOPED in unescape(page)
        assert (await service.json("health/ready"))["group_problems"] is None
        metrics = (await service.get("metrics", token="ada")).body.decode()
        assert "agentbox_hub_group_problems NaN" in metrics
        assert re.search(r'^agentbox_hub_errors_total\{kind="hub"\} [1-9]', metrics, re.MULTILINE)
        await service.get(session="cleo")
        await groups.look()
        assert groups.report.problems == ()
        assert len([one for one in caplog.messages if SCOPED in one]) == 1


async def test_a_check_of_the_configuration_notes_it_where_the_hub_can_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(tmp_path, ask("drop", group="gone"))
    monkeypatch.setenv("KEY", "k")

    async def checked() -> str:
        options = [f"--policy={tmp_path}/policy.json", "--check-config"]
        assert await asyncio.to_thread(main, options) == 0
        return capsys.readouterr().err

    async with running_hub() as hub:
        monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
        assert (await checked(), hub.asked) == ("", [])
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "service")
        monkeypatch.setenv("JUPYTERHUB_API_URL", hub.url)
        assert "note: " in (told := await checked())
        assert "policy.json:1: the Hub has no group `gone`; nobody can get the 1 approval" in told
        hub.answer = 403, {}
        assert (
            f"the groups of approvers were not checked: this service may not read the group `auditors`: {SCOPED}"
            in (await checked())
        )
    assert "the Hub cannot be reached" in await checked()
