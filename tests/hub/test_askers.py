"""Who asked, in one server of a real JupyterHub that several users share."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from .hub import API, COLLABORATOR, OWNER, TIMEOUT, Hub, Session

#: A cell that claims to be one of the owner's, and calls a tool.
CELL = f"""
kernel = get_ipython().kernel
parent = dict(kernel.get_parent("shell"))
parent["header"] = {{**parent["header"], "username": "{OWNER}", "session": "of-{OWNER}"}}
parent["metadata"] = {{"cellId": "of-{OWNER}"}}
kernel.set_parent([], parent, "shell")
from jupyter_agentbox import tools
from jupyter_agentbox.kernel import cells
cells._current.set(cells.Cell(parent))
tools.shop.delete_order(order_id=1210)
"""


def with_token(token: str) -> dict[str, str]:
    return {"Authorization": f"token {token}"}


def with_cookies(hub: Hub, user: str) -> dict[str, str]:
    """Return what the page of a browser sends in which a user opened the owner's server."""
    session = Session(hub, user)
    session.open_lab(hub.server())
    path = urllib.parse.urlsplit(hub.server()).path
    found = {cookie.name: cookie.value or "" for cookie in session.jar if cookie.path == path}
    return {"Cookie": "; ".join(map("=".join, found.items())), "X-XSRFToken": found["_xsrf"]}


#: How code comes to the owner's kernel -> who asked for what it calls.
WAYS: dict[str, tuple[Callable[[Hub], dict[str, str]], tuple[str, str, str, str | None]]] = {
    "browser": (lambda hub: with_cookies(hub, COLLABORATOR), (COLLABORATOR, "user", "browser", None)),
    "token": (
        lambda hub: with_token(hub.token_of(COLLABORATOR, note="nightly run")),
        (COLLABORATOR, "user", "api_token", "nightly run"),
    ),
    "token for servers": (
        lambda hub: with_token(hub.token_of(COLLABORATOR, scopes=[f"access:servers!user={OWNER}"], note="untold")),
        (COLLABORATOR, "user", "api_token", None),  # the Hub does not tell it the note
    ),
    "service": (lambda hub: with_token(hub.robot), ("robot", "service", "api_token", None)),
}


async def send_code(url: str, headers: dict[str, str]) -> None:
    """Send the cell by the server's websocket, in a message that says that it is the owner's."""
    header = {"msg_id": "1", "msg_type": "execute_request", "username": OWNER, "session": "s", "version": "5.3"}
    content = {"code": CELL, "silent": False, "store_history": False, "allow_stdin": False, "stop_on_error": True}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    connection = await websocket_connect(HTTPRequest(url, headers=headers, request_timeout=TIMEOUT))
    await connection.write_message(json.dumps({**message, "buffers": []}))
    while json.loads(await connection.read_message() or "{}")["header"]["msg_type"] != "execute_input":
        pass
    connection.close()
    while await connection.read_message() is not None:
        pass  # until the server has closed it, too


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("shop")
def test_who_asks_is_whose_session_or_token_sent_the_code_whatever_code_and_messages_claim(hub: Hub, way: str) -> None:
    find, expected = WAYS[way]
    with hub.kernel() as kernel:
        kernel_id = Path(kernel.connection_file).stem.removeprefix("kernel-")
        url = f"{hub.server()}api/kernels/{kernel_id}/channels".replace("http", "ws", 1)
        asyncio.run(send_code(url, find(hub)))
        request = waiting_of(hub, kernel_id)

    assert request["call"]["cell_id"] == f"of-{OWNER}"  # what a kernel says of itself, it can make up
    facts = [(one["name"], one["kind"], one["via"], one["token_note"]) for one in request["call"]["askers"]]
    assert facts == [expected]
    assert OWNER not in request["call"]["asked_by"]


def waiting_of(hub: Hub, kernel_id: str) -> Any:
    """Return the request of a kernel, once it waits."""
    end = time.monotonic() + TIMEOUT
    while True:
        _, page = hub.ask(f"{hub.server()}{API}approvals?status=pending&kernel_id={kernel_id}", token=hub.admin)
        if page["approvals"]:
            return page["approvals"][0]
        assert time.monotonic() < end, "nothing asked"
        time.sleep(0.1)  # a kernel of another process asks, and tells nobody here
