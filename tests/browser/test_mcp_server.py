"""``jupyter agentbox mcp`` for a client without elicitation: its calls stand in JupyterLab's panel like all others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest
from playwright.sync_api import expect

from .lab import ROOT, Lab
from .person import Person, decide

RESTOCK = "from jupyter_agentbox import tools\nprint(tools.shop.restock(product_id=1, quantity=2).stock > 0)"


class Wire:
    """An MCP client by hand, which writes a request now and reads its answer later."""

    def __init__(self, incoming: IO[str], outgoing: IO[str]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def send(self, method: str, params: Any, id: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": id} if id is not None else {})}
        self._outgoing.write(json.dumps(message) + "\n")
        self._outgoing.flush()

    def execute(self, id: int, code: str) -> None:
        self.call(id, "execute_code", code=code)

    def call(self, id: int, tool: str, **arguments: Any) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments}, id)

    def answer(self, id: int) -> Any:
        for line in self._incoming:
            message = json.loads(line)
            if message.get("id") == id:
                return message["result"]
        raise AssertionError("it hung up")


@contextmanager
def mcp_server(lab: Lab) -> Iterator[Wire]:
    """Start the command as a client's configuration does: it finds the JupyterLab by itself."""
    with subprocess.Popen(
        [sys.executable, "-m", "jupyter_agentbox.cli", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT), "JUPYTER_RUNTIME_DIR": str(lab.root / "runtime"), "PATH": ""},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        wire = Wire(process.stdout, process.stdin)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
        wire.send("initialize", hello, 1)
        wire.answer(1)
        wire.send("notifications/initialized", {})
        try:
            yield wire
        finally:
            process.stdin.close()
            process.wait(60)


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_a_call_of_an_mcp_clients_code_is_decided_in_the_panel(
    lab: Lab, person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook("1"))
    person.open_panel()
    with mcp_server(lab) as wire:
        wire.execute(2, RESTOCK)
        item = person.item("shop.restock")
        expect(item).to_contain_text("quantity2")
        expect(person.panel).to_contain_text("code outside a notebook")
        decide(item, "Allow once")
        allowed = wire.answer(2)
        expect(item).to_have_count(0)  # the next one has the same name
        wire.execute(3, RESTOCK)
        decide(item, "Reject")
        item.get_by_role("textbox").fill("not today")
        decide(item, "Reject")
        rejected = wire.answer(3)
        expect(item).to_have_count(0)

    assert allowed["content"] == [{"type": "text", "text": "True"}]
    assert rejected["isError"]
    assert "not today" in rejected["content"][0]["text"]


def test_a_server_that_an_mcp_client_wants_to_add_is_decided_about_in_the_panel(
    lab: Lab, person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook("1"))
    person.open_panel()
    added = {"command": sys.executable, "args": ["-c", "import added_server"], "env": {"API_KEY": "s3cret-key"}}
    with mcp_server(lab) as wire:
        wire.call(2, "register_mcp_server", name="added", configuration=added)
        item = person.item("agentbox.register_mcp_server")
        expect(item).to_contain_text("Add an MCP server")
        expect(item).to_contain_text("import added_server")
        expect(item).to_contain_text("API_KEY")
        expect(item).not_to_contain_text("s3cret-key")
        decide(item, "Reject")
        item.get_by_role("textbox", name="Reason").fill("not on this machine")
        decide(item, "Reject")
        rejected = wire.answer(2)
        expect(item).to_have_count(0)  # the next one has the same name
        wire.call(3, "register_mcp_server", name="added", configuration=added)
        decide(item, "Allow once")
        failed = wire.answer(3)
        expect(item).to_have_count(0)

    assert rejected["isError"]
    assert "not on this machine" in rejected["content"][0]["text"]
    assert failed["isError"]
    assert "did not start" in failed["content"][0]["text"]
    assert "added" not in [server["name"] for server in lab.ask("jupyter-agentbox/servers")["servers"]]
