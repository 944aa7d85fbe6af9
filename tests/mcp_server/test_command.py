"""The command as MCP clients see it: code here, decisions through the client or by rules."""

from __future__ import annotations

import asyncio
import base64
import getpass
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from jupyter_agentbox import cli
from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.mcp_server.consent import read_consent
from jupyter_agentbox.mcp_server.progress_reporter import REPORT_INTERVAL
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.system import SystemClock
from tests.headless.executor.conftest import MINI

from .conftest import ADD, ROOT, TIMEOUT, Connect, Person, rejects, text_of

PNG = b"\x89PNG picture"
PICTURE = f"from IPython.display import Image, display\ndisplay(Image(data={PNG!r}, format='png'))"
WAITS = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)"


async def records(places: Path) -> list[ApprovalRequest]:
    """Return what the approval store has, oldest first."""
    url = sqlite_url(str(places / "data" / "agentbox" / "approvals.sqlite"))
    async with SqlApprovalStore(url, clock=SystemClock()) as store:
        return list(reversed((await store.list(ApprovalQuery())).approvals))


def decisions(kept: Sequence[ApprovalRequest]) -> list[tuple[str, Status, str]]:
    return [(found.call.qualified_name, found.status, found.decision.reason) for found in kept if found.decision]


# -- code and results


async def test_code_runs_in_a_sandbox_where_one_is_asked_for(connect: Connect, places: Path) -> None:
    person = Person()
    (places / "work").mkdir()
    async with connect("--sandbox", "--working-dir", "work", person=person) as caller:
        added = await caller.run(ADD)
        outside = await caller.run(f"print(open({str(places / 'config' / 'mcp.json')!r}).read())")
        again = await caller.call("reset")
    assert (text_of(added), len(person.shown)) == ("3", 1)
    assert outside.is_error, text_of(outside)
    assert not again.is_error, text_of(again)


async def test_a_sandbox_that_cannot_be_had_runs_nothing(connect: Connect, places: Path) -> None:
    (places / "box.json").write_text(json.dumps({"no_such_setting": 1}))
    async with connect("--sandbox-config", "box.json") as caller:
        refused = await caller.run("print(1)")
    assert refused.is_error
    assert "no_such_setting" in text_of(refused)


async def test_a_person_is_told_of_a_letter_that_is_not_what_it_looks_like(connect: Connect, places: Path) -> None:
    configuration = places / "config" / "mcp.json"
    configuration.write_text(configuration.read_text().replace('"mini"', '"min\\u0456"'))
    person = Person(rejects())
    async with connect(person=person) as caller:
        await caller.run(ADD.replace("mini", "min\u0456"))
    assert "Look closely: In the server's name, U+0456 CYRILLIC" in person.shown[0].partition("\n\n")[0]


async def test_code_gives_text_images_and_errors_and_keeps_its_state(connect: Connect, places: Path) -> None:
    async with connect() as caller:
        printed = await caller.run("x = 6\nprint('a')\nx * 7")
        image = await caller.run(f"print('before')\n{PICTURE}")
        failed = await caller.run(f"print('before')\n{PICTURE}\n1 / 0")
        state = await caller.run("await __import__('asyncio').sleep(0, x)")
        nothing = await caller.run("y = '\\ud800'")
        lone = await caller.run("print(y)")

    assert (text_of(printed), printed.is_error) == ("a\n42", False)
    assert [block.type for block in image.content] == ["text", "image"]
    (shown,) = (block for block in image.content if block.type == "image")
    assert (base64.b64decode(shown.data), shown.mime_type) == (PNG, "image/png")
    assert failed.is_error
    assert text_of(failed).startswith("before\n")
    assert "ZeroDivisionError" in text_of(failed)
    assert [block.type for block in failed.content] == ["text", "text", "image"]
    assert text_of(state) == "6"
    assert (text_of(nothing), nothing.is_error) == ("(no output)", False)
    assert not lone.is_error
    assert not list(places.rglob("*.png"))


async def test_images_are_files_if_asked(connect: Connect, places: Path) -> None:
    async with connect("--images-dir", str(places / "kept")) as caller:
        await caller.run(PICTURE)
    assert [path.parent for path in places.rglob("*.png")] == [places / "kept"]


# -- decisions


async def test_a_person_at_the_client_decides_and_sees_what_would_run(connect: Connect, places: Path) -> None:
    person = Person()
    async with connect(person=person) as caller:
        allowed = await caller.run(ADD)
        person.answer = rejects("not today")
        rejected = await caller.run("tools.mini.add(a=3, b=4)")
        person.answer = lambda _: ElicitResult(action="decline")
        declined = await caller.run("tools.mini.add(a=5, b=6)")
        person.answer = lambda _: ElicitResult(action="cancel")
        closed = await caller.run("tools.mini.add(a=7, b=8)")

    assert (text_of(allowed), allowed.is_error) == ("3", False)
    assert all(result.is_error for result in (rejected, declined, closed))
    assert "ToolCallRejectedError" in text_of(rejected)
    assert text_of(rejected).count("not today") == 1
    assert text_of(rejected).count("ToolCallRejectedError") == 1
    assert len(text_of(rejected).splitlines()) <= 4
    facts = [json.loads(text.partition("\n\n")[2]) for text in person.shown]
    assert facts[0] == {"server": "mini", "tool": "add", "arguments": {"a": 1, "b": 2}}
    assert person.schemas[0]["required"] == ["decision"]
    kept = await records(places)
    reviewer = Reviewer(name=getpass.getuser(), via=Via.MCP_CLIENT)
    assert [found.decision and found.decision.reviewer for found in kept] == [reviewer] * 4
    assert decisions(kept) == [
        ("mini.add", Status.APPROVED, ""),
        ("mini.add", Status.REJECTED, "not today"),
        ("mini.add", Status.REJECTED, ""),
        ("mini.add", Status.REJECTED, read_consent("cancel", None).reason),
    ]


@pytest.mark.parametrize(("effect", "text", "is_error"), [("allow", "3", False), ("deny", "as told", True)])
async def test_rules_decide_before_anybody_is_asked(
    connect: Connect, places: Path, effect: str, text: str, is_error: bool
) -> None:
    rules = places / "rules.json"
    rules.write_text(json.dumps({"rules": [{"server": "mini", "tool": "*", "effect": effect, "reason": "as told"}]}))
    person = Person(rejects())
    async with connect("--rules", str(rules), person=person) as caller:
        result = await caller.run(ADD)

    assert result.is_error == is_error
    assert text in text_of(result)
    assert person.shown == []


async def test_shell_commands_are_asked_about_if_the_option_says_so(connect: Connect, places: Path) -> None:
    person = Person()
    async with connect("--approve-shell-cmds", "--working-dir", str(places), person=person) as caller:
        allowed = await caller.run("!pwd")
        person.answer = rejects("no shell")
        rejected = await caller.run("!echo hello")

    assert text_of(allowed) == str(places)
    assert '"cmd": "echo hello"' in person.shown[1]
    assert "no shell" in text_of(rejected)


async def test_a_request_that_nobody_answers_expires_and_its_question_is_withdrawn(connect: Connect) -> None:
    withdrawn = asyncio.Event()

    async def never(_: str) -> ElicitResult:
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError

    async with connect("--approval-timeout", "5", person=Person(never)) as caller:
        result = await caller.run(ADD)
        async with asyncio.timeout(TIMEOUT):
            await withdrawn.wait()

    assert result.is_error
    assert text_of(result).count("ApprovalExpiredError") == 1
    assert len(text_of(result).splitlines()) <= 4


# -- time, cancellation, order


async def test_a_cell_that_takes_too_long_is_interrupted(connect: Connect) -> None:
    async with connect("--timeout", "1000") as caller:
        over = await caller.run(WAITS, timeout=5)
        after = await caller.run("1")

    assert over.is_error
    assert text_of(over).startswith("begun\n")
    assert "more than 5.00s" in text_of(over)
    assert text_of(after) == "1"


async def test_the_time_for_a_decision_does_not_count_and_progress_keeps_the_client_waiting(connect: Connect) -> None:
    messages: list[str] = []
    beats = asyncio.Event()

    async def progress(_progress: float, _total: float | None, message: str | None) -> None:
        messages.append(message or "")
        told = [message for message in messages if message.startswith("waiting for a decision about mini.add for ")]
        if len(told) == 2:  # the second comes with time alone
            beats.set()

    async def think(_: str) -> ElicitResult:
        await beats.wait()
        return ElicitResult(action="accept", content={"decision": "allow"})

    person = Person()
    async with connect(person=person) as caller:
        await caller.run(ADD)  # the server runs by then
        person.answer = think
        arguments = {"code": "print(tools.mini.add(a=1, b=2))", "timeout": REPORT_INTERVAL - 1}
        result = await caller.call("execute_code", arguments, progress_callback=progress)

    assert text_of(result) == "3"


async def test_what_a_tool_and_its_server_say_reaches_a_client_that_wants_progress(
    connect: Connect, places: Path
) -> None:
    (places / "rules.json").write_text(json.dumps({"rules": [{"server": "mini", "tool": "*", "effect": "allow"}]}))
    heard: list[tuple[float, str]] = []

    async def progress(progress: float, _total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))

    code = "from jupyter_agentbox import tools\nprint(tools.mini.chat())"
    async with connect("--rules", "rules.json") as caller:
        await caller.call("execute_code", {"code": code}, progress_callback=progress)

    messages = [message for _, message in heard]
    steps = [f"mini.chat: {step} of 2: step {step}<U+202E>" for step in (1, 2)]
    assert [message for message in messages if "chat" in message] == steps
    assert "mini: [info] db: row 2 <U+001B>[31m" in messages
    numbers = [number for number, _ in heard]
    assert numbers == sorted(set(numbers))


async def test_cancelling_the_request_interrupts_the_cell_and_withdraws_its_question(connect: Connect) -> None:
    withdrawn = asyncio.Event()

    async def never(_: str) -> ElicitResult:
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError

    person = Person(never)
    async with connect(person=person) as caller:
        await caller.run("x = 1")
        running = asyncio.ensure_future(caller.run(ADD))
        await asyncio.wait_for(person.asked.wait(), TIMEOUT)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.wait_for(withdrawn.wait(), TIMEOUT)
        after = await caller.run("x")

    assert text_of(after) == "1"


async def test_requests_at_once_run_one_after_the_other_in_their_order(connect: Connect) -> None:
    async with connect() as caller:
        await caller.run("import time\norder = []")
        code = "order.append(({0}, 'in')); time.sleep(0.02); order.append(({0}, 'out'))"
        await asyncio.gather(*(caller.run(code.format(number)) for number in range(6)))
        order = await caller.run("order == [(n, w) for n in range(6) for w in ('in', 'out')]")

    assert text_of(order) == "True"


async def test_a_request_that_waits_for_its_turn_can_be_cancelled(connect: Connect, places: Path) -> None:
    gate = places / "gate"
    async with connect() as caller:
        await caller.run("import os, time")
        first = asyncio.ensure_future(caller.run(f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n'first'"))
        second = asyncio.ensure_future(caller.run("ran = True"))
        third = asyncio.ensure_future(caller.run("'ran' in globals()"))
        await asyncio.sleep(0)  # they are sent in this order
        listed = await caller.call("list_tools")  # is answered meanwhile
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        await caller.call("list_tools")  # what was sent before is known by then
        gate.touch()
        results = [text_of(await request) for request in (first, third)]

    assert not listed.is_error
    assert results == ["'first'", "False"]


async def test_reset_gives_a_fresh_kernel_and_ends_what_runs_and_waits(connect: Connect) -> None:
    async with connect() as caller:
        await caller.run("x = 1")
        begun = asyncio.Event()

        async def progress(_progress: float, _total: float | None, _message: str | None) -> None:
            begun.set()

        running = asyncio.ensure_future(
            caller.call("execute_code", {"code": "while True: pass"}, progress_callback=progress)
        )
        await asyncio.wait_for(begun.wait(), TIMEOUT)
        waiting = asyncio.ensure_future(caller.run("y = 1"))
        await caller.call("list_tools")  # the request before is known by then
        assert not (await caller.call("reset")).is_error
        ended = [await request for request in (running, waiting)]
        gone = await caller.run("'x' in globals(), 'y' in globals()")

    assert all(result.is_error and "reset" in text_of(result) for result in ended)
    assert text_of(gone) == "(False, False)"


async def test_a_kernel_that_dies_is_an_error_that_says_what_to_do(connect: Connect) -> None:
    async with connect() as caller:
        died = await caller.run("import os; os._exit(3)")
        again = await caller.run("1")
        await caller.call("reset")
        after = await caller.run("1")

    assert died.is_error
    assert "reset" in text_of(died)
    assert again.is_error
    assert text_of(after) == "1"


# -- servers and tools


async def test_a_server_is_registered_once_a_person_approves_and_both_answers_are_kept(
    connect: Connect, places: Path
) -> None:
    registered = places / "data" / "agentbox" / "registered-servers.json"
    new = {**MINI, "env": {"API_KEY": "s3cret-word", "REGION": "eu"}}
    person = Person(rejects("who made it?"))
    async with connect(person=person) as caller:
        rejected = await caller.call("register_mcp_server", {"name": "two", "configuration": new})
        assert not registered.exists()
        person.answer = Person().answer
        allowed = await caller.call("register_mcp_server", {"name": "two", "configuration": new})
        again = await caller.call("register_mcp_server", {"name": "Two", "configuration": new})
        configured = await caller.call("register_mcp_server", {"name": "mini", "configuration": new})
        called = await caller.run("from jupyter_agentbox import tools; print(tools.two.add(a=1, b=1))")
        named = await caller.run("tools.two.Where_Is.__name__")
        listed = await caller.call("list_tools")

    assert "who made it?" in text_of(rejected)
    assert not allowed.is_error
    assert "Where-Is" in text_of(allowed)
    assert json.loads(registered.read_text())["mcpServers"] == {"two": new}
    assert registered.stat().st_mode & 0o077 == 0
    assert "already an MCP server `two`" in text_of(again)
    assert "already an MCP server `mini`" in text_of(configured)
    assert text_of(called) == "2"
    servers = listed.structured_content["servers"]
    pythons = {server["name"]: {tool["name"]: tool["python"] for tool in server["tools"]} for server in servers}
    assert list(pythons) == ["mini", "two"]
    assert pythons["two"]["Where-Is"] == "tools.two.Where_Is"
    assert not named.is_error
    assert len(person.shown) == 3  # twice for the server, once for the call
    everything = [*person.shown, *map(text_of, (rejected, allowed, again, configured, called, listed))]
    assert not any("s3cret-word" in text for text in everything)
    assert '"REGION": "eu"' in person.shown[0]
    kept = [found for found in await records(places) if found.call.server == "agentbox"]
    assert decisions(kept) == [
        ("agentbox.register_mcp_server", Status.REJECTED, "who made it?"),
        ("agentbox.register_mcp_server", Status.APPROVED, ""),
    ]
    assert [found.outcome_state for found in kept] == [None, OutcomeState.SUCCEEDED]
    assert "s3cret-word" not in repr(kept)


async def test_a_rule_allows_a_registration_only_by_its_full_name(connect: Connect, places: Path) -> None:
    rules = places / "rules.json"
    for server, tool, is_added in (
        ("*", "*", False),
        ("agentbox", "*", False),
        ("agentbox", "register_mcp_server", True),
    ):
        rules.write_text(json.dumps({"rules": [{"server": server, "tool": tool, "effect": "allow"}]}))
        async with connect("--ask", "nobody", "--rules", str(rules)) as caller:
            result = await caller.call("register_mcp_server", {"name": "two", "configuration": MINI})
        assert result.is_error is not is_added
        assert ("`agentbox.register_mcp_server` in full" in text_of(result)) is not is_added


async def test_what_cannot_be_registered_is_refused_without_asking(connect: Connect) -> None:
    wrong = [
        ("shell", MINI),
        ("a b", MINI),
        ("two", {"command": ""}),
        ("two", {"command": "${AGENTBOX_TEST_UNSET}"}),
        ("two", "a string"),
    ]
    person = Person()
    async with connect(person=person) as caller:
        results = [
            await caller.call("register_mcp_server", {"name": name, "configuration": configuration})
            for name, configuration in wrong
        ]

    assert all(result.is_error for result in results)
    assert person.shown == []


async def test_a_server_that_does_not_start_is_not_kept(connect: Connect, places: Path) -> None:
    code = "import os, sys; sys.exit(f'no good: {os.environ[chr(75)]}')"
    broken = {"command": sys.executable, "args": ["-c", code], "env": {"K": "s3cret-word"}}
    async with connect(person=Person()) as caller:
        result = await caller.call("register_mcp_server", {"name": "two", "configuration": broken})

    assert result.is_error
    assert "no good" in text_of(result)
    assert "s3cret-word" not in text_of(result)
    assert not (places / "data" / "agentbox" / "registered-servers.json").exists()


async def test_with_a_configuration_file_of_its_own_no_server_is_registered(connect: Connect, places: Path) -> None:
    own = places / "own.json"
    own.write_text(json.dumps({"mcpServers": {"mine": MINI}}))
    person = Person()
    async with connect("--mcp-config", str(own), person=person) as caller:
        result = await caller.call("register_mcp_server", {"name": "two", "configuration": MINI})
        listed = await caller.call("list_tools")

    assert "--mcp-config" in text_of(result)
    assert person.shown == []
    assert [server["name"] for server in listed.structured_content["servers"]] == ["mine"]


# -- the command line


@pytest.mark.parametrize(
    "options",
    [
        ("--rules", "missing.json"),
        ("--working-dir", "missing"),
        ("--ask", "everybody"),
        ("--timeout", "0"),
        ("--timeout", "nan"),
    ],
)
def test_a_wrong_command_line_is_said_on_standard_error(
    places: Path, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(places)
    monkeypatch.setattr("sys.argv", ["jupyter-agentbox", "mcp", *options])
    with pytest.raises(SystemExit) as ended:
        cli.entry()
    output, errors = capsys.readouterr()

    assert ended.value.code == 2
    assert output == ""
    assert options[0] in errors or options[1] in errors


# -- the lines that people copy


def documented_commands() -> set[tuple[str, ...]]:
    """Return every command line for clients on the pages that name some."""
    found: set[tuple[str, ...]] = set()
    for page in ("from-your-agent", "serve-mcp-clients"):
        text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text("utf-8")
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for language, block in blocks:
            match language:
                case "bash" if block.startswith("claude mcp add "):
                    found.add(tuple(shlex.split(block.partition(" -- ")[2])))
                case "json" if "mcpServers" in block:
                    found |= {(one["command"], *one["args"]) for one in json.loads(block)["mcpServers"].values()}
                case "toml":
                    found |= {(one["command"], *one["args"]) for one in tomllib.loads(block)["mcp_servers"].values()}
    return {line for line in found if line[0].endswith("jupyter-agentbox")}


async def test_what_the_pages_have_people_copy_into_their_clients_starts_the_command(
    places: Path, environment: Mapping[str, str]
) -> None:
    lines = documented_commands()
    assert len(lines) == 3
    here = {"/path/to/env/bin": str(Path(sys.executable).parent), "/path/to/project": str(places)}

    async def tools_of(line: tuple[str, ...]) -> list[str]:
        words = [next((word.replace(old, new) for old, new in here.items() if old in word), word) for word in line]
        parameters = StdioServerParameters(command=words[0], args=words[1:], env=dict(environment), cwd=places)
        async with asyncio.timeout(TIMEOUT), Client(parameters) as client:
            return sorted(tool.name for tool in (await client.list_tools()).tools)

    offered = await asyncio.gather(*(tools_of(line) for line in lines))

    assert offered == [["execute_code", "list_tools", "register_mcp_server", "reset"]] * 3
