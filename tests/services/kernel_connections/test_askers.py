"""Whom the server sees sending code to kernels: at the websockets of a real server, and what counts as code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest
from jupyter_server.services.kernels.connection.base import serialize_msg_to_ws_v1
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.services.kernel_connections.askers import MOST_ASKERS, KernelAskers, may_run_code

ADA, BEN = Asker(name="ada", via=Via.BROWSER), Asker(name="ben", via=Via.BROWSER)


def a_message(kind: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "header": {"msg_id": "1", "msg_type": kind, "username": "somebody else", "session": "s", "version": "5.3"},
        "parent_header": {},
        "metadata": {},
        "content": content or {},
        "channel": "shell",
        "buffers": [],
    }


def in_v1(message: dict[str, Any]) -> bytes:
    pack = lambda part: json.dumps(part).encode()  # noqa: E731
    return cast(bytes, serialize_msg_to_ws_v1(message, "shell", pack))  # type: ignore[no-untyped-call]  # Jupyter's


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        ("execute_request", {"code": "1"}, True),
        ("comm_msg", {"comm_id": "w", "data": {"method": "custom", "content": {"event": "click"}}}, True),
        ("comm_msg", {"comm_id": "w", "data": {"method": "request_states"}}, False),
        ("comm_msg", {"comm_id": "w", "data": {"method": "request_states", "more": "x" * 20_000}}, True),
        ("comm_msg", {"comm_id": "w", "data": [1]}, True),
        ("comm_open", {"target_name": "jupyter.widget.control"}, False),
        ("comm_open", {"target_name": "somebody's"}, True),
        ("debug_request", {"command": "debugInfo"}, False),
        ("debug_request", {"command": "evaluate"}, True),
        ("kernel_info_request", {}, False),
        ("complete_request", {}, False),
        ("create_subshell_request", {}, False),
        ("delete_subshell_request", {"subshell_id": "s1"}, False),
        ("list_subshell_request", {}, False),
        ("a_kind_of_later", {}, True),
    ],
)
def test_what_pages_send_by_themselves_is_no_code_and_all_else_may_be(
    kind: str, content: dict[str, Any], expected: bool
) -> None:
    message = a_message(kind, content)
    assert may_run_code(in_v1(message), is_v1=True) is expected
    if "more" not in content.get("data", {}):
        assert may_run_code(json.dumps(message), is_v1=False) is expected


@pytest.mark.parametrize(
    "message",
    [
        *(b"", b"\xff" * 40, "{", "[]", '{"header": 1}'),
        '{"header": {"msg_type": "comm_open"}, "content": []}',
        '{"header": {"msg_type": ["comm_open"]}, "content": {}}',
    ],
)
@pytest.mark.parametrize("is_v1", [True, False])
def test_what_cannot_be_read_may_be_code(message: Any, is_v1: bool) -> None:
    assert may_run_code(message, is_v1=is_v1)


def test_everybody_who_has_used_a_kernel_counts_until_it_ends() -> None:
    running = {"k1", "k2"}
    askers = KernelAskers(running.__contains__)
    askers.note("k1", ADA)
    askers.note("k1", BEN)
    askers.note("k1", ADA)
    assert (askers.of("k1"), askers.of("k2")) == ((ADA, BEN), ())

    running.remove("k1")
    askers.note("k2", BEN)
    assert (askers.of("k1"), askers.of("k2")) == ((), (BEN,))


def test_of_very_many_somebody_unknown_stands_for_the_rest() -> None:
    askers = KernelAskers()
    for number in range(MOST_ASKERS + 10):
        askers.note("k1", Asker(name=f"user-{number}"))
    assert len(askers.of("k1")) == MOST_ASKERS + 1
    assert askers.of("k1")[-1] == Asker()


def test_of_very_many_notes_of_tokens_the_rest_is_left_out_and_no_other_person_becomes_unknown() -> None:
    askers, token = KernelAskers(), Asker(name="ada", via=Via.API_TOKEN)
    for number in range(MOST_ASKERS + 10):
        askers.note("k1", replace(token, token_note=f"run {number}"))
    askers.note("k1", BEN)
    assert len(askers.of("k1")) == MOST_ASKERS + 2
    assert askers.of("k1")[-2:] == (token, BEN)


async def test_the_server_notes_whose_websocket_sends_code_and_not_who_looks(
    jp_fetch: Any, jp_ws_fetch: Any, jp_serverapp: Any
) -> None:
    app = next(app for apps in jp_serverapp.extension_manager.extension_apps.values() for app in apps)
    await jp_serverapp.extension_manager.start_all_extensions()
    started = await jp_fetch("api", "kernels", method="POST", body="{}")
    kernel_id = json.loads(started.body)["id"]

    looks = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    await looks.write_message(json.dumps(a_message("kernel_info_request")))
    await until_reply(looks, "kernel_info_reply")
    for kind, content in (("create", {}), ("delete", {"subshell_id": "no such"})):  # as JupyterLab does for its widgets
        await looks.write_message(json.dumps({**a_message(f"{kind}_subshell_request", content), "channel": "control"}))
        await until_reply(looks, f"{kind}_subshell_reply")
    assert app._askers.of(kernel_id) == ()

    await looks.write_message(json.dumps(a_message("execute_request", {"code": "1", "silent": True})))
    await until_reply(looks, "execute_reply")
    assert app._askers.of(kernel_id) == (Asker(via=Via.API_TOKEN),)

    page = await jp_fetch("api", "me", params={"token": jp_serverapp.identity_provider.token})
    cookie = "; ".join(header.partition(";")[0] for header in page.headers.get_list("Set-Cookie"))
    url = page.effective_url.replace("http", "ws", 1).partition("/api/")[0] + f"/api/kernels/{kernel_id}/channels"
    browser = await websocket_connect(HTTPRequest(url, headers={"Cookie": cookie}))
    await browser.write_message(json.dumps(a_message("execute_request", {"code": "2", "silent": True})))
    await until_reply(browser, "execute_reply")
    me = json.loads(page.body)["identity"]
    _, person = app._askers.of(kernel_id)
    assert person == Asker(name=me["username"], via=Via.BROWSER, display_name=me["display_name"])
    browser.close()
    looks.close()


async def until_reply(websocket: Any, kind: str) -> None:
    while True:
        message = json.loads(await websocket.read_message())
        if message["header"]["msg_type"] == kind:
            return
