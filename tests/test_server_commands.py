"""`jupyter agentbox servers`: the way of a sign-in through a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tornado import web

from jupyter_agentbox import cli
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.services.handlers import SETTINGS_KEY
from tests.oauth_server import OAuthServer, running_oauth_server
from tests.terminals import TerminalCommand

#: The command, beside a server that has begun a sign-in.
WAITING = """
import sys
from types import SimpleNamespace
from jupyter_agentbox import server_commands

async def begin(): return SimpleNamespace(host="shop.example", address="https://shop.example/")
server_commands.TerminalSignIn = lambda *_: SimpleNamespace(begin=begin, close=lambda: None)
sys.exit(server_commands.main(["servers", "sign-in", "shop", "--server", "http://127.0.0.1:1/", "--token", "x"]))
"""


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with running_oauth_server() as server:
        yield server


@pytest.fixture
def decide_with() -> str:
    return "any"


@pytest.fixture
def jp_server_config(tmp_path: Path, remote: OAuthServer, decide_with: str) -> Any:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"remote": {"url": remote.url}}}))
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
            "decide_with": decide_with,
            "sign_in_storage": "file",
        },
    }


class Terminal:
    """What the command shows; what a person pastes depends on the page that it names."""

    def __init__(self, paste: Callable[[str], str]) -> None:
        self._paste = paste
        self._asked = 0
        self.shown = ""

    def write(self, text: str) -> int:
        self.shown += text
        return len(text)

    def flush(self) -> None:
        """There is nothing to wait for."""

    def readline(self) -> str:
        page = next(line for line in self.shown.splitlines() if line.startswith("http"))
        lines = self._paste(page).splitlines(keepends=True)
        self._asked += 1
        return lines[self._asked - 1] if self._asked <= len(lines) else ""


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, jp_serverapp: Any, jp_base_url: str, http_server_port: Any, http_server_client: Any
) -> Callable[..., Any]:
    """Run the command beside the server; return its exit code and what it showed."""

    async def run(*args: str, paste: Callable[[str], str] = lambda _: "") -> tuple[int, str]:
        terminal = Terminal(paste)
        for name in ("stdin", "stdout", "stderr"):
            monkeypatch.setattr(sys, name, terminal)
        url = f"http://127.0.0.1:{http_server_port[1]}{jp_base_url}"
        where = ("--server", url, "--token", jp_serverapp.identity_provider.token)
        code = await asyncio.to_thread(cli.main, ["servers", *args, *where])
        return code, terminal.shown

    return run


async def who_tools_act_as(jp_serverapp: Any) -> str:
    catalog = jp_serverapp.web_app.settings[SETTINGS_KEY].catalog
    return str((await catalog.call_tool(ToolCall(server="remote", tool="whoami", arguments={}))).text)


async def test_a_person_signs_in_by_the_address_that_their_browser_came_to_and_signs_out(
    run: Any, remote: OAuthServer, jp_serverapp: Any, jp_data_dir: Path
) -> None:
    code, shown = await run("sign-in", "remote", paste=lambda page: f"{remote.grant(page)}\n")

    assert (code, "You are signed in" in shown) == (0, True), shown
    assert f"look at its host, {remote.origin.removeprefix('http://')}:" in shown
    assert await who_tools_act_as(jp_serverapp) == "you are ada"

    code, shown = await run("sign-out", "remote")
    assert (code, shown) == (0, "You are signed out.\n")
    assert remote.refreshable == {}
    assert not (jp_data_dir / "agentbox" / "sign-ins.json").exists()


async def test_the_address_of_the_login_page_that_stood_in_the_way_counts_as_well(
    run: Any, remote: OAuthServer, jp_base_url: str
) -> None:
    def paste(page: str) -> str:
        place = remote.grant(page)
        origin, _, path = place.partition(jp_base_url)
        return f"{origin}{jp_base_url}login?next={quote(jp_base_url + path, safe='')}\n"

    code, shown = await run("sign-in", "remote", paste=paste)
    assert (code, "You are signed in" in shown) == (0, True), shown


async def test_what_leads_elsewhere_is_not_followed_and_asked_for_again(run: Any, remote: OAuthServer) -> None:
    lines = ["", "https://elsewhere.example/?state=x&code=y", "http://["]
    code, shown = await run("sign-in", "remote", paste=lambda _: "".join(f"{line}\n" for line in lines))
    assert (code, shown.count("try again"), "no address was entered" in shown) == (1, len(lines), True), shown
    assert remote.issued == []


async def test_an_answer_to_another_sign_in_signs_nobody_in(run: Any, remote: OAuthServer) -> None:
    code, shown = await run(
        "sign-in", "remote", paste=lambda page: remote.grant(page).replace("state=", "state=x") + "\n"
    )
    assert (code, "this sign-in is over, or was never begun here" in shown) == (1, True), shown
    assert remote.issued == []


async def test_an_unknown_server_is_named(run: Any) -> None:
    code, shown = await run("sign-in", "nothing")
    assert (code, "`nothing`" in shown) == (1, True), shown


@pytest.mark.parametrize("decide_with", ["person"])
async def test_where_only_a_browser_decides_no_terminal_signs_in_or_out(run: Any, remote: OAuthServer) -> None:
    for verb in ("sign-in", "sign-out"):
        code, shown = await run(verb, "remote")
        assert (code, "only a person who is logged in with a browser can decide" in shown) == (1, True), shown
    assert remote.asked == []


def test_without_a_jupyter_server_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    assert cli.main(["servers", "sign-out", "remote"]) == 2
    assert "none of your Jupyter servers is running" in capsys.readouterr().err


def test_ctrl_c_gives_up_and_waits_for_no_line() -> None:
    with TerminalCommand(dict(os.environ), [sys.executable, "-c", WAITING]) as command:
        command.read_until("Address: ")
        command.type("\x03")
        assert command.end()[0] == 130


async def test_what_is_no_jupyter_server_is_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    class Page(web.RequestHandler):
        def post(self, _path: str) -> None:
            self.finish("<html>")

    server = web.Application([("/(.*)", Page)]).listen(0, "127.0.0.1")
    port = next(iter(server._sockets.values())).getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    code = await asyncio.to_thread(cli.main, ["servers", "sign-in", "remote", "--server", url, "--token", "x"])
    server.stop()
    assert (code, "is not a Jupyter server" in capsys.readouterr().err) == (1, True)


@pytest.mark.parametrize("url", ["localhost:8888", "notebooks", "http://[::1"])
def test_what_is_no_url_of_a_server_is_an_error_of_the_command_line(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["servers", "sign-in", "remote", "--server", url])
    assert (caught.value.code, "must be a URL such as" in capsys.readouterr().err) == (2, True)
