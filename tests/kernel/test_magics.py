from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import UsageError

from jupyter_agentbox import __version__
from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.link import Link
from jupyter_agentbox.kernel.magics import agentbox, complete
from jupyter_agentbox.mcp_client.configuration import parse_configuration

from .conftest import HASTY
from .fakes import ServerEnd

Output = pytest.CaptureFixture[str]


def test_status_says_which_server_answers(tools: Any, capsys: Output) -> None:
    agentbox("")

    assert capsys.readouterr().out == (
        f"kernel side  jupyter-agentbox {__version__}\n"
        "server       jupyter-agentbox 0.1.0\n"
        "decide at    http://localhost:8888/lab\n"
        "MCP servers  1\n"
        "pending      0\n"
    )


def test_status_without_a_server_says_what_to_do(tools: Any, link: Link, server: ServerEnd, capsys: Output) -> None:
    link.patience = HASTY
    server.here = False

    agentbox("status")

    shown = capsys.readouterr().out
    assert "not connected" in shown
    assert "jupyter server extension list" in shown


def test_every_subcommand_outside_a_kernel_says_so(capsys: Output) -> None:
    runtime.use(None)

    for command in ("status", "servers", "pending"):
        agentbox(command)
        assert "NoServerError: tools can only be called in a Jupyter kernel" in capsys.readouterr().out


def test_servers_are_a_table(tools: Any, server: ServerEnd, capsys: Output) -> None:
    agentbox("servers")
    server.servers.clear()
    agentbox("servers")

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "tools.my_shop  my-shop  running  2 tools"
    assert shown[1].startswith("No MCP server is configured")


def test_where_no_server_is_configured_the_file_is_named_with_an_example_to_paste(
    tools: Any, server: ServerEnd, capsys: Output
) -> None:
    server.servers.clear()
    agentbox("servers")
    shown = capsys.readouterr().out
    with pytest.raises(AttributeError) as raised:
        tools.shop  # noqa: B018

    for text in (shown, str(raised.value)):
        assert "`/home/ada/.jupyter/mcp.json`" in text
        example = text[text.index("\n\n{") :]
        read = parse_configuration(Path("/mcp.json"), example, {})
        assert (list(read.servers), read.problems) == (["shop"], ())


@pytest.mark.parametrize("file", [None, 7, ""])
def test_where_the_file_is_unknown_it_is_named_in_general(
    tools: Any, server: ServerEnd, capsys: Output, file: JsonValue
) -> None:
    server.servers.clear()
    server.file = file
    agentbox("servers")

    assert "in `mcp.json` in Jupyter's configuration directory, for example:" in capsys.readouterr().out


def test_the_table_has_the_last_line_of_a_long_error(tools: Any, server: ServerEnd, capsys: Output) -> None:
    server.error = f"it ended\n    {'x' * 4000}\nIts entry is here."
    agentbox("servers")

    assert capsys.readouterr().out.endswith("xx…  Its entry is here.\n")


def test_a_configuration_that_cannot_be_read_is_not_called_none(tools: Any, server: ServerEnd, capsys: Output) -> None:
    server.servers.clear()
    server.problems = [{"path": "/etc/mcp.json", "message": "not valid JSON: a comma", "line": 3, "column": 5}]

    agentbox("servers")
    with pytest.raises(AttributeError) as raised:
        tools.shop  # noqa: B018

    problem = "Not read: /etc/mcp.json:3:5: not valid JSON: a comma"
    assert capsys.readouterr().out == f"{problem}\n"
    assert problem in str(raised.value)
    assert "none could be read" in str(raised.value)
    assert "none is configured" not in str(raised.value)


def test_tools_of_a_server_are_a_table(tools: Any, server: ServerEnd, capsys: Output) -> None:
    server.servers["empty"] = []

    agentbox("tools")
    agentbox("tools my-shop")
    agentbox("tools empty")
    agentbox("tools")

    assert capsys.readouterr().out == (
        "Which server? `%agentbox tools <server>`; `%agentbox servers` lists them.\n"
        "tools.my_shop.list_orders  List orders\n"
        "tools.my_shop.wait         Waits.\n"
        "tools.empty has no tools.\n"
        "tools.my_shop.list_orders  List orders\n"
        "tools.my_shop.wait         Waits.\n"
        "\n"
        "tools.empty has no tools.\n"
    )


def test_tools_of_an_unknown_server_are_a_mistake(tools: Any) -> None:
    with pytest.raises(UsageError):
        agentbox("tools nowhere")


def test_pending_requests_are_a_table(tools: Any, server: ServerEnd, capsys: Output) -> None:
    agentbox("pending")
    server.pending = [
        {"id": "r1", "server": "shop", "tool": "add", "created_at": "12:00", "expires_at": "12:10"},
        {"id": "r2", "server": "shop", "tool": "\x1b[2J", "created_at": "12:01", "expires_at": None},
    ]
    agentbox("pending")

    assert capsys.readouterr().out.splitlines() == [
        "No requests are waiting for approval.",
        "shop.add          since 12:00  expires 12:10  r1",
        "shop.<U+001B>[2J  since 12:01                 r2",
    ]


def test_help_lists_the_subcommands(capsys: Output) -> None:
    agentbox("help")

    assert "%agentbox pending" in capsys.readouterr().out


def test_unknown_subcommand_is_a_mistake_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="servers, tools, pending, help"):
        agentbox("serbers")


def test_subcommands_and_servers_are_completed(tools: Any) -> None:
    assert "servers" in complete(None, SimpleNamespace(line="%agentbox se"))
    assert complete(None, SimpleNamespace(line="%agentbox tools ")) == ["my_shop"]
    assert complete(None, SimpleNamespace(line="%agentbox tools my")) == ["my_shop"]
