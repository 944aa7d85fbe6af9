"""The demo notebook from top to bottom, on a real server, with a person who answers through the REST API."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TOKEN = "demo"


class Server:
    """A running demo and its REST API.

    Parameters
    ----------
    directory : Path
        Where the demo lives.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (information,) = (directory / "runtime").glob("jpserver-*.json")
        self.url = json.loads(information.read_text("utf-8"))["url"]

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


class Person(threading.Thread):
    """Corrects the price, keeps the order, allows the rest."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._is_done = threading.Event()
        self.answered: list[str] = []

    def run(self) -> None:
        while not self._is_done.wait(0.1):
            for request in self._server.ask("jupyter-agentbox/approvals?status=pending")["approvals"]:
                call = request["call"]
                self.answered.append(call["tool"])
                self._server.ask(
                    f"jupyter-agentbox/approvals/{request['id']}/decision",
                    {"digest": call["digest"], **self._answer(call)},
                )

    def stop(self) -> None:
        self._is_done.set()
        self.join(60)

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        if call["tool"] == "set_price":
            return {"decision": "allow_once", "arguments": {**call["arguments"], "price": 14.9}}
        if call["tool"] == "delete_order":
            return {"decision": "reject_once", "reason": "this one is open"}
        return {"decision": "allow_once"}


def listening(directory: Path) -> Server:
    """Return the server once it listens: it prints its address before that, and says nothing when it does."""
    pause, end = threading.Event(), time.monotonic() + 120
    while True:
        try:
            server = Server(directory)
            server.ask("api")
        except (ValueError, ConnectionError, urllib.error.URLError):
            if time.monotonic() > end:
                raise
            pause.wait(0.05)
        else:
            return server


@contextmanager
def running_demo(directory: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "jupyter_agentbox.demo", "--directory", str(directory)]
    options = ["--no-browser", "--port=0", f"--IdentityProvider.token={TOKEN}"]
    with subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if "is running at" in line:
                    break
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield listening(directory)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def wait_until_it_is_heard(client: BlockingKernelClient) -> None:
    """Wait until nothing that the kernel publishes is missed: until it publishes that it answers us."""
    asked: set[str] = set()
    end = time.monotonic() + 120
    while time.monotonic() < end:
        asked.add(client.kernel_info())
        with suppress(queue.Empty):
            while client.get_iopub_msg(timeout=0.5)["parent_header"].get("msg_id") not in asked:
                pass
            return
    raise TimeoutError("the kernel is not heard")


@contextmanager
def kernel_of(server: Server) -> Iterator[BlockingKernelClient]:
    session = {"path": "demo.ipynb", "name": "demo.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
    kernel_id = server.ask("api/sessions", session)["kernel"]["id"]
    connection = server.directory / "runtime" / f"kernel-{kernel_id}.json"
    client = BlockingKernelClient(connection_file=str(connection))
    client.load_connection_file()
    client.start_channels()
    try:
        wait_until_it_is_heard(client)
        yield client
    finally:
        client.stop_channels()


def outputs_of(client: BlockingKernelClient, source: str) -> str:
    """Run a cell; return what it prints, and below that what it displays, as text.

    A print may arrive in several messages, with a display's between them.
    """
    printed: list[str] = []
    displayed: list[str] = []

    def note(message: dict[str, Any]) -> None:
        content = message["content"]
        if "text" in content:
            printed.append(content["text"])
        else:
            displayed.append(content.get("data", {}).get("text/plain", ""))

    reply = client.execute_interactive(source, timeout=60, output_hook=note, allow_stdin=False)
    assert reply["content"]["status"] == "ok", (source, reply["content"])
    return "\n".join(["".join(printed), *displayed])


def test_the_notebook_does_what_it_says(tmp_path: Path) -> None:
    with running_demo(tmp_path) as server, kernel_of(server) as client:
        person = Person(server)
        person.start()
        notebook = nbformat.read(tmp_path / "notebooks" / "demo.ipynb", as_version=4)
        shown = {cell.id: outputs_of(client, cell.source) for cell in notebook.cells if cell.cell_type == "code"}
        person.stop()
    assert "Yirgacheffe" in shown["value"]
    assert "14.9" in shown["edit"]
    assert "Not deleted. this one is open" in shown["reject"]
    assert "1042" in shown["still-there"]
    assert "quantity" in shown["wrong"]
    assert "Decaf Huila now 29" in shown["loop"]
    assert "(4, 3, 3)" in shown["gather"]
    assert "image/png" in shown["chart"]
    assert "orders" in shown["query"]
    assert "2026-03" in shown["slow"]
    assert "jupyter-agentbox" in shown["status"]
    assert "tools.shop.delete_order" in shown["status-tools"]
    assert "Ada Nilsen" in shown["nothing"]
    assert person.answered.count("list_products") == 5
    assert "restock" in person.answered
