"""Headers of an HTTP server that a program prints."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.exceptions import ToolServerError
from jupyter_agentbox.mcp_client import headers_helper
from jupyter_agentbox.mcp_client.configuration import Configuration, HttpServer, parse_configuration
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of
from tests.oauth_server import OAuthServer, running_oauth_server

CALL = ToolCall(server="crm", tool="whoami", arguments={})
#: Prints the token in a file, and notes with which environment it was run.
HELPER = """
import json, os, sys
from pathlib import Path
root = Path(sys.argv[1])
with (root / "runs").open("a") as runs:
    runs.write(json.dumps({"args": sys.argv[2:], "env": dict(os.environ)}) + "\\n")
token = (root / "token").read_text()
sys.stderr.write(f"the token is {token}\\n")
print(json.dumps({"Authorization": f"Bearer {token}", "X-Team": "blue"}))
"""


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as found:
        yield found


def entry(remote_url: str, directory: Path, program: str = HELPER, *args: str) -> dict[str, Any]:
    (directory / "helper.py").write_text(program)
    words = (sys.executable, str(directory / "helper.py"), str(directory), *args)
    return {"url": remote_url, "headersHelper": shlex.join(words)}


def read(configuration: dict[str, Any], **environment: str) -> Configuration:
    text = json.dumps({"mcpServers": {"crm": configuration}})
    return parse_configuration(Path("/mcp.json"), text, environment, of_others=frozenset({"HUB_USER"}))


@asynccontextmanager
async def connected(configuration: dict[str, Any]) -> AsyncIterator[McpServers]:
    class Source:
        def load(self) -> Configuration:
            return loaded

    loaded = read(configuration)
    servers = McpServers(source=Source(), limits=ServerLimits())
    try:
        yield servers
    finally:
        await servers.aclose()


def runs(directory: Path) -> list[Any]:
    return [json.loads(line) for line in (directory / "runs").read_text().splitlines()]


async def test_what_the_program_prints_is_sent_and_it_gets_no_secrets_of_jupyter(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_TOKEN", "s3cret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    remote.valid["token-1"] = "ada"
    (tmp_path / "token").write_text("token-1")
    async with connected(entry(remote.url, tmp_path)) as servers:
        assert (await servers.call_tool(CALL)).text == "you are ada"
        (run,) = runs(tmp_path)
        assert (run["env"]["MCP_SERVER_NAME"], run["env"]["MCP_SERVER_URL"]) == ("crm", remote.url)
        assert "s3cret" not in json.dumps(run)
        (status,) = servers.servers()
        assert "token-1" not in f"{status}"
        assert any("the token is ***" in line for line in status.log)


async def test_it_is_run_again_when_the_server_refuses_its_token_and_the_call_runs_once(
    remote: OAuthServer, tmp_path: Path
) -> None:
    remote.valid["token-1"] = "ada"
    (tmp_path / "token").write_text("token-1")
    async with connected(entry(remote.url, tmp_path)) as servers:
        await servers.list_tools("crm")
        del remote.valid["token-1"]
        remote.valid["token-2"] = "ada"
        (tmp_path / "token").write_text("token-2")
        remote.bearers.clear()
        assert (await servers.call_tool(CALL)).text == "you are ada"
        assert remote.bearers[:2] == ["Bearer token-1", "Bearer token-2"]
        assert len(runs(tmp_path)) == 2

        remote.valid.clear()  # from now on nothing helps, and nothing is sent for ever
        remote.bearers.clear()
        with pytest.raises(ToolServerError, match="it does not accept the headers that its `headersHelper` printed"):
            await servers.call_tool(CALL)
        assert set(remote.bearers) == {"Bearer token-2"}
        assert len(remote.bearers) < 5


async def test_calls_that_wait_for_a_renewal_that_fails_do_not_try_it_again(
    remote: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers_helper, "_PATIENCE", 8.0)
    remote.valid["token-1"] = "ada"
    (tmp_path / "token").write_text("token-1")
    waits = "if (root / 'waits').exists(): __import__('time').sleep(600)"
    async with connected(entry(remote.url, tmp_path, f"{HELPER}{waits}")) as servers:
        await servers.list_tools("crm")
        remote.valid.clear()
        (tmp_path / "waits").touch()
        calls = [servers.call_tool(CALL) for _ in range(5)]
        assert all(isinstance(one, ToolServerError) for one in await asyncio.gather(*calls, return_exceptions=True))
    assert len(runs(tmp_path)) == 2


async def test_no_part_of_a_token_is_logged_from_a_standard_error_that_is_cut_off(
    remote: OAuthServer, tmp_path: Path
) -> None:
    remote.valid["s3cret" * 20] = "ada"
    program = """
import json, sys
token = "s3cret" * 20
sys.stderr.write("x" * 1950 + f" {token} \\n" + f"{token} " * 1000)
print(json.dumps({"Authorization": f"Bearer {token}"}))
"""
    async with connected(entry(remote.url, tmp_path, program)) as servers:
        assert (await servers.call_tool(CALL)).text == "you are ada"
        (status,) = servers.servers()
    assert any(f"{'x' * 1950} *** " in line for line in status.log)
    assert not any("s3" in line for line in status.log)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; print('s3cret'); sys.exit(3)", "its `headersHelper` ended with status 3"),
        ("print('s3cret')", "its `headersHelper` did not print a JSON object of strings"),
        ("print('[\"s3cret\"]')", "its `headersHelper` did not print a JSON object of strings"),
        ("print('{\"Authorization\": 5}')", "its `headersHelper` did not print a JSON object of strings"),
        (
            r"""print('{"X": "s3cret\\r\\nY: 1"}')""",
            "printed something other than headers: the header 'X' cannot be sent",
        ),
        (
            r"""print('{"X": "s3cret\\\\more "}')""",  # the HTTP client's error would contain it, with escapes
            "the header 'X' cannot be sent: it begins or ends with a blank",
        ),
        (r"""print('{"X": "s3cret\\u000b"}')""", "the header 'X' cannot be sent: it has a character that HTTP forbids"),
        (
            """import json; print(json.dumps({"X": " ".join(f"s3cret{n}" for n in range(5000))}))""",
            "its `headersHelper` printed more than 100 headers and words",
        ),
        ("print('\"' + 's3cret' * 20000 + '\"')", "its `headersHelper` printed more than 65,536 bytes"),
        ("import time; time.sleep(600)", "its `headersHelper` took more than 1 s"),
    ],
)
async def test_a_program_that_prints_no_headers_is_an_error_without_its_output(
    remote: OAuthServer, tmp_path: Path, program: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in program:
        monkeypatch.setattr(headers_helper, "_PATIENCE", 1.0)
    async with connected(entry(remote.url, tmp_path, program)) as servers:
        with pytest.raises(ToolServerError, match="`crm` did not start: ") as caught:
            await servers.call_tool(CALL)
    assert says in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert remote.bearers == []


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        ("sys.exit(3)", "ended with status 3"),
        ("", "did not print a JSON object of strings"),
        ("sys.stdout.flush(); __import__('time').sleep(600)", "took more than 8 s"),
    ],
)
async def test_what_a_program_that_fails_writes_is_in_the_log_and_in_no_error(
    remote: OAuthServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fails: str,
    why: str,
) -> None:
    if "sleep" in fails:  # the other programs have all the time that they need on a slow machine
        monkeypatch.setattr(headers_helper, "_PATIENCE", 8.0)
    program = f"""
import sys
sys.stderr.write("log in again\\x1b[31m at \\u202ethe vault\\n")
sys.stderr.write("I have s3cret-1 and Authorization: Bearer s3cret-2 and password=s3cret-3\\n")
sys.stderr.write("x" * 5000)
sys.stderr.flush()
print('{{"token": "s3cret-1"', flush=True)
{fails}
"""
    async with connected(entry(remote.url, tmp_path, program)) as servers:
        with pytest.raises(ToolServerError, match=why) as caught:
            await servers.call_tool(CALL)
        (status,) = servers.servers()
    assert "log in" not in str(caught.value)
    (record,) = [one for one in caplog.records if one.name == headers_helper.__name__]
    assert record.levelno == logging.WARNING
    said = record.getMessage()
    assert f"the MCP server crm: its `headersHelper` {why}, and wrote to its standard error: log in again at" in said
    assert said.isprintable()
    assert len(said) < 2500
    assert [line.startswith("log in again at") for line in status.log] == [True]
    assert "s3cret" not in said + "".join(status.log) + status.error + status.last_error


async def test_that_a_program_fails_is_in_the_log_also_if_it_writes_nothing(
    remote: OAuthServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(entry(remote.url, tmp_path, "import sys; sys.exit(3)")) as servers:
        with pytest.raises(ToolServerError):
            await servers.call_tool(CALL)
    told = [one.getMessage() for one in caplog.records if one.name == headers_helper.__name__]
    assert told == ["the MCP server crm: its `headersHelper` ended with status 3"]


async def test_what_a_program_writes_is_in_no_error_of_the_server_either(remote: OAuthServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("not-valid")
    async with connected(entry(remote.url, tmp_path)) as servers:
        with pytest.raises(ToolServerError, match="`crm` did not start") as caught:
            await servers.call_tool(CALL)
        assert any("the token is ***" in line for line in servers.servers()[0].log)
    assert "the token is" not in str(caught.value)


async def test_a_program_that_printed_too_much_to_look_for_is_not_quoted(
    remote: OAuthServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = "import sys\nfor n in range(500): print(f's3cret-{n}')\nsys.stderr.write('I have s3cret-7')"
    async with connected(entry(remote.url, tmp_path, program)) as servers:
        with pytest.raises(ToolServerError, match="did not print a JSON object"):
            await servers.call_tool(CALL)
    assert "(not shown, because it may repeat what the program printed" in caplog.text
    assert "s3cret" not in caplog.text


async def test_a_program_that_does_not_exist_is_an_error(remote: OAuthServer) -> None:
    async with connected({"url": remote.url, "headersHelper": "/no/such/program"}) as servers:
        with pytest.raises(ToolServerError, match="its `headersHelper` ended with status 127"):
            await servers.call_tool(CALL)


def helper_of(configuration: Configuration) -> tuple[str, ...]:
    server = configuration.servers["crm"]
    assert isinstance(server, HttpServer)
    return server.headers_helper


def test_a_variable_never_becomes_several_words_or_another_program() -> None:
    configuration = {"url": "https://crm.example", "headersHelper": "'/opt/a b' --user=${HUB_USER} \"x y\""}
    found = read(configuration, HUB_USER="eve --all; rm -rf ~")
    assert helper_of(found) == ("/opt/a b", "--user=eve --all; rm -rf ~", "x y")
    assert helper_of(read({"url": "https://crm.example", "headersHelper": "~/bin/t"})) == (f"{Path.home()}/bin/t",)


@pytest.mark.parametrize(
    ("helper", "says"),
    [
        ("", '"headersHelper" must begin with the name of a program on the PATH'),
        ("bin/token", '"headersHelper" must begin with the name of a program on the PATH, or with an absolute path'),
        ("./token", '"headersHelper" must begin with the name of a program on the PATH, or with an absolute path'),
        ("'token", '"headersHelper" is not a command line: no closing quotation'),
        (5, '"headersHelper" must be a command line'),
        (["/bin/token", "--password=s3cret"], '"headersHelper" must be a command line'),
    ],
)
def test_a_command_line_that_cannot_be_run_is_a_problem_of_its_key(helper: Any, says: str) -> None:
    (problem,) = read({"url": "https://crm.example", "headersHelper": helper}).problems
    assert says in problem.message


def test_another_program_is_another_trust_key_and_none_is_the_key_of_before() -> None:
    url = {"url": "https://crm.example"}
    keys = [
        trust_key_of(read(one).servers["crm"])
        for one in (url, {**url, "headersHelper": "a"}, {**url, "headersHelper": "a b"})
    ]
    assert len({*keys}) == 3
    assert keys[0] == trust_key_of(HttpServer(name="crm", url="https://crm.example"))
