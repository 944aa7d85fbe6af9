"""The REST API of threads, over HTTP against a real Jupyter server."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from jupyter_server.auth.authorizer import Authorizer
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.agents.threads.running_turns import RunningTurn
from jupyter_agentbox.core.threads import Thread, Turn
from jupyter_agentbox.services.handlers import SETTINGS_KEY
from jupyter_agentbox.services.threads import event_reader
from jupyter_agentbox.services.threads.handlers import TurnEventsHandler
from jupyter_agentbox.services.threads.manager import NotebookThreads
from jupyter_agentbox.storage.threads import SqlThreadStore
from jupyter_agentbox.testing import FakeClock, MockModelServer
from tests.samples import NOON

from .conftest import KEY, PATIENCE, ScriptedKernel

Begin = Callable[..., Awaitable[RunningTurn]]
NOTEBOOK = "a ü.ipynb"
PATHS = [
    ("GET", "threads"),
    ("GET", "threads/{thread}"),
    ("PATCH", "threads/{thread}"),
    ("DELETE", "threads/{thread}"),
    ("POST", "threads/{thread}/fork"),
    ("GET", "threads/{thread}/messages"),
    ("GET", "turns/{turn}"),
    ("POST", "turns/{turn}/steer"),
    ("POST", "turns/{turn}/interrupt"),
    ("GET", "turns/{turn}/events"),
]


class WriteOnly(Authorizer):
    """Lets everybody write, and nobody read."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:  # noqa: ARG002
        return action == "write"


class ReadOnly(Authorizer):
    """Lets everybody read threads, and do nothing else."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:  # noqa: ARG002
        return (action, resource) == ("read", "jupyter_agentbox:threads")


@pytest.fixture
def jp_server_config(model: MockModelServer, database: str, tmp_path: Any, request: pytest.FixtureRequest) -> Any:
    marker = request.node.get_closest_marker("parametrize")
    more = request.node.callspec.params.get("traits", {}) if marker is not None else {}
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}, **more},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": database,
            "agent_model": "openai:scripted",
            "agent_base_url": model.base_url,
        },
    }


@pytest.fixture
def threads(jp_serverapp: Any) -> NotebookThreads:
    made: NotebookThreads = jp_serverapp.web_app.settings[SETTINGS_KEY].threads()
    return made


@pytest.fixture
def begin(threads: NotebookThreads) -> Begin:
    async def begin(thread_id: str = "", kernel: ScriptedKernel | None = None) -> RunningTurn:
        thread_id = thread_id or (await threads.start(NOTEBOOK)).id
        async with asyncio.timeout(PATIENCE):
            return await threads.begin(thread_id, "go", kernel=kernel or ScriptedKernel())

    return begin


@pytest.fixture
def fetch(jp_fetch: Any) -> Any:
    async def fetch(method: str, *parts: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        if body is not None or method in ("POST", "PATCH"):
            more["body"] = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        try:
            answer = await jp_fetch("jupyter-agentbox", *parts, method=method, allow_nonstandard_methods=True, **more)
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body if error.response else "null")
        return answer.code, json.loads(answer.body or "null")

    return fetch


class Stream:
    """A reader of events over a socket of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0

    async def event(self) -> tuple[int, Any]:
        """Return the next event and its number."""
        while True:
            lines = (await self._reader.readuntil(b"\n\n")).decode().splitlines()
            found = [line for line in lines if line.startswith(("id:", "data:"))]  # without the chunks' sizes
            if found:
                return int(found[0].removeprefix("id: ")), json.loads(found[1].removeprefix("data: "))

    async def rest(self) -> list[tuple[int, Any]]:
        """Return the events up to the last."""
        events = [await self.event()]
        while events[-1][1]["type"] != "turn_completed":
            events.append(await self.event())
        return events

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@pytest.fixture
def read(
    jp_serverapp: Any,
    jp_base_url: str,
    http_server: Any,
    http_server_port: Any,
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> Any:
    """Begin to read a turn's events."""
    del http_server  # it answers
    opened: list[Stream] = []

    async def read(turn_id: str, *, after: str = "", last: str = "", buffer: int | None = None) -> Stream:
        connection = socket.socket()
        if buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", http_server_port[1]))
        reader, writer = await asyncio.open_connection(sock=connection, limit=1 << 26)
        query = f"?after={after}" if after else ""
        lines = [
            f"GET {jp_base_url}jupyter-agentbox/turns/{turn_id}/events{query} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: token {jp_serverapp.identity_provider.token}",
            *([f"Last-Event-ID: {last}"] if last else []),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        stream = Stream(reader, writer)
        opened.append(stream)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        stream.status = int(head.split()[1])
        assert stream.status != 200 or "Content-Type: text/event-stream" in head
        return stream

    async def close() -> None:
        await asyncio.gather(*(stream.close() for stream in opened))

    yield read
    jp_asyncio_loop.run_until_complete(close())


async def test_a_thread_reads_as_the_reference_says(fetch: Any, begin: Begin, model: MockModelServer) -> None:
    model.enqueue_message("It is 42.", phase="final_answer")
    running = await begin()
    await running.wait()

    code, thread = await fetch("GET", "threads", running.thread_id)
    [turn] = thread.pop("turns")
    _, page = await fetch("GET", "threads")

    assert (code, page) == (200, {"threads": [thread], "next": None})
    assert thread.pop("created_at")
    assert thread.pop("updated_at")
    usage = thread.pop("usage")
    assert thread == {
        "id": running.thread_id,
        "name": "",
        "approval_mode": "ask",
        "model": "openai:scripted",
        "notebook_path": NOTEBOOK,
        "is_archived": False,
        "forked_from": None,
        "current_since": None,
        "state": "idle",
        "turn_id": None,
        "kernel_id": None,
        "last_prompt": "go",
        "steps": 1,
    }
    assert (usage["requests"], turn["usage"]) == (1, usage)
    assert [(item["type"], item["text"]) for item in turn["items"]] == [
        ("user_message", "go"),
        ("agent_message", "It is 42."),
    ]
    assert await fetch("GET", "turns", running.id) == (200, turn)


async def test_threads_are_listed_page_by_page(fetch: Any, threads: NotebookThreads) -> None:
    ids = [(await threads.start(path)).id for path in (NOTEBOOK, "b.ipynb", NOTEBOOK)]
    await threads.change(ids[1], is_archived=True)

    async def listed(**query: str) -> Any:
        _, page = await fetch("GET", "threads", params=query)
        return [one["id"] for one in page["threads"]], page["next"]

    (first, following), (rest, end) = await listed(limit="1"), (None, None)
    rest, end = await listed(limit="1", cursor=following)
    assert (first + rest, end) == ([ids[2], ids[0]], None)
    assert (await listed(archived="1"))[0] == [ids[1]]
    assert (await listed(notebook_path=NOTEBOOK))[0] == [ids[2], ids[0]]
    assert (await listed(notebook_path="c.ipynb"))[0] == []


async def test_a_query_that_is_none_is_422(fetch: Any) -> None:
    for query in ({"limit": "0"}, {"limit": "501"}, {"limit": "9" * 5_000}, {"archived": "yes"}, {"cursor": "zzz"}):
        code, body = await fetch("GET", "threads", params=query)
        assert (code, bool(body["message"])) == (422, True), query


async def test_a_thread_is_changed_archived_forked_and_deleted(
    fetch: Any, begin: Begin, model: MockModelServer
) -> None:
    model.enqueue_message("done")
    running = await begin()
    await running.wait()
    id = running.thread_id

    change = {"name": "Sales \ud800", "approval_mode": "deny_all", "model": "anthropic:other"}
    code, changed = await fetch("PATCH", "threads", id, body=change)
    assert (code, {name: changed[name] for name in change}) == (200, change)
    _, archived = await fetch("PATCH", "threads", id, body={"is_archived": True})
    assert (archived["is_archived"], archived["name"]) == (True, "Sales \ud800")

    code, fork = await fetch("POST", "threads", id, "fork")
    assert (code, fork["forked_from"], fork["is_archived"], fork["last_prompt"]) == (201, id, False, "go")
    assert (await fetch("POST", "threads", id, "fork", body={"turn_id": running.id}))[0] == 201
    assert (await fetch("POST", "threads", id, "fork", body={"turn_id": "nope"}))[0] == 404

    assert (await fetch("DELETE", "threads", id))[0] == 204
    assert (await fetch("GET", "threads", id))[0] == 404
    assert (await fetch("GET", "threads", fork["id"]))[0] == 200


async def test_a_change_that_is_none_is_422_and_changes_nothing(fetch: Any, threads: NotebookThreads) -> None:
    thread = await threads.start(NOTEBOOK)
    bodies: list[Any] = [
        {"name": 1},
        {"name": "x" * 501},
        {"is_archived": "yes"},
        {"approval_mode": "auto"},
        {"approval_mode": ["ask"]},
        {"model": {}},
        {"owner": "mallory"},
        "[]",
        "",
        '{"name": "a", "name": "b"}',
    ]
    for body in bodies:
        code, answer = await fetch("PATCH", "threads", thread.id, body=body)
        assert (code, answer["reason"], "traceback" in answer) == (422, "invalid_request", False), body
    assert (await threads.entry(thread.id)).thread == thread


async def test_a_turn_is_steered_and_interrupted_and_its_thread_is_not_deleted_meanwhile(
    fetch: Any, begin: Begin, model: MockModelServer
) -> None:
    kernel = ScriptedKernel()
    model.enqueue_tool_call("run_code", {"code": "1"})
    running = await begin(kernel=kernel)
    async with asyncio.timeout(PATIENCE):
        await kernel.asked.get()

    code, busy = await fetch("DELETE", "threads", running.thread_id)
    assert (code, busy["reason"]) == (409, "thread_busy")
    wrong: list[Any] = [{}, {"text": ""}, {"text": " \n"}, {"text": 1}, {"text": "x" * 100_001}, {"text": "x", "to": 1}]
    for body in wrong:
        assert (await fetch("POST", "turns", running.id, "steer", body=body))[0] == 422
    assert await fetch("POST", "turns", running.id, "steer", body={"text": "hurry"}) == (
        200,
        {"id": running.id, "thread_id": running.thread_id, "status": "in_progress"},
    )
    assert (await fetch("POST", "turns", running.id, "interrupt", body={"now": True}))[0] == 422
    code, ended = await fetch("POST", "turns", running.id, "interrupt")
    assert (code, ended["status"]) == (200, "interrupted")
    assert (await fetch("POST", "turns", running.id, "interrupt"))[1] == ended
    code, late = await fetch("POST", "turns", running.id, "steer", body={"text": "more"})
    assert (code, late["reason"]) == (409, "thread")
    assert [item["text"] for item in (await fetch("GET", "turns", running.id))[1]["items"][:1]] == ["go"]


async def test_what_is_not_there_is_404(fetch: Any) -> None:
    for method, path in PATHS[1:]:
        body = {"text": "x"} if path.endswith("steer") else {} if method == "PATCH" else None
        code, answer = await fetch(method, *path.format(thread="nope", turn="nope").split("/"), body=body)
        assert (code, answer["reason"]) == (404, "unknown_thread"), path


async def test_what_the_model_was_sent_can_be_read(fetch: Any, begin: Begin, model: MockModelServer) -> None:
    model.enqueue_message("It is 42.")
    running = await begin()
    await running.wait()

    code, body = await fetch("GET", "threads", running.thread_id, "messages")

    assert code == 200
    assert body["messages"][-2:] == [{"role": "user", "text": "go"}, {"role": "assistant", "text": "It is 42."}]


async def test_a_reader_that_connects_again_gets_each_event_once_in_order(
    read: Any, begin: Begin, model: MockModelServer
) -> None:
    kernel = ScriptedKernel()
    model.enqueue_tool_call("run_code", {"code": "6 * 7"})
    model.enqueue_message("It is 42.", deltas=["It ", "is ", "42."])
    async with asyncio.timeout(PATIENCE):
        running = await begin(kernel=kernel)
        stream = await read(running.id)
        events = [await stream.event()]
        while events[-1][1]["type"] != "approval_requested":
            events.append(await stream.event())
        await stream.close()  # cut off
        await (await kernel.asked.get()).accept()
        again = await read(running.id, after="0", last=str(events[-1][0]))  # as a browser does it
        events += await again.rest()
        by_query = await (await read(running.id, after="3")).rest()
        over = await read(running.id, last=str(events[-1][0]))

    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert by_query == events[3:]
    assert over.status == 204
    types = [event["type"] for _, event in events]
    assert (types[0], types.count("turn_started"), types[-1]) == ("turn_started", 1, "turn_completed")
    asked = next(event for _, event in events if event["type"] == "approval_requested")
    assert asked.pop("item_id")
    assert asked == {
        "type": "approval_requested",
        "turn_id": running.id,
        "request_id": "r1",
        "server": "notebook",
        "tool": "run_code",
    }
    said = [event["delta"] for _, event in events if event["type"] == "agent_message_delta"]
    assert said == ["It ", "is ", "42."]


async def test_a_place_in_a_stream_that_is_none_is_422(read: Any, begin: Begin, model: MockModelServer) -> None:
    model.enqueue_message("late", is_held=True)
    async with asyncio.timeout(PATIENCE):
        running = await begin()
        for after in ("x", "-1", "1.5", "9" * 13, "%C2%B2", "1000"):
            assert (await read(running.id, after=after)).status == 422, after


async def test_many_streams_at_once_are_not_mixed(read: Any, begin: Begin, model: MockModelServer) -> None:
    kernels = [ScriptedKernel() for _ in range(8)]
    async with asyncio.timeout(PATIENCE):
        turns = []
        for number, kernel in enumerate(kernels):
            model.enqueue_tool_call("run_code", {"code": f"code of {number}"})
            turns.append(await begin(kernel=kernel))
            await asyncio.to_thread(model.wait_for_requests, number + 1)
        streams = [await read(turn.id) for turn in turns]
        reading = [asyncio.create_task(stream.rest()) for stream in streams]
        for kernel in reversed(kernels):
            model.enqueue_message("done")
            await (await kernel.asked.get()).accept()
        all_events = await asyncio.gather(*reading)

    for number, (turn, events) in enumerate(zip(turns, all_events, strict=True)):
        assert [index for index, _ in events] == list(range(1, len(events) + 1))
        assert {event.get("turn_id", event.get("turn", {}).get("id")) for _, event in events} == {turn.id}
        codes = {event["item"]["code"] for _, event in events if event.get("item", {}).get("type") == "code_run"}
        assert codes == {f"code of {number}"}


async def test_a_reader_that_does_not_read_holds_up_nobody(
    read: Any, fetch: Any, begin: Begin, model: MockModelServer
) -> None:
    long = ["x" * 10_000] * 90
    model.enqueue_message("".join(long), deltas=long, is_held=True)
    async with asyncio.timeout(PATIENCE):
        running = await begin()
        slow = await read(running.id, buffer=4_096)
        quick = await read(running.id)
        model.release()
        events = await quick.rest()
        await running.wait()
        code, _ = await fetch("GET", "turns", running.id)
        late = await slow.rest()

    assert (code, late) == (200, events)
    assert "".join(event.get("delta", "") for _, event in events) == "".join(long)


async def test_nothing_is_left_of_a_reader_that_went_away(read: Any, begin: Begin, model: MockModelServer) -> None:
    def handlers() -> int:
        gc.collect()
        return sum(isinstance(one, TurnEventsHandler) for one in gc.get_objects())

    model.enqueue_message("late", is_held=True)
    async with asyncio.timeout(PATIENCE):
        running = await begin()
        streams = [await read(running.id) for _ in range(5)]
        for stream in streams:
            await stream.event()
        before = handlers()
        sending = [task for task in asyncio.all_tasks() if "TurnEventsHandler._send" in repr(task.get_coro())]
        for stream in streams:
            await stream.close()
        count = len(sending)
        await asyncio.wait(sending)
        sending.clear()
        while handlers():  # noqa: ASYNC110  # of each, the server's own task ends next, and tells nobody
            await asyncio.sleep(0)

    assert (before, count) == (5, 5)


async def test_a_stream_without_events_says_that_it_is_there(
    read: Any, begin: Begin, model: MockModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_reader, "HEARTBEAT", 0.01)
    model.enqueue_message("late", is_held=True)
    async with asyncio.timeout(PATIENCE):
        stream = await read((await begin()).id)
        while b": still here" not in (text := await stream._reader.readuntil(b"\n\n")):
            assert b"data: " in text


async def test_of_a_turn_of_before_this_server_the_end_is_left(
    read: Any, threads: NotebookThreads, database: str
) -> None:
    thread = await threads.start(NOTEBOOK)
    before = SqlThreadStore(database, clock=FakeClock())
    await before.begin(Turn(id="left", thread_id=thread.id, started_at=NOON))
    await before.aclose()  # it died

    async with asyncio.timeout(PATIENCE):
        events = await (await read("left", last="7")).rest()

    assert [(number, event["type"], event["turn"]["status"]) for number, event in events] == [
        (8, "turn_completed", "interrupted")
    ]


@pytest.mark.parametrize("provider", ["openai", "openai-chat", "anthropic"])
@pytest.mark.parametrize("status", [200, 401, 500])
async def test_a_key_that_a_provider_repeats_is_told_to_nobody(
    fetch: Any,
    read: Any,
    begin: Begin,
    threads: NotebookThreads,
    model: MockModelServer,
    tmp_path: Any,
    caplog: pytest.LogCaptureFixture,
    status: int,
    provider: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    thread = await threads.start(NOTEBOOK, model=f"{provider}:scripted")
    for _ in range(10):  # the provider's library tries again
        if status == 200:
            model.enqueue_raw(f"data: garbage with {KEY}\n\n".encode(), status)
        else:
            model.enqueue_error(status, text=f"the key {KEY} is not liked")
    async with asyncio.timeout(PATIENCE):
        running = await begin(thread.id)
        events = await (await read(running.id)).rest()
        await running.wait()
    _, told = await fetch("GET", "threads", thread.id)
    _, messages = await fetch("GET", "threads", thread.id, "messages")

    headers = model.requests[0].headers
    assert headers.get("x-api-key", headers.get("authorization", "").removeprefix("Bearer ")) == KEY
    assert told["state"] == "failed"
    assert KEY not in json.dumps([events, told, messages])
    assert KEY not in caplog.text
    assert [path.name for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []


async def test_a_thread_goes_with_its_notebook_when_that_is_renamed(
    jp_fetch: Any, jp_serverapp: Any, threads: NotebookThreads, fetch: Any
) -> None:
    await jp_fetch("api", "contents", "a.ipynb", method="PUT", body=json.dumps({"type": "notebook"}))
    thread = await threads.start("a.ipynb")

    await jp_fetch("api", "contents", "a.ipynb", method="PATCH", body=json.dumps({"path": "b ü.ipynb"}))
    await jp_serverapp.event_logger.gather_listeners()

    current = await threads.current("b ü.ipynb")
    assert current is not None
    assert current.id == thread.id
    assert (await fetch("GET", "threads", params={"notebook_path": "a.ipynb"}))[1]["threads"] == []


async def test_a_thread_of_before_this_server_goes_with_its_notebook_when_that_is_renamed(
    jp_fetch: Any, jp_serverapp: Any, fetch: Any, database: str
) -> None:
    await jp_fetch("api", "contents", "a.ipynb", method="PUT", body=json.dumps({"type": "notebook"}))
    before = SqlThreadStore(database, clock=FakeClock())
    await before.put(Thread(id="t1", created_at=NOON, updated_at=NOON, notebook_path="a.ipynb"))
    await before.aclose()

    await jp_fetch("api", "contents", "a.ipynb", method="PATCH", body=json.dumps({"path": "b.ipynb"}))
    await jp_serverapp.event_logger.gather_listeners()

    _, page = await fetch("GET", "threads")
    assert [(one["id"], one["notebook_path"]) for one in page["threads"]] == [("t1", "b.ipynb")]


async def test_every_change_is_announced_without_what_was_said(
    jp_serverapp: Any, fetch: Any, begin: Begin, model: MockModelServer
) -> None:
    told: list[Any] = []

    async def listen(logger: Any, schema_id: str, data: Any) -> None:  # by name
        told.append({key: data[key] for key in data if not key.startswith("__")})

    schema = "https://events.jupyter-agentbox.org/thread/v1"
    jp_serverapp.event_logger.add_listener(schema_id=schema, listener=listen)
    model.enqueue_message("secret")
    running = await begin()
    await running.wait()
    await fetch("PATCH", "threads", running.thread_id, body={"name": "secret"})
    await fetch("DELETE", "threads", running.thread_id)
    await jp_serverapp.event_logger.gather_listeners()

    states = ["idle", "working", "idle", "idle", "deleted"]
    assert told == [{"thread_id": running.thread_id, "state": state} for state in states]


async def test_without_a_token_nothing_is_told_or_done(fetch: Any, threads: NotebookThreads) -> None:
    thread = await threads.start(NOTEBOOK)
    for method, path in PATHS:
        parts = path.format(thread=thread.id, turn="t1").split("/")
        assert (await fetch(method, *parts, headers={"Authorization": "token wrong"}))[0] == 403, path
    assert (await threads.entry(thread.id)).thread == thread


async def test_a_change_needs_more_than_a_cookie(
    http_server_client: Any, jp_base_url: str, threads: NotebookThreads
) -> None:
    thread = await threads.start(NOTEBOOK)
    for method, path in PATHS:
        if method == "GET":
            continue
        url = f"{jp_base_url}jupyter-agentbox/{path.format(thread=thread.id, turn='t1')}"
        with pytest.raises(HTTPClientError) as caught:
            await http_server_client.fetch(url, method=method, body="{}", allow_nonstandard_methods=True)
        assert caught.value.code == 403, path
    assert (await threads.entry(thread.id)).thread == thread


@pytest.mark.parametrize("traits", [{"authorizer_class": WriteOnly}])
async def test_who_may_write_and_not_read_is_told_ids_only(fetch: Any, threads: NotebookThreads, traits: Any) -> None:
    del traits
    thread = await threads.start(NOTEBOOK)

    assert await fetch("PATCH", "threads", thread.id, body={"name": "n"}) == (200, {"id": thread.id})
    code, fork = await fetch("POST", "threads", thread.id, "fork")
    assert (code, list(fork)) == (201, ["id"])
    for path in ("threads", f"threads/{thread.id}", f"threads/{thread.id}/messages", "turns/t1", "turns/t1/events"):
        assert (await fetch("GET", *path.split("/")))[0] == 403


@pytest.mark.parametrize("traits", [{"authorizer_class": ReadOnly}])
async def test_who_may_read_and_not_write_changes_nothing(fetch: Any, threads: NotebookThreads, traits: Any) -> None:
    del traits
    thread = await threads.start(NOTEBOOK)

    for method, path in PATHS:
        if method != "GET":
            assert (await fetch(method, *path.format(thread=thread.id, turn="t1").split("/"), body={}))[0] == 403
    assert (await fetch("GET", "threads", thread.id))[1]["name"] == ""
