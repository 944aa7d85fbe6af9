"""Rules of the site hold in every program, and nothing that a user sets takes them away."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jupyter_core.paths
import pytest

from jupyter_agentbox.composition import AgentBox, Settings, build
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Status
from jupyter_agentbox.core.audit_trail import AuditSettings, check_trail
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.grant_uses import Scope
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.redaction import REDACTED
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ServerState, ToolDescription
from jupyter_agentbox.exceptions import LockedError, ServerConfigurationError, ToolCallRejectedError
from jupyter_agentbox.headless.rules import read_rules
from jupyter_agentbox.paths import site_rules_paths, user_rules_path
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.testing import FakeAnnouncer, FakeTools

ADA = Reviewer(name="ada", via=Via.BROWSER)
DROP = ToolDescription(name="drop")
CALL = ToolCall(server="shop", tool="drop", arguments={})
SECRET = "hunter2hunter2"
EVERYTHING = Policy((Rule(server="*", tool="*", effect=Effect.ALLOW),))


@pytest.fixture
def site_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jupyter_core.paths, "SYSTEM_CONFIG_PATH", [str(tmp_path)])
    monkeypatch.setattr("jupyter_agentbox.storage.rule_files.why_unprotected", lambda _path: "")
    return tmp_path / "agentbox_rules.json"


def test_a_program_that_is_given_rules_obeys_the_sites_too(site_file: Path, tmp_path: Path) -> None:
    settings = Settings(mcp_config_path=(), database_url=f"sqlite:///{tmp_path / 'x.sqlite'}")
    box = build(settings, announcer=FakeAnnouncer(), policy=EVERYTHING)
    assert box.policies.evaluate(CALL).effect is Effect.ALLOW
    site_file.write_text(json.dumps({"rules": [{"effect": "deny", "server": "shop", "tool": "drop"}]}))
    assert box.policies.evaluate(CALL).effect is Effect.DENY
    site_file.write_text("{")
    assert box.policies.evaluate(CALL).effect is Effect.DENY


def test_a_directory_that_a_user_names_is_none_of_the_sites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "user"))
    assert tmp_path not in [path.parent for path, _ in site_rules_paths()]
    assert user_rules_path() == tmp_path / "user" / "agentbox_rules.json"


def test_a_file_that_a_program_is_given_is_read_as_a_whole_or_refused_with_each_place(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"rules": [\n {"effect": "allow", "server": "shop", "tool": "*"}]}')
    assert read_rules(path).evaluate(CALL).effect is Effect.ALLOW
    path.write_text('{"rules": [\n {"effect": "alow", "server": "shop", "tool": 3}]}')
    with pytest.raises(ValueError, match=r"rules\.json:2:13: .*rules\.json:2:47: "):
        read_rules(path)
    with pytest.raises(FileNotFoundError):
        read_rules(tmp_path / "none.json")


def a_box(tmp_path: Path, **servers: Any) -> AgentBox:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    database = f"sqlite:///{tmp_path / 'x.sqlite'}"
    settings = Settings(mcp_config_path=(tmp_path / "mcp.json",), database_url=database)
    return build(settings, announcer=FakeAnnouncer(), own_tools={"shop": FakeTools({"shop.drop": drop})})


async def drop(call: ToolCall, report: Any) -> Any:
    return "dropped"


async def write(path: Path, text: str) -> None:
    """Write a file as another program does: for the event loop that is another turn."""
    path.write_text(text)
    await asyncio.sleep(0)


async def ask(box: AgentBox, verdict: dict[str, Any]) -> Any:
    """Call a tool and answer; return the result, or the refusal of the answer once the call was withdrawn."""
    waiting: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
    running = asyncio.create_task(box.calls.run(CALL, on_waiting=waiting.put_nowait, on_running=lambda _: None))
    request = await waiting.get()
    try:
        await box.decisions.decide(request.id, Verdict(digest=request.call.digest, **verdict), reviewer=ADA)
    except LockedError as error:
        assert (await box.approvals.get(request.id)).status is Status.PENDING
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return error
    return await running


async def test_lasting_answers_and_edits_that_the_site_turned_off_are_refused(site_file: Path, tmp_path: Path) -> None:
    box = a_box(tmp_path)
    await box.start()
    lasting: dict[str, Any] = {"answer": Answer.ALLOW_ALWAYS, "grant": GrantTerms(scope=Scope.USER, uses=9)}
    edited = {"answer": Answer.ALLOW_ONCE, "arguments": {"id": 1}}
    assert not isinstance(await ask(box, edited), LockedError)
    assert not isinstance(await ask(box, lasting), LockedError)
    assert box.policies.evaluate(CALL, DROP).effect is Effect.ALLOW

    await write(site_file, json.dumps({"rules": [], "features": {"grants": "force-off", "edit": "force-off"}}))
    assert box.policies.evaluate(CALL, DROP).effect is Effect.ASK  # what was answered for good before, too
    for refused in (lasting, edited):
        error = await ask(box, refused)
        assert isinstance(error, LockedError)
        assert f"set by your administrator ({site_file})" in str(error)
    assert not isinstance(await ask(box, {"answer": Answer.ALLOW_ONCE}), LockedError)
    await box.aclose()


@pytest.mark.parametrize(
    "said", [{"features": {"edit": "force-off"}}, {"servers": {"deny": [{"url": "https://old.example.org/*"}]}}]
)
async def test_a_file_of_the_site_that_has_no_rules_is_recorded_as_a_change(
    site_file: Path, tmp_path: Path, said: dict[str, Any]
) -> None:
    box = a_box(tmp_path)
    await box.start()
    async with box.changes.by(ADA):
        await write(site_file, json.dumps({"rules": [], **said}))
    [record] = (await box.store.list(ApprovalQuery())).approvals
    assert (record.call.tool, record.call.arguments["from"]) == ("change_site_rules", None)
    await box.aclose()


async def test_a_lasting_refusal_holds_where_lasting_answers_that_allow_are_off(
    site_file: Path, tmp_path: Path
) -> None:
    site_file.write_text(json.dumps({"rules": [], "features": {"grants": "force-off"}}))
    box = a_box(tmp_path)
    await box.start()
    with pytest.raises(ToolCallRejectedError):
        await ask(box, {"answer": Answer.REJECT_ALWAYS, "grant": GrantTerms(scope=Scope.USER, uses=9)})
    assert box.policies.evaluate(CALL, DROP).effect is Effect.DENY
    await box.aclose()


async def test_servers_of_users_are_off_at_once_where_the_site_says_so(site_file: Path, tmp_path: Path) -> None:
    box = a_box(tmp_path, own={"command": "true"})
    (own,) = box.tools.servers()
    assert own.state is ServerState.STOPPED
    for text in ('{"rules": [], "features": {"local_servers": "force-off"}}', "{"):
        await write(site_file, text)
        (own,) = box.tools.servers()
        assert "set by your administrator" in own.error
        with pytest.raises(ServerConfigurationError, match="set by your administrator"):
            await box.tools.list_tools("own")
    await box.aclose()


async def test_records_go_where_the_site_says_whatever_a_user_sets(site_file: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    audit = {"sinks": [f"file://{records}"], "when_down": "deny"}
    site_file.write_text(json.dumps({"rules": [], "audit": audit}))
    settings = Settings(
        mcp_config_path=(),
        database_url=f"sqlite:///{tmp_path / 'x.sqlite'}",
        audit=AuditSettings(spool=str(tmp_path / "spool")),
    )
    box = build(settings, announcer=FakeAnnouncer())
    await box.start()
    await box.aclose()
    started, stopped = map(json.loads, records.read_text().splitlines())
    assert (started["event"], started["when_down"], stopped["event"]) == ("started", "deny", "stopped")


@pytest.mark.parametrize(
    ("names", "kept", "said"),
    [
        ((), {}, {"password": REDACTED, "iban": "DE02", "city": "Oslo"}),
        (("*",), {}, {"password": REDACTED, "iban": "DE02", "city": "Oslo"}),
        ((), {"secret_names": ["iban"]}, {"password": SECRET, "iban": REDACTED, "city": "Oslo"}),
    ],
)
async def test_a_users_names_of_secrets_count_for_their_own_records_and_not_for_the_sites(
    site_file: Path, tmp_path: Path, names: tuple[str, ...], kept: dict[str, Any], said: dict[str, str]
) -> None:
    of_site, own = tmp_path / "site.jsonl", tmp_path / "own.jsonl"
    site_file.write_text(json.dumps({"rules": [], "audit": {"sinks": [f"file://{of_site}"], **kept}}))
    settings = Settings(
        mcp_config_path=(),
        database_url=f"sqlite:///{tmp_path / 'x.sqlite'}",
        secret_names=names,
        audit=AuditSettings(spool=str(tmp_path / "spool"), sinks=(f"file://{own}",)),
    )
    tools = FakeTools({"shop.drop": drop})
    box = build(settings, announcer=FakeAnnouncer(), own_tools={"shop": tools}, policy=EVERYTHING)
    await box.start()
    arguments = {"password": SECRET, "iban": "DE02", "city": "Oslo"}
    call = ToolCall(server="shop", tool="drop", arguments=arguments)
    await box.calls.run(call, on_waiting=lambda _: None, on_running=lambda _: None)
    [stored] = (await box.store.list(ApprovalQuery())).approvals
    await box.aclose()

    told = {path: [json.loads(line) for line in path.read_text().splitlines()] for path in (of_site, own)}
    assert [record["event"] for record in told[of_site]] == ["started", "decided", "ended", "stopped"]
    assert [record["event"] for record in told[own]] == ["started", "decided", "ended", "stopped"]
    assert [record["arguments"] for record in told[of_site][1:3]] == [said, said]
    of_user = dict.fromkeys(arguments, REDACTED) if names else arguments
    assert [record["arguments"] for record in told[own][1:3]] == [of_user, of_user] == 2 * [stored.call.arguments]
    assert told[of_site][1]["call_digest"] == told[own][1]["call_digest"] == call.digest
    for path in (of_site, own):
        (chain,), strange = check_trail(path.read_text().splitlines())
        assert (chain.is_whole, chain.is_ended, strange) == (True, True, 0)
    assert told[of_site][0]["chain"] != told[own][0]["chain"]


async def test_records_of_a_program_wait_where_those_of_the_server_do_and_not_where_it_works(
    site_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site_file.write_text(json.dumps({"rules": [], "audit": {"sinks": [f"file://{tmp_path}/none/records.jsonl"]}}))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    settings = Settings(
        mcp_config_path=(),
        database_url=f"sqlite:///{tmp_path / 'x.sqlite'}",
        audit=AuditSettings(last_patience=0.01),
    )
    box = build(settings, announcer=FakeAnnouncer())
    await box.start()
    await box.aclose()
    assert list(work.iterdir()) == []
    assert len(list((tmp_path / "data/agentbox/audit-spool").iterdir())) == 1
